//! One call to a channel's server: bounded in time and size, encrypted unless it stays on this machine, and without its secrets in
//! any error.

use std::time::Duration;

use rekindle_core::text::one_line;

use super::Secret;
use crate::alert::webhook;

/// Longest time for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest response: a hundred messages of four thousand characters, with their envelope.
const ANSWER_MAX_BYTES: u64 = 2 * 1024 * 1024;

/// Longest reason that is repeated.
const REASON_MAX_BYTES: usize = 200;

/// The first wait after a failed call; it doubles with every further failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait: somebody waits for the answer, and asking more often does not help a server that is down for long.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Longest wait that a server can order: whatever it says, it is asked once an hour.
const ORDERED_MAX: Duration = Duration::from_secs(3_600);

/// Why a call failed. The reasons contain no secret.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server said how long to wait.
    Wait(Duration, String),
    /// A retry may help.
    Again(String),
    /// A retry will not help until somebody changes something.
    Refused(String),
}

impl Trouble {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Wait(_, why) | Self::Again(why) | Self::Refused(why) => why,
        }
    }

    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// How long to wait after this many failures in a row.
    pub(super) fn wait(&self, failures: usize) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        match self {
            Self::Wait(ordered, _) => (*ordered).clamp(FIRST_WAIT, ORDERED_MAX),
            Self::Again(_) => FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT),
            Self::Refused(_) => LONGEST_WAIT,
        }
    }
}

/// A server that is called.
pub(super) struct Server {
    base: String,
    agent: ureq::Agent,
    /// Secrets that no error may contain.
    hidden: Vec<Secret>,
}

/// What a server answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: String,
}

impl Server {
    /// The server at a URL without a path. Fails if the connection would not be encrypted, unless the server is this
    /// machine.
    pub(super) fn new(base: &str, hidden: Vec<Secret>) -> Result<Self, String> {
        let target = webhook::check(base)?;
        if !target.encrypted && !target.loopback {
            return Err(format!("{} is not encrypted: write https://", target.host));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(CALL_TIMEOUT))
            // A secret goes where the person said, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("rekindle/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach this machine's own addresses.
        let config = if target.loopback { config.proxy(None) } else { config };
        Ok(Self { base: base.trim_end_matches('/').to_owned(), agent: config.build().into(), hidden })
    }

    pub(super) fn get(&self, path: &str, token: Option<&Secret>) -> Result<Answer, Trouble> {
        let mut call = self.agent.get(format!("{}{path}", self.base));
        if let Some(token) = token {
            call = call.header("authorization", bearer(token));
        }
        self.read(call.call())
    }

    pub(super) fn post(&self, path: &str, token: Option<&Secret>, body: &serde_json::Value) -> Result<Answer, Trouble> {
        let mut call = self.agent.post(format!("{}{path}", self.base));
        call = call.header("content-type", "application/json; charset=utf-8");
        if let Some(token) = token {
            call = call.header("authorization", bearer(token));
        }
        self.read(call.send(body.to_string()))
    }

    fn read(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, Trouble> {
        let cut = |error: ureq::Error| Trouble::Again(self.harmless(&error.to_string()));
        let mut answer = answer.map_err(cut)?;
        let status = answer.status().as_u16();
        let header = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
        let body = answer.body_mut().with_config().limit(ANSWER_MAX_BYTES).lossy_utf8(true).read_to_string();
        Ok(Answer { status, retry_after, body: body.map_err(cut)? })
    }

    /// A reason that may be shown, without secrets.
    pub(super) fn harmless(&self, reason: &str) -> String {
        let clean = self.hidden.iter().fold(reason.to_owned(), |text, secret| text.replace(secret.reveal(), "…"));
        one_line(&clean, REASON_MAX_BYTES)
    }

    /// What an unsuccessful response means; `said` is the server's own reason.
    pub(super) fn trouble(&self, answer: &Answer, said: &str) -> Trouble {
        let said = if said.is_empty() { String::new() } else { format!(": {}", self.harmless(said)) };
        let why = format!("it answered with {}{said}", answer.status);
        match (answer.status, answer.retry_after) {
            (429 | 503, Some(wait)) => Trouble::Wait(wait, why),
            (408 | 409 | 425 | 429 | 500..=599, _) => Trouble::Again(why),
            _ => Trouble::Refused(why),
        }
    }
}

fn bearer(token: &Secret) -> String {
    format!("Bearer {}", token.reveal())
}

/// A text escaped for use in a URL.
pub(super) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
