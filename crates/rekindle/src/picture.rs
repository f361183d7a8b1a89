//! What every view of a run draws, read at one moment: rows, the summary of its events, and where the log ends. `top`, the
//! dashboard and the report show the same picture; they decide how it looks.
//!
//! It reads the store and nothing else. A [`RunReader`] polls the run and reads only what is new.

pub(crate) mod diff;
pub(crate) mod graph;
#[deny(clippy::wildcard_enum_match_arm)]
pub(crate) mod history;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod result;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod standing;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rekindle_core::event::Landed;
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::pull_request::KnownPullRequest;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, Counts, QuestionRow, RunRow, TaskRow, Waits, WaitsFor, number_of};
use rekindle_engine::clock;
use rekindle_engine::store::Lag;

use self::history::History;
use self::output::Outputs;
use self::result::RunResult;
use crate::error::{CliError, Result};
use crate::lost::LostLook;
use crate::project::Project;
use crate::view::{RunView, Spent, View};

/// A run at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub run: RunRow,
    /// Its tasks in the plan's order.
    pub tasks: Vec<TaskRow>,
    /// All attempts, oldest first.
    pub attempts: Vec<AttemptRow>,
    /// Questions, oldest first.
    pub questions: Vec<QuestionRow>,
    /// The summary of its events.
    pub history: Arc<History>,
    /// What the agents of failing tasks printed last.
    pub outputs: Outputs,
    /// The coordinator's process id, if one is running.
    pub coordinator: Option<u32>,
    /// How the database that it was read from differs from its log.
    pub damage: Option<Lag>,
    /// The last event in it.
    pub seq: u64,
    /// When it was read.
    pub now: Time,
    /// What the run produced, if it works on its own branch.
    pub result: Option<Arc<RunResult>>,
    /// Says that its output was removed.
    pub removed: Option<String>,
    /// What each task waits for, computed on demand.
    pub waits: OnceLock<BTreeMap<TaskId, WaitsFor>>,
}

impl Picture {
    /// The rows of a run without its history, for views that show its state and not how it got there.
    pub(crate) fn of_rows(run: &RunView<'_>, coordinator: Option<u32>) -> Result<Self> {
        let (tasks, attempts) = (run.tasks()?, run.attempts()?);
        Ok(Self {
            run: run.row.clone(),
            outputs: output::read(run, &tasks, &attempts, None)?,
            tasks,
            attempts,
            questions: run.questions()?,
            history: Arc::new(History::up_to(run.last_time()?)),
            coordinator,
            damage: None,
            seq: 0,
            now: clock::wall(),
            result: None,
            removed: run.output_removed()?,
            waits: OnceLock::new(),
        })
    }

    /// What an open task without an agent waits for.
    pub(crate) fn waits_for(&self, task: &TaskId) -> Option<&WaitsFor> {
        let waits = self.waits.get_or_init(|| {
            let Self { run, tasks, attempts, questions, now, .. } = self;
            let waits = Waits::new(run, tasks, attempts, questions, self.coordinator.is_some(), *now);
            tasks.iter().filter_map(|task| Some((task.id.clone(), waits.of(task)?))).collect()
        });
        waits.get(task)
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::of(&self.tasks)
    }

    pub(crate) fn task(&self, id: &str) -> Option<&TaskRow> {
        self.tasks.iter().find(|task| task.id.as_str() == id)
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> Option<&AttemptRow> {
        self.attempts.iter().find(|attempt| attempt.attempt == id)
    }

    /// Which attempt at a task it is, counted from 1.
    pub(crate) fn number_of(&self, task: &TaskId, attempt: AttemptId) -> u32 {
        number_of(&self.attempts, task, attempt).unwrap_or(0)
    }

    /// The attempts that held a task, oldest first.
    pub(crate) fn attempts_of<'a>(&'a self, task: &'a TaskId) -> impl DoubleEndedIterator<Item = &'a AttemptRow> {
        self.attempts.iter().filter(move |attempt| attempt.tasks.contains(task))
    }

    /// The attempt that works on a task now.
    pub(crate) fn at_work(&self, task: &TaskId) -> Option<&AttemptRow> {
        let live = |attempt: &&AttemptRow| attempt.ended_at.is_none() && attempt.task.as_ref() == Some(task);
        self.attempts.iter().rev().find(live)
    }

    /// Questions that nobody has answered, oldest first.
    pub(crate) fn open_questions(&self) -> impl Iterator<Item = &QuestionRow> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    pub(crate) fn spent(&self) -> Spent {
        Spent::by_all(&self.attempts)
    }

    pub(crate) fn spent_by_task(&self) -> BTreeMap<TaskId, Spent> {
        Spent::by_task(&self.attempts)
    }

    /// The end for measuring durations: the end of the run; now while a coordinator is running; otherwise the last event.
    pub(crate) fn until(&self) -> Time {
        let alone = self.coordinator.is_none().then_some(self.history.last_time).flatten();
        self.run.ended_at.or(alone).unwrap_or(self.now)
    }
}

/// Polls a run.
pub(crate) struct RunReader {
    project: Project,
    /// The requested run; the newest if none was requested.
    wanted: Option<String>,
    view: Option<View>,
    seen: u64,
    last: Option<Arc<Picture>>,
    lost: LostLook,
    /// What the run made, and what that was counted from.
    made: Option<Made>,
}

/// A result, with what changes it: the run, the number of merged tasks, where it was landed, its pull request.
type Made = ((String, usize, Option<Landed>, Option<KnownPullRequest>), Option<Arc<RunResult>>);

impl RunReader {
    /// A reader of a run of a project: the newest, or the one whose id is, or begins with, `wanted`.
    pub(crate) fn new(project: &Project, wanted: Option<&str>) -> Self {
        let (project, wanted) = (project.clone(), wanted.map(str::to_owned));
        Self { project, wanted, view: None, seen: 0, last: None, lost: LostLook::default(), made: None }
    }

    pub(crate) fn turn_to(&mut self, wanted: Option<&str>) {
        *self = Self { view: self.view.take(), ..Self::new(&self.project, wanted) };
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// The state, opened once there is a store.
    pub(crate) fn view(&mut self) -> Result<Option<&View>> {
        if self.view.is_none() {
            self.view = Some(View::open(&self.project)?).filter(View::has_store);
        }
        Ok(self.view.as_ref())
    }

    /// The current state of the run; `None` before the first run. What has not changed is not read again.
    pub(crate) fn look(&mut self) -> Result<Option<Arc<Picture>>> {
        let (wanted, now) = (self.wanted.clone(), clock::wall());
        self.view()?;
        let Some(view) = &self.view else { return self.nothing() };
        let newest = view.last_event()?;
        let coordinator = view.coordinator()?.map(|owner| owner.map_or(0, |owner| owner.pid));
        // While a coordinator is running, the database was checked when the coordinator opened it.
        let known = self.last.as_ref().filter(|_| coordinator.is_some()).map(|last| last.damage);
        let damage = known.map_or_else(|| view.lag(), Ok)?;
        if let Some(last) = self.last.as_ref().filter(|_| self.seen == newest) {
            // Only the time and whether a coordinator is running can have changed.
            let mut same = Picture { now, coordinator, damage, waits: OnceLock::new(), ..Picture::clone(last) };
            let dir = &self.project.state_dir;
            self.lost.add_to(&mut same.questions, coordinator.is_some(), || view.lost(), dir)?;
            return Ok(Some(Arc::new(same)));
        }
        let Some(run) = find(view, wanted.as_deref())? else { return self.nothing() };
        let before = self.last.take().filter(|last| last.run.id == run.row.id);
        let outputs = before.as_ref().map(|last| Arc::clone(&last.outputs));
        let (mut history, after) = match before {
            Some(last) => (Arc::clone(&last.history), last.seq),
            None => (Arc::default(), 0),
        };
        let mut seq = after;
        let known = Arc::make_mut(&mut history);
        let end = run.events_of(after, history::is_told, |event| {
            known.take(event);
            seq = event.seq;
            Ok(())
        })?;
        known.last_time = known.last_time.max(run.last_time()?);
        // Rows are read after the events: they may be newer than these, never older.
        let mut questions = run.questions()?;
        self.lost.add_to(&mut questions, coordinator.is_some(), || view.lost(), &self.project.state_dir)?;
        let (tasks, attempts) = (run.tasks()?, run.attempts()?);
        let result = made(&mut self.made, &self.project, &run.row, &tasks);
        let picture = Picture {
            outputs: output::read(&run, &tasks, &attempts, outputs.as_ref())?,
            removed: run.output_removed()?,
            tasks,
            attempts,
            questions,
            run: run.row,
            history,
            coordinator,
            damage,
            seq: seq.max(end),
            now,
            result,
            waits: OnceLock::new(),
        };
        let picture = Arc::new(picture);
        self.seen = end;
        self.last = Some(Arc::clone(&picture));
        Ok(Some(picture))
    }
}

impl RunReader {
    /// There is no run. If the whole log of one was lost, that must not look like a fresh start.
    fn nothing(&self) -> Result<Option<Arc<Picture>>> {
        match View::open(&self.project)?.lost()? {
            Some(lost) => Err(CliError::usage(lost.text).hint("rekindle questions").hint("rekindle answer 0 forget")),
            None => Ok(None),
        }
    }
}

fn find<'a>(view: &'a View, wanted: Option<&str>) -> Result<Option<RunView<'a>>> {
    match wanted {
        Some(wanted) => view.run_named(wanted).map(Some),
        None => view.run(),
    }
}

/// What a run made, counted again only when there is more of it.
fn made(known: &mut Option<Made>, project: &Project, run: &RunRow, tasks: &[TaskRow]) -> Option<Arc<RunResult>> {
    let merged = tasks.iter().filter(|task| task.merged.is_some()).count();
    let of = (run.id.clone(), merged, run.landed.clone(), run.pull_request.clone());
    if known.as_ref().is_none_or(|(before, _)| *before != of) {
        *known = Some((of, result::of(project, run, tasks).map(Arc::new)));
    }
    known.as_ref().and_then(|(_, made)| made.clone())
}
