//! Every timer by name. Deadlines are derived from the state, so a restart loses none of them.

use std::collections::BTreeSet;

use super::{OpenStep, Reply, attempt, budget, gate, hold, placed, session, setup, stream, usage};
use crate::cause::Cause;
use crate::event::AttemptEvent;
use crate::ids::AttemptId;
use crate::state::{AttemptPhase, RunPhase, State, TaskState};
use crate::time::Time;

/// Grace beyond the whole stop ladder before a stop is ordered again without grace.
const STOP_MARGIN_MS: u64 = 5_000;

/// Longest time between two orders to stop at once: a shim that does not answer for hours costs the log few lines, and is
/// still ended soon after it answers again.
const STOP_REPEAT_MAX_MS: u64 = 5 * 60 * 1000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A task in progress has used up its role's time.
    TaskTimeout(AttemptId),
    /// An agent has lingered too long after its last task.
    AfterResult(AttemptId),
    /// An agent has not been seen working on its task since a compaction.
    Astray(AttemptId),
    /// An agent without context has had its time to save a checkpoint.
    HandOver(AttemptId),
    /// An ordered stop has not completed.
    StopOverdue(AttemptId),
    /// A run that waits for its allowance continues.
    Resume,
    /// A machine that refused something is retried.
    TryMachine,
    /// A failed set-up is retried.
    RetrySetUp,
    /// An agent of a run that is being paused has had its time to save a checkpoint.
    PauseStop(AttemptId),
    /// An order that could be cancelled takes effect.
    ActOnOrders,
    /// The running time of agents passes a level of a budget; this is checked with every decision.
    BudgetTime,
    /// The quiet hours end.
    QuietOver,
    /// A backoff or a breaker is over; scheduling runs again.
    MayStart,
}

impl Timer {
    /// Whether this is a limit of one of these attempts.
    fn is_of(&self, attempts: &BTreeSet<AttemptId>) -> bool {
        match self {
            Self::TaskTimeout(id)
            | Self::AfterResult(id)
            | Self::Astray(id)
            | Self::HandOver(id)
            | Self::StopOverdue(id)
            | Self::PauseStop(id) => attempts.contains(id),
            Self::Resume
            | Self::TryMachine
            | Self::ActOnOrders
            | Self::RetrySetUp
            | Self::BudgetTime
            | Self::QuietOver
            | Self::MayStart => false,
        }
    }
}

/// The earliest moment at which time alone changes anything, for a state that was last decided on at `decided_at`.
pub fn next_deadline(state: &State, decided_at: Time) -> Option<Time> {
    next_deadline_but(state, decided_at, &BTreeSet::new())
}

/// The same without the limits of attempts whose processes are gone.
pub fn next_deadline_but(state: &State, decided_at: Time, gone: &BTreeSet<AttemptId>) -> Option<Time> {
    // A start that was due by then and could not be made (no slot) waits for another event, not for time.
    let ahead = |(time, timer): &(Time, Timer)| *timer != Timer::MayStart || *time > decided_at;
    let due = deadlines(state).filter(ahead).filter(|(_, timer)| !timer.is_of(gone));
    due.map(|(time, _)| time).min()
}

pub(super) fn fire_due(step: &mut OpenStep<'_>, gone: &BTreeSet<AttemptId>) -> Reply {
    let now = step.now;
    let due = deadlines(step.state).filter(|(time, timer)| *time <= now && !timer.is_of(gone));
    let mut due: Vec<Timer> = due.map(|(_, timer)| timer).collect();
    due.sort();
    due.dedup();
    for timer in due {
        match timer {
            Timer::TaskTimeout(id) => time_out(step, id),
            Timer::AfterResult(id) => attempt::order_stop(step, id, Cause::HungAfterResult, false),
            Timer::Astray(id) => stream::lost_its_thread(step, id),
            Timer::HandOver(id) => attempt::order_stop(step, id, Cause::ContextExhausted, false),
            Timer::StopOverdue(id) => attempt::repeat_stop(step, id),
            Timer::Resume => session::go_on_by_itself(step),
            Timer::TryMachine => hold::release(step),
            Timer::RetrySetUp => setup::retry(step),
            Timer::PauseStop(id) => attempt::order_stop(step, id, Cause::StoppedByOperator, false),
            Timer::ActOnOrders => {
                placed::act_on_due(step);
            }
            Timer::QuietOver => budget::quiet_over(step),
            Timer::BudgetTime | Timer::MayStart => {}
        }
    }
    Reply::Accepted
}

fn time_out(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(found) = step.state.attempts.get(&id) else {
        return;
    };
    let role = found.role;
    // If several tasks are in progress, the one that is over its time: each may have its own limit from the plan.
    let over = |task: &crate::ids::TaskId| task_deadline(step.state, id, task).is_some_and(|at| at <= step.now);
    let task = step.state.open_tasks(id).into_iter().find(over);
    let timeout_ms = task.map_or(0, |task| timeout_ms(step.state, id, &task));
    step.emit_attempt(id, AttemptEvent::RoleTimeout { role, attempt: id, timeout_ms });
    attempt::order_stop(step, id, Cause::TimedOut, false);
}

fn deadlines(state: &State) -> impl Iterator<Item = (Time, Timer)> {
    let over = state
        .run
        .as_ref()
        .is_none_or(|run| matches!(run.phase, RunPhase::Finished(_) | RunPhase::Paused(_) | RunPhase::Waiting(_)));
    let starts =
        state.begun().filter(move |(_, task)| !over && task.state == TaskState::Pending && task.holder.is_none());
    let backoffs = starts.filter_map(|(_, task)| task.not_before);
    let breakers = state.breakers.values().filter_map(|breaker| breaker.until);
    let attempts = state.live_attempts().flat_map(|(id, _)| attempt_deadlines(state, id));
    let resume = usage::resumes_at(state).map(|time| (time, Timer::Resume));
    let starts = backoffs.chain(breakers).chain(gate::deadlines(state)).map(|time| (time, Timer::MayStart));
    let ended = state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Finished(_) | RunPhase::Paused(_)));
    let held = hold::until(state).filter(|_| !ended).map(|time| (time, Timer::TryMachine));
    let orders = placed::next_due(state).map(|time| (time, Timer::ActOnOrders));
    let quiet = budget::quiet_until(state).filter(|_| !ended).map(|time| (time, Timer::QuietOver));
    let budgets = budget::deadlines(state).into_iter().map(|time| (time, Timer::BudgetTime));
    let set_up = setup::retry_at(state).map(|time| (time, Timer::RetrySetUp));
    starts.chain(attempts).chain(resume).chain(held).chain(orders).chain(quiet).chain(budgets).chain(set_up)
}

fn attempt_deadlines(state: &State, id: AttemptId) -> Vec<(Time, Timer)> {
    let found = &state.attempts[&id];
    let limits = &state.limits;
    if let Some(stop) = &found.stop {
        let ladder = limits.stop_grace_ms * 2 + STOP_MARGIN_MS;
        // The recipient of the order may not have been there to take it: it is repeated, at growing intervals.
        let so_far = stop.repeated_at.since_ms(stop.ordered_at).min(STOP_REPEAT_MAX_MS);
        return vec![(stop.repeated_at.plus_ms(ladder.max(so_far)), Timer::StopOverdue(id))];
    }
    let timeouts = found.tasks.iter().filter_map(|task| task_deadline(state, id, task));
    let mut all: Vec<_> = timeouts.map(|time| (time, Timer::TaskTimeout(id))).collect();
    if let (AttemptPhase::Running, Some(since)) = (found.phase, found.idle_since) {
        all.push((since.plus_ms(limits.after_result_ms), Timer::AfterResult(id)));
    }
    all.extend(session::pause_stop_at(state).map(|time| (time, Timer::PauseStop(id))));
    all.extend(stream::astray_at(state, id).map(|time| (time, Timer::Astray(id))));
    all.extend(stream::hand_over_at(state, id).map(|time| (time, Timer::HandOver(id))));
    all
}

/// When a task in progress exceeds its time; `None` while it waits for a person or its claim is being proven.
fn task_deadline(state: &State, id: AttemptId, task_id: &crate::ids::TaskId) -> Option<Time> {
    let task = state.tasks.get(task_id)?;
    let waits = task.is_being_proven() || state.open_question(task_id).is_some();
    if task.holder != Some(id) || task.state != TaskState::InProgress || waits {
        return None;
    }
    Some(task.started_at?.plus_ms(task.waited_ms).plus_ms(timeout_ms(state, id, task_id)))
}

fn timeout_ms(state: &State, id: AttemptId, task: &crate::ids::TaskId) -> u64 {
    let role = state.attempts.get(&id).map_or_else(Default::default, |attempt| attempt.role);
    // The task's own timeout is for its developer; a reviewer has that of its role.
    let own = state.plan_task(task).and_then(|task| task.timeout_ms).filter(|_| !role.reviews());
    own.unwrap_or_else(|| state.limits.timeout_for(role))
}
