//! Text in columns as ratatui draws it: padded, and wrapped between words without splitting a character that people see as one.

use crate::ui::graphemes;
pub(super) use crate::ui::{cut, width_of as width};

/// The same, filled with spaces up to the width.
pub(super) fn fill(text: &str, exactly: usize) -> String {
    let cut = cut(text, exactly);
    let pad = exactly.saturating_sub(width(&cut));
    format!("{cut}{}", " ".repeat(pad))
}

/// The same, with the spaces before the text.
pub(super) fn right(text: &str, exactly: usize) -> String {
    let cut = cut(text, exactly);
    let pad = exactly.saturating_sub(width(&cut));
    format!("{}{cut}", " ".repeat(pad))
}

/// A line broken into rows of at most a width; at least one row. Words stay whole where a row has room for them. Rows after
/// the first begin with `indent` spaces, where that leaves room for words.
pub(super) fn wrap(text: &str, most: usize, indent: usize) -> Vec<String> {
    let most = most.max(1);
    if width(text) <= most {
        return vec![text.to_owned()];
    }
    let indent = if indent * 2 > most { 0 } else { indent };
    let mut rows: Vec<String> = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    // The last gap between two words in the row: its bytes and columns up to there.
    let mut gap: Option<(usize, usize)> = None;
    for piece in graphemes(text) {
        let wide = width(piece);
        // Nothing is broken off at the start of a row: a character that is too wide still gets a row.
        let begins = used == 0 || (!rows.is_empty() && used <= indent);
        if used + wide > most && !begins {
            // A word that fits into no row is broken where the row ends.
            let whole = gap.take().filter(|(_, columns)| indent + (used - columns) + wide <= most);
            let (bytes, columns) = whole.unwrap_or((row.len(), used));
            let rest = format!("{}{}", " ".repeat(indent), &row[bytes..]);
            row.truncate(bytes);
            rows.push(std::mem::replace(&mut row, rest));
            used = used - columns + indent;
        }
        row.push_str(piece);
        used += wide;
        if piece == " " && used <= most && !row.trim_start().is_empty() {
            gap = Some((row.len(), used));
        }
    }
    rows.push(row);
    rows
}

/// How many rows [`wrap`] makes of a text, at most `enough`.
pub(super) fn rows(text: &str, most: usize, indent: usize, enough: usize) -> usize {
    if width(text) <= most {
        return 1;
    }
    wrap(text, most, indent).len().min(enough)
}

/// The number of spaces that a text starts with.
pub(super) fn leading(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Text with tabs as spaces, because no cell of a terminal can hold a tab.
pub(super) fn flat(text: &str) -> String {
    if text.contains('\t') { text.replace('\t', "    ") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_by_columns() {
        assert_eq!(fill("é", 3), "é  ");
        assert_eq!(fill("日本語", 4), "日… ");
        assert_eq!(right("12", 4), "  12");
    }

    #[test]
    fn wraps_between_words_and_inside_long_ones() {
        assert_eq!(wrap("one two three", 7, 0), ["one ", "two ", "three"]);
        assert_eq!(wrap("a bc de", 5, 0), ["a bc ", "de"]);
        assert_eq!(wrap("abcdefgh", 3, 0), ["abc", "def", "gh"]);
        assert_eq!(wrap("日本語", 3, 0), ["日", "本", "語"]);
        assert_eq!(wrap("", 3, 0), [""]);
        assert_eq!(wrap("日本", 1, 0), ["日", "本"], "one that is too wide still has a row");
    }

    #[test]
    fn wrapping_loses_nothing() {
        let text = "a quick brown  fox, jumps over 日本語 and on and on";
        for most in 1..60 {
            assert_eq!(wrap(text, most, 0).concat(), text, "at {most}");
        }
    }

    #[test]
    fn rows_after_the_first_hang() {
        assert_eq!(wrap("12:00 one two three", 12, 6), ["12:00 one ", "      two ", "      three"]);
        assert_eq!(wrap("  - one two", 8, 4), ["  - one ", "    two"]);
        assert_eq!(wrap("12:00 onetwothree", 9, 6), ["12:00 ", "onetwothr", "ee"], "no indent where it leaves no room");
        let text = "12:00:00 ! a quick brown fox, jumps over 日本語 and 🦀 on and on";
        for (most, indent) in (1..70).flat_map(|most| [0, 2, 9, 11].map(|indent| (most, indent))) {
            let rows = wrap(text, most, indent);
            let joined: String = rows
                .iter()
                .enumerate()
                .map(|(at, row)| if at == 0 { row.as_str() } else { row.trim_start() })
                .collect();
            assert_eq!(joined.replace(' ', ""), text.replace(' ', ""), "at {most}");
            assert!(rows.iter().all(|row| width(row) <= most.max(2)), "at {most}, {indent}: {rows:?}");
            assert_eq!(super::rows(text, most, indent, 99), rows.len().min(99));
        }
    }
}
