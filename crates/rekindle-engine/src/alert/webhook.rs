//! An alert as an HTTP POST. Owns what is sent, which responses are final and how often it is attempted; the URL is treated
//! like a password, since anybody who knows it can write there.

use std::time::Duration;

use rekindle_core::text::{one_line, truncate_bytes};
use serde::Serialize;

use super::{Alert, Kind};

/// Longest time for one request, from the connection to the response head.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits before the first and second retry; after those it gives up.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Longest text that is sent: receivers refuse more.
const TEXT_MAX_BYTES: usize = 4_000;

/// Longest reason that is repeated.
const REASON_MAX_BYTES: usize = 200;

/// A place that alerts are posted to.
#[derive(Debug)]
pub struct Webhook {
    url: String,
    agent: ureq::Agent,
}

/// What a URL says about its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host and port, without the path: that is a secret.
    pub host: String,
    /// Encrypted on its way.
    pub encrypted: bool,
    /// This machine.
    pub loopback: bool,
}

#[derive(Serialize)]
struct Posted<'a> {
    /// Set only if the post is not a call for a person, because at first every post was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    text: &'a str,
    choices: &'a [String],
    run: &'a str,
    plan: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    /// What its agent printed last, an error first.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    evidence: &'a [String],
    /// Milliseconds since the Unix epoch.
    time: i64,
}

enum Tried {
    Taken,
    /// A retry may help.
    NotNow(String),
    /// A retry will not help.
    Never(String),
}

/// Checks a URL's form. The error says what is wrong with it, without repeating it.
pub fn check(url: &str) -> Result<Target, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it is not a URL: write https://HOST/PATH")?;
    let encrypted = match scheme {
        "https" => true,
        "http" => false,
        _ => return Err("it begins with neither https:// nor http://".to_owned()),
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        return Err("it contains white space or characters that a URL cannot have".to_owned());
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    if host.contains('@') {
        return Err("it contains a user name or password, which would end up in logs: use a URL without".to_owned());
    }
    let uri: ureq::http::Uri = url.parse().map_err(|_| "it is not a URL: write https://HOST/PATH")?;
    let name = uri.host().unwrap_or("").trim_matches(['[', ']']).to_owned();
    if name.is_empty() {
        return Err("it names no host".to_owned());
    }
    let address: Option<std::net::IpAddr> = name.parse().ok();
    let loopback = name == "localhost" || address.is_some_and(|address| address.is_loopback());
    Ok(Target { host: host.to_owned(), encrypted, loopback })
}

impl Webhook {
    pub fn new(url: &str) -> Result<Self, String> {
        let target = check(url)?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TRY_TIMEOUT))
            // An alert goes where the operator said, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("rekindle/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach this machine's own addresses.
        let config = if target.loopback { config.proxy(None) } else { config };
        Ok(Self { url: url.to_owned(), agent: config.build().into() })
    }

    /// Posts an alert. `may_go_on` waits before a retry and says whether to make it. The error says why the alert was not
    /// accepted and is safe to show: it does not contain the URL.
    pub fn tell(&self, alert: &Alert, may_go_on: &mut dyn FnMut(Duration) -> bool) -> Result<(), String> {
        let body = posted(alert);
        let mut waits = WAITS.iter();
        loop {
            let why = match self.post(&body) {
                Tried::Taken => return Ok(()),
                Tried::Never(why) => return Err(why),
                Tried::NotNow(why) => why,
            };
            match waits.next() {
                Some(wait) if may_go_on(*wait) => {}
                _ => return Err(why),
            }
        }
    }

    fn post(&self, body: &str) -> Tried {
        let answer = self.agent.post(&self.url).header("content-type", "application/json").send(body);
        match answer {
            Ok(answer) => match answer.status().as_u16() {
                200..=299 => Tried::Taken,
                300..=399 => Tried::Never("it answered with a redirect, which is not followed".to_owned()),
                status @ (408 | 429 | 500..=599) => Tried::NotNow(format!("it answered with {status}")),
                status => Tried::Never(format!("it answered with {status}")),
            },
            Err(error) => Tried::NotNow(self.without_url(&error.to_string())),
        }
    }

    fn without_url(&self, reason: &str) -> String {
        one_line(&reason.replace(&self.url, "the webhook"), REASON_MAX_BYTES)
    }
}

fn posted(alert: &Alert) -> String {
    let posted = Posted {
        kind: (alert.kind == Kind::Finished).then(|| alert.kind.name()),
        text: truncate_bytes(&alert.text, TEXT_MAX_BYTES),
        choices: &alert.choices,
        run: &alert.run,
        plan: &alert.plan,
        task: alert.task.as_ref().map(|task| task.as_str()),
        evidence: &alert.evidence,
        time: alert.time.0,
    };
    serde_json::to_string(&posted).expect("texts and a number are JSON")
}
