//! A line of text that a person types: characters, a cursor, and what the usual keys do to them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longest line that can be typed; nothing longer is an answer to a question.
const MOST_CHARS: usize = 4_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineEdit {
    text: Vec<char>,
    at: usize,
}

impl LineEdit {
    /// A line with a text in it, the cursor at its end.
    pub(super) fn with(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { at: text.len(), text }
    }

    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Whether it contains nothing but whitespace.
    pub(super) fn is_blank(&self) -> bool {
        self.text.iter().all(|c| c.is_whitespace())
    }

    /// The text before the cursor and the rest.
    pub(super) fn halves(&self) -> (String, String) {
        (self.text[..self.at].iter().collect(), self.text[self.at..].iter().collect())
    }

    /// Inserts text at the cursor, as a paste does: on one line, without anything that a terminal would interpret.
    pub(super) fn insert(&mut self, text: &str) {
        for c in rekindle_core::text::sanitize(text).chars() {
            let c = if c == '\n' || c == '\t' { ' ' } else { c };
            if self.text.len() < MOST_CHARS {
                self.text.insert(self.at, c);
                self.at += 1;
            }
        }
    }

    /// Handles a key; returns whether it had a meaning here.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if ctrl => self.at = 0,
            KeyCode::Char('e') if ctrl => self.at = self.text.len(),
            KeyCode::Char('u') if ctrl => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('k') if ctrl => self.text.truncate(self.at),
            KeyCode::Char('w') if ctrl => self.drop_word(),
            KeyCode::Char(c) if !ctrl && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]))
            }
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            KeyCode::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.text.len()),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => return false,
        }
        true
    }

    fn drop_word(&mut self) {
        let end = self.at;
        while self.at > 0 && self.text[self.at - 1].is_whitespace() {
            self.at -= 1;
        }
        while self.at > 0 && !self.text[self.at - 1].is_whitespace() {
            self.at -= 1;
        }
        self.text.drain(self.at..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut LineEdit, code: KeyCode, modifiers: KeyModifiers) {
        line.key(KeyEvent::new(code, modifiers));
    }

    #[test]
    fn edits_in_the_middle_with_any_script() {
        let mut line = LineEdit::with("añb");
        press(&mut line, KeyCode::Left, KeyModifiers::NONE);
        press(&mut line, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut line, KeyCode::Char('日'), KeyModifiers::NONE);
        assert_eq!(line.text(), "a日b");
        assert_eq!(line.halves(), ("a日".into(), "b".into()));
        press(&mut line, KeyCode::Home, KeyModifiers::NONE);
        press(&mut line, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(line.text(), "日b");
        press(&mut line, KeyCode::End, KeyModifiers::NONE);
        line.insert(" two words\n\u{1b}[31mred");
        assert_eq!(line.text(), "日b two words red", "a paste stays on its line and obeys nothing");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "日b two ");
        press(&mut line, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert!(line.is_blank());
    }
}
