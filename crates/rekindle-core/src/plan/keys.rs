//! The keys of a task: which there are, and whether a bullet list under a heading is a list of keys or part of the body.
//! Parsing their values is left to `bullets`.

use std::ops::Range;

use super::{
    nearest::nearest,
    outline::{Item, Outline},
    problem::Span,
    values::Piece,
};
use crate::ids::AgentName;

/// What can be said about a task under its heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Agent,
    Role,
    Cli,
    BlockedBy,
    Wave,
    Artifacts,
    Accept,
    Environments,
    Reading,
    Timeout,
    /// Maximum number of attempts.
    Attempts,
    Priority,
    Done,
}

/// Every key as it is written.
const KEYS: [(&str, Key); 13] = [
    ("agent", Key::Agent),
    ("role", Key::Role),
    ("cli", Key::Cli),
    ("blocked by", Key::BlockedBy),
    ("wave", Key::Wave),
    ("artifacts", Key::Artifacts),
    ("accept", Key::Accept),
    ("environments", Key::Environments),
    ("reading", Key::Reading),
    ("timeout", Key::Timeout),
    ("attempts", Key::Attempts),
    ("priority", Key::Priority),
    ("done", Key::Done),
];

/// What other tools call the same things; only for hints.
const OTHER_WORDS: [(&str, &str); 17] = [
    ("depends on", "blocked by"),
    ("depends", "blocked by"),
    ("dependencies", "blocked by"),
    ("deps", "blocked by"),
    ("after", "blocked by"),
    ("requires", "blocked by"),
    ("needs", "blocked by"),
    ("files", "artifacts"),
    ("outputs", "artifacts"),
    ("output", "artifacts"),
    ("check", "accept"),
    ("checks", "accept"),
    ("verify", "accept"),
    ("test", "accept"),
    ("owner", "agent"),
    ("assignee", "agent"),
    ("retries", "attempts"),
];

/// The roles that rekindle has prompts and timeouts for.
pub(super) const ROLES: [&str; 5] = ["developer", "critic", "auditor", "remediation", "health_auditor"];

/// Maximum number of words in a key before it is taken for a sentence: the longest real one has two.
const KEY_MAX_WORDS: usize = 3;

/// The values of one task's keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) agent: Option<AgentName>,
    pub(super) role: Option<String>,
    pub(super) cli: Option<String>,
    pub(super) blocked_by: Vec<Piece>,
    pub(super) wave: Option<(u32, Span)>,
    pub(super) artifacts: Vec<String>,
    pub(super) accept: Vec<String>,
    pub(super) environments: Vec<String>,
    pub(super) reading: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) attempts: Option<u32>,
    pub(super) priority: Option<i64>,
    pub(super) done: bool,
    /// Checks or artifacts were given but could not be parsed: the task is not reported as unproven as well.
    pub(super) proof_broken: bool,
}

/// A bullet split at its colon.
pub(super) struct Bullet {
    pub(super) name: String,
    pub(super) key: Option<Key>,
    pub(super) value: Range<usize>,
}

impl Key {
    fn find(name: &str) -> Option<Key> {
        KEYS.iter().find(|(n, _)| *n == name).map(|(_, key)| *key)
    }

    /// Whether it may have several values, and occur several times.
    pub(super) fn takes_many(self) -> bool {
        matches!(self, Key::BlockedBy | Key::Artifacts | Key::Accept | Key::Environments | Key::Reading)
    }

    pub(super) fn name(self) -> &'static str {
        KEYS.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }
}

/// Whether a list has at least one existing key: then its author meant a task.
pub(super) fn has_known_key(text: &str, outline: &Outline, list: usize) -> bool {
    members(outline, list).any(|item| split(text, item).is_some_and(|b| b.key.is_some()))
}

/// Whether a list is meant as keys, known or not. Two unknown words before a colon are taken for prose unless they are near
/// a key: `- Add tests: unit and e2e` is an ordinary bullet.
pub(super) fn is_key_list(text: &str, outline: &Outline, list: usize) -> bool {
    !outline.lists[list].ordered
        && members(outline, list).any(|item| {
            split(text, item).is_some_and(|b| b.key.is_some() || !b.name.contains(' ') || suggestion(&b.name).is_some())
        })
}

fn members(outline: &Outline, list: usize) -> impl Iterator<Item = &Item> {
    outline.lists[list].items.iter().map(|item| &outline.items[*item])
}

/// Splits `key: value`, with or without emphasis on the key. A known key needs no space after its colon.
pub(super) fn split(text: &str, item: &Item) -> Option<Bullet> {
    if item.checkbox.is_some() {
        return None;
    }
    let line = item.text.start..line_end(text, item.text.start).min(item.text.end);
    let raw = text.get(line.clone())?;
    let bare = raw.trim_start_matches(['*', '_', '`']);
    let marks = &raw[..raw.len() - bare.len()];
    let (written, rest) = bare.split_once(':')?;
    let name = written.trim_end_matches(['*', '_', '`']);
    let name = name.to_lowercase().replace(['_', '-'], " ");
    let words: Vec<&str> = name.split_whitespace().collect();
    let plain = name.chars().all(|c| c.is_alphabetic() || c.is_whitespace());
    if words.is_empty() || words.len() > KEY_MAX_WORDS || !plain {
        return None;
    }
    let name = words.join(" ");
    let key = Key::find(&name);
    let value = if marks.is_empty() { rest } else { rest.strip_prefix(marks).unwrap_or(rest) };
    if key.is_none() && !(value.is_empty() || value.starts_with(char::is_whitespace)) {
        return None;
    }
    let start = line.end - value.len();
    let value = start..item.text.end.max(start);
    Some(Bullet { name, key, value })
}

/// What the author probably meant by an unknown key.
pub(super) fn suggestion(name: &str) -> Option<&'static str> {
    let other = OTHER_WORDS.iter().find(|(word, _)| *word == name);
    other.map(|(_, key)| *key).or_else(|| nearest(name, KEYS.iter().map(|(name, _)| *name)))
}

/// Where the line of an offset ends, before its line break.
pub(super) fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |found| from + found)
}

/// The first line of a range, without its line break.
pub(super) fn first_line(text: &str, range: &Range<usize>) -> Range<usize> {
    let end = line_end(text, range.start).min(range.end);
    range.start..range.start + text[range.start..end].trim_end().len()
}

/// The keys as they are written.
pub(super) fn names() -> Vec<&'static str> {
    KEYS.iter().map(|(name, _)| *name).collect()
}
