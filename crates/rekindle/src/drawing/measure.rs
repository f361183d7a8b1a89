//! The width of a text in a drawing. The server has no font, so it uses the widths of the widest font that browsers take for
//! `system-ui`; a label that fits by this measure fits in all of them.

use crate::ui::{graphemes, one_line, width_of};

/// Widths of the printable ASCII characters, starting with the space, in thousandths of the font size (DejaVu Sans).
const ASCII: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
];

/// An emoji: colour fonts draw them wider than the font size.
const EMOJI: u16 = 1_400;

/// A character of East Asian scripts fills a square.
const SQUARE: u16 = 1_050;

/// Any other letter: the widest of Latin, Greek and Cyrillic.
const OTHER: u16 = 1_100;

/// The factor by which bold letters are wider.
const BOLD: f64 = 1.16;

/// A font of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
}

impl Font {
    /// A plain font of this size.
    pub(super) const fn plain(size: f64) -> Self {
        Self { size, bold: false }
    }

    /// A bold font of this size.
    pub(super) const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }

    /// The largest possible width of a text.
    pub(super) fn width(self, text: &str) -> f64 {
        let thousandths: f64 = text.chars().map(|letter| f64::from(wide(letter))).sum();
        thousandths / 1_000.0 * self.size * if self.bold { BOLD } else { 1.0 }
    }

    /// Untrusted text on one line, made harmless and no wider than `room`; a truncation is marked.
    pub(super) fn fit(self, text: &str, room: f64) -> String {
        let text = one_line(text);
        if self.width(&text) <= room {
            return text;
        }
        let mut left = room - self.width("…");
        let mut kept = String::new();
        for piece in graphemes(&text) {
            left -= self.width(piece);
            if left < 0.0 {
                break;
            }
            kept.push_str(piece);
        }
        format!("{}…", kept.trim_end())
    }
}

fn wide(letter: char) -> u16 {
    let code = u32::from(letter);
    if let Some(known) = code.checked_sub(0x20).and_then(|at| ASCII.get(usize::try_from(at).ok()?)) {
        return *known;
    }
    match width_of(letter.encode_utf8(&mut [0; 4])) {
        0 => 0,
        _ if matches!(code, 0x2600..=0x27bf | 0x1f000..=0x1ffff) => EMOJI,
        1 => OTHER,
        _ => SQUARE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_letters_leave_room_for_more_of_them() {
        let font = Font::plain(12.0);
        assert!(font.width("iiiiiiiiii") * 2.5 < font.width("WWWWWWWWWW"));
        assert_eq!(font.fit("illicit lilli", 80.0), "illicit lilli");
        assert!(font.fit("WWWWWWWWWWWWW", 80.0).chars().count() < 8);
        assert!(Font::bold(12.0).width("abc") > font.width("abc"));
    }

    #[test]
    fn whatever_the_words_are_they_fit() {
        let words = [
            "plain words that go on and on",
            "漢字漢字漢字漢字漢字漢字",
            "🦀🚀👩‍👩‍👧‍👦🇩🇪 emoji 🎉🎉🎉🎉",
            "ŒÆŒÆ ЖЩЖЩЖЩ e\u{301}\u{301}",
            "",
        ];
        for (text, room) in words.into_iter().flat_map(|text| [0.0, 5.0, 20.0, 90.0, 500.0].map(|room| (text, room))) {
            let font = Font::bold(12.0);
            let fitted = font.fit(text, room);
            assert!(font.width(&fitted) <= room.max(font.width("…")), "{fitted:?} in {room}");
        }
        let family = "👩‍👩‍👧‍👦";
        let cut = Font::plain(12.0).fit(&family.repeat(4), 150.0);
        assert!(
            cut.trim_end_matches('…').is_empty() || cut.trim_end_matches('…').ends_with(family),
            "a family stays whole: {cut:?}"
        );
    }
}
