//! What a plan's front matter may set, typed. It overrides `rekindle.toml` and is overridden by variables and flags: that
//! layering, and the defaults, belong to the configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    front_matter::{Entry, Value},
    keys::ROLES,
    nearest::nearest,
    problem::{Problems, Span, quote},
    values::{Piece, is_nothing},
};
use crate::{duration, ids};

/// The settings of a plan; what it does not mention is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontMatter {
    /// The plan's name, by which a run is continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Agents that may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_agents: Option<u32>,
    /// Attempts per task and role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The first pause between two attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// Which `[agents.NAME]` runs tasks that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The reviewing roles, `critic` and `auditor`; an empty list turns review off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Vec<String>>,
    /// Where checks run, for tasks that do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environments: Option<Vec<String>>,
    /// Commands that show whether the project as a whole is sound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// How long each role may take for a task, by the role's name; `timeout` alone is the developer's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub timeouts_ms: BTreeMap<String, u64>,
    /// Hang limits by their name in `[hang]`: `first_event`, `silence`, `after_result`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hang_ms: BTreeMap<String, u64>,
    /// Every other `section.key`, as it was written: the configuration checks names and types of its own sections.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, Setting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Worktrees in a git repository when more than one agent may run, else all in the working directory.
    Auto,
    /// All in the working directory.
    Shared,
    /// Each in a git worktree of its own.
    Worktree,
}

/// A setting for the configuration to interpret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `section.key: value`
    Text(String),
    /// `section.key: [a, b]`
    List(Vec<String>),
}

/// The keys without a dot, for suggestions to a person who mistyped one.
const KNOWN: [&str; 18] = [
    "plan",
    "max_agents",
    "attempts",
    "backoff",
    "agent",
    "review",
    "environments",
    "health",
    "isolation",
    "timeout",
    "developer_timeout",
    "critic_timeout",
    "auditor_timeout",
    "remediation_timeout",
    "health_auditor_timeout",
    "first_event",
    "silence",
    "after_result",
];

/// The hang limits.
const HANG: [&str; 3] = ["first_event", "silence", "after_result"];

/// Turns entries into settings, noting what is unknown or of the wrong type.
pub(super) fn settings(entries: Vec<Entry>, problems: &mut Problems) -> FrontMatter {
    let parents: BTreeSet<String> =
        entries.iter().filter_map(|entry| entry.key.split_once('.')).map(|(parent, _)| parent.to_owned()).collect();
    let mut reader = Reader { problems, settings: FrontMatter::default() };
    for entry in entries {
        // `hang:` with lines below it has no value of its own.
        if entry.value == Value::Empty && parents.contains(&entry.key) {
            continue;
        }
        reader.entry(entry);
    }
    reader.settings
}

struct Reader<'a> {
    problems: &'a mut Problems,
    settings: FrontMatter,
}

impl Reader<'_> {
    fn entry(&mut self, entry: Entry) {
        let Entry { key, key_span, value } = entry;
        let written = key;
        let key = written.strip_prefix("run.").unwrap_or(&written);
        if let Some(role) = timeout_of(key) {
            if let Some(ms) = self.duration(key, key_span, value) {
                self.settings.timeouts_ms.insert(role.to_owned(), ms);
            }
            return;
        }
        if let Some(limit) = HANG.iter().find(|l| **l == key.strip_prefix("hang.").unwrap_or(key)) {
            if let Some(ms) = self.duration(key, key_span, value) {
                self.settings.hang_ms.insert((*limit).to_owned(), ms);
            }
            return;
        }
        match key {
            "plan" => self.settings.plan = self.name(key, key_span, value),
            "agent" => self.settings.agent = self.name(key, key_span, value),
            "max_agents" => self.settings.max_agents = self.count(key, key_span, value),
            "attempts" => self.settings.attempts = self.count(key, key_span, value),
            "backoff" => self.settings.backoff_ms = self.any_duration(key, key_span, value),
            "review" => self.settings.review = Some(self.review(value)),
            "environments" => self.settings.environments = Some(self.environments(value)),
            "health" => self.settings.health = commands(value),
            "isolation" => self.settings.isolation = self.isolation(key_span, value),
            _ => self.other(&written, key_span, value),
        }
    }

    fn other(&mut self, key: &str, key_span: Span, value: Value) {
        if let Some(hint) = near_own_section(key) {
            let message = format!("unknown key {} in the front matter", quote(key));
            self.problems.error("unknown-setting", key_span, message).hint(hint);
            return;
        }
        if !key.contains('.') {
            let near = nearest(key, KNOWN).map(|near| format!("did you mean `{near}`?"));
            let hint =
                near.unwrap_or_else(|| format!("the keys are {}, or `section.key` of rekindle.toml", KNOWN.join(", ")));
            self.problems
                .error("unknown-setting", key_span, format!("unknown key {} in the front matter", quote(key)))
                .hint(hint);
            return;
        }
        let setting = match value {
            Value::Text(piece) => Setting::Text(piece.text),
            Value::List(pieces) => Setting::List(pieces.into_iter().map(|p| p.text).collect()),
            Value::Empty => return self.missing(key, key_span),
        };
        self.settings.overrides.insert(key.to_owned(), setting);
    }

    fn text(&mut self, key: &str, key_span: Span, value: Value) -> Option<Piece> {
        match value {
            Value::Text(piece) => Some(piece),
            Value::List(_) => {
                let message = format!("`{key}` takes one value, not a list");
                self.problems.error("bad-setting", key_span, message);
                None
            }
            Value::Empty => {
                self.missing(key, key_span);
                None
            }
        }
    }

    fn missing(&mut self, key: &str, key_span: Span) {
        let message = format!("{} has no value", quote(key));
        self.problems.error("bad-setting", key_span, message);
    }

    fn name(&mut self, key: &str, key_span: Span, value: Value) -> Option<String> {
        let piece = self.text(key, key_span, value)?;
        self.check_name(key, &piece).then_some(piece.text)
    }

    fn check_name(&mut self, key: &str, piece: &Piece) -> bool {
        let Err(error) = ids::check_name(&piece.text) else {
            return true;
        };
        let message = format!("{} is not a valid `{key}`: {error}", quote(&piece.text));
        let hint = ids::name_from(&piece.text).map(|name| format!("write `{name}`"));
        self.problems.error("bad-setting", piece.span, message).maybe_hint(hint);
        false
    }

    fn count(&mut self, key: &str, key_span: Span, value: Value) -> Option<u32> {
        let piece = self.text(key, key_span, value)?;
        let count = piece.text.parse().ok().filter(|count| *count > 0);
        if count.is_none() {
            let message = format!("`{key}` is a whole number from 1 on, not {}", quote(&piece.text));
            self.problems.error("bad-setting", piece.span, message);
        }
        count
    }

    /// A limit; zero is refused, because nothing could keep to it.
    fn duration(&mut self, key: &str, key_span: Span, value: Value) -> Option<u64> {
        let ms = self.any_duration(key, key_span, value);
        if ms == Some(0) {
            let message = format!("`{key}` must be longer than zero");
            self.problems.error("bad-setting", key_span, message);
        }
        ms
    }

    fn any_duration(&mut self, key: &str, key_span: Span, value: Value) -> Option<u64> {
        let piece = self.text(key, key_span, value)?;
        match duration::parse(&piece.text) {
            Ok(ms) => Some(ms),
            Err(error) => {
                let message = format!("bad `{key}`: {error}");
                let noted = self.problems.error("bad-setting", piece.span, message);
                noted.hint(error.hint());
                None
            }
        }
    }

    fn review(&mut self, value: Value) -> Vec<String> {
        let mut roles = Vec::new();
        for piece in pieces(value) {
            let role = piece.text.to_lowercase();
            if !["critic", "auditor"].contains(&role.as_str()) {
                self.problems
                    .error("bad-setting", piece.span, format!("{} does not review", quote(&piece.text)))
                    .hint("the reviewing roles are `critic` and `auditor`");
            } else if !roles.contains(&role) {
                roles.push(role);
            }
        }
        roles
    }

    fn environments(&mut self, value: Value) -> Vec<String> {
        let mut names = pieces(value);
        names.retain(|piece| self.check_name("environments", piece));
        names.into_iter().map(|piece| piece.text).collect()
    }

    fn isolation(&mut self, key_span: Span, value: Value) -> Option<Isolation> {
        let piece = self.text("isolation", key_span, value)?;
        match piece.text.to_lowercase().as_str() {
            "auto" => Some(Isolation::Auto),
            "none" | "shared" => Some(Isolation::Shared),
            "worktree" => Some(Isolation::Worktree),
            _ => {
                self.problems
                    .error("bad-setting", piece.span, format!("unknown isolation {}", quote(&piece.text)))
                    .hint("write `auto`, `worktree` or `shared`");
                None
            }
        }
    }
}

/// The role whose timeout a key sets: `timeout`, `critic_timeout`, `timeouts.critic`.
fn timeout_of(key: &str) -> Option<&'static str> {
    if key == "timeout" {
        return Some(ROLES[0]);
    }
    let role = key.strip_suffix("_timeout").or_else(|| key.strip_prefix("timeouts."))?;
    ROLES.into_iter().find(|known| *known == role)
}

/// For a key that does not exist in a section fully known here: the keys that the section has.
fn near_own_section(key: &str) -> Option<String> {
    let (section, name) = key.split_once('.')?;
    let known: &[&str] = match section {
        "hang" => &HANG,
        "timeouts" => &ROLES,
        _ => return None,
    };
    let near = nearest(name, known.iter().copied());
    Some(match near {
        Some(near) => format!("did you mean `{section}.{near}`?"),
        None => format!("`{section}` has {}", known.join(", ")),
    })
}

/// A list of names, also when it is written without brackets.
fn pieces(value: Value) -> Vec<Piece> {
    match value {
        Value::Empty => Vec::new(),
        Value::List(pieces) => pieces,
        Value::Text(piece) if is_nothing(&piece.text) => Vec::new(),
        Value::Text(Piece { text, span }) => text
            .split(',')
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .map(|text| Piece { text, span })
            .collect(),
    }
}

/// Commands: a text is one command, including its commas.
fn commands(value: Value) -> Vec<String> {
    match value {
        Value::Empty => Vec::new(),
        Value::List(pieces) => pieces.into_iter().map(|piece| piece.text).collect(),
        Value::Text(piece) if is_nothing(&piece.text) => Vec::new(),
        Value::Text(piece) => vec![piece.text],
    }
}
