//! A box in which a person types lines: the parts of a task, a new task, its text or its checks. An edit starts with what it would replace.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use rekindle_core::text::sanitize;

use super::edit::LineEdit;
use crate::acts::Act;

#[derive(Clone, Debug)]
pub(super) struct LinesBox {
    /// The act, before it gets the lines.
    pub act: Act,
    /// Lines above the one being typed.
    pub above: Vec<String>,
    /// The one being typed.
    pub line: LineEdit,
    /// Lines below it.
    pub below: Vec<String>,
    /// Whether the text to replace is still being read; until then nothing can be typed.
    pub reading: bool,
}

impl LinesBox {
    pub(super) fn new(act: Act) -> Self {
        let reading = matches!(act, Act::Edit(..));
        Self { act, above: Vec::new(), line: LineEdit::default(), below: Vec::new(), reading }
    }

    /// Starts with the text that the act would replace; the cursor is at its end.
    pub(super) fn start_with(&mut self, present: &str) {
        let mut lines: Vec<String> = sanitize(present).lines().map(str::to_owned).collect();
        self.line = LineEdit::with(&lines.pop().unwrap_or_default());
        (self.above, self.reading) = (lines, false);
    }

    /// Every line, from the first to the last.
    pub(super) fn lines(&self) -> Vec<String> {
        let typed = std::iter::once(self.line.text());
        self.above.iter().cloned().chain(typed).chain(self.below.iter().cloned()).collect()
    }

    /// The lines for the act: a text keeps its empty lines, everything else is a list without them.
    pub(super) fn told(&self) -> Vec<String> {
        let mut lines = self.lines();
        if matches!(&self.act, Act::Edit(_, edit) if edit.accept.is_none()) {
            while lines.last().is_some_and(|line| line.trim().is_empty()) {
                lines.pop();
            }
            return lines;
        }
        lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    /// Ends the line; returns whether that ends the box, as an empty last line does.
    pub(super) fn end_line(&mut self) -> bool {
        let (blank, last) = (self.line.is_blank(), self.below.is_empty());
        if blank && last {
            return true;
        }
        if blank {
            self.step(1);
        } else {
            self.above.push(std::mem::take(&mut self.line).text());
        }
        false
    }

    /// Goes to the line above or below.
    pub(super) fn step(&mut self, by: isize) {
        let line = self.line.text();
        if by < 0 && !self.above.is_empty() {
            self.below.insert(0, line);
            self.line = LineEdit::with(&self.above.pop().unwrap_or_default());
        } else if by > 0 && !self.below.is_empty() {
            self.above.push(line);
            self.line = LineEdit::with(&self.below.remove(0));
        }
    }

    /// Takes a key; Backspace on an empty line removes the line.
    pub(super) fn key(&mut self, key: KeyEvent) {
        if self.reading {
            return;
        }
        let empty = self.line == LineEdit::default();
        match (key.code, self.above.is_empty(), self.below.is_empty()) {
            (KeyCode::Backspace, false, _) if empty => {
                self.line = LineEdit::with(&self.above.pop().unwrap_or_default());
            }
            (KeyCode::Backspace, true, false) if empty => self.line = LineEdit::with(&self.below.remove(0)),
            _ => {
                self.line.key(key);
            }
        }
    }
}
