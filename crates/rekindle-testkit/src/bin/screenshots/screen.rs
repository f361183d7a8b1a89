//! A terminal's screen as a page: the colours that tmux tells, for a browser to draw.

use std::fmt::Write;

/// The sixteen colours as a dark terminal has them.
const COLOURS: [&str; 16] = [
    "#1d2128", "#ff7b72", "#7ee787", "#e3b341", "#79b8ff", "#d2a8ff", "#76e3ea", "#c9d1d9", "#6e7681", "#ffa198",
    "#9be9a8", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
];

/// The style of a piece of text.
#[derive(Clone, Default, PartialEq)]
struct Look {
    text: Option<String>,
    ground: Option<String>,
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
}

/// The page for a screen as `tmux capture-pane -e` prints it.
pub fn page(screen: &str) -> String {
    let mut out = String::from(
        "<!DOCTYPE html><meta charset=\"utf-8\"><style>body{margin:0;padding:12px 14px;background:#0d1117}\
         pre{margin:0;color:#c9d1d9;font:14px/1.2 'DejaVu Sans Mono',monospace}</style><pre>",
    );
    let mut look = Look::default();
    let mut pieces = screen.trim_end().split("\u{1b}[");
    put(&mut out, &look, pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(piece.len());
        let (codes, rest) = piece.split_at(end);
        if rest.starts_with('m') {
            look.obey(codes);
        }
        put(&mut out, &look, rest.get(1..).unwrap_or_default());
    }
    out.push_str("</pre>\n");
    out
}

fn put(out: &mut String, look: &Look, text: &str) {
    if text.is_empty() {
        return;
    }
    // Shift-in and shift-out choose line drawing on old terminals; here the characters are drawn as they are.
    let text = text.replace(['\u{e}', '\u{f}'], "").replace('&', "&amp;").replace('<', "&lt;");
    let _ = write!(out, "<span style=\"{}\">{text}</span>", look.style());
}

impl Look {
    fn obey(&mut self, codes: &str) {
        let mut codes = codes.split([';', ':']).map(|code| code.parse::<usize>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                22 => (self.bold, self.dim) = (false, false),
                24 => self.underlined = false,
                27 => self.reversed = false,
                30..=37 => self.text = Some(COLOURS[code - 30].to_owned()),
                90..=97 => self.text = Some(COLOURS[code - 82].to_owned()),
                40..=47 => self.ground = Some(COLOURS[code - 40].to_owned()),
                100..=107 => self.ground = Some(COLOURS[code - 92].to_owned()),
                38 => self.text = wide(&mut codes),
                48 => self.ground = wide(&mut codes),
                39 => self.text = None,
                49 => self.ground = None,
                _ => {}
            }
        }
    }

    fn style(&self) -> String {
        let (mut text, mut ground) = (self.text.clone(), self.ground.clone());
        if self.reversed {
            (text, ground) = (ground.or(Some("#0d1117".to_owned())), text.or(Some("#c9d1d9".to_owned())));
        }
        let mut style = String::new();
        if let Some(text) = text {
            let _ = write!(style, "color:{text};");
        }
        if let Some(ground) = ground {
            let _ = write!(style, "background:{ground};");
        }
        for (on, part) in [
            (self.bold, "font-weight:700;"),
            (self.dim, "opacity:.65;"),
            (self.underlined, "text-decoration:underline;"),
        ] {
            style.push_str(if on { part } else { "" });
        }
        style
    }
}

/// A colour of the palette of 256, or any colour.
fn wide(codes: &mut impl Iterator<Item = usize>) -> Option<String> {
    match codes.next()? {
        5 => Some(match codes.next()? {
            at @ 0..=15 => COLOURS[at].to_owned(),
            at @ 16..=231 => {
                let part = |of: usize| match of % 6 {
                    0 => 0,
                    step => 55 + step * 40,
                };
                let at = at - 16;
                format!("rgb({},{},{})", part(at / 36), part(at / 6), part(at))
            }
            at => format!("rgb({0},{0},{0})", 8 + at.saturating_sub(232).min(23) * 10),
        }),
        2 => Some(format!("rgb({},{},{})", codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_reach_the_page_and_text_does_not_become_markup() {
        let page = page("a<b>\u{1b}[1;31mred\u{1b}[0m \u{1b}[48;5;196mx\u{1b}[7m\u{1b}[38;2;1;2;3my");
        assert!(page.contains("a&lt;b>") && page.contains("color:#ff7b72;font-weight:700;\">red<"), "{page}");
        assert!(page.contains("background:rgb(255,0,0);\">x<"), "{page}");
        assert!(page.contains("color:rgb(255,0,0);background:rgb(1,2,3);\">y<"), "{page}");
    }
}
