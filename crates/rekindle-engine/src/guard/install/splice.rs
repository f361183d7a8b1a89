//! JSON with comments as bytes: how something is added to an object or a list, and removed again, with every other byte left
//! as it was. It owns commas, indentation and line endings; what is added and what counts as ours is decided in `edit`.

use std::ops::Range;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::Value;

use crate::agents::foreign::SETTINGS;

/// The indentation of a file that does not show one.
const INDENT: &str = "  ";

/// What is written, with its keys in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// Text, a number, a boolean, or anything whose order does not matter.
    Plain(Value),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Json)>) -> Self {
        Self::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub fn text(text: &str) -> Self {
        Self::Plain(Value::from(text))
    }
}

/// Why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    pub why: String,
}

/// A file's formatting.
#[derive(Clone, Debug)]
struct Style {
    newline: &'static str,
    unit: String,
    one_line: bool,
    /// There is a space after colons and commas.
    spaced: bool,
}

/// A parsed text.
pub struct Doc<'a> {
    text: &'a str,
    /// The value; `None` if there are only white space and comments.
    pub root: Option<Node<'a>>,
    style: Style,
}

/// An object or a list: the positions of its brackets and its contents.
#[derive(Clone, Debug)]
pub struct Container {
    open: usize,
    close: usize,
    children: Vec<Range<usize>>,
}

impl Container {
    /// The node as a container; `None` if it is something else.
    pub fn of(node: &Node<'_>) -> Option<Self> {
        let (range, children) = match node {
            Node::Object(object) => (object.range, object.properties.iter().map(|p| p.range).collect::<Vec<_>>()),
            Node::Array(list) => (list.range, list.elements.iter().map(Ranged::range).collect()),
            _ => return None,
        };
        let children = children.into_iter().map(|range| range.start..range.end).collect();
        Some(Self { open: range.start, close: range.end.checked_sub(1)?, children })
    }
}

/// Text to insert at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    at: usize,
    text: String,
}

impl<'a> Doc<'a> {
    /// Parses a text without its byte order mark.
    pub fn read(text: &'a str) -> Result<Self, Broken> {
        let read = parse_to_ast(text, &CollectOptions::default(), &SETTINGS).map_err(|error| Broken {
            line: error.line_display(),
            column: error.column_display(),
            why: error.kind().to_string().to_lowercase(),
        })?;
        let style = style(text, read.value.as_ref());
        Ok(Self { text, root: read.value, style })
    }

    /// Adds items at the end of a container: with a name before each if it is an object.
    pub fn append(&self, container: &Container, items: &[(Option<&str>, &Json)]) -> Vec<Insertion> {
        match (container.children.first(), container.children.last()) {
            (Some(first), Some(last)) => self.append_after(container, first, last, items),
            _ => vec![self.fill(container, items)],
        }
    }

    fn append_after(
        &self,
        container: &Container,
        first: &Range<usize>,
        last: &Range<usize>,
        items: &[(Option<&str>, &Json)],
    ) -> Vec<Insertion> {
        let comma = self.comma(last.end, container.close);
        let (at, ended) = self.after_comments(comma.map_or(last.end, |comma| comma + 1), container.close);
        let lines = ended || self.text[container.open..first.start].contains('\n');
        let indent = if lines { self.indent_at(first.start) } else { String::new() };
        let between = match (lines, self.style.spaced) {
            (true, _) => format!("{}{indent}", self.style.newline),
            (false, true) => " ".to_owned(),
            (false, false) => String::new(),
        };
        let items: Vec<String> = items
            .iter()
            .map(|(name, value)| format!("{between}{}", self.shown(*name, value, lines, &indent)))
            .collect();
        // A list that ends with a comma keeps ending with one.
        let text = format!("{}{}", items.join(","), if comma.is_some() { "," } else { "" });
        let comma = comma.is_none().then(|| Insertion { at: last.end, text: ",".to_owned() });
        comma.into_iter().chain([Insertion { at, text }]).collect()
    }

    /// Adds items to a container that has only white space and comments.
    fn fill(&self, container: &Container, items: &[(Option<&str>, &Json)]) -> Insertion {
        let (mut at, mut ended) = (container.open + 1, false);
        let mut from = at;
        while let Some(comment) = self.comment(self.past_space(from)) {
            ended = self.text[comment.clone()].starts_with("//");
            (at, from) = (comment.end, comment.end);
        }
        let lines = !self.style.one_line || ended;
        if !lines {
            let between = if self.style.spaced { ", " } else { "," };
            let items: Vec<String> = items.iter().map(|(name, value)| self.shown(*name, value, false, "")).collect();
            return Insertion { at, text: items.join(between) };
        }
        let outer = self.indent_at(container.open);
        let indent = format!("{outer}{}", self.style.unit);
        let newline = self.style.newline;
        let items: Vec<String> = items
            .iter()
            .map(|(name, value)| format!("{newline}{indent}{}", self.shown(*name, value, true, &indent)))
            .collect();
        let rest = &self.text[at..container.close];
        let end = if rest.contains('\n') { String::new() } else { format!("{newline}{outer}") };
        Insertion { at, text: format!("{}{end}", items.join(",")) }
    }

    /// The text with all insertions.
    pub fn with(&self, mut insertions: Vec<Insertion>) -> String {
        insertions.sort_by_key(|insertion| insertion.at);
        let mut text = String::with_capacity(self.text.len() + 4096);
        let mut from = 0;
        for Insertion { at, text: new } in insertions {
            text.push_str(&self.text[from..at]);
            text.push_str(&new);
            from = at;
        }
        text.push_str(&self.text[from..]);
        text
    }

    /// The text with one value replaced by another.
    pub fn replaced(&self, place: Range<usize>, value: &Json) -> String {
        let indent = self.indent_at(place.start);
        let shown = self.shown(None, value, !self.style.one_line, &indent);
        format!("{}{shown}{}", &self.text[..place.start], &self.text[place.end..])
    }

    /// The text without one child of a container. Comments stay.
    pub fn without(&self, container: &Container, child: usize) -> String {
        let Some(Range { start, end }) = container.children.get(child).cloned() else { return self.text.to_owned() };
        let only = container.children.len() == 1;
        let inside = [&self.text[container.open + 1..start], &self.text[end..container.close]];
        if only && inside.iter().all(|text| text.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty()) {
            return format!("{}{}", &self.text[..=container.open], &self.text[container.close..]);
        }
        let comma_after = self.comma(end, container.children.get(child + 1).map_or(container.close, |next| next.start));
        let comma_before = child.checked_sub(1).and_then(|before| self.comma(container.children[before].end, start));
        let comma = comma_after.or(comma_before).map(|at| at..at + 1);
        let tail = match comma_after {
            Some(comma) if self.text[end..comma].trim().is_empty() => comma + 1,
            _ => end,
        };
        let head = self.text[..start].trim_end_matches([' ', '\t']).len();
        let after = self.text[tail..].trim_start_matches([' ', '\t']);
        let whole_lines = self.text[..head].ends_with('\n') && (after.starts_with('\n') || after.starts_with("\r\n"));
        let last = child + 1 == container.children.len();
        let own = if whole_lines {
            // Only one line ending is removed: an empty line before it belongs to somebody.
            let line = head - if self.text[..head].ends_with("\r\n") { 2 } else { 1 };
            line..self.text.len() - after.len()
        } else if last && !self.text[..head].ends_with('\n') {
            head.max(container.open + 1)..tail
        } else {
            start..self.text.len() - after.len()
        };
        let mut cuts = vec![own];
        cuts.extend(comma.filter(|comma| !cuts[0].contains(&comma.start)));
        cuts.sort_by_key(|cut| cut.start);
        self.cut(&cuts)
    }

    fn cut(&self, cuts: &[Range<usize>]) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut from = 0;
        for cut in cuts {
            text.push_str(&self.text[from..cut.start]);
            from = cut.end;
        }
        text.push_str(&self.text[from..]);
        text
    }

    /// The comma after a child, if there is one before the limit.
    fn comma(&self, from: usize, limit: usize) -> Option<usize> {
        let mut at = self.past_space(from);
        while let Some(comment) = self.comment(at) {
            at = self.past_space(comment.end);
        }
        (at < limit && self.text[at..].starts_with(',')).then_some(at)
    }

    /// The position after the comments that follow something on its line, and whether the last of them ends the line.
    fn after_comments(&self, from: usize, limit: usize) -> (usize, bool) {
        let (mut at, mut ended) = (from, false);
        loop {
            let rest = &self.text[at..limit];
            let start = at + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
            match self.comment(start) {
                Some(comment) if !ended => {
                    ended = self.text[comment.clone()].starts_with("//");
                    at = comment.end;
                }
                _ => return (at, ended),
            }
        }
    }

    fn past_space(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        from + (rest.len() - rest.trim_start().len())
    }

    /// The comment that starts here, without its line ending.
    fn comment(&self, at: usize) -> Option<Range<usize>> {
        let rest = self.text.get(at..)?;
        let length = if rest.starts_with("//") {
            rest.find(['\r', '\n']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            return None;
        };
        Some(at..at + length)
    }

    /// The indentation of the line that contains a position.
    fn indent_at(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &self.text[line..at];
        rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()].to_owned()
    }

    fn shown(&self, name: Option<&str>, value: &Json, lines: bool, indent: &str) -> String {
        let mut text = String::new();
        if let Some(name) = name {
            text.push_str(&Value::from(name).to_string());
            text.push_str(if lines || self.style.spaced { ": " } else { ":" });
        }
        self.write(value, lines, indent, &mut text);
        text
    }

    fn write(&self, value: &Json, lines: bool, indent: &str, text: &mut String) {
        let (open, close, items): (_, _, Vec<(Option<&str>, &Json)>) = match value {
            Json::Plain(value) => return text.push_str(&value.to_string()),
            Json::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
            Json::Object(fields) => ('{', '}', fields.iter().map(|(name, item)| (Some(name.as_str()), item)).collect()),
        };
        let deeper = format!("{indent}{}", self.style.unit);
        text.push(open);
        for (index, (name, item)) in items.iter().enumerate() {
            if index > 0 {
                text.push_str(if lines || !self.style.spaced { "," } else { ", " });
            }
            if lines {
                text.push_str(self.style.newline);
                text.push_str(&deeper);
            }
            text.push_str(&self.shown(*name, item, lines, &deeper));
        }
        if lines && !items.is_empty() {
            text.push_str(self.style.newline);
            text.push_str(indent);
        }
        text.push(close);
    }
}

fn style(text: &str, root: Option<&Node<'_>>) -> Style {
    let newline = match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let container = root.and_then(Container::of);
    let first = container.as_ref().and_then(|container| Some((container.open, container.children.first()?.start)));
    let unit = first.and_then(|(open, first)| {
        let (_, indent) = text[open..first].rsplit_once('\n')?;
        (!indent.is_empty() && indent.trim_matches([' ', '\t']).is_empty()).then(|| indent.to_owned())
    });
    let empty = container.is_none_or(|container| container.children.is_empty());
    Style {
        newline,
        unit: unit.unwrap_or_else(|| INDENT.to_owned()),
        one_line: !empty && !text.trim().contains('\n'),
        spaced: text.contains("\": "),
    }
}
