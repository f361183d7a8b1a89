//! Text measured in columns as ratatui draws it: cut, padded and wrapped without splitting a character that people see as one.

use ratatui::style::Style;
use ratatui::text::Span;

/// Columns that a text takes.
#[must_use]
pub(super) fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { Span::raw(text).width() }
}

/// Most text is printable ASCII, a column each: asking for that first keeps long diffs quick.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// A text cut to a width, the cut marked.
#[must_use]
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    let mut kept = String::new();
    let mut used = 0;
    for piece in Span::raw(text).styled_graphemes(Style::default()) {
        used += width(piece.symbol);
        if used > room {
            break;
        }
        kept.push_str(piece.symbol);
    }
    kept.push('…');
    kept
}

/// The same, filled with spaces up to the width.
#[must_use]
pub(super) fn fill(text: &str, exactly: usize) -> String {
    let cut = cut(text, exactly);
    let pad = exactly.saturating_sub(width(&cut));
    format!("{cut}{}", " ".repeat(pad))
}

/// The same with the spaces before.
#[must_use]
pub(super) fn right(text: &str, exactly: usize) -> String {
    let cut = cut(text, exactly);
    let pad = exactly.saturating_sub(width(&cut));
    format!("{}{cut}", " ".repeat(pad))
}

/// A line broken into rows of at most a width; at least one row. Words stay whole where a row has room for them.
#[must_use]
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    if text.len() <= most && is_plain(text) {
        return vec![text.to_owned()];
    }
    let mut rows: Vec<String> = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    // Where the row was last between two words: its bytes and columns up to there.
    let mut gap: Option<(usize, usize)> = None;
    for piece in Span::raw(text).styled_graphemes(Style::default()) {
        let wide = width(piece.symbol);
        if used + wide > most && used > 0 {
            let (bytes, columns) = gap.take().unwrap_or((row.len(), used));
            let rest = row.split_off(bytes);
            rows.push(std::mem::replace(&mut row, rest));
            used -= columns;
        }
        row.push_str(piece.symbol);
        used += wide;
        if piece.symbol == " " && used < most {
            gap = Some((row.len(), used));
        }
    }
    rows.push(row);
    rows
}

/// How many rows [`wrap`] makes of a text, at most `enough`.
#[must_use]
pub(super) fn rows(text: &str, most: usize, enough: usize) -> usize {
    if text.len() <= most {
        return 1;
    }
    wrap(text, most).len().min(enough)
}

/// Text with tabs as spaces, which no cell of a terminal can hold.
#[must_use]
pub(super) fn flat(text: &str) -> String {
    if text.contains('\t') { text.replace('\t', "    ") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_and_fills_by_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 4), "日…", "a wide character is never halved");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(fill("é", 3), "é  ");
        assert_eq!(right("12", 4), "  12");
    }

    #[test]
    fn wraps_between_words_and_inside_long_ones() {
        assert_eq!(wrap("one two three", 7), ["one ", "two ", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("日本語", 3), ["日", "本", "語"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("日本", 1), ["日", "本"], "one that is too wide still has a row");
    }

    #[test]
    fn wrapping_loses_nothing() {
        let text = "a quick brown  fox, jumps over 日本語 and on and on";
        for most in 1..60 {
            assert_eq!(wrap(text, most).concat(), text, "at {most}");
        }
    }
}
