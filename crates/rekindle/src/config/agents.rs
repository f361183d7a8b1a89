//! The `[agents.NAME]` tables: how to start each agent's program.

use std::collections::BTreeMap;

use rekindle_core::ids;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Reader, kind_of};
use super::kinds;

/// Keys of an agent's table.
pub const AGENT_KEYS: &[&str] = &["kind", "command", "args", "env", "model", "permissions"];

/// Variables that rekindle sets for every agent itself.
const OURS: &str = "REKINDLE_";

/// How to start an agent's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its kind, one of `kinds::NOW`.
    pub kind: &'static str,
    /// The program and its arguments, `args` included.
    pub command: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// The model it is asked to use.
    pub model: Option<String>,
    /// What it may do without asking.
    pub permissions: Option<String>,
    /// The line of the file on which it stands.
    pub line: usize,
}

/// Reads all agents; what is wrong goes to the reader.
pub fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, Agent> {
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
    agents
}

fn read_one(reader: &mut Reader<'_>, name: &str, span: std::ops::Range<usize>, table: &DeTable<'_>) -> Option<Agent> {
    for key in table.keys() {
        if !AGENT_KEYS.contains(&key.get_ref().as_ref()) {
            let message = format!("unknown key `{}` in [agents.{name}]", key.get_ref());
            reader.unknown(key.span(), message, key.get_ref(), AGENT_KEYS);
        }
    }
    let kind = read_kind(reader, name, &span, table);
    let command = read_command(reader, name, &span, table);
    let agent = Agent {
        line: reader.line(span.start),
        env: table.get("env").map(|value| read_env(reader, value)).unwrap_or_default(),
        model: reader.text(table, "model"),
        permissions: reader.text(table, "permissions"),
        kind: kind?,
        command: command?,
    };
    for (key, given) in [("model", &agent.model), ("permissions", &agent.permissions)] {
        if given.is_some() && agent.kind == kinds::COMMAND {
            let message =
                format!("`{key}` of [agents.{name}] has no effect: a `command` is told everything by its arguments");
            let at = table.get(key).map_or(span.clone(), Spanned::span);
            reader.warning(at, message, Some("put it into `command` or `args`".to_owned()));
        }
    }
    Some(agent)
}

fn read_kind(
    reader: &mut Reader<'_>,
    name: &str,
    span: &std::ops::Range<usize>,
    table: &DeTable<'_>,
) -> Option<&'static str> {
    let Some(value) = table.get("kind") else {
        if table.contains_key("command") {
            return Some(kinds::COMMAND);
        }
        let message = format!("[agents.{name}] says neither `kind` nor `command`");
        let hint = "write kind = \"command\" and command = [\"program\", \"argument\"]";
        reader.problem(span.clone(), message, Some(hint.to_owned()));
        return None;
    };
    let Some(kind) = value.get_ref().as_str() else {
        reader.problem(value.span(), format!("`kind` is a text, not {}", kind_of(value)), None);
        return None;
    };
    if let Some(known) = kinds::NOW.iter().find(|known| **known == kind) {
        return Some(*known);
    }
    if kinds::LATER.contains(&kind) {
        let message = format!("agents of kind `{kind}` come in a later version");
        let hint = format!("until then: kind = \"{}\" and command = [\"{kind}\", …]", kinds::COMMAND);
        reader.problem(value.span(), message, Some(hint));
    } else {
        let known: Vec<&str> = kinds::NOW.iter().chain(kinds::LATER).copied().collect();
        reader.unknown(value.span(), format!("unknown kind `{kind}`"), kind, &known);
    }
    None
}

fn read_command(
    reader: &mut Reader<'_>,
    name: &str,
    span: &std::ops::Range<usize>,
    table: &DeTable<'_>,
) -> Option<Vec<String>> {
    let Some(value) = table.get("command") else {
        // Without a kind as well, that is what was said already.
        if table.contains_key("kind") {
            let hint = "write command = [\"program\", \"argument\"]".to_owned();
            reader.problem(span.clone(), format!("[agents.{name}] has no `command`"), Some(hint));
        }
        return None;
    };
    let mut command = words(reader, "command", value)?;
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        let hint = "write command = [\"program\", \"argument\"]".to_owned();
        reader.problem(value.span(), format!("`command` of [agents.{name}] names no program"), Some(hint));
        return None;
    }
    if let Some(args) = table.get("args") {
        command.extend(words(reader, "args", args)?);
    }
    Some(command)
}

/// A list of words, none with a NUL, which no program could be given.
pub fn words(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
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
                reader.problem(word.span(), format!("a word of `{key}` holds a NUL"), None);
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
            (None, Some(_)) => reader.problem(value.span(), format!("the value of `{text}` holds a NUL"), None),
            (None, None) => {
                let message = format!("a variable is a text, `{text}` is {}", kind_of(value));
                reader.problem(value.span(), message, Some("put it in quotes".to_owned()));
            }
        }
    }
    env
}
