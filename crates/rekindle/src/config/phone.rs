//! `[notify.ntfy]`, `[notify.telegram]` and `[notify.slack]`: the person's phones. Checks that each is complete, that no
//! secret is written in clear text, and that a project cannot send a person's token to a server of its own.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use rekindle_engine::alert::Phone;
use rekindle_engine::alert::phone::Source;
use rekindle_engine::alert::webhook;

use super::{Layer, Origin, Value};
use crate::diagnostic::Diagnostic;

/// The section that phones are in.
const SECTION: &str = "notify.";

/// Keys that people write a secret to by mistake.
const SECRETS: [&str; 5] = ["token", "bot_token", "topic", "reply_topic", "password"];

/// The prefix of a variable with a secret: a project cannot name any other variable, such as another program's key.
const VARIABLES: &str = "REKINDLE_";

/// The error for a secret in clear text in the file. The secret is not repeated, and its line is not shown.
pub(super) fn in_clear(path: &std::path::Path, line: usize, section: &str, leaf: &str) -> Option<Diagnostic> {
    if !section.starts_with(SECTION) || !SECRETS.contains(&leaf) {
        return None;
    }
    let leaf = if leaf == "bot_token" || leaf == "password" { "token" } else { leaf };
    let message = format!("{}:{line}: a secret does not belong in this file: [{section}] {leaf}", path.display());
    let hint = format!("write {leaf}_file = \"~/.config/rekindle/…\" (chmod 600), or {leaf}_env = \"REKINDLE_…\"");
    Some(Diagnostic::error(message, Some(hint)))
}

/// The configured phones, and what is wrong with them.
pub(super) fn read(
    layer: &Layer,
    variables: &[(OsString, OsString)],
    problems: Vec<Diagnostic>,
) -> (Vec<Phone>, Vec<Diagnostic>) {
    let mut reader = Reader { layer, variables, problems };
    let phones = [reader.ntfy(), reader.telegram(), reader.slack()];
    (phones.into_iter().flatten().collect(), reader.problems)
}

struct Reader<'a> {
    layer: &'a Layer,
    variables: &'a [(OsString, OsString)],
    /// Problems of the configuration so far: a value that could not be read is not reported as missing as well.
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn ntfy(&mut self) -> Option<Phone> {
        if !self.is_used("ntfy") {
            return None;
        }
        let server = self.server("notify.ntfy.server");
        let topic = self.secret("notify.ntfy.topic");
        let reply_topic = self.secret("notify.ntfy.reply_topic");
        let token = self.secret("notify.ntfy.token");
        let topic = self.needed("notify.ntfy", "topic_file", topic)?;
        Some(Phone::Ntfy { server, topic, reply_topic, token })
    }

    fn telegram(&mut self) -> Option<Phone> {
        if !self.is_used("telegram") {
            return None;
        }
        let api = self.server("notify.telegram.api");
        let token = self.secret("notify.telegram.token");
        let token = self.needed("notify.telegram", "token_file", token);
        let chat = self.number("notify.telegram.chat");
        let user = self.number("notify.telegram.user");
        Some(Phone::Telegram { api, token: token?, chat: chat?, user: user? })
    }

    fn slack(&mut self) -> Option<Phone> {
        if !self.is_used("slack") {
            return None;
        }
        let api = self.server("notify.slack.api");
        let token = self.secret("notify.slack.token");
        let token = self.needed("notify.slack", "token_file", token);
        let channel = self.id("notify.slack.channel", "CDG");
        let user = self.id("notify.slack.user", "UW");
        Some(Phone::Slack { api, token: token?, channel: channel?, user: user? })
    }

    /// Whether anything is set for a phone, besides its server's address.
    fn is_used(&self, name: &str) -> bool {
        let of = |key: &&&'static str| {
            key.strip_prefix(SECTION).and_then(|key| key.strip_prefix(name)).is_some_and(|key| key.starts_with('.'))
        };
        let said = self.layer.values.iter().filter(|(key, _)| of(key));
        let mut said = said.filter(|(key, _)| !key.ends_with(".api") && !key.ends_with(".server"));
        said.any(|(_, found)| !matches!(&found.value, Value::Text(text) if text.trim().is_empty()))
    }

    fn problem(&mut self, message: String, hint: &str) {
        self.problems.push(Diagnostic::error(message, Some(hint.to_owned())));
    }

    fn said(&self, key: &str) -> Option<(String, Origin)> {
        let found = self.layer.values.get(key)?;
        match &found.value {
            Value::Text(text) if !text.trim().is_empty() => Some((text.trim().to_owned(), found.origin.clone())),
            _ => None,
        }
    }

    fn needed<T>(&mut self, section: &str, leaf: &str, found: Option<T>) -> Option<T> {
        let complained = self.problems.iter().any(|problem| problem.message.contains(&format!("`{section}.")));
        if found.is_none() && !complained {
            let hint = format!("write {leaf} under [{section}]; docs/phone.md shows how");
            self.problem(format!("[{section}] has no {leaf}"), &hint);
        }
        found
    }

    /// A server's address, if not the public one. A repository must not be able to send a person's token elsewhere.
    fn server(&mut self, key: &'static str) -> Option<String> {
        let (url, origin) = self.said(key)?;
        let variable = format!("REKINDLE_{}", key.replace('.', "_").to_ascii_uppercase());
        if !matches!(origin, Origin::Variable(_)) {
            self.problem(
                format!("`{key}` ({origin}) decides where your token is sent: a project cannot set it"),
                &format!("set it for yourself: export {variable}=URL"),
            );
            return None;
        }
        match webhook::check(&url) {
            Ok(target) if target.encrypted || target.loopback => Some(url),
            Ok(_) => {
                self.problem(
                    format!("`{key}` ({origin}) is not encrypted"),
                    "write https://; http:// is for this machine only",
                );
                None
            }
            Err(why) => {
                self.problem(format!("`{key}` ({origin}) is wrong: {why}"), "write https://HOST");
                None
            }
        }
    }

    /// A secret's file or variable.
    fn secret(&mut self, key: &'static str) -> Option<Source> {
        let file = self.said(&format!("{key}_file"));
        let variable = self.said(&format!("{key}_env"));
        match (file, variable) {
            (Some(_), Some(_)) => {
                self.problem(format!("`{key}_file` and `{key}_env` are both set"), "keep one of them");
                None
            }
            (Some((path, origin)), None) => self.file(&format!("{key}_file"), &path, &origin),
            (None, Some((name, origin))) => self.variable(&format!("{key}_env"), name, &origin),
            (None, None) => None,
        }
    }

    fn file(&mut self, key: &str, path: &str, origin: &Origin) -> Option<Source> {
        let home = self.variables.iter().find(|(name, _)| name == OsStr::new("HOME"));
        let full = match (path.strip_prefix("~/"), home) {
            (Some(rest), Some((_, home))) => PathBuf::from(home).join(rest),
            _ => PathBuf::from(path),
        };
        if !full.is_absolute() {
            self.problem(
                format!("`{key}` ({origin}) is not a path of yours: a secret does not belong in the project"),
                "write an absolute path, or one that begins with ~/",
            );
            return None;
        }
        Some(Source::File(full))
    }

    fn variable(&mut self, key: &str, name: String, origin: &Origin) -> Option<Source> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.starts_with(VARIABLES) || !name.chars().all(fits) {
            self.problem(
                format!("`{key}` ({origin}) must name a variable that begins with {VARIABLES}"),
                "a project cannot have another program's secret sent away; write for example REKINDLE_TELEGRAM_TOKEN",
            );
            return None;
        }
        Some(Source::Variable(name))
    }

    fn number(&mut self, key: &'static str) -> Option<i64> {
        let Some((text, origin)) = self.said(key) else {
            let (section, leaf) = key.rsplit_once('.').unwrap_or(("notify", key));
            return self.needed(section, leaf, None);
        };
        let number = text.parse().ok().filter(|number| *number != 0);
        if number.is_none() {
            let message = format!("`{key}` ({origin}) is not a Telegram id");
            self.problem(message, "write the number; a bot such as @userinfobot tells you yours");
        }
        number
    }

    fn id(&mut self, key: &'static str, begins: &str) -> Option<String> {
        let Some((text, origin)) = self.said(key) else {
            let (section, leaf) = key.rsplit_once('.').unwrap_or(("notify", key));
            return self.needed(section, leaf, None);
        };
        let fits = text.starts_with(|c| begins.contains(c))
            && text.len() >= 9
            && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        if !fits {
            let message = format!("`{key}` ({origin}) is not a Slack id");
            self.problem(
                message,
                "write the id, not the name, such as C0123456789: it stands in the profile or the channel's details",
            );
        }
        fits.then_some(text)
    }
}
