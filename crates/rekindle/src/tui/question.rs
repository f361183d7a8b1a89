//! The box that answers a question: which part of the question is on the screen, how much of it was ever seen, and which
//! answer is chosen. An agent writes the question: nobody may approve a part of it and believe it was the whole.

use rekindle_core::ids::{QuestionId, TaskId};
use rekindle_core::view::QuestionRow;

use super::edit::LineEdit;
use super::layout;
use super::wide;
use crate::ui::{harmless, one_line};

/// Columns before an option for the mark that shows whether it is chosen.
const MARK_WIDTH: usize = 4;

/// Columns for its number: an agent seldom offers more than nine.
const NUMBER_WIDTH: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct AnswerBox {
    pub id: QuestionId,
    pub task: TaskId,
    /// The question and what a person needs to know.
    pub text: Vec<String>,
    pub options: Vec<String>,
    /// The chosen one; the one after the last is the person's own text.
    pub at: usize,
    /// The person's own text.
    pub line: LineEdit,
    /// The first row of the question on the screen.
    pub top: usize,
    /// Rows of it that have been on the screen, and at which width.
    seen: (usize, usize),
    /// Whether all of it has been on the screen, at any width.
    whole: bool,
}

/// How the rows of a box are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// For the question.
    pub text: usize,
    /// For the options, without the person's own words.
    pub options: usize,
}

impl AnswerBox {
    pub(super) fn new(question: &QuestionRow) -> Self {
        let text = format!("{}\n{}", harmless(&question.text), harmless(&question.context));
        Self {
            id: question.id,
            task: question.task.clone(),
            text: text.lines().map(wide::flat).filter(|line| !line.trim().is_empty()).collect(),
            options: question.options.iter().map(|option| one_line(option)).collect(),
            at: 0,
            line: LineEdit::default(),
            top: 0,
            seen: (0, 0),
            whole: false,
        }
    }

    /// Whether the person's own text is chosen.
    pub(super) fn is_writing(&self) -> bool {
        self.at >= self.options.len()
    }

    /// Chooses the next line, or the one before.
    pub(super) fn step(&mut self, by: isize) {
        let all = self.options.len() + 1;
        self.at = (self.at + all).wrapping_add_signed(by) % all;
    }

    /// The current answer; `None` if nothing is typed.
    pub(super) fn answer(&self) -> Option<String> {
        match self.options.get(self.at) {
            Some(option) => Some(option.clone()),
            None => Some(self.line.text().trim().to_owned()).filter(|text| !text.is_empty()),
        }
    }

    /// The question in rows of this width, and whether each belongs to its first line. An option that does not fit into its
    /// row is included in full, because it would be sent in full.
    pub(super) fn rows(&self, width: usize) -> Vec<(bool, String)> {
        // Its mark and its number come before it.
        let long = |option: &&String| wide::width(option) + MARK_WIDTH + NUMBER_WIDTH > width;
        let long = self.options.iter().enumerate().filter(|(_, option)| long(option));
        let long = long.map(|(at, option)| format!("option {}: {option}", at + 1));
        let lines = self.text.iter().cloned().chain(long).enumerate();
        lines
            .flat_map(|(at, line)| {
                wide::wrap(&line, width, wide::leading(&line)).into_iter().map(move |row| (at == 0, row))
            })
            .collect()
    }

    /// How a screen's rows are divided when the question has `all` rows.
    pub(super) fn share(&self, all: usize, screen: (u16, u16)) -> Rows {
        let inside = usize::from(layout::box_rows(screen.1));
        // One row says what is hidden and one is for typing; the person's own text has a heading if there are options.
        let left = inside.saturating_sub(2 + usize::from(!self.options.is_empty()));
        let options = self.options.len().min((left / 2).max(left.saturating_sub(all)));
        Rows { text: all.min(left - options), options }
    }

    pub(super) fn scroll(&mut self, by: isize, screen: (u16, u16)) {
        let all = self.rows(layout::box_room(screen.0)).len();
        self.top = self.top.saturating_add_signed(by).min(all.saturating_sub(self.share(all, screen).text));
    }

    /// Rows of a page: never more than are visible at once, so that none is skipped.
    pub(super) fn page(&self, screen: (u16, u16)) -> isize {
        let all = self.rows(layout::box_room(screen.0)).len();
        isize::try_from(self.share(all, screen).text).unwrap_or(1).max(1)
    }

    /// Marks what is on the screen now as seen.
    pub(super) fn see(&mut self, screen: (u16, u16)) {
        let width = layout::box_room(screen.0);
        if self.seen.1 != width {
            // The rows are different now: it is no longer known which of them were seen.
            (self.top, self.seen) = (0, (0, width));
        }
        self.scroll(0, screen);
        let all = self.rows(width).len();
        self.seen.0 = self.seen.0.max(self.top + self.share(all, screen).text);
        self.whole |= self.seen.0 >= all;
    }

    /// What is not on the screen, in words; `None` if all of it is.
    pub(super) fn hidden(&self, screen: (u16, u16)) -> Option<String> {
        let all = self.rows(layout::box_room(screen.0)).len();
        let shown = self.share(all, screen).text;
        let below = all.saturating_sub(self.top + shown);
        let lines = |many: usize| if many == 1 { "line" } else { "lines" };
        let down = (below > 0).then(|| format!("↓ {below} more {}", lines(below)));
        let up = (self.top > 0).then(|| format!("↑ {} above", self.top));
        let unseen = (!self.whole).then(|| "not all seen yet".to_owned());
        let said: Vec<String> = down.into_iter().chain(unseen).chain(up).collect();
        (!said.is_empty()).then(|| said.join(" · "))
    }

    /// Whether all of the question has been on the screen.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}
