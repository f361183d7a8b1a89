//! The report on a run: what became of every task, what was recovered and why, what people were asked and decided. Gathered
//! from the store alone; each output format has its own file.

pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod trace;

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, PersonEvent, ReviewEvent, RunEvent, TaskEvent};
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, Counts, QuestionRow, RunRow, TaskRow};
use rekindle_engine::store::StoredEvent;

use crate::error::Result;
use crate::picture::history;
use crate::picture::output::{self, TaskOutput};
use crate::picture::result::RunResult;
use crate::story;
use crate::view::{Costs, RunView, Spent};

/// Most entries of one list (recoveries, decisions, disagreements): a report is read by people.
const ENTRIES_MAX: usize = 500;

/// Most files that are listed.
const FILES_MAX: usize = 1_000;

/// Events in which two reviewers or environments disagreed about the same work.
const DISAGREEMENTS: [&str; 2] = ["review_audit_disagreement", "environment_disagreement"];

/// The cause of an attempt whose work was sent back.
const SENT_BACK: &str = "sent_back";

#[derive(Debug)]
pub(crate) struct Report {
    pub run: RunRow,
    /// The time up to which it reports.
    pub until: Time,
    pub counts: Counts,
    /// The tasks in the plan's order.
    pub tasks: Vec<TaskReport>,
    pub attempts: usize,
    /// What was lost or refused and continued later, oldest first.
    pub recoveries: List<Entry>,
    /// Where critic and auditor, or two environments, disagreed.
    pub disagreements: List<Entry>,
    /// What was decided, by agents and people.
    pub decisions: List<Entry>,
    /// What a person was alerted for.
    pub alerts: List<Entry>,
    pub questions: Vec<QuestionRow>,
    /// Files that agents said they changed.
    pub files: List<String>,
    pub spent: Spent,
    pub costs: Costs,
    /// The state of its budgets, one line each.
    pub budgets: Vec<String>,
    /// What the run produced, if it works on its own branch.
    pub result: Option<RunResult>,
}

/// One task with its history.
#[derive(Debug)]
pub(crate) struct TaskReport {
    pub row: TaskRow,
    /// How long agents worked on it, over all attempts.
    pub worked_ms: u64,
    /// The attempts at it that failed, oldest first; the one that made it fail for good is the last.
    pub failures: Vec<Failure>,
    /// How often its agent claimed it and the checks refuted that.
    pub refused_claims: usize,
    /// Which `[agents.NAME]` ran it last.
    pub cli: Option<String>,
    /// What it cost, where known; shared attempts count in full.
    pub spent: Spent,
    /// What its agent printed before it failed last.
    pub output: Option<TaskOutput>,
}

/// An attempt at a task that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub cause: String,
    /// Whether the fault was not in the work but in what it needs to run.
    pub infrastructure: bool,
    /// What happened, in words.
    pub text: String,
}

/// Something that happened, in words.
#[derive(Debug)]
pub(crate) struct Entry {
    pub time: Time,
    /// The task that it is about.
    pub task: Option<String>,
    /// The agent that it is about.
    pub agent: Option<String>,
    pub text: String,
}

impl Entry {
    fn of(event: &StoredEvent, text: String) -> Self {
        Self { time: Time(event.time_ms), task: event.task.clone(), agent: event.agent.clone(), text }
    }
}

/// A list that is truncated when it grows too long, and counts what is left out.
#[derive(Debug)]
pub(crate) struct List<T> {
    /// The first entries, which are kept.
    pub kept: Vec<T>,
    /// How many more there were.
    pub more: usize,
    max: usize,
}

impl<T> List<T> {
    fn new(max: usize) -> Self {
        Self { kept: Vec::new(), more: 0, max }
    }

    fn add(&mut self, item: T) {
        if self.kept.len() < self.max {
            self.kept.push(item);
        } else {
            self.more += 1;
        }
    }
}

/// Whether events of a kind are listed one by one.
fn is_told(kind: &str) -> bool {
    history::is_course(kind) || DISAGREEMENTS.contains(&kind)
}

impl RunView<'_> {
    /// The first events of a kind in their own words.
    fn listed(&self, kind: &str) -> Result<List<Entry>> {
        let (first, more) = self.first_of(kind, ENTRIES_MAX)?;
        let mut list = List::new(ENTRIES_MAX);
        for event in &first {
            if let Some(Body::Person(PersonEvent::NoteRecorded { text } | PersonEvent::PersonAlerted { text, .. })) =
                story::body(event)
            {
                list.add(Entry::of(event, text));
            }
        }
        list.more = more;
        Ok(list)
    }
}

/// What a task's events say about it.
#[derive(Default)]
struct Past {
    begun: Option<Time>,
    worked_ms: u64,
    failures: Vec<Failure>,
    refused_claims: usize,
}

/// Gathers the report on a run. It ends with the run, at `now` while a coordinator is running, otherwise with the last
/// event.
pub(crate) fn gather(view: &RunView<'_>, now: Option<Time>) -> Result<Report> {
    let (rows, attempts) = (view.tasks()?, view.attempts()?);
    let mut report = Report {
        run: view.row.clone(),
        until: view.row.started_at,
        counts: Counts::of(&rows),
        tasks: Vec::new(),
        attempts: attempts.len(),
        recoveries: List::new(ENTRIES_MAX),
        disagreements: List::new(ENTRIES_MAX),
        decisions: List::new(ENTRIES_MAX),
        alerts: List::new(ENTRIES_MAX),
        questions: view.questions()?,
        files: files(&rows),
        spent: Spent::by_all(&attempts),
        costs: Costs::of(&rows, &attempts),
        budgets: Vec::new(),
        result: None,
    };
    let mut pasts: BTreeMap<String, Past> = BTreeMap::new();
    view.events_of(0, is_told, |event| {
        report.until = report.until.max(Time(event.time_ms));
        let Some(body) = story::body(event) else { return Ok(()) };
        if let Some(task) = &event.task {
            pasts.entry(task.clone()).or_default().take(event, &body);
        }
        report.take(event, body);
        Ok(())
    })?;
    report.decisions = view.listed("note_recorded")?;
    report.alerts = view.listed("person_alerted")?;
    report.until = report.until.max(view.last_time()?.unwrap_or_default());
    let until = view.row.ended_at.or(now).unwrap_or(report.until);
    report.until = until;
    report.budgets = view.row.budget.lines(until).into_iter().map(|(_, line)| line).collect();
    let mut spent = Spent::by_task(&attempts);
    let outputs = output::read(view, &rows, &attempts, None)?;
    let clis = clis(&attempts);
    for row in rows {
        let past = pasts.remove(row.id.as_str()).unwrap_or_default();
        let open_ms = past.begun.map_or(0, |begun| until.since_ms(begun));
        report.tasks.push(TaskReport {
            worked_ms: past.worked_ms.saturating_add(open_ms),
            failures: past.failures,
            refused_claims: past.refused_claims,
            cli: clis.get(row.id.as_str()).cloned(),
            spent: spent.remove(&row.id).unwrap_or_default(),
            output: outputs.get(&row.id).cloned(),
            row: view.with_outputs(row),
        });
    }
    Ok(report)
}

impl Report {
    fn take(&mut self, event: &StoredEvent, body: Body) {
        let entry = |text: String| Entry::of(event, text);
        if DISAGREEMENTS.contains(&event.kind.as_str()) {
            let what = event.kind.replace('_', " ");
            self.disagreements.add(entry(format!("{what}: {}", story::tell(event).text)));
            return;
        }
        match body {
            Body::Task(TaskEvent::TaskRequeued { cause, reason, .. }) => {
                self.recoveries.add(entry(format!("{cause}: {}", in_words(&cause, reason))));
            }
            Body::Attempt(AttemptEvent::Dispatched { resumed: true, strategy, reason, .. }) => {
                self.recoveries.add(entry(format!("recovered, {}", reason_with(strategy, &reason))));
            }
            Body::Run(RunEvent::CoordinatorRecovered { .. })
            | Body::Attempt(AttemptEvent::AgentAdopted { .. })
            | Body::Task(TaskEvent::TaskReopened { .. }) => {
                self.recoveries.add(entry(story::tell(event).text));
            }
            _ => {}
        }
    }
}

impl Past {
    fn take(&mut self, event: &StoredEvent, body: &Body) {
        let now = Time(event.time_ms);
        match body {
            Body::Task(TaskEvent::TaskStarted { .. }) => {
                self.stop(now);
                self.begun = Some(now);
            }
            Body::Task(TaskEvent::ChecksFinished { passed: false, .. }) => self.refused_claims += 1,
            Body::Task(TaskEvent::TaskRequeued { cause, reason, counted, .. }) => {
                self.stop(now);
                // Handed back without fault (a pause, a wait): this is not a failed attempt.
                if *counted || is_infrastructure(cause) {
                    let text = in_words(cause, reason.clone());
                    let infrastructure = is_infrastructure(cause);
                    self.failures.push(Failure { cause: cause.name().to_owned(), infrastructure, text });
                }
            }
            // Sent back by a reviewer, the checks or the merge: that attempt failed, and another follows.
            Body::Review(ReviewEvent::TaskRework(rework)) => {
                self.stop(now);
                let text = format!("sent back: {}", rework.findings.issues.join("; "));
                self.failures.push(Failure { cause: SENT_BACK.to_owned(), infrastructure: false, text });
            }
            Body::Task(TaskEvent::WorkflowFailed { reason, detail }) => {
                self.stop(now);
                let text = format!("{reason}: {detail}");
                self.failures.push(Failure { cause: reason.clone(), infrastructure: false, text });
            }
            Body::Task(
                TaskEvent::TaskCompleted { .. } | TaskEvent::TaskSkipped { .. } | TaskEvent::TaskParked { .. },
            ) => self.stop(now),
            _ => {}
        }
    }

    fn stop(&mut self, now: Time) {
        let worked = self.begun.take().map_or(0, |begun| now.since_ms(begun));
        self.worked_ms = self.worked_ms.saturating_add(worked);
    }
}

/// A strategy and the reason for it; most reasons start with the strategy.
fn reason_with(strategy: Strategy, reason: &str) -> String {
    let name = strategy.name();
    if reason.starts_with(name) { reason.to_owned() } else { format!("{name}: {reason}") }
}

/// A cause and the decision made on it; most decisions start with the cause.
fn in_words(cause: &Cause, reason: String) -> String {
    let words = cause.words();
    if reason.contains(&words) { reason } else { format!("{words}; {reason}") }
}

/// Whether a cause says nothing about the work: it is the machine, the account or the program's start.
fn is_infrastructure(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::StartFailed { .. }
            | Cause::Auth
            | Cause::Overloaded
            | Cause::OutOfMemory { .. }
            | Cause::ShimLost
            | Cause::HostLost
            | Cause::SetupFailed { .. }
            | Cause::Machine(_)
    )
}

fn clis(attempts: &[AttemptRow]) -> BTreeMap<String, String> {
    let held = attempts.iter().flat_map(|attempt| attempt.tasks.iter().map(move |task| (task, attempt)));
    held.map(|(task, attempt)| (task.to_string(), attempt.cli.clone())).collect()
}

fn files(rows: &[TaskRow]) -> List<String> {
    let named = rows.iter().filter_map(|row| row.checkpoint.as_ref()).flat_map(|checkpoint| &checkpoint.files);
    let unique: BTreeSet<&String> = named.collect();
    let mut files = List::new(FILES_MAX);
    unique.into_iter().for_each(|file| files.add(file.clone()));
    files
}
