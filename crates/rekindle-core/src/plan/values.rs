//! Parses the values of a task's keys: comma-separated lists, commands in backticks, paths. Knows nothing about the key that
//! a value belongs to.

use std::ops::Range;

use super::problem::Span;

/// One value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) span: Span,
}

/// Words that people write for an empty list.
const NOTHING: [&str; 5] = ["none", "nothing", "n/a", "-", "—"];

/// Splits a value at its commas, except those in backticks or double quotes. Brackets around the whole and quotes around a
/// part are removed; `none` is an empty list.
pub(super) fn list(text: &str, range: Range<usize>) -> Vec<Piece> {
    let inner = without_brackets(text, trimmed(text, range));
    let mut pieces = Vec::new();
    let mut quote: Option<char> = None;
    let mut start = inner.start;
    for (at, c) in text[inner.clone()].char_indices() {
        let at = inner.start + at;
        match (c, quote) {
            ('`' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (',', None) => {
                push_piece(&mut pieces, text, start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    push_piece(&mut pieces, text, start..inner.end);
    if let [only] = pieces.as_slice()
        && is_nothing(&only.text)
    {
        pieces.clear();
    }
    pieces
}

/// Whether a value means that there is none.
pub(super) fn is_nothing(text: &str) -> bool {
    NOTHING.iter().any(|n| n.eq_ignore_ascii_case(text.trim()))
}

/// A single value, without the marks round it.
pub(super) fn single(text: &str, range: Range<usize>) -> Piece {
    let range = trimmed(text, range);
    Piece { text: one_line(unquoted(&text[range.clone()])), span: range.into() }
}

/// The commands of a value: one bare command, or one or more in backticks separated by commas. `None` if there is text next
/// to the backticks, which a shell would take for command substitution.
pub(super) fn commands(text: &str, range: Range<usize>) -> Option<Vec<Piece>> {
    let range = trimmed(text, range);
    let mut rest = range.start;
    let mut pieces = Vec::new();
    if !text[range.clone()].starts_with('`') {
        let command = one_line(&text[range.clone()]);
        let span = range.into();
        return Some(vec![Piece { text: command, span }]);
    }
    loop {
        let (inner, after) = code_span(&text[rest..range.end])?;
        let span = Span::from(rest..rest + after);
        let command = one_line(inner);
        if !command.is_empty() {
            pieces.push(Piece { text: command, span });
        }
        let left = text[rest + after..range.end].trim_start();
        if left.is_empty() {
            return Some(pieces);
        }
        let next = left.strip_prefix(',')?.trim_start();
        if next.is_empty() {
            return Some(pieces);
        }
        rest = range.end - next.len();
    }
}

/// A code span at the start of a text: its content, and its length with the backticks.
fn code_span(text: &str) -> Option<(&str, usize)> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 {
        return None;
    }
    let mut at = ticks;
    while let Some(found) = text[at..].find('`') {
        let open = at + found;
        let run = text[open..].len() - text[open..].trim_start_matches('`').len();
        if run == ticks {
            return Some((&text[ticks..open], open + run));
        }
        at = open + run;
    }
    None
}

/// A path inside the workspace in its plainest form (`./a//b/` is `a/b`), or why it is not one.
///
/// # Errors
///
/// With the reason, in words that follow the path.
pub fn workspace_path(path: &str) -> Result<String, &'static str> {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.starts_with(|c: char| c.is_ascii_alphabetic());
    if path.starts_with(['/', '\\']) || drive {
        return Err("is absolute");
    }
    if path == "~" || path.starts_with("~/") {
        return Err("points to a home directory");
    }
    if path.chars().any(char::is_control) {
        return Err("holds a control character");
    }
    // On Windows a backslash is a separator too, and `..\` must not lead out of the workspace there.
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err("leads out of the workspace with `..`");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.is_empty() {
        return Err("names the whole workspace");
    }
    Ok(parts.join("/"))
}

fn push_piece(pieces: &mut Vec<Piece>, text: &str, range: Range<usize>) {
    let piece = single(text, range);
    if !piece.text.is_empty() {
        pieces.push(piece);
    }
}

/// `[a, b]` without its brackets; a Markdown link at the start keeps them.
fn without_brackets(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    if inner.len() >= 2 && inner.starts_with('[') && inner.ends_with(']') && !inner.contains("](") {
        return range.start + 1..range.end - 1;
    }
    range
}

fn unquoted(text: &str) -> &str {
    if let Some((inner, length)) = code_span(text)
        && length == text.len()
    {
        return inner.trim();
    }
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).map_or(text, str::trim)
}

/// The range without white space at its ends.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.start + (slice.len() - slice.trim_start().len());
    start..start + slice.trim().len()
}

/// Replaces line breaks and the indentation after them by one space, as Markdown shows them.
fn one_line(text: &str) -> String {
    let text = text.trim();
    if !text.contains('\n') {
        return text.to_owned();
    }
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pieces: Vec<Piece>) -> Vec<String> {
        pieces.into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn lists() {
        let cases: [(&str, &[&str]); 9] = [
            ("a, b,c", &["a", "b", "c"]),
            (" [T1, T2] ", &["T1", "T2"]),
            ("`a,b`, \"c, d\", e", &["a,b", "c, d", "e"]),
            ("a,,b,", &["a", "b"]),
            ("none", &[]),
            ("N/A", &[]),
            ("", &[]),
            ("[guide](docs/a.md), b", &["[guide](docs/a.md)", "b"]),
            ("a,\n  b", &["a", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(texts(list(text, 0..text.len())), expected, "{text:?}");
        }
        let text = "x: T1, `T22`";
        let spans: Vec<_> = list(text, 2..text.len()).iter().map(|p| p.span.of(text)).collect();
        assert_eq!(spans, ["T1", "`T22`"]);
    }

    #[test]
    fn commands_bare_and_in_backticks() {
        let cases: [(&str, Option<&[&str]>); 9] = [
            ("cargo test, please", Some(&["cargo test, please"])),
            ("`cargo test`", Some(&["cargo test"])),
            ("`` echo `date` ``", Some(&["echo `date`"])),
            ("`a`, `b`", Some(&["a", "b"])),
            ("`a`,", Some(&["a"])),
            ("`a` passes", None),
            ("`a", None),
            ("test \"`date`\" = x", Some(&["test \"`date`\" = x"])),
            ("`a\n   b`", Some(&["a b"])),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|e| e.iter().map(|s| s.to_string()).collect::<Vec<_>>());
            assert_eq!(commands(text, 0..text.len()).map(texts), expected, "{text:?}");
        }
    }

    #[test]
    fn paths_stay_inside() {
        let good = [("./src//a.rs", "src/a.rs"), ("docs/", "docs"), ("a..b/c", "a..b/c"), ("~x", "~x")];
        for (path, expected) in good {
            assert_eq!(workspace_path(path).as_deref(), Ok(expected));
        }
        for bad in ["/etc/passwd", "..", "a/../b", "..\\a", "C:\\a", "~/x", ".", "./", "\\\\host\\x", "a\u{7}"] {
            assert!(workspace_path(bad).is_err(), "{bad:?}");
        }
    }
}
