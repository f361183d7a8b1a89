//! The panes beside the log: which tabs there are, and lines of text that can be scrolled and filtered. The lines are made
//! elsewhere.

use rekindle_core::ids::TaskId;

use super::filter::Filter;
use super::wide;
use crate::ui::Tone;

/// Narrowest pane that has room for times.
const TIMES_FROM: usize = 50;

/// Width of the column of words before the lines.
const MARK_WIDTH: usize = 11;

/// Width of the number of an attempt: it has no need for more, and its line is long.
const NUMBER_WIDTH: usize = 2;

/// What the detail shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tab {
    #[default]
    Log,
    Diff,
    /// The task, or the run where no task is chosen.
    Task,
    Why,
    /// What happened, newest first.
    Events,
}

impl Tab {
    /// All tabs, in order.
    pub(super) const ALL: [Self; 5] = [Self::Log, Self::Diff, Self::Task, Self::Why, Self::Events];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Diff => "diff",
            Self::Task => "task",
            Self::Why => "why",
            Self::Events => "events",
        }
    }

    /// The tab `by` steps further, wrapping around.
    pub(super) fn step(self, by: isize) -> Self {
        let len = Self::ALL.len();
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + len).wrapping_add_signed(by) % len]
    }
}

/// What the lines of a pane are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub tab: Tab,
    /// The task; `None` means the whole run.
    pub task: Option<TaskId>,
}

/// A line of text, made harmless.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextLine {
    /// When it happened, if it is about a moment; shown only when times are on.
    pub time: String,
    /// A word in its own column.
    pub mark: String,
    /// The tone of that word, or of the line where there is none.
    pub tone: Option<Tone>,
    pub text: String,
    /// Whether a file of a diff begins here.
    pub file: bool,
}

impl TextLine {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: wide::flat(&text.into()), ..Self::default() }
    }

    pub(super) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone: Some(tone), ..Self::plain(text) }
    }

    /// A line with a word before it.
    pub(super) fn marked(mark: impl Into<String>, tone: Tone, text: impl Into<String>) -> Self {
        Self { mark: mark.into(), tone: Some(tone), ..Self::plain(text) }
    }

    /// A line with the time before it.
    #[must_use]
    pub(super) fn at(mut self, time: String) -> Self {
        self.time = time;
        self
    }

    /// The text before the line's text.
    pub(super) fn lead(&self, times: bool) -> String {
        let mut lead = String::new();
        if times && !self.time.is_empty() {
            lead = format!("{} ", self.time);
        }
        if !self.mark.is_empty() {
            // A longer word has its own width; it is never cut.
            let width = if self.mark.starts_with('#') { NUMBER_WIDTH } else { MARK_WIDTH };
            let pad = width.saturating_sub(wide::width(&self.mark));
            lead.push_str(&format!("{}{} ", self.mark, " ".repeat(pad)));
        }
        lead
    }

    /// Where rows after the first start: below the words of a list item, otherwise below the first word.
    fn indent(&self) -> usize {
        let leading = wide::leading(&self.text);
        let item = self.text[leading..].split_once(' ').map(|(first, _)| first).filter(|_| leading > 0);
        let mark = item.filter(|first| first.ends_with(':') || wide::width(first) == 1);
        leading + mark.map_or(0, |mark| wide::width(mark) + 1)
    }
}

/// Lines that can be scrolled.
#[derive(Clone, Debug, Default)]
pub(super) struct TextPane {
    /// What the lines are about; `None` before they were read.
    pub about: Option<About>,
    pub lines: Vec<TextLine>,
    /// The first row on the screen.
    pub top: usize,
    pub filter: Filter,
}

/// A row of the pane: a line, the text before it, and a part of its text.
#[derive(Clone, Debug)]
pub(super) struct PaneRow<'a> {
    pub line: &'a TextLine,
    /// The text before it; spaces if a line continues.
    pub lead: String,
    pub text: String,
}

impl TextPane {
    /// Takes lines; the position stays if they are about the same.
    pub(super) fn take(&mut self, about: About, lines: Vec<TextLine>) {
        if self.about.as_ref() != Some(&about) {
            *self = Self { about: Some(about), ..Self::default() };
        }
        self.lines = lines;
    }

    /// All rows at a width.
    pub(super) fn rows(&self, width: usize, wrap: bool, times: bool) -> Vec<PaneRow<'_>> {
        let mut rows = Vec::new();
        for line in self.lines.iter().filter(|line| self.keeps(line)) {
            let lead = line.lead(times && width >= TIMES_FROM);
            let lead = if wide::width(&lead) + 8 > width { String::new() } else { lead };
            let before = wide::width(&lead);
            let room = width.saturating_sub(before).max(1);
            if !wrap {
                rows.push(PaneRow { line, lead, text: wide::cut(&line.text, room) });
                continue;
            }
            let pieces = wide::wrap(&line.text, room, line.indent());
            for (at, text) in pieces.into_iter().enumerate() {
                let lead = if at == 0 { lead.clone() } else { " ".repeat(before) };
                rows.push(PaneRow { line, lead, text });
            }
        }
        rows
    }

    fn keeps(&self, line: &TextLine) -> bool {
        self.filter.is_empty() || self.filter.keeps(&format!("{} {} {}", line.time, line.mark, line.text))
    }

    /// Scrolls by rows within the text.
    pub(super) fn scroll(&mut self, by: isize, rows: usize, height: usize) {
        let last = rows.saturating_sub(height);
        self.top = self.top.min(last).saturating_add_signed(by).min(last);
    }

    /// Goes to the next file of a diff, or the previous one. `starts` are the rows where files start.
    pub(super) fn go_to_file(&mut self, starts: &[usize], forward: bool) {
        let next = if forward {
            starts.iter().find(|at| **at > self.top)
        } else {
            starts.iter().rev().find(|at| **at < self.top)
        };
        self.top = next.copied().unwrap_or(self.top);
    }
}
