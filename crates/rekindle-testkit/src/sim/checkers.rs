//! The checkers: the invariants by name, and the parts of the durable store that they are compared with.
//!
//! They read only what is durable, and what really happened in the story ([`Truth`]); never the driver's own view, except to
//! compare it. Events are judged in `checkers/log`, output in `checkers/output`, everything between two steps here.

mod answers;
mod awake;
mod budget;
mod changes;
mod invariant;
mod log;
mod machine;
mod output;
mod protocol;
mod published;
mod signs;
mod steered;
mod unreported;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rekindle_core::event::UsageLeft;
use rekindle_core::ids::{AttemptId, Epoch, QuestionId, TaskId};
use rekindle_core::input::Order;
use rekindle_core::report::Report;
use rekindle_core::review;
use rekindle_core::role::Role;
use rekindle_core::state::{Attempt, AttemptPhase, NOTES_KEPT, RunPhase, State, TaskState};
use rekindle_core::time::Time;
use rekindle_engine::driver;
use rekindle_engine::store::{MemoryStore, Read, Row, Stream, Table};
use rekindle_engine::token::Tokens;

use super::refusals::Refusals;
use super::world::Sim;

pub use awake::Sleep;
pub use invariant::Invariant;

/// What a report is about, for the record of who said what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Begins.
    Start,
    /// Claims.
    Done,
    /// Gives up.
    Fail,
    /// Reports progress.
    Checkpoint,
    Ask,
    /// Breaks a task into parts.
    Split,
    /// Judges.
    Verdict,
    /// Notes.
    Note,
}

/// What really happened.
#[derive(Debug, Default)]
pub struct Truth {
    said: BTreeSet<(AttemptId, Option<TaskId>, Verb)>,
    ordered: BTreeSet<TaskId>,
    /// Claims that were checked on the disk and proven.
    pub proofs: BTreeSet<(TaskId, Epoch)>,
    /// Completions that were acknowledged to an agent.
    pub acknowledged: BTreeSet<(TaskId, Epoch)>,
    /// Attempts whose program said that its credentials were refused.
    pub refused: BTreeSet<AttemptId>,
    /// Messages that agents were given.
    pub delivered: BTreeSet<(AttemptId, u32)>,
    /// Verdicts that were really given, by role and word.
    judged: BTreeSet<(AttemptId, &'static str, String)>,
    /// Tasks that the operator split.
    splits: BTreeSet<TaskId>,
    /// Work that was really merged.
    pub merged: BTreeSet<(TaskId, Epoch)>,
    /// What the user's command last said, and when.
    pub usage: Option<(Time, UsageLeft)>,
    /// Tasks whose checks really failed before an attempt at them began.
    pub undone: BTreeSet<(AttemptId, TaskId)>,
    /// Tasks that a person was asked about and confirmed as complete.
    pub confirmed: BTreeSet<TaskId>,
    /// Tasks that the operator completed without being asked.
    completed: BTreeSet<TaskId>,
    /// The operator was told that the run is being paused, and it has not been continued since.
    pub paused: bool,
    /// What the machine refused.
    pub machine: Refusals,
    /// Attempts whose worktree could not be set up.
    pub not_set_up: BTreeSet<AttemptId>,
    /// Claims whose worktree could not be set up for their checks.
    pub checks_not_set_up: BTreeSet<TaskId>,
    /// Artifacts that were not on the disk when they were checked.
    pub gone: BTreeSet<String>,
    /// When the machine slept.
    pub sleeps: Vec<awake::Sleep>,
    /// When attempts were handed their tasks.
    dispatched: BTreeMap<AttemptId, u64>,
    /// What the operator changed in the plan.
    pub changes: changes::Changes,
    pub published: published::Published,
}

impl Truth {
    /// Records what an attempt's own process said.
    pub fn say(&mut self, attempt: AttemptId, task: Option<&TaskId>, verb: Verb) {
        self.said.insert((attempt, task.cloned(), verb));
    }

    /// Records a verdict that an attempt's own process gave.
    pub fn judge(&mut self, attempt: AttemptId, role: Role, verdict: review::Verdict) {
        self.judged.insert((attempt, role.name(), format!("{verdict:?}")));
    }

    /// Records an order of the operator about a task.
    pub fn operator(&mut self, order: &Order, state: &State) {
        let removed = self.changes.told(order, state);
        self.ordered.extend(removed);
        if let Order::Complete { task, .. } = order {
            self.completed.insert(task.clone());
        }
        match order {
            Order::Skip { task, .. }
            | Order::Stop { task }
            | Order::Complete { task, .. }
            | Order::Fail { task, .. } => {
                self.ordered.insert(task.clone());
            }
            Order::Split { task, .. } => {
                self.splits.insert(task.clone());
            }
            _ => {}
        }
    }
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub what: String,
}

/// What the checkers know.
#[derive(Debug, Default)]
pub struct Checkers {
    /// What really happened.
    pub truth: Truth,
    /// The state that results from the durable events.
    pub replayed: State,
    /// The first invariant that was broken.
    pub violation: Option<Violation>,
    seq: u64,
    /// Events and lines that were durable at the last sync.
    synced: (usize, usize),
    dispatched: BTreeSet<AttemptId>,
    stops: BTreeMap<AttemptId, bool>,
    claims: BTreeMap<(TaskId, Epoch), AttemptId>,
    /// Work that its agent left by choice and without a report, as it was when the agent exited.
    left: BTreeSet<(AttemptId, TaskId)>,
    ended: BTreeSet<(TaskId, Epoch)>,
    completed: BTreeSet<(TaskId, Epoch)>,
    lines: u64,
    indexed: BTreeMap<(AttemptId, Stream), u64>,
    settled: BTreeSet<AttemptId>,
    /// How often each kind of event was recorded.
    pub told: BTreeMap<String, u64>,
    signs: signs::Taken,
    ways: protocol::Ways,
}

type Verdict = Result<(), (Invariant, String)>;

impl Checkers {
    /// Notes that an invariant is broken; only the first counts.
    pub fn broken(&mut self, invariant: Invariant, what: String) {
        self.violation.get_or_insert(Violation { invariant, what });
    }

    fn judge(&mut self, verdict: Verdict) {
        if let Err((invariant, what)) = verdict {
            self.broken(invariant, what);
        }
    }

    /// Whether a launch follows from a durable event.
    pub fn allows_launch(&self, attempt: AttemptId) -> Verdict {
        require(self.dispatched.contains(&attempt), Invariant::DurableFirst, || {
            format!("attempt {attempt} is launched")
        })
    }

    /// Whether a stop follows from a durable event about an attempt that was launched.
    pub fn allows_stop(&self, attempt: AttemptId, at_once: bool) -> Verdict {
        require(self.dispatched.contains(&attempt), Invariant::OwnSignals, || format!("attempt {attempt} is stopped"))?;
        let ordered = self.stops.get(&attempt).is_some_and(|sharp| *sharp || !at_once);
        require(ordered, Invariant::DurableFirst, || format!("attempt {attempt} is stopped without an order"))
    }

    /// Whether checks follow from a durable claim.
    pub fn allows_checks(&self, task: &TaskId, epoch: Epoch) -> Verdict {
        let claimed = self.claims.contains_key(&(task.clone(), epoch));
        require(claimed, Invariant::DurableFirst, || format!("checks of {task} in epoch {epoch} without a claim"))
    }

    /// Whether an attempt's report on a task can no longer count.
    pub fn is_over(&self, attempt: AttemptId, task: Option<&TaskId>) -> bool {
        let Some(found) = self.replayed.attempts.get(&attempt) else { return true };
        let lost = task
            .and_then(|task| self.replayed.tasks.get(task))
            .is_none_or(|held| held.epoch != found.epoch || held.holder != Some(attempt));
        found.phase == AttemptPhase::Ended || lost
    }

    /// Whether an attempt repeats what it said in time, about a task that was completed in that same epoch. Such a claim
    /// changes nothing and is answered with what became of it.
    pub fn repeats(&self, attempt: AttemptId, task: &TaskId, verb: Verb) -> bool {
        let Some(found) = self.replayed.attempts.get(&attempt) else { return false };
        let said = self.truth.said.contains(&(attempt, Some(task.clone()), verb));
        said && self.completed.contains(&(task.clone(), found.epoch))
    }

    /// The token of the attempt that holds a report's task now.
    pub fn newest_token(&self, tokens: &Tokens, report: &Report) -> Option<String> {
        let task = self.replayed.tasks.get(report.task()?)?;
        Some(tokens.token(task.holder?, task.epoch))
    }

    /// Open questions, with the task if `done` accepts its work, and how many answers they offer.
    pub fn open_questions(&self) -> Vec<(QuestionId, Option<TaskId>, usize)> {
        let open = self.replayed.questions.iter().filter(|(_, question)| question.answer.is_none());
        open.map(|(id, question)| {
            let takes_work = question.takes_work.then(|| question.task.clone());
            (*id, takes_work, question.options.len())
        })
        .collect()
    }

    /// Tasks that have failed.
    pub fn failed_tasks(&self) -> Vec<TaskId> {
        let failed = self.replayed.tasks.iter().filter(|(_, task)| task.state == TaskState::Failed);
        failed.map(|(id, _)| id.clone()).collect()
    }

    /// All tasks of the run, including those that are not in the plan's file.
    pub fn all_tasks(&self) -> Vec<TaskId> {
        self.replayed.tasks.keys().cloned().collect()
    }

    /// Tasks that a living attempt has.
    pub fn tasks_at_work(&self) -> Vec<TaskId> {
        let live = self.replayed.attempts.values().filter(|attempt| attempt.is_live());
        live.flat_map(|attempt| attempt.tasks.iter().cloned()).collect()
    }

    /// Names of agents so far.
    pub fn agent_names(&self) -> Vec<String> {
        self.replayed.agents.keys().map(ToString::to_string).collect()
    }

    /// What has not ended, in brief.
    pub fn unfinished(&self) -> String {
        let state = &self.replayed;
        let run = state.run.as_ref().map(|run| (run.phase, run.wave, run.inspection));
        let tasks: Vec<String> = state
            .tasks
            .iter()
            .filter(|(_, task)| !task.state.is_terminal() || task.state == TaskState::Failed)
            .map(|(id, task)| {
                let planned = state.plan_task(id).map(|task| (task.wave, task.blocked_by.clone()));
                let way = &task.workflow;
                format!("{id} {:?} held by {:?}, wave and blockers {planned:?}, {way:?}", task.state, task.holder)
            })
            .collect();
        let attempts: Vec<_> = state.attempts.iter().filter(|(_, found)| found.phase != AttemptPhase::Ended).collect();
        let waits = rekindle_core::decide::standstill(state);
        format!("{run:?}, waits for {waits:?}, attempts {attempts:?}, tasks {tasks:?}")
    }

    /// Number of events read from the log so far.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What was acknowledged must be there, now and for ever.
    fn acknowledged(&self, head: u64) -> Verdict {
        require(head >= self.seq, Invariant::AckSurvives, || format!("the log shrank from {} to {head}", self.seq))?;
        let lost = self.truth.acknowledged.iter().find(|known| !self.completed.contains(*known));
        require(lost.is_none(), Invariant::AckSurvives, || format!("acknowledged and not in the log: {lost:?}"))
    }

    /// Compares the driver's state with the log's.
    fn same_state(&self, driver: &State) -> Verdict {
        require(*driver == self.replayed, Invariant::Replay, || differs(driver, &self.replayed))?;
        let held = driver.index_holds() && self.replayed.index_holds();
        require(held, Invariant::Replay, || "the index of tasks does not say what the tasks say".to_owned())
    }

    fn bounds(&self, most_lines: usize) -> Verdict {
        /// Lines of one batch: how far the driver reads ahead of a commit.
        const BATCH_LINES: usize = 2_000;
        require(most_lines <= BATCH_LINES, Invariant::Bounds, || format!("{most_lines} lines in one batch"))?;
        let notes = self.replayed.notes.len();
        require(notes <= NOTES_KEPT, Invariant::Bounds, || format!("{notes} notes in the state"))
    }
}

impl Sim {
    /// Reads what has become durable and judges it.
    pub fn sync_checkers(&mut self) {
        let lengths = self.durable.lengths();
        if std::mem::replace(&mut self.checkers.synced, lengths) == lengths {
            return;
        }
        for stored in self.durable.durable_since(self.checkers.seq) {
            match driver::decode(&stored) {
                Ok(event) => {
                    self.trace.say(self.queue.now_ms(), format_args!("  {} {}", stored.seq, log::Shown(&stored)));
                    self.note_wall(&event);
                    self.check_told(&event);
                    self.check_days(&event);
                    self.check_published(&event);
                    self.checkers.event(&self.setting, &event);
                    self.note_wait(&event);
                    self.note_usage(&event);
                    self.answered_by(&event);
                    self.check_awake(&event);
                }
                Err(error) => self.checkers.broken(Invariant::Replay, error.to_string()),
            }
            self.checkers.seq = stored.seq;
        }
        let store = self.durable_now();
        self.check_lines(&store);
    }

    /// The store that a restart at this moment would find.
    pub fn durable_now(&self) -> Arc<MemoryStore> {
        if self.durable.crashed() { Arc::new(self.durable.restarted()) } else { Arc::clone(&self.durable) }
    }

    /// After everything the coordinator did: checks the world as it is now.
    pub fn check_world(&mut self) {
        self.sync_checkers();
        let verdict = self.checkers.acknowledged(self.durable.lengths().0 as u64);
        self.checkers.judge(verdict);
        self.check_trees();
    }

    /// The coordinator's state must be the log's.
    pub fn check_state(&mut self, driver: &State) {
        let verdict = self.checkers.same_state(driver);
        self.checkers.judge(verdict);
    }

    /// The coordinator has done a step and is still running.
    pub fn check_step(&mut self, driver_seq: u64, most_lines: usize) {
        self.check_world();
        let seq = self.checkers.seq;
        let verdict = require(driver_seq == seq, Invariant::DurableFirst, || {
            format!("the coordinator believes {driver_seq} events durable, {seq} are")
        });
        self.checkers.judge(verdict);
        let verdict = self.checkers.bounds(most_lines);
        let verdict = verdict.and_then(|()| self.checkers.sessions_kept());
        let verdict = verdict.and_then(|()| match self.coordinator.taking_over {
            true => Ok(()),
            false => self.checkers.taken_up(&self.coordinator.asked),
        });
        self.checkers.judge(verdict);
    }

    /// The rows that views read must match the state.
    pub fn check_rows(&mut self) {
        let store = self.durable_now();
        let state = &self.checkers.replayed;
        let mut wanted = driver::all_rows(state);
        if state.past.attempts + state.past.questions > 0 || state.tasks.values().any(|task| task.settled) {
            // A long story: entries that the state has dropped are only in its rows, as the log last had them.
            let key = |row: &Row| (row.table, row.key.clone());
            let told: BTreeSet<_> = wanted.iter().map(key).collect();
            match driver::rows_from_log(&*store) {
                Ok(rows) => wanted.extend(rows.into_iter().filter(|row| !told.contains(&key(row)))),
                Err(error) => return self.checkers.broken(Invariant::Replay, error.to_string()),
            }
        }
        let mut found: Vec<Row> =
            Table::ALL.iter().flat_map(|table| store.rows(*table, None).unwrap_or_default()).collect();
        let order = |a: &Row, b: &Row| (a.table, &a.key).cmp(&(b.table, &b.key));
        wanted.sort_by(order);
        found.sort_by(order);
        if wanted != found {
            let odd = wanted.iter().zip(&found).find(|(wanted, found)| wanted != found);
            self.checkers.broken(Invariant::Replay, format!("rows differ from the state: {odd:?}"));
        }
    }

    fn check_trees(&mut self) {
        let state = &self.checkers.replayed;
        let leaked = self
            .bundles
            .iter()
            .find(|(id, bundle)| bundle.tree_alive() && !state.attempts.get(id).is_some_and(Attempt::is_live));
        if let Some((id, bundle)) = leaked {
            let what = format!(
                "attempt {id} is over, its agent lives: {}, children: {}",
                bundle.leader_alive, bundle.children
            );
            self.checkers.broken(Invariant::TreeGone, what);
        }
    }

    /// Attempts that are healthy at this moment and that nobody wants stopped.
    pub fn healthy(&self) -> Vec<AttemptId> {
        let state = &self.checkers.replayed;
        let wanted =
            |id: &AttemptId| state.attempts.get(id).is_some_and(|found| found.is_live() && found.stop.is_none());
        // An order whose moment is over takes effect at the start.
        let named = |id: &AttemptId| {
            let mut orders = state.steering.placed.values().filter_map(|placed| placed.order.task());
            orders.any(|task| state.attempts.get(id).is_some_and(|found| found.tasks.contains(task)))
        };
        self.bundles
            .iter()
            .filter(|(id, bundle)| bundle.healthy() && wanted(id) && !named(id))
            .map(|(id, _)| *id)
            .collect()
    }

    /// After a start: an attempt that was healthy before it is still held.
    pub fn check_kept(&mut self, healthy: &[AttemptId]) {
        let run = self.checkers.replayed.run.as_ref();
        // A report that an agent left in its bundle may be a question, and a run that does not wait pauses for that.
        let pausing = run.is_some_and(|run| matches!(run.phase, RunPhase::Pausing(_)));
        for id in healthy {
            // Nor is it broken by what the agent printed in its stream while nothing read it: that is evidence of its own.
            let told = |found: &Attempt| found.stop.as_ref().is_some_and(|stop| signs::follows_from_signs(&stop.cause));
            let kept = |found: &Attempt| found.is_live() && (found.stop.is_none() || pausing || told(found));
            let kept = self.checkers.replayed.attempts.get(id).is_some_and(kept);
            if !kept {
                self.checkers.broken(Invariant::HealthyKept, format!("attempt {id} was well and was given up"));
            }
        }
    }
}

/// The verdict on a condition.
fn require(holds: bool, invariant: Invariant, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err((invariant, what())) }
}

/// Where two states differ, in brief.
fn differs(driver: &State, replayed: &State) -> String {
    for (id, task) in &driver.tasks {
        if replayed.tasks.get(id) != Some(task) {
            return format!("task {id}: the coordinator has {task:?}, the log gives {:?}", replayed.tasks.get(id));
        }
    }
    for (id, attempt) in &driver.attempts {
        if replayed.attempts.get(id) != Some(attempt) {
            return format!(
                "attempt {id}: the coordinator has {attempt:?}, the log gives {:?}",
                replayed.attempts.get(id)
            );
        }
    }
    let (ours, theirs) = (format!("{driver:?}"), format!("{replayed:?}"));
    let at = ours.bytes().zip(theirs.bytes()).position(|(a, b)| a != b).unwrap_or(0);
    let part = |text: &str| text.chars().skip(at.saturating_sub(40)).take(120).collect::<String>();
    format!("the coordinator has …{}…, the log gives …{}…", part(&ours), part(&theirs))
}
