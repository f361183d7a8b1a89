//! Parses a task's bullets into its keys and reports what is wrong with them. Which list is a key list, and which keys there
//! are, is decided in `keys`; what several tasks say together (blockers, waves) is checked elsewhere.

use std::{collections::BTreeMap, ops::Range};

use super::{
    keys::{Bullet, Key, Keys, ROLES, first_line, line_end, names, split, suggestion},
    nearest::nearest,
    outline::{Item, List, Outline},
    problem::{Problems, Span, quote},
    values::{self, Piece},
};
use crate::{duration, ids::AgentName};

/// Parses a key list. Returns the keys and, if the list continues with ordinary bullets or text, where that starts.
pub(super) fn read(text: &str, outline: &Outline, list: usize, problems: &mut Problems) -> (Keys, Option<usize>) {
    let mut reader = KeyReader { text, outline, problems, keys: Keys::default(), seen: BTreeMap::new() };
    let (mut current, mut body) = (list, reader.read_list(list));
    // Another marker (`*` after `-`) begins another list in Markdown; to a person it is the same list.
    while body.is_none()
        && let Some(next) = reader.keys_go_on_after(current)
    {
        current = next;
        body = reader
            .read_list(current)
            .or_else(|| reader.end_of(current).filter(|_| reader.keys_go_on_after(current).is_none()));
    }
    (reader.keys, body)
}

struct KeyReader<'a> {
    text: &'a str,
    outline: &'a Outline,
    problems: &'a mut Problems,
    keys: Keys,
    seen: BTreeMap<Key, Span>,
}

impl KeyReader<'_> {
    fn read_list(&mut self, list: usize) -> Option<usize> {
        let items = &self.outline.lists[list].items;
        for (position, index) in items.iter().enumerate() {
            let item = &self.outline.items[*index];
            let bullet = split(self.text, item);
            if position > 0 && bullet.is_none() && after_blank_line(self.text, item.span.start) {
                return Some(item.span.start);
            }
            let lazy = lazy_line(self.text, item);
            let last = position + 1 == items.len();
            if let (Some(start), false) = (lazy, last) {
                let line = start..line_end(self.text, start);
                self.problems
                    .error("stray-text", line, "this line is neither a key bullet nor part of one")
                    .hint("indent it to continue the bullet, or put the text below the keys after a blank line");
            }
            match bullet {
                Some(mut bullet) => {
                    let end = lazy.unwrap_or(bullet.value.end);
                    bullet.value.end = end.max(bullet.value.start);
                    self.read_bullet(item, bullet);
                }
                None => self.not_a_key(item),
            }
            if let (Some(start), true) = (lazy, last) {
                return Some(start);
            }
        }
        None
    }

    fn end_of(&self, list: usize) -> Option<usize> {
        self.outline.lists[list].items.last().map(|item| self.outline.items[*item].span.end)
    }

    /// The list that follows directly and starts with a known key, if there is one.
    fn keys_go_on_after(&self, list: usize) -> Option<usize> {
        let end = self.end_of(list)?;
        let first_of = |list: &List| list.items.first().map(|item| &self.outline.items[*item]);
        let follows = |item: &Item| {
            item.span.start >= end
                && self.text[end..item.span.start].trim().is_empty()
                && split(self.text, item).is_some_and(|bullet| bullet.key.is_some())
        };
        self.outline.lists.iter().position(|list| first_of(list).is_some_and(follows))
    }

    fn not_a_key(&mut self, item: &Item) {
        let message = "this bullet is among the task's keys but is not a `key: value`";
        self.problems
            .error("not-a-key", first_line(self.text, &item.span), message)
            .hint("put the task's text after the keys, with a blank line between");
    }

    fn read_bullet(&mut self, item: &Item, bullet: Bullet) {
        let span = Span::from(first_line(self.text, &item.span));
        let Some(key) = bullet.key else {
            let message = format!("unknown key {}", quote(&bullet.name));
            let hint = suggestion(&bullet.name).map(|near| format!("did you mean `{near}`?"));
            let all =
                || format!("the keys are {}; ordinary bullets need a line of text before them", names().join(", "));
            let hint = hint.unwrap_or_else(all);
            self.problems.error("unknown-key", span, message).hint(hint);
            return;
        };
        if let Some(other) = &item.other {
            self.problems
                .error("stray-text", other.clone(), format!("text below the key `{}` belongs to nothing", key.name()))
                .hint("move it to the start of its line, after a blank line, to make it the task's text");
        }
        if !key.takes_many() && self.seen.insert(key, span).is_some() {
            self.problems
                .error("duplicate-key", span, format!("`{}` is given twice for this task", key.name()))
                .hint("keep one of the two");
            return;
        }
        let ranges = self.value_ranges(key, item, bullet.value, span);
        let code = item.code.as_deref().map(str::trim).filter(|c| !c.is_empty());
        match (key, code) {
            (Key::Accept, Some(code)) => self.keys.accept.push(code.replace("\r\n", "\n")),
            (_, Some(_)) => {
                let message = format!("`{}` takes no code block", key.name());
                self.problems.error("stray-text", span, message);
            }
            (_, None) if ranges.is_empty() => {
                let message = format!("`{}` has no value", key.name());
                self.problems.error("empty-value", span, message);
            }
            (_, None) => {}
        }
        for range in ranges {
            self.read_value(key, range);
        }
    }

    /// Where a key's values are: after its colon, or as bullets of their own below it.
    fn value_ranges(&mut self, key: Key, item: &Item, value: Range<usize>, span: Span) -> Vec<Range<usize>> {
        let mut ranges = vec![values::trimmed(self.text, value)];
        for child in item.lists.iter().flat_map(|list| &self.outline.lists[*list].items) {
            let child = &self.outline.items[*child];
            if !child.lists.is_empty() || child.code.is_some() || child.other.is_some() {
                let message = format!("a value of `{}` holds more than one line of text", key.name());
                self.problems.error("stray-text", first_line(self.text, &child.span), message);
            }
            ranges.push(values::trimmed(self.text, child.text.clone()));
        }
        ranges.retain(|range| !range.is_empty());
        if !key.takes_many() && ranges.len() > 1 {
            let message = format!("`{}` takes one value, not {}", key.name(), ranges.len());
            self.problems.error("too-many-values", span, message);
            ranges.truncate(1);
        }
        ranges
    }

    fn read_value(&mut self, key: Key, range: Range<usize>) {
        match key {
            Key::Accept => self.accept(range),
            Key::BlockedBy => {
                let pieces = values::list(self.text, range);
                self.keys.blocked_by.extend(pieces);
            }
            Key::Artifacts => self.artifacts(range),
            Key::Environments => self.environments(range),
            Key::Reading => {
                let pieces = values::list(self.text, range);
                self.keys.reading.extend(pieces.into_iter().map(|p| p.text));
            }
            Key::Agent
            | Key::Role
            | Key::Cli
            | Key::Wave
            | Key::Timeout
            | Key::Attempts
            | Key::Priority
            | Key::Done => {
                self.single(key, values::single(self.text, range));
            }
        }
    }

    fn accept(&mut self, range: Range<usize>) {
        match values::commands(self.text, range.clone()) {
            Some(pieces) => self.keys.accept.extend(pieces.into_iter().map(|p| p.text)),
            None => {
                let message = "text beside the backticks: a check is one shell command that must exit 0";
                self.keys.proof_broken = true;
                self.problems
                    .error("bad-accept", range, message)
                    .hint("put the whole command in one pair of backticks, or write it without any");
            }
        }
    }

    fn artifacts(&mut self, range: Range<usize>) {
        for piece in values::list(self.text, range) {
            match values::workspace_path(&piece.text) {
                Ok(path) => self.keys.artifacts.push(path),
                Err(why) => {
                    let message = format!("the artifact {} {why}", quote(&piece.text));
                    self.keys.proof_broken = true;
                    self.problems
                        .error("bad-path", piece.span, message)
                        .hint("name a file inside the workspace, relative to its root");
                }
            }
        }
    }

    fn environments(&mut self, range: Range<usize>) {
        for piece in values::list(self.text, range) {
            if let Some(name) = self.name("environment", &piece) {
                self.keys.environments.push(name);
            }
        }
    }

    fn single(&mut self, key: Key, piece: Piece) {
        match key {
            Key::Agent => {
                let name = self.name("agent", &piece);
                self.keys.agent = name.and_then(|n| AgentName::new(n).ok());
            }
            Key::Cli => self.keys.cli = self.name("cli", &piece),
            Key::Role => self.role(piece),
            Key::Timeout => self.timeout(piece),
            Key::Done => self.done(piece),
            Key::Attempts => {
                self.keys.attempts = self.number(&piece, "bad-attempts", "attempts", "a whole number from 1 on");
                if self.keys.attempts == Some(0) {
                    self.problems.error(
                        "bad-attempts",
                        piece.span,
                        "`attempts` must be at least 1: a task needs one to be done",
                    );
                }
            }
            Key::Priority => {
                self.keys.priority =
                    self.number(&piece, "bad-priority", "priority", "a whole number, higher goes first");
            }
            Key::Wave => {
                let wave = self.number(&piece, "bad-wave", "wave", "a whole number");
                self.keys.wave = wave.map(|wave| (wave, piece.span));
            }
            // Lists: read piece by piece.
            Key::Accept | Key::BlockedBy | Key::Artifacts | Key::Environments | Key::Reading => {}
        }
    }

    fn role(&mut self, piece: Piece) {
        let role = piece.text.to_lowercase().replace(['-', ' '], "_");
        if !ROLES.contains(&role.as_str()) {
            let near = nearest(&role, ROLES).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("rekindle knows {}", ROLES.join(", ")));
            self.problems
                .warning("unknown-role", piece.span, format!("unknown role {}", quote(&piece.text)))
                .hint(hint);
        }
        self.keys.role = Some(role);
    }

    fn done(&mut self, piece: Piece) {
        match piece.text.to_lowercase().as_str() {
            "yes" | "true" => self.keys.done = true,
            "no" | "false" => {}
            _ => {
                let message = format!("`done` is `yes` or `no`, not {}", quote(&piece.text));
                self.problems.error("bad-done", piece.span, message).hint("remove the bullet while it is open");
            }
        }
    }

    fn timeout(&mut self, piece: Piece) {
        match duration::parse(&piece.text) {
            Ok(0) => {
                self.problems.error("bad-timeout", piece.span, "`timeout` must be longer than zero");
            }
            Ok(ms) => self.keys.timeout_ms = Some(ms),
            Err(error) => {
                self.problems.error("bad-timeout", piece.span, format!("bad `timeout`: {error}")).hint(error.hint())
            }
        }
    }

    fn number<T: std::str::FromStr>(
        &mut self,
        piece: &Piece,
        code: &'static str,
        key: &str,
        wanted: &str,
    ) -> Option<T> {
        let number = piece.text.parse().ok();
        if number.is_none() {
            let message = format!("`{key}` is {wanted}, not {}", quote(&piece.text));
            self.problems.error(code, piece.span, message);
        }
        number
    }

    /// A name of something outside the plan; the same rule as for every name.
    fn name(&mut self, what: &str, piece: &Piece) -> Option<String> {
        match crate::ids::check_name(&piece.text) {
            Ok(()) => Some(piece.text.clone()),
            Err(error) => {
                let message = format!("{} is not a valid {what} name: {error}", quote(&piece.text));
                let hint = crate::ids::name_from(&piece.text).map(|name| format!("write `{name}`"));
                self.problems.error("bad-name", piece.span, message).maybe_hint(hint);
                None
            }
        }
    }
}

/// Where an item's text continues in a line that is not indented: Markdown joins it to the bullet, its author did not.
fn lazy_line(text: &str, item: &Item) -> Option<usize> {
    let mut from = item.text.start;
    while let Some(found) = text.get(from..item.text.end)?.find('\n') {
        from += found + 1;
        let next = text.get(from..item.text.end)?;
        if next.starts_with(|c: char| !c.is_whitespace()) {
            return Some(from);
        }
    }
    None
}

fn after_blank_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    let Some(before) = before.strip_suffix('\n') else {
        return false;
    };
    let line = before.rfind('\n').map_or(before, |found| &before[found + 1..]);
    line.trim().is_empty()
}
