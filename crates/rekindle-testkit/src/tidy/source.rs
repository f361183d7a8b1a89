//! One Rust file, scanned only far enough for the rules: what is comment, what is literal, what is test code, where a
//! function ends. Not a parser; it has to be right about braces and words, and nothing else.

use std::ops::Range;

use super::{paths, place};

/// A file and the views of it that rules search.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments and the insides of literals blanked; offsets and lines are those of the text.
    pub(super) code: String,
    line_starts: Vec<usize>,
    test_ranges: Vec<Range<usize>>,
    literals: Vec<Range<usize>>,
    comments: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// From `fn` to the closing brace.
    pub(super) range: Range<usize>,
}

/// An attribute, from `#` to its closing bracket.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) range: Range<usize>,
    pub(super) inner: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Comment,
    Literal,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let spans = scan(text);
        let code = blank(text, spans.iter().map(|(_, range)| range));
        let of =
            |wanted| spans.iter().filter(move |(kind, _)| *kind == wanted).map(|(_, range)| range.clone()).collect();
        let (literals, comments) = (of(Kind::Literal), of(Kind::Comment));
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let test_ranges = test_ranges(&code);
        Self { path: path.to_owned(), text: text.to_owned(), code, line_starts, test_ranges, literals, comments }
    }

    /// The line of an offset, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// Whether the offset is test code: in a test file, or under `#[cfg(test)]`.
    pub(super) fn is_test(&self, at: usize) -> bool {
        place::is_test(&self.path) || self.test_ranges.iter().any(|range| range.contains(&at))
    }

    /// Lines that are not under `#[cfg(test)]`.
    pub(super) fn lines_without_tests(&self) -> usize {
        let under_test: usize = self.test_ranges.iter().map(|range| self.lines_of(range)).sum();
        self.text.lines().count().saturating_sub(under_test)
    }

    /// Lines of a function. In tests, lines inside a literal do not count: a snapshot is data, not code.
    pub(super) fn function_lines(&self, function: &Function) -> usize {
        let whole = self.lines_of(&function.range);
        if !self.is_test(function.range.start) {
            return whole;
        }
        let inside =
            |literal: &&Range<usize>| function.range.start <= literal.start && literal.end <= function.range.end;
        let literal_lines: usize = self.literals.iter().filter(inside).map(|literal| self.lines_of(literal) - 1).sum();
        whole.saturating_sub(literal_lines)
    }

    /// Every function with a body, nested ones included.
    pub(super) fn functions(&self) -> Vec<Function> {
        words(&self.code)
            .filter(|(_, word)| *word == "fn")
            .filter_map(|(start, _)| {
                let after = start + "fn".len();
                // A pointer type `fn(…)` or a macro's `fn $name` has no name here.
                let (at, name) = words(&self.code[after..]).next()?;
                if !self.code[after..after + at].trim().is_empty() {
                    return None;
                }
                let end = item_end(&self.code, after)?;
                self.code[..end].ends_with('}').then(|| Function { name: name.to_owned(), range: start..end })
            })
            .collect()
    }

    /// Every attribute.
    pub(super) fn attributes(&self) -> Vec<Attribute> {
        attributes(&self.code)
    }

    /// Every path that occurs in code, grouped imports spelled out, with its offset.
    pub(super) fn paths(&self) -> Vec<(usize, String)> {
        paths::all(&self.code)
    }

    /// String and character literals, without their delimiters.
    pub(super) fn literals(&self) -> &[Range<usize>] {
        &self.literals
    }

    /// Every comment.
    pub(super) fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    fn lines_of(&self, range: &Range<usize>) -> usize {
        self.line(range.end.saturating_sub(1).max(range.start)) - self.line(range.start) + 1
    }
}

/// Every identifier or number, with its offset.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_word(bytes[at]) {
            at += 1;
        }
        let start = at;
        at = word_end(bytes, at);
        (start < at).then(|| (start, &text[start..at]))
    })
}

/// The offset after the bracket that closes the one at `open`.
pub(super) fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Non-ASCII bytes count as part of a word: identifiers may hold them, and operators never do.
fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && is_word(bytes[at]) {
        at += 1;
    }
    at
}

/// Where the item whose head starts at `from` ends: after its `;`, or after its braces.
fn item_end(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b';' if depth == 0 => return Some(at + 1),
            b'{' if depth == 0 => return closing(code, at),
            // The enclosing block closes: the attribute was on its last expression or field.
            b'}' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn attributes(code: &str) -> Vec<Attribute> {
    let bytes = code.as_bytes();
    code.match_indices('#')
        .filter_map(|(start, _)| {
            let inner = bytes.get(start + 1) == Some(&b'!');
            let open = start + 1 + usize::from(inner);
            if bytes.get(open) != Some(&b'[') {
                return None;
            }
            Some(Attribute { range: start..closing(code, open)?, inner })
        })
        .collect()
}

fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let all = attributes(code);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for attribute in &all {
        let inside: Vec<&str> = words(&code[attribute.range.clone()]).map(|(_, word)| word).collect();
        if inside.first() != Some(&"cfg") || !inside.contains(&"test") || inside.contains(&"not") {
            continue;
        }
        if attribute.inner {
            return std::iter::once(0..code.len()).collect();
        }
        if ranges.last().is_some_and(|range| range.contains(&attribute.range.start)) {
            continue;
        }
        // Further attributes may hold brackets of their own: the item's head starts after the last of them.
        let mut head = attribute.range.end;
        for next in &all {
            if next.range.start >= head && code[head..next.range.start].trim().is_empty() {
                head = next.range.end;
            }
        }
        if let Some(end) = item_end(code, head) {
            ranges.push(attribute.range.start..end);
        }
    }
    ranges
}

fn blank<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in &mut bytes[range.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    // Ranges cover whole characters, so nothing is lost here.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Comments, and the insides of string and character literals.
fn scan(text: &str) -> Vec<(Kind, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (span, next) = if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            (Some((Kind::Comment, at..end)), end)
        } else if rest.starts_with(b"/*") {
            let end = block_comment_end(bytes, at);
            (Some((Kind::Comment, at..end)), end)
        } else if rest[0] == b'"' {
            let end = string_end(bytes, at + 1);
            (Some((Kind::Literal, at + 1..end)), end + 1)
        } else if rest[0] == b'\'' {
            match char_end(text, at) {
                Some(end) => (Some((Kind::Literal, at + 1..end)), end + 1),
                None => (None, at + 1),
            }
        } else if is_word(rest[0]) {
            let end = word_end(bytes, at);
            let raw = matches!(&bytes[at..end], b"r" | b"br" | b"cr").then(|| raw_string(bytes, end)).flatten();
            match raw {
                Some((inside, next)) => (Some((Kind::Literal, inside)), next),
                None => (None, end),
            }
        } else {
            (None, at + 1)
        };
        spans.extend(span);
        at = next;
    }
    spans
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The closing quote of a character literal; `None` when the quote opens a lifetime or a label.
fn char_end(text: &str, quote: usize) -> Option<usize> {
    let inside = &text[quote + 1..];
    if inside.starts_with('\\') {
        // The escaped character may itself be a quote.
        return inside.get(2..)?.find('\'').map(|at| quote + 1 + 2 + at);
    }
    let end = quote + 1 + inside.chars().next()?.len_utf8();
    (text.as_bytes().get(end) == Some(&b'\'')).then_some(end)
}

/// The inside of a raw string whose prefix ended at `from`, and the offset after it; `None` for `r#name`.
fn raw_string(bytes: &[u8], from: usize) -> Option<(Range<usize>, usize)> {
    let hashes = bytes[from..].iter().take_while(|byte| **byte == b'#').count();
    let start = from + hashes + 1;
    if bytes.get(from + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let length = bytes[start..].windows(close.len()).position(|window| window == close);
    let end = length.map_or(bytes.len(), |length| start + length);
    Some((start..end, (end + close.len()).min(bytes.len())))
}
