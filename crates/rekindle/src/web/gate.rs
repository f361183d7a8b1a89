//! Who is admitted: the names this server answers to, where a request may come from, and the token. It decides from headers
//! alone and changes nothing; `routes` decides which routes exist.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Uri};

use crate::error::{CliError, Result};

/// Bytes of a token: 256 bits cannot be guessed.
const TOKEN_BYTES: usize = 32;

/// The port that browsers omit from the address of an `http` page.
const HTTP_PORT: u16 = 80;

/// The header in which a browser says what kind of page a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secret of one server: whoever knows it is the operator.
pub(super) struct Token(String);

impl Token {
    /// A new token from the operating system's randomness.
    pub(super) fn new() -> Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| CliError::internal(format!("no random numbers for a token: {error}")))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Its text, for the one line that is printed and the cookie.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the token; the time this takes does not reveal how much of it is right.
    pub(super) fn is(&self, given: &str) -> bool {
        let differing =
            self.0.bytes().zip(given.bytes()).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
        self.0.len() == given.len() && differing == 0
    }
}

/// The names that a server answers to.
#[derive(Debug)]
pub(super) struct Names {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Names {
    /// The names of a bound address, and its other allowed names. Fails when a name cannot be part of a browser's address.
    pub(super) fn new(bound: SocketAddr, allowed: &[String]) -> Result<Self> {
        let (ip, port) = (bound.ip(), bound.port());
        let mut own = match bound {
            _ if ip.is_unspecified() => vec!["127.0.0.1".to_owned(), "[::1]".to_owned(), "localhost".to_owned()],
            SocketAddr::V4(_) => vec![ip.to_string()],
            SocketAddr::V6(_) => vec![format!("[{ip}]")],
        };
        if ip.is_loopback() {
            own.push("localhost".to_owned());
        }
        let mut names = Self { hosts: BTreeSet::new(), origins: BTreeSet::new() };
        for name in own {
            names.add(format!("{name}:{port}"), &["http"]);
            if port == HTTP_PORT {
                names.add(name, &["http"]);
            }
        }
        for name in allowed {
            let name = checked(name)?;
            // A proxy in front may speak TLS and use another port: a name alone counts with our port and without any.
            if !has_port(&name) {
                names.add(format!("{name}:{port}"), &["http", "https"]);
            }
            names.add(name, &["http", "https"]);
        }
        Ok(names)
    }

    fn add(&mut self, host: String, schemes: &[&str]) {
        self.origins.extend(schemes.iter().map(|scheme| format!("{scheme}://{host}")));
        self.hosts.insert(host);
    }

    /// Why a request is not for us; `None` when it is. Names are compared exactly, letter by letter.
    pub(super) fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let known = |host: &str| self.hosts.contains(host);
        if !host.is_some_and(known) || hosts.next().is_some() {
            return Some("this server does not answer to that name");
        }
        if uri.authority().is_some_and(|authority| !known(authority.as_str())) {
            return Some("this server does not answer to that name");
        }
        let ours = |origin: &axum::http::HeaderValue| origin.to_str().is_ok_and(|text| self.origins.contains(text));
        if headers.get_all(ORIGIN).iter().any(|origin| !ours(origin)) {
            return Some("this server does not answer requests from other sites");
        }
        None
    }
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
        && !name.ends_with(']')
}

fn checked(name: &str) -> Result<String> {
    let host = if has_port(name) { name.rsplit_once(':').map_or("", |(host, _)| host) } else { name };
    let plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    let six = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let good = match six {
        Some(six) => six.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && plain(host),
    };
    if good {
        return Ok(name.to_owned());
    }
    let message = format!("`{name}` is not a name that a browser could use for this server");
    Err(CliError::usage(message).hint("write it as in the address: --allow-host box.example or box.example:8443"))
}

/// The name of the cookie: two servers on one machine must not take each other's.
pub(super) fn cookie_name(port: u16) -> String {
    format!("rekindle-{port}")
}

/// Whether a request carries the token in its headers: as a bearer token or as the cookie.
pub(super) fn shows_token(token: &Token, port: u16, headers: &HeaderMap) -> bool {
    let bearers: Vec<&str> = headers.get_all(AUTHORIZATION).iter().filter_map(|value| value.to_str().ok()).collect();
    if !bearers.is_empty() {
        // A request with a wrong bearer token is not admitted by a cookie next to it.
        let right = |value: &&str| {
            let (scheme, given) = value.split_once(' ').unwrap_or_default();
            scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim())
        };
        return bearers.len() == 1 && bearers.iter().all(right);
    }
    let name = cookie_name(port);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.any(|(key, given)| key == name && token.is(given))
}

/// Whether a browser says that a request comes from another site's page.
pub(super) fn from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get_all(FETCH_SITE).iter().any(|site| site != "same-origin" && site != "none")
}

/// The token in an address, and the address without it; `None` when it contains none.
pub(super) fn token_in(uri: &Uri) -> Option<(String, String)> {
    let pairs: Vec<&str> = uri.query()?.split('&').collect();
    let given = pairs.iter().find_map(|pair| pair.strip_prefix("token="))?;
    let rest: Vec<&str> = pairs.iter().filter(|pair| !pair.starts_with("token=")).copied().collect();
    let without = match rest.join("&") {
        rest if rest.is_empty() => uri.path().to_owned(),
        rest => format!("{}?{rest}", uri.path()),
    };
    Some((given.to_owned(), without))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn names(bound: &str, allowed: &[&str]) -> Names {
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        Names::new(bound.parse().expect("an address"), &allowed).expect("names")
    }

    fn with(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn lets_in(names: &Names, pairs: &[(&'static str, &str)]) -> bool {
        names.refusal(&Uri::from_static("/"), &with(pairs)).is_none()
    }

    #[test]
    fn only_the_exact_names_of_the_address_are_answered_to() {
        let names = names("127.0.0.1:4711", &[]);
        for host in ["127.0.0.1:4711", "localhost:4711"] {
            assert!(lets_in(&names, &[("host", host)]), "{host}");
        }
        let others = [
            "",
            "127.0.0.1",
            "localhost",
            "localhost:4712",
            "localhost.:4711",
            "LOCALHOST:4711",
            "Localhost:4711",
            "localhost:04711",
            "localhost:4711.",
            "localhost.evil.test:4711",
            "evil.test",
            "evil.test:4711",
            "127.0.0.1.nip.io:4711",
            "127.0.0.1:4711@evil.test",
            "127.1:4711",
            "0x7f.0.0.1:4711",
            "2130706433:4711",
            "0.0.0.0:4711",
            "[::1]:4711",
            "[::ffff:127.0.0.1]:4711",
            "127.0.0.2:4711",
            "localhost:4711,evil.test",
            "localhost:4711 ",
            "user@localhost:4711",
        ];
        for host in others {
            assert!(!lets_in(&names, &[("host", host)]), "{host}");
        }
        assert!(!lets_in(&names, &[]), "no host");
        assert!(!lets_in(&names, &[("host", "localhost:4711"), ("host", "localhost:4711")]), "two hosts");
        let absolute: Uri = "http://evil.test:4711/".parse().expect("an address");
        assert!(names.refusal(&absolute, &with(&[("host", "localhost:4711")])).is_some());
    }

    #[test]
    fn an_address_of_the_sixth_version_is_answered_to_in_brackets() {
        let names = names("[::1]:4711", &[]);
        for (host, known) in
            [("[::1]:4711", true), ("localhost:4711", true), ("::1:4711", false), ("127.0.0.1:4711", false)]
        {
            assert_eq!(lets_in(&names, &[("host", host)]), known, "{host}");
        }
    }

    #[test]
    fn only_our_own_origins_are_answered_to() {
        let names = names("127.0.0.1:4711", &[]);
        let host = ("host", "localhost:4711");
        for origin in ["http://localhost:4711", "http://127.0.0.1:4711"] {
            assert!(lets_in(&names, &[host, ("origin", origin)]), "{origin}");
        }
        for origin in
            ["null", "", "https://localhost:4711", "http://localhost", "http://localhost:4712", "http://evil.test"]
        {
            assert!(!lets_in(&names, &[host, ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn names_that_were_allowed_are_answered_to_with_and_without_a_port() {
        let names = names("0.0.0.0:80", &["box.example", "other.example:8443"]);
        for host in ["box.example", "box.example:80", "other.example:8443", "localhost", "127.0.0.1:80"] {
            assert!(lets_in(&names, &[("host", host)]), "{host}");
        }
        for host in ["other.example", "other.example:80", "0.0.0.0", "0.0.0.0:80"] {
            assert!(!lets_in(&names, &[("host", host)]), "{host}");
        }
        assert!(lets_in(&names, &[("host", "box.example"), ("origin", "https://box.example")]));
        let bound = "127.0.0.1:1".parse().expect("an address");
        for bad in ["*", "", "http://box", "box/", "a b", ":80", "[::1"] {
            assert!(Names::new(bound, &[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_shown_as_a_bearer_or_as_our_own_cookie() {
        let token = Token::new().expect("a token");
        let right = token.text().to_owned();
        assert_eq!(right.len(), 64);
        assert_ne!(Token::new().expect("a token").text(), right);
        let shown = |pairs: &[(&'static str, &str)]| shows_token(&token, 5, &with(pairs));
        assert!(shown(&[("authorization", &format!("Bearer {right}"))]));
        assert!(shown(&[("cookie", &format!("a=b; rekindle-5={right}"))]));
        let (longer, shorter) = (format!("{right}0"), &right[..63]);
        for wrong in ["", shorter, &longer, "rk1.1.1.00"] {
            assert!(!shown(&[("authorization", &format!("Bearer {wrong}"))]), "{wrong}");
            assert!(!shown(&[("cookie", &format!("rekindle-5={wrong}"))]), "{wrong}");
        }
        assert!(!shown(&[]));
        assert!(!shown(&[("authorization", &right)]));
        assert!(!shown(&[("cookie", &format!("rekindle-6={right}"))]));
        let cookie = format!("rekindle-5={right}");
        assert!(!shown(&[("authorization", "Bearer no"), ("cookie", &cookie)]));
    }

    #[test]
    fn the_token_is_taken_out_of_an_address_and_the_rest_stays() {
        let found = |text: &'static str| token_in(&Uri::from_static(text));
        assert_eq!(found("/?token=x"), Some(("x".into(), "/".into())));
        assert_eq!(found("/tasks/T1?a=1&token=x&b=%26"), Some(("x".into(), "/tasks/T1?a=1&b=%26".into())));
        assert_eq!(found("/?token=x&token=y"), Some(("x".into(), "/".into())));
        assert_eq!(found("/?mytoken=x"), None);
        assert_eq!(found("/"), None);
    }
}
