//! Texts that have the form of a credential, each recognised by a literal prefix and then checked by hand-written rules.
//! Names in prose, in code and in placeholders must not be mistaken for secrets: a brief full of holes is useless.

use std::ops::Range;

/// A value this long is a secret without a closer look: so each trigger costs a bounded number of steps, or its text is
/// taken out and not read again.
const VALUE_MAX_BYTES: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `sk-…`: OpenAI, Anthropic and others.
    ApiKey,
    /// `ghp_…` and its kin.
    GitHub,
    /// `github_pat_…`.
    GitHubPat,
    /// `glpat-…`.
    GitLab,
    /// `AKIA…`, `ASIA…`.
    Aws,
    /// `AIza…`.
    Google,
    /// `xoxb-…` and its kin.
    Slack,
    /// `eyJ….eyJ….…`.
    Jwt,
    Bearer,
    /// `-----BEGIN … PRIVATE KEY-----`.
    PrivateKey,
    Password,
    /// `token=…`, `secret: "…"`, `api_key=…`.
    Assigned,
    /// `scheme://user:password@host`.
    UrlPassword,
    /// `rk1.3.1.…`: an agent's own token.
    Rekindle,
}

use Form::{
    ApiKey, Assigned, Aws, Bearer, GitHub, GitHubPat, GitLab, Google, Jwt, Password, PrivateKey, Rekindle, Slack,
    UrlPassword,
};

/// The prefix of each form.
pub(super) const TRIGGERS: &[(&str, Form)] = &[
    ("sk-", ApiKey),
    ("ghp_", GitHub),
    ("gho_", GitHub),
    ("ghu_", GitHub),
    ("ghs_", GitHub),
    ("ghr_", GitHub),
    ("github_pat_", GitHubPat),
    ("glpat-", GitLab),
    ("AKIA", Aws),
    ("ASIA", Aws),
    ("AIza", Google),
    ("xoxa-", Slack),
    ("xoxb-", Slack),
    ("xoxe-", Slack),
    ("xoxo-", Slack),
    ("xoxp-", Slack),
    ("xoxr-", Slack),
    ("xoxs-", Slack),
    ("eyJ", Jwt),
    ("Bearer ", Bearer),
    ("bearer ", Bearer),
    ("BEARER ", Bearer),
    ("-----BEGIN ", PrivateKey),
    ("password", Password),
    ("Password", Password),
    ("PASSWORD", Password),
    ("passwd", Password),
    ("PASSWD", Password),
    ("passphrase", Password),
    ("PASSPHRASE", Password),
    ("secret_key", Assigned),
    ("SECRET_KEY", Assigned),
    ("secretKey", Assigned),
    ("access_key", Assigned),
    ("ACCESS_KEY", Assigned),
    ("accessKey", Assigned),
    ("secret", Assigned),
    ("Secret", Assigned),
    ("SECRET", Assigned),
    ("token", Assigned),
    ("Token", Assigned),
    ("TOKEN", Assigned),
    ("api_key", Assigned),
    ("API_KEY", Assigned),
    ("apikey", Assigned),
    ("apiKey", Assigned),
    ("api-key", Assigned),
    ("ApiKey", Assigned),
    ("://", UrlPassword),
    ("rk1.", Rekindle),
];

impl Form {
    /// The name in `[redacted:NAME]`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::GitHub | Self::GitHubPat => "github-token",
            Self::GitLab => "gitlab-token",
            Self::Aws => "aws-key",
            Self::Google => "google-key",
            Self::Slack => "slack-token",
            Self::Jwt => "jwt",
            Self::Bearer => "bearer",
            Self::PrivateKey => "private-key",
            Self::Password | Self::UrlPassword => "password",
            Self::Assigned => "secret",
            Self::Rekindle => "rekindle-token",
        }
    }

    /// The secret part of the text whose trigger is at `start..end`, if any.
    pub(super) fn secret(self, text: &str, start: usize, end: usize) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        // The cheap question first: a text made of triggers must not be read once for each of them.
        let token = |min: usize, set: fn(u8) -> bool| {
            let alone = stands_alone(bytes, start);
            let run = if alone { run(bytes, end, set) } else { end };
            (alone && run - end >= min).then_some(start..run)
        };
        match self {
            Self::ApiKey => token(20, is_token).filter(|range| has_digit(&bytes[range.clone()])),
            Self::GitHub => token(30, |byte| byte.is_ascii_alphanumeric()),
            Self::GitHubPat => token(22, |byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            Self::GitLab => token(20, is_token),
            Self::Google => token(35, is_token),
            Self::Slack => token(10, is_token).filter(|range| has_digit(&bytes[range.clone()])),
            Self::Aws => {
                token(16, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).filter(|range| range.len() == 20)
            }
            Self::Jwt => jwt(bytes, start),
            Self::Bearer => {
                let run = run(bytes, end, |byte| is_token(byte) || b".~+/=".contains(&byte));
                let fit = run - end >= 16 && has_digit(&bytes[end..run]);
                fit.then_some(end..run)
            }
            Self::PrivateKey => private_key(text, start),
            Self::Password => assigned(text, end, 4, |_| true),
            Self::Assigned => assigned(text, end, 12, has_digit),
            Self::UrlPassword => url_password(bytes, end),
            // Its last part is a hash of 64 digits; an attempt and an epoch alone give no right.
            Self::Rekindle => token(32, |byte| byte.is_ascii_hexdigit() || byte == b'.'),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn has_digit(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit)
}

/// Whether a token can start here: `task-…` is not an `sk-…`.
fn stands_alone(bytes: &[u8], start: usize) -> bool {
    start == 0 || !is_token(bytes[start - 1]) || after_escape(bytes, start)
}

/// A token right after `\n` or `\t` as JSON spells them.
fn after_escape(bytes: &[u8], start: usize) -> bool {
    start >= 2 && bytes[start - 2] == b'\\' && b"nrt".contains(&bytes[start - 1])
}

fn run(bytes: &[u8], from: usize, set: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|byte| set(**byte)).count()
}

fn jwt(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    if !stands_alone(bytes, start) {
        return None;
    }
    let head = run(bytes, start, is_token);
    let body = (bytes.get(head) == Some(&b'.')).then(|| run(bytes, head + 1, is_token))?;
    let fit = head - start >= 10 && body - head > 10;
    let signature = (bytes.get(body) == Some(&b'.')).then(|| run(bytes, body + 1, is_token))?;
    fit.then_some(start..signature)
}

/// The whole block, or everything up to the end if it is not closed.
fn private_key(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let header = rest[11..].find("-----")? + 11;
    rest[..header].ends_with("PRIVATE KEY").then_some(())?;
    let end = rest[header..].find("-----END ").map(|at| header + at + 9);
    let end = end.and_then(|from| rest[from..].find("-----").map(|at| from + at + 5));
    Some(start..start + end.unwrap_or(rest.len()))
}

/// Whether a private key begins on this line and does not end on it.
pub(super) fn leaves_private_key_open(line: &str) -> bool {
    let begin = line.rfind("-----BEGIN ");
    begin.is_some_and(|at| {
        private_key(line, at).is_some_and(|range| range.end == line.len()) && !ends_private_key(&line[at..])
    })
}

pub(super) fn ends_private_key(line: &str) -> bool {
    line.contains("-----END ")
}

/// The value after `=` or a quoted one after `:`, unless it is a placeholder.
fn assigned(text: &str, end: usize, min: usize, fit: fn(&[u8]) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    // What may close the name's own quotes: `"`, `'`, or `\"` inside of JSON.
    let is_quote = |byte: u8| b"\"'\\".contains(&byte);
    let mark = run(bytes, run(bytes, end, is_quote), is_blank);
    let sign = *bytes.get(mark).filter(|sign| b"=:".contains(sign))?;
    let blank = run(bytes, mark + 1, is_blank);
    let from = run(bytes, blank, is_quote);
    let quoted = from > blank;
    if sign == b':' && !quoted {
        return None;
    }
    let ends = |byte: u8| match quoted {
        true => b"\"'\\\n".contains(&byte),
        false => byte.is_ascii_whitespace() || b"\"'\\&,;)".contains(&byte),
    };
    let placeholder = bytes.get(from).is_some_and(|byte| b"$<{[*(".contains(byte));
    if placeholder {
        return None;
    }
    let near = &bytes[from..bytes.len().min(from + VALUE_MAX_BYTES)];
    let length = near.iter().take_while(|byte| !ends(**byte)).count();
    if length == VALUE_MAX_BYTES {
        return Some(from..run(bytes, from, |byte| !ends(byte)));
    }
    let value = &near[..length];
    (length >= min && fit(value)).then_some(from..from + length)
}

fn url_password(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let in_authority = |byte: u8| !byte.is_ascii_whitespace() && !b"/?#\"'<>\\".contains(&byte);
    let to = run(bytes, from, in_authority);
    let at = from + bytes[from..to].iter().rposition(|byte| *byte == b'@')?;
    let colon = from + bytes[from..at].iter().position(|byte| *byte == b':')?;
    let placeholder = bytes.get(colon + 1).is_some_and(|byte| b"$<{*".contains(byte));
    (at > colon + 1 && !placeholder).then_some(colon + 1..at)
}
