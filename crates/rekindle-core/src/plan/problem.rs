//! What is wrong with a plan and where. Owns spans, the conversion of byte offsets into lines and columns, and how a plan's
//! own words are quoted in a message; which things are wrong is decided by the readers.

use std::ops::Range;

use serde::Serialize;

/// How much of a quoted text a message shows: enough to recognise it, short enough for one line.
const QUOTE_MAX_CHARS: usize = 48;

/// Whether a plan can run in spite of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    /// The plan can be used; its author may have meant something else.
    Warning,
}

/// A range of bytes of the plan file, including the byte order mark and the front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span { start: range.start, end: range.end.max(range.start) }
    }
}

impl Span {
    /// The text that it covers; empty if it does not fit into that text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// One thing that is wrong, or doubtful, in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether it keeps the plan from running.
    pub severity: Severity,
    /// A stable name for the sort of problem, for programs.
    pub code: &'static str,
    pub span: Span,
    /// The line that it begins on, from 1.
    pub line: u32,
    /// The character of that line that it begins at, from 1.
    pub column: u32,
    /// What is wrong: one lower-case line.
    pub message: String,
    pub hint: Option<String>,
}

/// Collects problems while a plan is parsed; lines and columns are computed at the end, in one pass.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    /// Notes something that keeps the plan from running.
    pub(super) fn error(&mut self, code: &'static str, span: impl Into<Span>, message: impl Into<String>) -> Noted<'_> {
        self.add(Severity::Error, code, span.into(), message.into())
    }

    pub(super) fn warning(
        &mut self,
        code: &'static str,
        span: impl Into<Span>,
        message: impl Into<String>,
    ) -> Noted<'_> {
        self.add(Severity::Warning, code, span.into(), message.into())
    }

    fn add(&mut self, severity: Severity, code: &'static str, span: Span, message: String) -> Noted<'_> {
        self.found.push(Problem { severity, code, span, line: 0, column: 0, message, hint: None });
        Noted(self.found.last_mut())
    }

    /// Whether the plan is unusable so far.
    pub(super) fn any_error(&self) -> bool {
        self.found.iter().any(|p| p.severity == Severity::Error)
    }

    /// Whether a sort of problem was noted.
    pub(super) fn has(&self, code: &str) -> bool {
        self.found.iter().any(|p| p.code == code)
    }

    /// The problems in the order of the text, each with its line and column.
    pub(super) fn finish(mut self, text: &str) -> Vec<Problem> {
        self.found.sort_by_key(|p| (p.span.start, p.severity, p.code, p.span.end));
        let mut place = Location::new(text);
        for problem in &mut self.found {
            (problem.line, problem.column) = place.advance_to(problem.span.start);
        }
        self.found
    }
}

/// A problem just noted, to which a hint may be added.
pub(super) struct Noted<'a>(Option<&'a mut Problem>);

impl Noted<'_> {
    /// Says what to do about it.
    pub(super) fn hint(self, hint: impl Into<String>) {
        if let Some(problem) = self.0 {
            problem.hint = Some(hint.into());
        }
    }

    /// Says what to do about it, if that is known.
    pub(super) fn maybe_hint(self, hint: Option<String>) {
        if let Some(problem) = self.0 {
            problem.hint = hint;
        }
    }
}

/// Walks forward through a text and returns the line and column of each offset: linear over all of them, even if thousands
/// are on one line.
pub(super) struct Location<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
}

impl<'a> Location<'a> {
    /// Begins at the first character.
    pub(super) fn new(text: &'a str) -> Self {
        Location { text, at: 0, line: 1, column: 1 }
    }

    /// Line and column of an offset, which must not lie before the last one asked for.
    pub(super) fn advance_to(&mut self, offset: usize) -> (u32, u32) {
        let passed = self.text.get(self.at..offset).unwrap_or("");
        for c in passed.chars() {
            match c {
                '\n' => {
                    self.line = self.line.saturating_add(1);
                    self.column = 1;
                }
                // Both are invisible in an editor.
                '\r' | '\u{feff}' => {}
                _ => self.column = self.column.saturating_add(1),
            }
        }
        self.at = self.at.max(offset);
        (self.line, self.column)
    }
}

/// A text of the plan, quoted for a message: one line, cut to a readable length, without control characters (a plan may come
/// from elsewhere, and messages go to terminals).
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    // Half of a line break takes no place: the same plan is quoted alike with either line end.
    for (count, c) in text.trim().chars().filter(|c| *c != '\r').enumerate() {
        if count == QUOTE_MAX_CHARS {
            quoted.push('…');
            break;
        }
        push_printable(&mut quoted, c);
    }
    quoted.push('`');
    quoted
}

/// Adds a character, with line breaks as spaces and what a terminal might obey as its code.
pub(super) fn push_printable(out: &mut String, c: char) {
    let steers_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if matches!(c, '\n' | '\t') {
        out.push(' ');
    } else if c == '\r' {
        // One half of a line break; the other half is the space.
    } else if c.is_control() || steers_direction {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}
