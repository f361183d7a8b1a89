//! Whether the terminal is light, according to the terminal itself (OSC 11). The answer arrives like typed text, so keys
//! pass through here: whatever belongs to an answer is filtered out whenever it comes, and everything else is passed on
//! unchanged.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Asks for the colour of the background.
pub(super) const ASK: &str = "\x1b]11;?\x1b\\";

/// How every answer starts, after the introducer.
const BEGINS: &str = "11;rgb";

/// Longest answer (`rgba:` and four numbers of four digits, with some reserve); anything longer is not an answer.
const ANSWER_MAX: usize = 40;

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It may belong to an answer: more has to come.
    Part,
    /// The end of an answer: whether the background is light. `None` if the answer cannot be read.
    Ground(Option<bool>),
    /// No answer: keys for the screen.
    Keys(Vec<KeyEvent>),
}

/// Keys that may belong to an answer.
#[derive(Debug, Default)]
pub(super) struct Ground {
    held: Vec<KeyEvent>,
    text: String,
}

impl Ground {
    pub(super) fn hear(&mut self, key: KeyEvent) -> Heard {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let KeyCode::Char(letter) = key.code else { return self.none(key) };
        if self.held.is_empty() {
            // ESC and a bracket, which terminals also send for Alt-]; that key is not used here.
            if alt && letter == ']' {
                self.held.push(key);
                return Heard::Part;
            }
            return Heard::Keys(vec![key]);
        }
        // BEL, or ESC and a backslash.
        if (ctrl && letter == 'g') || (alt && letter == '\\') {
            if !self.text.starts_with(BEGINS) {
                return self.none(key);
            }
            let light = is_light(&self.text);
            *self = Self::default();
            return Heard::Ground(light);
        }
        self.text.push(letter);
        let fits = BEGINS.starts_with(&self.text) || self.text.starts_with(BEGINS);
        if alt || ctrl || !fits || self.text.len() > ANSWER_MAX {
            return self.none(key);
        }
        self.held.push(key);
        Heard::Part
    }

    /// Nothing more comes: returns the keys that were held back.
    pub(super) fn release(&mut self) -> Vec<KeyEvent> {
        std::mem::take(self).held
    }

    fn none(&mut self, key: KeyEvent) -> Heard {
        let mut keys = self.release();
        keys.push(key);
        Heard::Keys(keys)
    }
}

/// Whether an answer (`11;rgb:ffff/ffff/dddd`) names a light colour.
fn is_light(answer: &str) -> Option<bool> {
    let (_, numbers) = answer.split_once(':')?;
    let parts: Vec<f64> = numbers.split('/').take(3).filter_map(part).collect();
    let [red, green, blue] = parts[..] else { return None };
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

/// One to four hexadecimal digits as a fraction of one.
fn part(digits: &str) -> Option<f64> {
    let most = match digits.len() {
        1 => 0xf,
        2 => 0xff,
        3 => 0xfff,
        4 => 0xffff_u32,
        _ => return None,
    };
    u32::from_str_radix(digits, 16).ok().map(|number| f64::from(number) / f64::from(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the terminal sends, as the resulting keys.
    fn keys(text: &str) -> Vec<KeyEvent> {
        let mut keys = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let (letter, modifiers) = match letter {
                '\u{1b}' => (letters.next().expect("more"), KeyModifiers::ALT),
                '\u{7}' => ('g', KeyModifiers::CONTROL),
                upper if upper.is_ascii_uppercase() => (upper, KeyModifiers::SHIFT),
                other => (other, KeyModifiers::NONE),
            };
            keys.push(KeyEvent::new(KeyCode::Char(letter), modifiers));
        }
        keys
    }

    /// What was learned about the background, and the keys that were passed on.
    fn heard(text: &str) -> (Vec<Option<bool>>, Vec<KeyEvent>) {
        let (mut ground, mut said, mut passed) = (Ground::default(), Vec::new(), Vec::new());
        for key in keys(text) {
            match ground.hear(key) {
                Heard::Part => {}
                Heard::Ground(light) => said.push(light),
                Heard::Keys(more) => passed.extend(more),
            }
        }
        passed.extend(ground.release());
        (said, passed)
    }

    #[test]
    fn terminals_answer_in_several_ways() {
        for (answer, light) in [
            ("\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\", true),
            ("\u{1b}]11;rgb:ff/fb/f0\u{7}", true),
            ("\u{1b}]11;rgba:0000/0000/0000/ffff\u{1b}\\", false),
            ("\u{1b}]11;rgb:0000/2B2B/3636\u{7}", false),
        ] {
            assert_eq!(heard(answer), (vec![Some(light)], Vec::new()), "{answer:?}");
        }
        assert_eq!(heard("\u{1b}]11;rgb:zz/zz/zz\u{7}"), (vec![None], Vec::new()), "unreadable, and no key either");
    }

    #[test]
    fn what_is_typed_around_an_answer_stays() {
        let (said, passed) = heard("jk\u{1b}]11;rgb:ffff/ffff/ffff\u{7}q");
        assert_eq!((said, passed), (vec![Some(true)], keys("jkq")));
        for typed in ["\u{1b}]", "\u{1b}]x", "\u{1b}]11;x", "\u{1b}]1", "\u{1b}x11;rgb", "11;rgb:", "\u{1b}]\u{7}"] {
            assert_eq!(heard(typed), (Vec::new(), keys(typed)), "{typed:?}");
        }
        let endless = format!("\u{1b}]11;rgb:{}", "f".repeat(90));
        assert_eq!(heard(&endless), (Vec::new(), keys(&endless)), "an answer without an end is none");
    }
}
