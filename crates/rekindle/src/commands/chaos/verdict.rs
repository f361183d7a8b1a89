//! The promises, each checked against what was seen from outside: the stand-ins' own journal, the processes, the files, and
//! the event log, which must agree with them. The coordinator's word counts for nothing.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::ids::AttemptId;
use rekindle_core::text::counted;
use rekindle_engine::git;
use rekindle_engine::store::{Hash, StoredEvent, Stream};
use serde::{Deserialize, Serialize};

use super::parties::Held;
use super::round::Spec;
use super::sandbox::{WORK_DIR, task_file};
use super::witness::{Note, What, Witness};
use crate::error::Result;
use crate::project::Project;
use crate::view::{RunView, View};

/// Lines of one attempt that are compared: far more than a stand-in prints.
const LINES_MAX: usize = 100_000;

/// How many bytes of a stand-in's work are read back.
const WORK_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Promise {
    /// What was acknowledged is still there.
    Acknowledged,
    /// Nothing is done twice.
    Once,
    /// No healthy agent was restarted.
    Healthy,
    /// No task pays for what the machine did.
    Attempts,
    /// Output is whole.
    Output,
    /// No other process is signalled.
    Strangers,
    /// Nothing is left running.
    Ended,
    /// The plan gets done.
    Complete,
}

impl Promise {
    pub(super) const ALL: [Self; 8] = [
        Self::Acknowledged,
        Self::Once,
        Self::Healthy,
        Self::Attempts,
        Self::Output,
        Self::Strangers,
        Self::Ended,
        Self::Complete,
    ];

    /// The promise in words, and what is counted for it.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Acknowledged => ("nothing acknowledged is lost", "reports and events"),
            Self::Once => ("nothing is done twice", "tasks"),
            Self::Healthy => ("no healthy agent is restarted", "healthy agents"),
            Self::Attempts => ("no attempt is charged to the machine's trouble", "tasks"),
            Self::Output => ("no line of output is lost or repeated", "lines"),
            Self::Strangers => ("no stranger is signalled", "bystanders"),
            Self::Ended => ("every process has ended", "process trees"),
            Self::Complete => ("the plan is complete", "tasks"),
        }
    }
}

/// What was found about a promise in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub promise: Promise,
    /// How many items were checked.
    pub looked_at: usize,
    /// What breaks the promise.
    pub broken: Vec<String>,
}

/// What was seen of a run from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// How often the fault was injected.
    pub injected: u32,
    /// Why the fault was not injected.
    pub refused: Option<String>,
    /// Bundles that were hit, with their tasks.
    pub hits: Vec<(u64, Vec<String>)>,
    /// Events that could be read before something died.
    pub seen: BTreeMap<u64, Hash>,
    pub exit: Option<i32>,
    /// The time ran out before the run ended.
    pub gave_up: bool,
    /// Process trees that were checked at the end.
    pub processes: usize,
    pub left: Vec<String>,
    /// Bystanders that did not survive.
    pub strangers: u32,
    /// What the stand-ins recorded.
    pub notes: Vec<Note>,
    pub tasks: Vec<TaskFact>,
    /// Completions by task and epoch, according to the log.
    pub completions: Vec<(String, u64)>,
    /// Events of the log in the end.
    pub log: BTreeMap<u64, Hash>,
    /// Printed lines that were compared.
    pub lines: usize,
    /// Lines that differ from what was printed.
    pub garbled: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TaskFact {
    pub id: String,
    /// Its state, according to the log.
    pub state: String,
    /// Attempts that were charged.
    pub attempts: u32,
    /// Whether the stand-in's work is where it belongs.
    pub made: bool,
}

impl Evidence {
    pub(super) fn hit(&mut self, held: &Held) {
        self.hits.push((held.bundle, held.tasks.clone()));
    }

    /// Whether an attempt at a task was hit.
    pub(super) fn was_hit(&self, task: &str) -> bool {
        self.hits.iter().any(|(_, tasks)| tasks.iter().any(|known| known == task))
    }

    fn noted(&self, what: What) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.what == what)
    }

    /// Whether an attempt at a task was hurt on purpose.
    fn hurt(&self, bundle: u64, task: &str) -> bool {
        let misbehaved = self.noted(What::Misbehaves).any(|note| note.bundle == bundle && note.task == task);
        misbehaved || self.hits.iter().any(|(hit, _)| *hit == bundle)
    }

    /// Attempts at a task that were hurt on purpose.
    fn hurts(&self, task: &str) -> u32 {
        let hit = self.hits.iter().filter(|(_, tasks)| tasks.iter().any(|known| known == task)).count();
        let misbehaved = self.noted(What::Misbehaves).filter(|note| note.task == task).count();
        u32::try_from(hit + misbehaved).unwrap_or(u32::MAX)
    }
}

/// All events of the run so far.
pub(super) fn events(project: &Project) -> Result<Vec<StoredEvent>> {
    let view = View::open(project)?;
    let run = view.the_run()?;
    let mut events = Vec::new();
    run.events(0, |event| {
        events.push(event.clone());
        Ok(())
    })?;
    Ok(events)
}

/// Checks every promise.
pub(super) fn judge(spec: &Spec, project: &Project, evidence: &mut Evidence) -> Vec<Finding> {
    if let Err(error) = gather(spec, project, evidence) {
        let broken = vec![format!("the state cannot be read in the end: {}", error.message)];
        return vec![Finding { promise: Promise::Complete, looked_at: 0, broken }];
    }
    let witnessed = [Promise::Healthy, Promise::Attempts, Promise::Output];
    let asked = Promise::ALL.into_iter().filter(|promise| !(spec.real && witnessed.contains(promise)));
    asked.map(|promise| look(promise, evidence)).collect()
}

fn gather(spec: &Spec, project: &Project, evidence: &mut Evidence) -> Result<()> {
    let witness = Witness::of(&spec.dir);
    let unread = |error: std::io::Error| crate::error::CliError::internal("the witness cannot be read").because(&error);
    evidence.notes = witness.notes().map_err(unread)?;
    for event in events(project)? {
        if let (true, Some(task)) = (event.kind == "task_completed", &event.task) {
            evidence.completions.push((task.clone(), event.epoch.unwrap_or(0)));
        }
        evidence.log.insert(event.seq, event.hash);
    }
    let view = View::open(project)?;
    let run = view.the_run()?;
    for task in run.tasks()? {
        if spec.tasks.iter().any(|open| open == task.id.as_str()) {
            let made = spec.real || is_made(project, &run, task.id.as_str());
            let (id, state) = (task.id.to_string(), task.state.clone());
            evidence.tasks.push(TaskFact { id, state, attempts: task.attempts, made });
        }
    }
    let bundles: BTreeSet<u64> = evidence.notes.iter().map(|note| note.bundle).collect();
    for bundle in bundles {
        let printed = witness.lines(bundle);
        let stored = run.lines_of(AttemptId(bundle), 0, LINES_MAX)?;
        let stored: Vec<&str> =
            stored.iter().filter(|line| line.line.stream == Stream::Out).map(|line| line.line.text.as_str()).collect();
        evidence.lines += printed.len();
        // The last line may have been printed but not recorded.
        let whole = stored.len() >= printed.len() && stored.len() <= printed.len() + 1;
        if !whole || stored.iter().zip(&printed).any(|(stored, printed)| *stored != printed.as_str()) {
            let (printed, stored) = (counted(printed.len(), "line", "lines"), stored.len());
            evidence.garbled.push(format!("bundle {bundle}: {printed} printed, {stored} kept, or different ones"));
        }
    }
    Ok(())
}

/// Whether a stand-in's work is in the project, or in the run's branch if agents worked in worktrees.
fn is_made(project: &Project, run: &RunView<'_>, task: &str) -> bool {
    let file = format!("{WORK_DIR}/{}", task_file(task));
    let text = match &run.row.work_branch {
        Some(branch) => git::ask(&project.root, &["show", &format!("{branch}:./{file}")], WORK_BYTES),
        None => std::fs::read_to_string(project.root.join(file)).ok(),
    };
    text.is_some_and(|text| text.trim() == "done")
}

fn look(promise: Promise, evidence: &Evidence) -> Finding {
    let (looked_at, broken) = match promise {
        Promise::Acknowledged => acknowledged(evidence),
        Promise::Once => once(evidence),
        Promise::Healthy => healthy(evidence),
        Promise::Attempts => attempts(evidence),
        Promise::Output => (evidence.lines, evidence.garbled.clone()),
        Promise::Strangers => {
            let signalled = (0..evidence.strangers).map(|_| "a bystander was ended".to_owned()).collect();
            (1, signalled)
        }
        Promise::Ended => {
            let left = evidence.left.iter().map(|what| format!("{what} still runs")).collect();
            (evidence.processes, left)
        }
        Promise::Complete => complete(evidence),
    };
    Finding { promise, looked_at, broken }
}

fn acknowledged(evidence: &Evidence) -> (usize, Vec<String>) {
    let told: BTreeSet<&str> = evidence.noted(What::Told).map(|note| note.task.as_str()).collect();
    let mut broken = Vec::new();
    for task in evidence.tasks.iter().filter(|task| told.contains(task.id.as_str())) {
        if !task.made {
            broken.push(format!("task {}: its report was taken, and its work is gone", task.id));
        }
        if task.state != "complete" && !evidence.gave_up {
            broken.push(format!("task {}: its report was taken, and it is {}", task.id, task.state));
        }
    }
    for (seq, hash) in &evidence.seen {
        if evidence.log.get(seq) != Some(hash) {
            broken.push(format!("event {seq} could be read, and is gone or another one"));
        }
    }
    (told.len() + evidence.seen.len(), broken)
}

fn once(evidence: &Evidence) -> (usize, Vec<String>) {
    let mut broken: Vec<String> =
        evidence.noted(What::Twins).map(|note| format!("task {}: two agents at once", note.task)).collect();
    let mut told = BTreeSet::new();
    for note in evidence.notes.iter().filter(|note| note.role == "developer") {
        match note.what {
            What::Told => {
                told.insert(note.task.as_str());
            }
            What::Begin if told.contains(note.task.as_str()) => {
                broken.push(format!("task {}: its report was accepted, and it was started again", note.task));
            }
            _ => {}
        }
    }
    let mut ended = BTreeSet::new();
    for completion in &evidence.completions {
        if !ended.insert(completion) {
            broken.push(format!("task {} was completed twice in epoch {}", completion.0, completion.1));
        }
    }
    (evidence.tasks.len(), broken)
}

fn healthy(evidence: &Evidence) -> (usize, Vec<String>) {
    let begun: Vec<&Note> =
        evidence.noted(What::Begin).filter(|note| !evidence.hurt(note.bundle, &note.task)).collect();
    let ended =
        |begin: &Note| evidence.noted(What::End).any(|end| end.bundle == begin.bundle && end.task == begin.task);
    let cut = begun.iter().filter(|begin| !evidence.gave_up && !ended(begin));
    let broken =
        cut.map(|begin| format!("task {}: its agent (bundle {}) was healthy and was ended", begin.task, begin.bundle));
    (begun.len(), broken.collect())
}

fn attempts(evidence: &Evidence) -> (usize, Vec<String>) {
    let over = evidence.tasks.iter().filter(|task| task.attempts > 1 + evidence.hurts(&task.id));
    let broken = over.map(|task| {
        format!("task {}: {} attempts are charged, {} were hurt", task.id, task.attempts, evidence.hurts(&task.id))
    });
    (evidence.tasks.len(), broken.collect())
}

fn complete(evidence: &Evidence) -> (usize, Vec<String>) {
    let mut broken = Vec::new();
    if evidence.gave_up {
        broken.push("it was not complete when the time limit was reached".to_owned());
    } else if evidence.exit != Some(0) {
        let how = evidence.exit.map_or("by a signal".to_owned(), |code| format!("with exit code {code}"));
        broken.push(format!("the last `rekindle run` ended {how}"));
    }
    let open = evidence.tasks.iter().filter(|task| task.state != "complete" || !task.made);
    broken.extend(open.map(|task| match task.made {
        true => format!("task {} is {}", task.id, task.state),
        false => format!("task {} is {}, and its work is not there", task.id, task.state),
    }));
    (evidence.tasks.len(), broken)
}
