//! Text measured in the columns of a terminal, exactly as `ratatui` draws it, and taken apart without splitting what a person
//! sees as one character.

use ratatui::style::Style;
use ratatui::text::Span;

/// Columns that a text takes.
pub(crate) fn width_of(text: &str) -> usize {
    // Most text is printable ASCII with one column per character: checking that first keeps long diffs fast.
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if plain { text.len() } else { Span::raw(text).width() }
}

/// The characters as people see them: an emoji with its modifiers is one.
pub(crate) fn graphemes(text: &str) -> Vec<&str> {
    let span = Span::raw(text);
    let mut rest = text;
    let mut pieces = Vec::new();
    for piece in span.styled_graphemes(Style::default()) {
        // In order and adjacent, except for control characters, which are never drawn.
        let Some(begin) = rest.find(piece.symbol) else { break };
        let (whole, after) = rest[begin..].split_at(piece.symbol.len());
        pieces.push(whole);
        rest = after;
    }
    pieces
}

/// A text truncated to a width, with the truncation marked.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut kept = String::new();
    let mut used = 0;
    for piece in graphemes(text) {
        used += width_of(piece);
        if used > room {
            break;
        }
        kept.push_str(piece);
    }
    let mut kept = kept.trim_end().to_owned();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_emoji_are_never_halved() {
        assert_eq!(width_of("日本語"), 6);
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!((cut("abc", 0), cut("abc", 3)), (String::new(), "abc".to_owned()));
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(graphemes(&format!("a{family}b")), ["a", family, "b"]);
        assert!(!cut(&format!("{family}{family}{family}"), 3).contains('\u{200d}') || cut(family, 9) == family);
        for width in 0..12 {
            assert!(width_of(&cut("a 漢字 🦀 e\u{301}x", width)) <= width, "at {width}");
        }
    }
}
