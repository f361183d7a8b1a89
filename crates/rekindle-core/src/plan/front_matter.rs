//! Parses the `---` block at the top of a plan into keys and values: `key: value`, `[a, b]`, bullets, quoted strings,
//! comments, and one level of nesting (`hang:` over `silence: 5m` is `hang.silence`). A small part of YAML on purpose: the
//! rest of it has surprises. What the keys mean is decided in `settings`.

use std::{collections::BTreeSet, ops::Range};

use super::{
    problem::{Problems, Span, quote},
    values::{Piece, trimmed},
};

/// A key with its value.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// Lower case, words joined by `_`; a nested key is preceded by its parent and a dot.
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Value,
}

#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// Nothing, or nothing yet.
    Empty,
    /// One value.
    Text(Piece),
    /// Several, in brackets or as bullets.
    List(Vec<Piece>),
}

/// Parses the front matter that may start at an offset. Returns its entries and where the Markdown starts.
pub(super) fn read(text: &str, from: usize, problems: &mut Problems) -> (Vec<Entry>, usize) {
    let mut lines = lines(text, from);
    let Some(first) = lines.next().filter(|line| is_fence(text, line)) else {
        return (Vec::new(), from);
    };
    let mut body = Vec::new();
    for line in lines {
        if is_fence(text, &line) || text[line.clone()].trim_end() == "..." {
            let mut reader = Reader { text, problems, entries: Vec::new(), seen: BTreeSet::new(), parent: None };
            for line in body {
                reader.line(line);
            }
            let after = text[line.end..].find('\n').map_or(text.len(), |found| line.end + found + 1);
            return (reader.entries, after);
        }
        body.push(line);
    }
    // A rule across the page is legal Markdown too: it is front matter only if a key follows.
    let second = body.first().map_or("", |line| &text[line.clone()]);
    if split_key(second).is_some() {
        problems
            .error("front-matter-open", first.clone(), "the front matter that begins here never ends")
            .hint("close it with a line `---`");
    }
    (Vec::new(), first.end)
}

/// The lines from an offset on, without their line breaks.
fn lines(text: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = from;
    text[from..].split_inclusive('\n').map(move |line| {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        range
    })
}

fn is_fence(text: &str, line: &Range<usize>) -> bool {
    text[line.clone()].trim_end() == "---"
}

struct Reader<'a> {
    text: &'a str,
    problems: &'a mut Problems,
    entries: Vec<Entry>,
    seen: BTreeSet<String>,
    /// The last entry that was not nested.
    parent: Option<usize>,
}

impl Reader<'_> {
    fn line(&mut self, line: Range<usize>) {
        let indented = self.text[line.clone()].starts_with([' ', '\t']);
        let line = trimmed(self.text, line);
        let content = &self.text[line.clone()];
        if content.is_empty() || content.starts_with('#') {
            return;
        }
        if let Some(item) = content.strip_prefix('-').filter(|i| i.is_empty() || i.starts_with(' ')) {
            self.bullet(line.end - item.len()..line.end, line);
            return;
        }
        let Some((key, value_at)) = split_key(content) else {
            self.problems
                .error("front-matter-line", line, "this line of the front matter is not a `key: value`")
                .hint("write one `key: value` on each line, lists as `[a, b]`");
            return;
        };
        let parent = self.parent.map(|parent| &self.entries[parent]);
        let nested = parent.filter(|parent| indented && parent.value == Value::Empty);
        let stands_alone = nested.is_none();
        let key = match nested {
            Some(parent) => format!("{}.{key}", parent.key),
            None => key,
        };
        let written = self.text[line.start..line.start + value_at].trim_end_matches(':').trim_end();
        let key_span = Span::from(line.start..line.start + written.len());
        if !self.seen.insert(key.clone()) {
            self.problems
                .error("duplicate-setting", key_span, format!("{} is set twice in the front matter", quote(&key)))
                .hint("keep one of the two");
            return;
        }
        let value = self.value(line.start + value_at..line.end);
        if stands_alone {
            self.parent = Some(self.entries.len());
        }
        self.entries.push(Entry { key, key_span, value });
    }

    /// A `- item` line: one more value for the key above.
    fn bullet(&mut self, item: Range<usize>, line: Range<usize>) {
        let value = match self.value(item) {
            Value::Text(piece) => piece,
            Value::Empty => return,
            Value::List(_) => {
                self.problems.error("front-matter-line", line, "a list inside of a list means nothing here");
                return;
            }
        };
        match self.entries.last_mut().map(|entry| &mut entry.value) {
            Some(Value::List(items)) => items.push(value),
            Some(empty @ Value::Empty) => *empty = Value::List(vec![value]),
            Some(Value::Text(_)) | None => {
                self.problems
                    .error("front-matter-line", line, "this bullet belongs to no key")
                    .hint("put a line `key:` before the bullets");
            }
        }
    }

    fn value(&mut self, range: Range<usize>) -> Value {
        let range = trimmed(self.text, range);
        let raw = &self.text[range.clone()];
        if raw.starts_with('[') {
            return self.flow_list(range);
        }
        match scalar(raw) {
            Ok((text, length)) => {
                let rest = raw[length..].trim_start();
                if !rest.is_empty() && !rest.starts_with('#') {
                    self.bad_value(range.clone(), "text follows the closing quote");
                }
                if text.is_empty() && !raw.starts_with(['"', '\'']) {
                    return Value::Empty;
                }
                let span = Span::from(range.start..range.start + length);
                Value::Text(Piece { text, span })
            }
            Err(why) => {
                self.bad_value(range, why);
                Value::Empty
            }
        }
    }

    fn flow_list(&mut self, range: Range<usize>) -> Value {
        let mut pieces = Vec::new();
        let mut at = range.start + 1;
        loop {
            at += self.text[at..range.end].len() - self.text[at..range.end].trim_start().len();
            let rest = &self.text[at..range.end];
            if let Some(after) = rest.strip_prefix(']') {
                let after = after.trim_start();
                if !after.is_empty() && !after.starts_with('#') {
                    self.bad_value(range, "text follows the closing bracket");
                }
                return Value::List(pieces);
            }
            if rest.is_empty() {
                self.bad_value(range, "a list that begins with `[` must end with `]` on the same line");
                return Value::List(pieces);
            }
            if let Some(after) = rest.strip_prefix(',') {
                at = range.end - after.len();
                continue;
            }
            match list_scalar(rest) {
                Ok((text, length)) => {
                    let span = Span::from(at..at + length);
                    if !text.is_empty() {
                        pieces.push(Piece { text, span });
                    }
                    at += length.max(1);
                }
                Err(why) => {
                    self.bad_value(at..range.end, why);
                    return Value::List(pieces);
                }
            }
        }
    }

    fn bad_value(&mut self, range: Range<usize>, why: &str) {
        self.problems.error("front-matter-value", range, why);
    }
}

/// A key in its normal form and where its value begins.
fn split_key(line: &str) -> Option<(String, usize)> {
    let (key, _) = line.split_once(':')?;
    let value_at = key.len() + 1;
    let name = key.trim().trim_matches(['"', '\'']).to_lowercase().replace(['-', ' '], "_");
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let spaced = line[value_at..].is_empty() || line[value_at..].starts_with(char::is_whitespace);
    (plain && spaced && name.starts_with(char::is_alphabetic)).then_some((name, value_at))
}

/// A value that runs to the end of its line or to a comment.
fn scalar(raw: &str) -> Result<(String, usize), &'static str> {
    if raw.starts_with(['"', '\'', '`']) {
        return quoted(raw);
    }
    let end = comment_start(raw).unwrap_or(raw.len());
    let text = raw[..end].trim_end();
    Ok((text.to_owned(), text.len()))
}

/// A value within brackets.
fn list_scalar(raw: &str) -> Result<(String, usize), &'static str> {
    if raw.starts_with(['"', '\'', '`']) {
        return quoted(raw);
    }
    let end = raw.find([',', ']']).unwrap_or(raw.len());
    let text = raw[..end].trim_end();
    Ok((text.to_owned(), text.len()))
}

fn comment_start(raw: &str) -> Option<usize> {
    if raw.starts_with('#') {
        return Some(0);
    }
    raw.find(" #").or_else(|| raw.find("\t#"))
}

/// A quoted string at the start of a text: its content, and its length with the quotes. Only double quotes support escapes;
/// a single quote is written twice.
fn quoted(raw: &str) -> Result<(String, usize), &'static str> {
    let mut chars = raw.char_indices().peekable();
    let Some((_, quote)) = chars.next() else {
        return Ok((String::new(), 0));
    };
    let mut text = String::new();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if quote != '\'' || chars.next_if(|(_, next)| *next == '\'').is_none() {
                return Ok((text, at + c.len_utf8()));
            }
            text.push('\'');
        } else if c == '\\' && quote == '"' {
            match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(escaped @ ('"' | '\\' | '/')) => text.push(escaped),
                _ => {
                    return Err("unknown escape: within double quotes only \\n, \\t, \\\" and \\\\ have a meaning");
                }
            }
        } else {
            text.push(c);
        }
    }
    Err("the opening quote is never closed")
}
