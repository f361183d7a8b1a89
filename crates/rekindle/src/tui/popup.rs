//! The popups over the screen: a confirmation, an answer, parts to type, what to copy, past runs, search hits, help. Each
//! holds its own state; the app decides what follows from it.

use rekindle_core::ids::TaskId;
use rekindle_core::view::RunRow;

use super::edit::LineEdit;
use super::facts;
use super::filter::Filter;
use super::hits::HitList;
use super::keys::{self, HelpLine, Mode};
use super::layout;
use super::lines_box::LinesBox;
use super::question::AnswerBox;
use super::wide;
use crate::acts::Act;

/// Width of the keys in the help.
const KEYS_WIDTH: usize = 11;

#[derive(Clone, Debug)]
pub(super) enum Popup {
    /// A confirmation.
    Confirm(Confirm),
    Answer(AnswerBox),
    Tell(TellBox),
    Lines(LinesBox),
    Copy(CopyMenu),
    Runs(RunList),
    /// The hits in all logs.
    Hits(HitList),
    Help(Help),
}

impl Popup {
    /// Where keys go while it is there.
    pub(super) fn mode(&self) -> Mode {
        match self {
            Self::Confirm(_) => Mode::Confirm,
            Self::Answer(_) => Mode::Answer,
            Self::Tell(_) => Mode::Tell,
            Self::Lines(_) => Mode::Lines,
            Self::Copy(_) => Mode::Copy,
            Self::Runs(_) => Mode::Runs,
            Self::Hits(_) => Mode::Hits,
            Self::Help(_) => Mode::Help,
        }
    }
}

/// Asks whether to do something.
#[derive(Clone, Debug)]
pub(super) struct Confirm {
    pub act: Act,
    /// What it will do.
    pub says: String,
    /// Whether the button that does it is marked. It is not at first: Enter alone does nothing.
    pub yes: bool,
}

/// A message to the agent of a task.
#[derive(Clone, Debug)]
pub(super) struct TellBox {
    pub task: TaskId,
    /// Where the message goes, in words.
    pub says: String,
    pub line: LineEdit,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CopyMenu {
    /// What each is, and its text.
    pub items: Vec<(&'static str, String)>,
    /// The chosen one.
    pub at: usize,
}

/// Past runs, newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct RunList {
    /// The runs; `None` before they were read.
    pub runs: Option<Vec<RunRow>>,
    /// The one that a coordinator is running.
    pub live: Option<String>,
    pub filter: Filter,
    /// The chosen one among the runs that the filter keeps.
    pub at: usize,
}

impl RunList {
    /// The runs that the filter keeps, each with its line.
    pub(super) fn kept(&self) -> Vec<(&RunRow, String)> {
        let runs = self.runs.iter().flatten();
        let lines = runs.map(|run| (run, facts::of_past(run, self.live.as_deref() == Some(&run.id))));
        lines.filter(|(_, line)| self.filter.keeps(line)).collect()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Help {
    /// The mode in which it was opened: its keys come first.
    pub mode: Mode,
    pub filter: Filter,
    /// The first line on the screen.
    pub top: usize,
    /// The popup that it covers.
    pub below: Option<Box<Popup>>,
}

impl Help {
    /// Rows of a line: its words are wrapped beside its keys, and never inside a word.
    pub(super) fn rows(line: &HelpLine, room: usize) -> Vec<(String, String)> {
        match line {
            HelpLine::Title(title) => vec![(String::new(), (*title).to_owned())],
            HelpLine::Keys(keys, words) => {
                let lead = format!("  {} ", wide::fill(keys, KEYS_WIDTH));
                let blank = " ".repeat(wide::width(&lead));
                let rows = wide::wrap(words, room.saturating_sub(blank.len()), 0).into_iter().enumerate();
                rows.map(|(at, row)| (if at == 0 { lead.clone() } else { blank.clone() }, row)).collect()
            }
        }
    }

    /// Rows above the first line on the screen.
    pub(super) fn rows_above(&self, room: usize) -> usize {
        self.kept().iter().take(self.top).map(|line| Self::rows(line, room).len()).sum()
    }

    /// The first line on the screen when the last one is on it too.
    pub(super) fn last_top(&self, size: (u16, u16)) -> usize {
        let (room, height) = (layout::box_room(size.0), usize::from(layout::box_rows(size.1)));
        let kept = self.kept();
        let mut rows = 0;
        let fits = kept.iter().rev().take_while(|line| {
            rows += Self::rows(line, room).len();
            rows <= height
        });
        kept.len() - fits.count()
    }

    /// The lines that the filter keeps: a title stays if some of its keys do.
    pub(super) fn kept(&self) -> Vec<HelpLine> {
        let mut kept = Vec::new();
        let mut title = None;
        for line in keys::help(self.mode) {
            match line {
                HelpLine::Title(_) => title = Some(line),
                HelpLine::Keys(keys, words) if self.filter.keeps(&format!("{keys} {words}")) => {
                    kept.extend(title.take());
                    kept.push(line);
                }
                HelpLine::Keys(..) => {}
            }
        }
        kept
    }
}
