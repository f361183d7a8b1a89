//! `rekindle.toml` as a layer: reads it with the position of everything in it, and finds all errors at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rekindle_core::budget::{Price, Unit};
use rekindle_engine::agents::Kinds;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agents::{self, Agent};
use super::keys::{KEYS, Key, Shape, Value, Wrong, sections};
use super::{Layer, Origin};
use super::{money, phone, places};
use crate::diagnostic::{Diagnostic, SourceSpan};
use rekindle_core::plan::nearest::nearest;
use rekindle_core::role::Role;

/// Largest configuration that is read: a wrong file is refused before it costs memory.
pub(super) const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The section with a table for each role.
const ROLES: &str = "roles";

#[derive(Debug, Default)]
pub(super) struct File {
    pub layer: Layer,
    pub agents: BTreeMap<String, Agent>,
    /// Its environments: the words before every check, by name.
    pub environments: BTreeMap<String, Vec<String>>,
    /// What models cost, by their names.
    pub prices: BTreeMap<String, Price>,
    /// Its errors and warnings, in the order of the text.
    pub problems: Vec<Diagnostic>,
}

/// Reads the text of a file. `path` is how it is shown.
pub(super) fn read(path: &Path, text: &str, kinds: Kinds) -> File {
    let mut reader = Reader { path, source: text.into(), problems: Vec::new(), kinds };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        reader.problem(span, format!("not valid TOML: {}", error.message()), None);
    }
    let mut file = File::default();
    // For what is left of a broken text, every message would only be about what is missing in it.
    let whole = reader.problems.is_empty();
    for (name, value) in document.get_ref().iter().filter(|_| whole) {
        match name.get_ref().as_ref() {
            "agents" => file.agents = agents::read(&mut reader, value),
            "environments" => file.environments = places::read(&mut reader, value),
            ROLES => reader.roles(value, &mut file.layer),
            money::BUDGET => reader.budgets(value, &mut file.layer),
            "prices" => file.prices = money::prices(&mut reader, value),
            section if sections().any(|known| known == section) => {
                reader.section(section, value, &mut file.layer);
            }
            _ => reader.unknown_section(name, value),
        }
    }
    file.problems = reader.problems;
    file.problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
    file
}

/// Collects errors while a file is read.
pub(super) struct Reader<'a> {
    path: &'a Path,
    source: Arc<str>,
    problems: Vec<Diagnostic>,
    /// The kinds of agents that may be named.
    pub kinds: Kinds,
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, span: Range<usize>, message: String, hint: Option<String>) {
        self.add(span, message, hint, false);
    }

    pub(super) fn warning(&mut self, span: Range<usize>, message: String, hint: Option<String>) {
        self.add(span, message, hint, true);
    }

    /// Reports an unknown word, with the nearest known one.
    pub(super) fn unknown(&mut self, span: Range<usize>, message: String, word: &str, known: &[&str]) {
        let hint = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        self.problem(span, message, Some(hint));
    }

    /// The line of an offset, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.place(at..at).line()
    }

    /// A text in a table, if there is one.
    pub(super) fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<String> {
        let value = table.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.problem(value.span(), format!("`{key}` is a text, not {}", kind_of(value)), None);
        }
        text.map(str::to_owned)
    }

    fn place(&self, span: Range<usize>) -> SourceSpan {
        SourceSpan { path: self.path.display().to_string(), source: Arc::clone(&self.source), span }
    }

    fn add(&mut self, span: Range<usize>, message: String, hint: Option<String>, warning: bool) {
        let place = Some(self.place(span));
        self.problems.push(Diagnostic { warning, message, hint, place });
    }

    fn section(&mut self, section: &str, value: &Spanned<DeValue<'_>>, layer: &mut Layer) {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{section}` is a table, not {}", kind_of(value));
            self.problem(value.span(), message, Some(format!("write [{section}]")));
            return;
        };
        for (name, value) in table {
            let leaf = name.get_ref().as_ref();
            let below = format!("{section}.{leaf}");
            if sections().any(|known| known == below) {
                self.section(&below, value, layer);
                continue;
            }
            let Some(key) = Key::find(&below) else {
                self.unknown_key(section, leaf, name.span());
                continue;
            };
            if let Some(found) = self.value(key, value) {
                let origin = Origin::File { path: self.path.to_owned(), line: self.line(name.span().start) };
                layer.set(key, found, origin);
            }
        }
    }

    /// Reads `[roles.NAME]`: one section each.
    fn roles(&mut self, value: &Spanned<DeValue<'_>>, layer: &mut Layer) {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{ROLES}` is a table of tables, not {}", kind_of(value));
            return self.problem(value.span(), message, Some("write [roles.critic]".to_owned()));
        };
        for (name, value) in table {
            match Role::of(name.get_ref()) {
                Some(role) => self.section(&format!("{ROLES}.{role}"), value, layer),
                None => {
                    let known = Role::ALL.map(Role::name);
                    self.unknown(
                        name.span(),
                        format!("unknown role `{}` in [{ROLES}]", name.get_ref()),
                        name.get_ref(),
                        &known,
                    );
                }
            }
        }
    }

    /// Reads `[budget]`: one section for each of its tables.
    fn budgets(&mut self, value: &Spanned<DeValue<'_>>, layer: &mut Layer) {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{}` is a table of tables, not {}", money::BUDGET, kind_of(value));
            return self.problem(value.span(), message, Some("write [budget] with run = { usd = 20.0 }".to_owned()));
        };
        for (name, value) in table {
            match name.get_ref().as_ref() {
                scope if money::SCOPES.contains(&scope) => {
                    self.section(&format!("{}.{scope}", money::BUDGET), value, layer);
                }
                other => {
                    let message = format!("unknown budget `{other}` in [{}]", money::BUDGET);
                    self.unknown(name.span(), message, other, &money::SCOPES);
                }
            }
        }
    }

    pub(super) fn value(&mut self, key: &Key, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let read = match (key.shape, value.get_ref()) {
            (Shape::Command, DeValue::Array(_)) => return agents::words(self, key.leaf(), value).map(Value::Command),
            (Shape::Names, DeValue::Array(_)) => return agents::words(self, key.leaf(), value).map(Value::Names),
            (Shape::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
            (Shape::Limit(Unit::Usd), DeValue::Integer(number)) if number.radix() == 10 => {
                key.from_text(number.as_str())
            }
            (Shape::Limit(Unit::Usd), DeValue::Float(number)) => key.from_text(number.as_str()),
            (
                Shape::Count { .. } | Shape::Duration { .. } | Shape::Memory | Shape::Space { .. } | Shape::Limit(_),
                DeValue::Integer(number),
            ) => match u64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => key.from_count(number),
                Err(_) => Err(key.wrong_shape(&format!("`{number}`"))),
            },
            // A number or a switch in quotes is a mistake that is better reported than guessed at.
            (Shape::Count { .. } | Shape::Switch, DeValue::String(_)) => Err(key.wrong_shape("a text")),
            (Shape::Id, DeValue::Integer(number)) if number.radix() == 10 => {
                Ok(Value::Text(number.as_str().to_owned()))
            }
            (_, DeValue::String(text)) => key.from_text(text),
            _ => Err(key.wrong_shape(kind_of(value))),
        };
        match read {
            Ok(value) => Some(value),
            Err(Wrong { message, hint }) => {
                self.problem(value.span(), message, Some(hint));
                None
            }
        }
    }

    fn unknown_key(&mut self, section: &str, leaf: &str, span: Range<usize>) {
        if let Some(problem) = phone::in_clear(self.path, self.line(span.start), section, leaf) {
            return self.problems.push(problem);
        }
        let message = format!("unknown key `{leaf}` in [{section}]");
        let elsewhere = KEYS.iter().filter(|key| key.leaf() == leaf).map(|key| format!("[{}]", key.section()));
        let elsewhere: Vec<String> = elsewhere.collect();
        let here: Vec<&str> = KEYS.iter().filter(|key| key.section() == section).map(Key::leaf).collect();
        match elsewhere.is_empty() {
            false => self.problem(span, message, Some(format!("`{leaf}` belongs in {}", elsewhere.join(" or ")))),
            true => self.unknown(span, message, leaf, &here),
        }
    }

    fn unknown_section(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let word = name.get_ref().as_ref();
        let is_table = value.get_ref().is_table();
        if let Some(key) = KEYS.iter().find(|key| key.leaf() == word && !is_table) {
            let hint = format!("write it under [{}]", key.section());
            self.problem(name.span(), format!("`{word}` is outside of a section"), Some(hint));
            return;
        }
        let known: Vec<&str> = ["agents", "environments", "prices", money::BUDGET, ROLES]
            .into_iter()
            .chain(sections().filter(|name| !name.contains('.')))
            .collect();
        let what = if is_table { "section" } else { "key" };
        self.unknown(name.span(), format!("unknown {what} `{word}`"), word, &known);
    }
}

/// What a value is, in words.
pub(super) fn kind_of(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
