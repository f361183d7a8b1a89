//! The `[agents.NAME]` tables: how to start each agent's program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rekindle_core::ids;
use rekindle_core::limits::Traits;
use rekindle_engine::agents::{Kind, Permissions, Program, command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Reader, kind_of};
use super::keys::{AGENT_MEMORY, AGENT_PROCESSES, Key, Value};
use super::program::{Missing, find};

/// Keys of an agent's table.
pub(super) const AGENT_KEYS: &[&str] = &[
    "kind",
    "command",
    "args",
    "env",
    "model",
    "permissions",
    "account",
    "fallback",
    AGENT_MEMORY.name,
    AGENT_PROCESSES.name,
];

/// Variables that rekindle sets for every agent itself.
const OURS: &str = "REKINDLE_";

/// One `[agents.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    pub program: Program,
    /// Its line in the file.
    pub line: usize,
}

impl Agent {
    /// What the agent can do, with its account and its fallback.
    pub(crate) fn traits(&self) -> Traits {
        let found = self.program.kind.traits(&self.program);
        Traits {
            account: self.program.account.clone().unwrap_or(found.account),
            fallback: self.program.fallback.clone(),
            ..found
        }
    }

    /// The program that is started, as it would be typed: the configured one, otherwise its kind's own.
    pub(crate) fn program_name(&self) -> &str {
        match self.program.command.first() {
            Some(program) => program,
            None => self.program.kind.about().program.unwrap_or_default(),
        }
    }

    /// Finds its program on the `PATH` that it will have; `path` is the operator's.
    pub(crate) fn find(&self, path: Option<&OsStr>, workspace: &Path) -> Result<PathBuf, Missing> {
        let own = self.program.env.get("PATH").map(OsStr::new);
        find(self.program_name(), own.or(path), workspace)
    }

    /// What to do when its program cannot be started.
    pub(crate) fn missing_hint(&self, missing: &Missing) -> String {
        let install = self.program.kind.about().install_hint.filter(|_| self.program.command.is_empty());
        match (missing, install) {
            (Missing::NotOnPath(_), Some(install)) => {
                format!("install it: {install}; or write where it is: command = [\"/path/to/{}\"]", self.program_name())
            }
            _ => missing.hint(),
        }
    }
}

/// Reads all agents; problems are added to the reader.
pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, Agent> {
    let mut agents = BTreeMap::new();
    let Some(table) = value.get_ref().as_table() else {
        let message = format!("`agents` is a table of agents, not {}", kind_of(value));
        reader.problem(value.span(), message, Some("write [agents.NAME]".to_owned()));
        return agents;
    };
    for (name, value) in table {
        let span = name.span();
        let name = name.get_ref().as_ref();
        if let Err(error) = ids::check_name(name) {
            reader.problem(span, format!("`{name}` cannot name an agent: {error}"), None);
            continue;
        }
        let Some(table) = value.get_ref().as_table() else {
            let hint = match AGENT_KEYS.contains(&name) {
                true => "name the agent first: [agents.NAME]".to_owned(),
                false => format!("write [agents.{name}]"),
            };
            reader.problem(span, format!("`agents.{name}` is a table, not {}", kind_of(value)), Some(hint));
            continue;
        };
        if let Some(agent) = read_one(reader, name, span, table) {
            agents.insert(name.to_owned(), agent);
        }
    }
    check_fallbacks(reader, table, &agents);
    agents
}

/// Checks that every fallback is another agent that exists; one that waits for the same reset is useless.
fn check_fallbacks(reader: &mut Reader<'_>, table: &DeTable<'_>, agents: &BTreeMap<String, Agent>) {
    let names: Vec<&str> = table.keys().map(|name| name.get_ref().as_ref()).collect();
    for (name, agent) in agents {
        let Some(fallback) = &agent.program.fallback else { continue };
        let place = table.get(name.as_str()).and_then(|value| value.get_ref().as_table()?.get("fallback"));
        let span = place.map_or(0..0, Spanned::span);
        if fallback == name {
            let hint = "name another [agents.NAME], or leave `fallback` out".to_owned();
            reader.problem(span, format!("[agents.{name}] falls back to itself"), Some(hint));
        } else if !names.contains(&fallback.as_str()) {
            let others: Vec<&str> = names.iter().copied().filter(|other| other != name).collect();
            let message = format!("`fallback` of [agents.{name}] names the unknown agent `{fallback}`");
            match others.is_empty() {
                true => reader.problem(span, message, Some(format!("add [agents.{fallback}]"))),
                false => reader.unknown(span, message, fallback, &others),
            }
        } else if let Some(other) = agents.get(fallback)
            && other.traits().account == agent.traits().account
        {
            let message = format!("[agents.{name}] falls back to `{fallback}`, which waits for the same account");
            let hint = "give one of them an `account` of its own if it has one".to_owned();
            reader.warning(span, message, Some(hint));
        }
    }
}

fn read_one(reader: &mut Reader<'_>, name: &str, span: Range<usize>, table: &DeTable<'_>) -> Option<Agent> {
    for key in table.keys() {
        if !AGENT_KEYS.contains(&key.get_ref().as_ref()) {
            let message = format!("unknown key `{}` in [agents.{name}]", key.get_ref());
            reader.unknown(key.span(), message, key.get_ref(), AGENT_KEYS);
        }
    }
    let kind = read_kind(reader, name, &span, table);
    let command = read_command(reader, name, table);
    let permissions = read_permissions(reader, table);
    let program = Program {
        args: table.get("args").and_then(|value| words(reader, "args", value)).unwrap_or_default(),
        env: table.get("env").map(|value| read_env(reader, value)).unwrap_or_default(),
        model: read_word(reader, table, "model"),
        permissions: permissions.unwrap_or_default(),
        account: read_word(reader, table, "account"),
        fallback: read_word(reader, table, "fallback"),
        memory_max: read_key(reader, table, &AGENT_MEMORY, Value::memory),
        processes_max: read_key(reader, table, &AGENT_PROCESSES, Value::count),
        kind: kind?,
        command: command?,
    };
    if program.command.is_empty() && program.kind.about().program.is_none() {
        let hint = "write command = [\"program\", \"argument\"]".to_owned();
        reader.problem(span, format!("[agents.{name}] has no `command`"), Some(hint));
        return None;
    }
    for (key, given) in [("model", program.model.is_some()), ("permissions", permissions.is_some())] {
        if let Some(value) = table.get(key).filter(|_| given && program.kind.kind() == command::KIND) {
            let message =
                format!("`{key}` of [agents.{name}] has no effect: a `command` is told everything by its arguments");
            reader.warning(value.span(), message, Some("put it into `command` or `args`".to_owned()));
        }
    }
    Some(Agent { line: reader.line(span.start), program })
}

fn read_kind(reader: &mut Reader<'_>, name: &str, span: &Range<usize>, table: &DeTable<'_>) -> Option<Kind> {
    let known: Vec<&str> = reader.kinds.names().collect();
    let Some(value) = table.get("kind") else {
        if table.contains_key("command") {
            return Some(Kind::default());
        }
        let message = format!("[agents.{name}] says neither `kind` nor `command`");
        let hint = format!("write kind = \"…\", one of {}", known.join(", "));
        reader.problem(span.clone(), message, Some(hint));
        return None;
    };
    let Some(kind) = value.get_ref().as_str() else {
        reader.problem(value.span(), format!("`kind` is a text, not {}", kind_of(value)), None);
        return None;
    };
    let found = reader.kinds.of(kind);
    if found.is_none() {
        reader.unknown(value.span(), format!("unknown kind `{kind}`"), kind, &known);
    }
    found
}

/// The words of `command`; empty if it is left out.
fn read_command(reader: &mut Reader<'_>, name: &str, table: &DeTable<'_>) -> Option<Vec<String>> {
    let Some(value) = table.get("command") else {
        return Some(Vec::new());
    };
    let command = words(reader, "command", value)?;
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        let hint = "write command = [\"program\", \"argument\"]".to_owned();
        reader.problem(value.span(), format!("`command` of [agents.{name}] names no program"), Some(hint));
        return None;
    }
    Some(command)
}

fn read_permissions(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<Permissions> {
    let value = table.get("permissions")?;
    match reader.text(table, "permissions")?.as_str() {
        "default" => Some(Permissions::Default),
        "full" => Some(Permissions::Full),
        other => {
            let hint = "write permissions = \"default\" (the program's own settings) or \"full\" (everything)";
            let message = format!("`permissions` cannot be `{}`", crate::ui::one_line(other));
            reader.problem(value.span(), message, Some(hint.to_owned()));
            None
        }
    }
}

/// Reads a setting that also exists for all agents, in the same way.
fn read_key<T>(reader: &mut Reader<'_>, table: &DeTable<'_>, key: &Key, of: impl Fn(&Value) -> Option<T>) -> Option<T> {
    reader.value(key, table.get(key.name)?).as_ref().and_then(of)
}

/// A text that is not empty and contains no NUL, because it may become an argument.
fn read_word(reader: &mut Reader<'_>, table: &DeTable<'_>, key: &str) -> Option<String> {
    let span = table.get(key)?.span();
    let text = reader.text(table, key)?;
    if text.trim().is_empty() || text.contains('\0') {
        reader.problem(span, format!("`{key}` is empty or contains a NUL"), Some("leave it out".to_owned()));
        return None;
    }
    Some(text)
}

/// A list of words without NULs, because a NUL cannot be passed to a program.
pub(super) fn words(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    let Some(list) = value.get_ref().as_array() else {
        let hint = match value.get_ref().as_str() {
            Some(text) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                format!("write {key} = {words:?}")
            }
            None => format!("write {key} = [\"program\", \"argument\"]"),
        };
        let message = format!("`{key}` is a list of words, not {}", kind_of(value));
        reader.problem(value.span(), message, Some(hint));
        return None;
    };
    let mut words = Vec::new();
    for word in list.iter() {
        match word.get_ref().as_str() {
            Some(text) if !text.contains('\0') => words.push(text.to_owned()),
            Some(_) => {
                reader.problem(word.span(), format!("a word of `{key}` contains a NUL"), None);
                return None;
            }
            None => {
                let message = format!("`{key}` is a list of texts, this is {}", kind_of(word));
                reader.problem(word.span(), message, Some("put it in quotes".to_owned()));
                return None;
            }
        }
    }
    Some(words)
}

fn read_env(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let Some(table) = value.get_ref().as_table() else {
        let hint = "write env = { NAME = \"value\" }".to_owned();
        reader.problem(value.span(), format!("`env` is a table, not {}", kind_of(value)), Some(hint));
        return env;
    };
    for (name, value) in table {
        let text = name.get_ref().as_ref();
        let problem = if text.is_empty() || text.contains(['=', '\0']) {
            Some(format!("`{text}` cannot name a variable"))
        } else if text.starts_with(OURS) {
            Some(format!("`{text}` is set by rekindle itself"))
        } else {
            None
        };
        match (problem, value.get_ref().as_str()) {
            (Some(message), _) => reader.problem(name.span(), message, None),
            (None, Some(content)) if !content.contains('\0') => {
                env.insert(text.to_owned(), content.to_owned());
            }
            (None, Some(_)) => reader.problem(value.span(), format!("the value of `{text}` contains a NUL"), None),
            (None, None) => {
                let message = format!("a variable is a text, `{text}` is {}", kind_of(value));
                reader.problem(value.span(), message, Some("put it in quotes".to_owned()));
            }
        }
    }
    env
}
