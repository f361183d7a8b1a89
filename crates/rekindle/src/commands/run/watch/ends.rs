//! One line for the end of an attempt: what ended it, and what follows. The events that lead to the end are folded into that
//! line, and so is the start of the next attempt if it comes as announced. `watch` decides which other events are shown.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::policy::{self, Next};
use rekindle_core::report::Channel;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use crate::story::{self, Told};
use crate::ui::Tone;

/// How much later than announced an attempt may start without a line of its own: a start on a busy machine takes a second or two.
const LATE_MS: u64 = 5_000;

/// The end of an attempt, before its number is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub attempt: AttemptId,
    /// What ended it.
    pub told: Told,
    /// When the next attempt starts, in words.
    pub next: Option<String>,
    pub last_words: Option<String>,
}

/// How an event is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// As every other event.
    Itself,
    /// Not at all: another line covers it.
    Folded,
    /// As the end of an attempt.
    End(Box<End>),
}

/// What is remembered from one event to the next.
#[derive(Default)]
pub(super) struct Ends {
    /// Whether a table shows which agents run: then a start needs no line.
    table: bool,
    /// The causes of attempts that are about to end.
    ending: BTreeMap<AttemptId, Told>,
    /// Tasks whose agents ended without a report and whose checks run.
    unreported: BTreeSet<String>,
    /// The results of failed checks of tasks whose attempt ends with them.
    unproven: BTreeMap<String, Told>,
    /// The last attempts of tasks that failed with them, and their last words.
    failed_with: BTreeMap<String, (AttemptId, Option<String>)>,
    /// Tasks whose next attempt was announced, and when it is to start.
    announced: BTreeMap<String, Time>,
}

impl Ends {
    pub(super) fn new(table: bool) -> Self {
        Self { table, ..Self::default() }
    }

    /// How an event is shown. `later` are the events after it: those of the same decision have the same time.
    pub(super) fn shown(&mut self, event: &StoredEvent, later: &[StoredEvent]) -> Shown {
        match story::body(event) {
            Some(Body::Attempt(fact)) => self.of_attempt(&fact, event, later),
            Some(Body::Task(fact)) => self.of_task(&fact, event, later),
            _ => Shown::Itself,
        }
    }

    fn of_attempt(&mut self, fact: &AttemptEvent, event: &StoredEvent, later: &[StoredEvent]) -> Shown {
        let task = event.task.as_deref().unwrap_or_default();
        match fact {
            AttemptEvent::Dispatched { .. } if self.table => Shown::Folded,
            AttemptEvent::Redispatched { .. } => {
                let announced = self.announced.remove(task);
                let kept = announced.is_some_and(|at| event.time_ms <= at.plus_ms(LATE_MS).0);
                if kept || self.table { Shown::Folded } else { Shown::Itself }
            }
            AttemptEvent::AgentHung { attempt, .. }
            | AttemptEvent::RoleTimeout { attempt, .. }
            | AttemptEvent::AgentCrashed { attempt, .. }
            | AttemptEvent::OrphanAgentDetected { attempt, .. } => {
                self.ending.insert(*attempt, story::tell(event));
                Shown::Folded
            }
            AttemptEvent::AttemptEnded { attempt, cause, last_words } => {
                self.ended(*attempt, cause, last_words.clone(), event, later)
            }
            AttemptEvent::Dispatched { .. }
            | AttemptEvent::AgentStarted { .. }
            | AttemptEvent::AgentAdopted { .. }
            | AttemptEvent::ReportRefused { .. }
            | AttemptEvent::StopOrdered { .. }
            | AttemptEvent::AttemptExited { .. } => Shown::Itself,
        }
    }

    fn ended(
        &mut self,
        attempt: AttemptId,
        cause: &Cause,
        last_words: Option<String>,
        event: &StoredEvent,
        later: &[StoredEvent],
    ) -> Shown {
        let task = event.task.clone().unwrap_or_default();
        let unproven = self.unproven.remove(&task);
        let seen = self.ending.remove(&attempt).or(unproven);
        let retried =
            matches!(policy::row(cause).next, Next::RetryAfterBackoff | Next::RetryAtOnce | Next::WaitForMachine);
        if seen.is_none() && !retried {
            return Shown::Folded;
        }
        let told = seen.unwrap_or_else(|| Told { verb: "ENDED", tone: Tone::Warning, text: cause.words() });
        let next = match follows(event, later) {
            Some(TaskEvent::WorkflowFailed { .. }) => {
                self.failed_with.insert(task, (attempt, last_words));
                return Shown::Folded;
            }
            Some(TaskEvent::TaskRequeued { cause, not_before, .. }) => {
                Some(self.announce(task, &cause, not_before, Time(event.time_ms)))
            }
            _ => None,
        };
        Shown::End(Box::new(End { attempt, told, next, last_words }))
    }

    /// Says when the next attempt at a task starts, and remembers it.
    fn announce(&mut self, task: String, cause: &Cause, not_before: Option<Time>, now: Time) -> String {
        let at = not_before.unwrap_or(now);
        if matches!(policy::row(cause).next, Next::RetryAfterBackoff | Next::RetryAtOnce) {
            self.announced.insert(task, at);
        }
        policy::when_next(cause, at.since_ms(now))
    }

    fn of_task(&mut self, fact: &TaskEvent, event: &StoredEvent, later: &[StoredEvent]) -> Shown {
        let task = event.task.clone().unwrap_or_default();
        match fact {
            TaskEvent::TaskClaimed { channel: Channel::Unreported, .. } => {
                self.unreported.insert(task);
                Shown::Folded
            }
            TaskEvent::ChecksFinished { passed, evidence } => {
                let unreported = self.unreported.remove(&task);
                let ends = || follows(event, later).is_some() && ends_with(event, later);
                if *passed || !(unreported || ends()) {
                    return Shown::Itself;
                }
                if ends() {
                    let told = story::tell(event);
                    let without = || Told {
                        verb: "ENDED",
                        text: format!("no report, and {}", evidence.complaint()),
                        ..told.clone()
                    };
                    self.unproven.insert(task, if unreported { without() } else { told.clone() });
                }
                Shown::Folded
            }
            TaskEvent::TaskFailReported { attempt, .. } => match follows(event, later) {
                Some(TaskEvent::TaskRequeued { cause, not_before, .. }) => {
                    let next = Some(self.announce(task, &cause, not_before, Time(event.time_ms)));
                    let end = End { attempt: *attempt, told: story::tell(event), next, last_words: None };
                    Shown::End(Box::new(end))
                }
                _ => Shown::Itself,
            },
            TaskEvent::WorkflowFailed { .. } => match self.failed_with.remove(&task) {
                Some((attempt, last_words)) => {
                    let end = End { attempt, told: story::tell(event), next: None, last_words };
                    Shown::End(Box::new(end))
                }
                None => Shown::Itself,
            },
            TaskEvent::TaskAdded(_)
            | TaskEvent::TaskEdited(_)
            | TaskEvent::TaskAssigned { .. }
            | TaskEvent::BaselineSeen(_)
            | TaskEvent::TaskStarted { .. }
            | TaskEvent::TaskClaimed { .. }
            | TaskEvent::TaskCompleted { .. }
            | TaskEvent::OperatorCompleted { .. }
            | TaskEvent::CheckpointSaved { .. }
            | TaskEvent::SplitProposed { .. }
            | TaskEvent::SplitSuggested { .. }
            | TaskEvent::TaskRequeued { .. }
            | TaskEvent::TaskParked { .. }
            | TaskEvent::TaskSkipped { .. }
            | TaskEvent::TaskReopened { .. }
            | TaskEvent::ValidationStarted {} => Shown::Itself,
        }
    }
}

/// The later events of the same decision about the same task.
fn same_decision<'a>(event: &'a StoredEvent, later: &'a [StoredEvent]) -> impl Iterator<Item = Body> + 'a {
    let together = later.iter().take_while(|next| next.time_ms == event.time_ms);
    together.filter(|next| next.task == event.task).filter_map(story::body)
}

/// What becomes of the task of an attempt that ends: another attempt, a failure, or a wait for an answer.
fn follows(event: &StoredEvent, later: &[StoredEvent]) -> Option<TaskEvent> {
    same_decision(event, later).find_map(|body| match body {
        Body::Task(
            fact @ (TaskEvent::TaskRequeued { .. } | TaskEvent::WorkflowFailed { .. } | TaskEvent::TaskParked { .. }),
        ) => Some(fact),
        _ => None,
    })
}

/// Whether the attempt ends by the same decision.
fn ends_with(event: &StoredEvent, later: &[StoredEvent]) -> bool {
    same_decision(event, later).any(|body| matches!(body, Body::Attempt(AttemptEvent::AttemptEnded { .. })))
}

#[cfg(test)]
mod tests;
