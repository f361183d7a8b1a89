//! The state of the screen, and how keys, the mouse and news of the run change it. It reads nothing and does nothing itself:
//! it says what it wants to see and what is to be done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::view::RunRow;

use super::asked;
use super::edit::LineEdit;
use super::facts;
use super::hits::{Hit, Seek};
use super::keys::{Action, Mode};
use super::layout::{self, Areas};
use super::log::{CallLine, LogLine, LogPane, LogPosition, Search, Window};
use super::pane::{About, Tab, TextLine, TextPane};
use super::popup::Popup;
use super::theme::Theme;
use super::tree::{Node, Tree};
use crate::acts::Act;
use crate::picture::{Picture, standing};
use crate::project::Project;
use crate::ui::{Tone, one_line};

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Do(Act),
    /// Read what an act would replace.
    Read(Act),
    /// Put a text on the terminal's clipboard.
    Copy(String),
    /// Give the terminal to the shell for a while.
    Suspend,
    Quit,
}

/// What the screen needs to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Want {
    /// The run; `None` means the newest.
    pub run: Option<String>,
    /// Lines of a log.
    pub log: Option<Window>,
    /// Attempts whose calls are shown.
    pub calls: BTreeSet<AttemptId>,
    /// The text of a pane.
    pub about: Option<About>,
    pub search: Option<Search>,
    pub runs: bool,
    pub seek: Option<Seek>,
    /// A line whose number is requested.
    pub place: Option<LogPosition>,
}

/// Data from the store.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// The requested run, and whether it is the newest; `None` before the first run.
    Run(Option<String>, Option<(Arc<Picture>, bool)>),
    /// Lines of a log: the total number of lines, the first line's number, and the lines.
    Log(AttemptId, usize, usize, Vec<LogLine>),
    Calls(AttemptId, Vec<CallLine>),
    /// The text of a pane.
    Text(About, Vec<TextLine>),
    /// The end of a search.
    Found(u64, Option<usize>),
    /// Hits in all logs, with the number of the search.
    Hits(u64, Vec<Hit>),
    /// The number of a line; `None` when it no longer exists.
    Placed(LogPosition, Option<usize>),
    /// All runs, oldest first, and the one that a coordinator is running.
    Runs(Vec<RunRow>, Option<String>),
    /// The store could not be read; reading is retried.
    Trouble(Option<String>),
    /// What an act would replace.
    Present(Act, Result<String, String>),
    /// The outcome of an act.
    Done(Result<String, String>),
}

/// Which half of the screen keys go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Tree,
    Detail,
}

/// A line that is being typed for a filter or a search, and the text before it.
#[derive(Clone, Debug)]
pub(super) struct Typing {
    pub line: LineEdit,
    /// The text that Esc restores.
    pub before: String,
}

pub(super) struct App {
    pub project: Project,
    pub theme: Theme,
    pub read_only: bool,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The run; `None` before the first.
    pub picture: Option<Arc<Picture>>,
    /// Whether it is the newest; only that one takes orders.
    pub newest: bool,
    /// Whether the store has been read.
    pub looked: bool,
    /// The requested run.
    pub wanted: Option<String>,
    pub tree: Tree,
    /// Calls of attempts whose branches are open.
    pub calls: BTreeMap<AttemptId, Vec<CallLine>>,
    /// Which half of the screen keys go to.
    pub focus: Focus,
    /// Whether one pane has the whole screen.
    pub full: bool,
    pub tab: Tab,
    pub log: LogPane,
    /// The other tabs.
    pub pane: TextPane,
    /// The popup over the screen.
    pub popup: Option<Popup>,
    pub typing: Option<Typing>,
    /// The outcome of the last action.
    pub message: Option<(Tone, String)>,
    /// Why the store cannot be read.
    pub trouble: Option<String>,
    /// Orders that were given and not answered yet.
    pub acting: usize,
    /// How many searches in all logs there have been.
    pub sought: u64,
}

impl App {
    /// A screen without any data yet.
    pub(super) fn new(
        project: Project,
        theme: Theme,
        read_only: bool,
        wanted: Option<String>,
        size: (u16, u16),
    ) -> Self {
        Self {
            project,
            theme,
            read_only,
            size,
            picture: None,
            newest: true,
            looked: false,
            wanted,
            tree: Tree::default(),
            calls: BTreeMap::new(),
            focus: Focus::default(),
            full: false,
            tab: Tab::default(),
            log: LogPane::default(),
            pane: TextPane::default(),
            popup: None,
            typing: None,
            message: None,
            trouble: None,
            acting: 0,
            sought: 0,
        }
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.realign();
    }

    /// The layout of the screen.
    pub(super) fn areas(&self) -> Areas {
        self.areas_on(self.size)
    }

    /// The layout of a screen of this size.
    pub(super) fn areas_on(&self, size: (u16, u16)) -> Areas {
        let areas = layout::areas(size, self.focus, self.full);
        let room = areas.inside_detail();
        Areas { question: asked::height(self, room.width, room.height), ..areas }
    }

    /// Where keys go.
    pub(super) fn mode(&self) -> Mode {
        if self.typing.is_some() {
            return Mode::Typing;
        }
        match (&self.popup, self.focus, self.tab) {
            (Some(popup), ..) => popup.mode(),
            (None, Focus::Tree, _) => Mode::Tree,
            (None, _, Tab::Log) => Mode::Log,
            (None, _, Tab::Diff) => Mode::Diff,
            (None, ..) => Mode::Text,
        }
    }

    /// The chosen task, or the task that the chosen row belongs to.
    pub(super) fn task(&self) -> Option<TaskId> {
        self.tree.chosen().and_then(|row| row.node.task()).cloned()
    }

    /// The chosen attempt: the row itself, or the one that works on the task, or the task's newest.
    pub(super) fn attempt(&self) -> Option<AttemptId> {
        let (row, picture) = (self.tree.chosen()?, self.picture.as_ref()?);
        let of_task = || {
            let task = row.node.task()?;
            let newest = || picture.attempts_of(task).next_back();
            picture.at_work(task).or_else(newest).map(|attempt| attempt.attempt)
        };
        row.node.attempt().or_else(of_task)
    }

    /// What the text pane shows; `None` while the log is shown.
    pub(super) fn about(&self) -> Option<About> {
        (self.tab != Tab::Log).then(|| About { tab: self.tab, task: self.task() })
    }

    /// What is needed to draw the screen.
    pub(super) fn want(&self) -> Want {
        let inside = self.areas().inside_detail();
        let log = (self.tab == Tab::Log).then(|| self.log.window(usize::from(inside.height))).flatten();
        Want {
            run: self.wanted.clone(),
            log,
            calls: self.tree.open_attempts(),
            about: self.about().filter(|about| about.tab != Tab::Task),
            search: self.log.search.clone(),
            runs: matches!(self.popup, Some(Popup::Runs(_))),
            seek: if let Some(Popup::Hits(list)) = &self.popup { list.seek() } else { None },
            place: self.log.place,
        }
    }

    /// Takes news of the run.
    pub(super) fn take(&mut self, news: News) {
        match news {
            // It was requested before another run was chosen.
            News::Run(wanted, _) if wanted != self.wanted => return,
            News::Run(_, run) => {
                self.looked = true;
                let (picture, newest) = run.unzip();
                (self.picture, self.newest) = (picture, newest.unwrap_or(true));
            }
            News::Log(attempt, count, from, lines) => self.log.take(attempt, count, from, lines),
            News::Calls(attempt, calls) => {
                self.calls.insert(attempt, calls);
            }
            News::Text(about, lines) if self.about().as_ref() == Some(&about) => self.pane.take(about, lines),
            News::Text(..) => {}
            News::Found(serial, hit) => {
                let rows = usize::from(self.areas().inside_detail().height);
                if self.log.found(serial, hit, rows) && hit.is_none() {
                    let message = format!("`{}` is not in this log", one_line(&self.log.words));
                    self.message = Some((Tone::Warning, message));
                }
            }
            News::Hits(serial, hits) => {
                if let Some(Popup::Hits(list)) = &mut self.popup {
                    list.take(serial, hits);
                }
            }
            News::Placed(place, number) => {
                let rows = usize::from(self.areas().inside_detail().height);
                if self.log.placed(place, number, rows) && number.is_none() {
                    self.message = Some((Tone::Warning, "this line is no longer in the log".to_owned()));
                }
            }
            News::Runs(mut runs, live) => {
                if let Some(Popup::Runs(list)) = &mut self.popup {
                    runs.reverse();
                    (list.runs, list.live) = (Some(runs), live);
                }
            }
            News::Present(act, present) => self.take_present(&act, present),
            News::Trouble(trouble) => self.trouble = trouble,
            News::Done(outcome) => {
                self.acting = self.acting.saturating_sub(1);
                self.message = Some(match outcome {
                    Ok(done) => (Tone::Good, one_line(&done)),
                    Err(error) => (Tone::Error, one_line(&error)),
                });
            }
        }
        self.rebuild();
    }

    /// Rebuilds rows and panes from the current data.
    pub(super) fn rebuild(&mut self) {
        let Some(picture) = self.picture.clone() else {
            self.tree.rows.clear();
            return;
        };
        let empty = self.tree.rows.is_empty();
        self.tree.build(&picture, &self.calls);
        if empty {
            self.choose_first(&picture);
        }
        let open = self.tree.open_attempts();
        self.calls.retain(|attempt, _| open.contains(attempt));
        self.realign();
    }

    /// Chooses what a person most likely wants to see first: what needs them, otherwise what is in progress.
    fn choose_first(&mut self, picture: &Picture) {
        let urgent = self.tree.rows.iter().find(|row| matches!(row.node, Node::Need(..)));
        let working = picture.tasks.iter().min_by_key(|task| standing::urgency(picture, task));
        let node = urgent.map(|row| row.node.clone()).or(working.map(|task| Node::Task(task.id.clone())));
        if let Some(node) = node {
            self.tree.choose(&node);
        }
    }

    /// Updates everything that depends on the chosen row and the size.
    pub(super) fn realign(&mut self) {
        self.log.turn_to(self.attempt());
        if self.tab == Tab::Task
            && let (Some(about), Some(picture)) = (self.about(), self.picture.clone())
        {
            let task = about.task.as_ref().and_then(|id| picture.task(id.as_str()));
            let lines = task.map_or_else(|| facts::of_run(&picture), |task| facts::of_task(&picture, task));
            self.pane.take(about, lines);
        }
        if let Some(Popup::Answer(answer)) = &mut self.popup {
            answer.see(self.size);
        }
        let height = usize::from(self.areas().inside_tree().height);
        self.tree.top = layout::top_for(self.tree.at, self.tree.top, height, self.tree.rows.len());
    }

    /// Whether a key would do something now, for the footer.
    pub(super) fn matters(&self, action: Action) -> bool {
        let task = self.task().and_then(|id| self.picture.as_ref()?.task(id.as_str()).cloned());
        let ended = |states: &[&str]| task.as_ref().is_some_and(|task| states.contains(&task.state.as_str()));
        let open = task.is_some() && !ended(&["complete", "failed", "skipped"]);
        let orders = self.newest && !self.read_only && self.picture.is_some();
        let wave = self.tree.chosen().is_some_and(|row| row.node.task().is_none());
        match action {
            Action::Filter | Action::NextTab | Action::Full if self.popup.is_none() && self.picture.is_none() => false,
            Action::Runs => self.picture.is_some() || self.wanted.is_some(),
            Action::Answer => orders && self.picture.iter().any(|picture| picture.open_questions().next().is_some()),
            Action::Retry => orders && ended(&["failed", "skipped"]),
            Action::RetryFailed => orders && wave && self.picture.iter().any(|picture| picture.counts().failed > 0),
            Action::Skip | Action::Stop | Action::Split => orders && open,
            Action::Add => orders,
            Action::Edit | Action::Checks => orders && task.is_some(),
            Action::Recover => orders && open && self.agent().is_some(),
            Action::Pause => orders && self.picture.is_some(),
            Action::Undo => orders && self.picture.iter().any(|picture| !picture.run.placed.is_empty()),
            Action::Tell | Action::Complete => orders && open,
            Action::Open | Action::Copy | Action::FindAll => !self.tree.rows.is_empty(),
            Action::PageDown => {
                matches!(&self.popup, Some(Popup::Answer(answer)) if answer.hidden(self.size).is_some())
            }
            Action::Bottom => !self.log.follow,
            Action::FindNext | Action::FindPrev => !self.log.words.is_empty(),
            Action::Back if self.mode() == Mode::Tree => !self.tree.filter.is_empty() || self.full,
            _ => true,
        }
    }

    /// The agent of the chosen attempt, if it is alive.
    pub(super) fn agent(&self) -> Option<String> {
        let attempt = self.picture.as_ref()?.attempt(self.attempt()?)?;
        attempt.ended_at.is_none().then(|| attempt.name.to_string())
    }
}
