//! When a run is over or paused, or what it waits for.

use std::collections::BTreeSet;

use super::schedule::{Occupied, validation_open};
use super::{OpenStep, budget, gate, hold, preflight, session};
use crate::event::{Finish, Outcome, PauseReason, RunEvent};
use crate::ids::{AttemptId, TaskId};
use crate::state::{Attempt, AttemptPhase, RunPhase, State, Task, TaskState};

/// What a run that is not over waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    Working,
    /// A backoff or a breaker.
    Time,
    /// Only the reset of an account's limit, or the end of the quiet hours.
    Reset,
    /// Only a person's answer.
    Person,
    /// Nothing: everything has ended or can no longer be reached.
    Over,
}

pub fn standstill(state: &State) -> Standstill {
    let at_work = state.attempts.values().any(|attempt| attempt.phase != AttemptPhase::Ended)
        || state.begun().any(|(_, task)| task.is_being_proven())
        || state.health.checking
        || preflight::is_open(state)
        || state.usage.asking;
    if at_work {
        let only_person = state.live_attempts().all(|(id, _)| {
            let open = state.open_tasks(id);
            !open.is_empty() && open.iter().any(|task| state.open_question(task).is_some())
        });
        let all_live = state.attempts.iter().all(|(id, attempt)| {
            attempt.is_live() || attempt.phase == AttemptPhase::Ended || waits_for_set_up(state, *id)
        });
        let proving = state.begun().any(|(id, task)| task.is_being_proven() && !state.claim_waits_for_set_up(id))
            || state.health.checking
            || preflight::is_open(state)
            || state.usage.asking;
        if !(only_person && all_live && !proving) {
            return Standstill::Working;
        }
    }
    let unreachable = unreachable(state);
    let open = || state.begun().chain(state.untouched());
    let waits = |(id, task): &(&TaskId, &Task)| {
        task.state == TaskState::Pending && task.holder.is_none() && !unreachable.contains(*id)
    };
    let waiting = || open().filter(waits).map(|(id, _)| id);
    // Agents that wait for an answer may hold every slot, a name or an artifact, and so may a task of an earlier wave: then
    // nothing behind them begins however ready it is.
    let slot_free = state.live_attempts().count() < state.limits.max_agents as usize;
    let (taken, wave, validating) = (Occupied::of(state), open_wave(state), validation_open(state));
    let refused = |id: &TaskId| {
        let now = state.last_time;
        gate::waits_for_person(state, id, now) || state.waits_for_preparing(id) || !budget::admits(state, id, now)
    };
    let held_back = |id: &TaskId| {
        let later = state.run.as_ref().is_some_and(|run| run.plan.explicit_waves)
            && state.plan_task(id).is_some_and(|planned| planned.wave > wave);
        let behind = validating && !state.tasks[id].workflow.validating;
        later || behind || refused(id) || taken.conflicts(state, id) || !state.blockers_met(id)
    };
    if slot_free {
        let mut next = waiting().filter(|id| !held_back(id)).peekable();
        let reset = |id: &TaskId| gate::waits_for_reset(state, id, state.last_time);
        if next.peek().is_some() {
            let later = budget::is_quiet(state, state.last_time) || next.all(reset);
            return if later && !at_work { Standstill::Reset } else { Standstill::Time };
        }
    }
    // The question about credentials may belong to a task that has been left out since.
    let blocked = state.begun().any(|(_, task)| task.state == TaskState::Blocked);
    let held =
        state.steering.attached.keys().any(|id| state.tasks.get(id).is_some_and(|task| !task.state.is_terminal()));
    if at_work || blocked || waiting().any(refused) {
        return Standstill::Person;
    }
    // A person is working on it, and it comes back without an order: leaving now would also miss the end of a program that
    // is gone.
    if held {
        return Standstill::Working;
    }
    if waiting().next().is_some() { Standstill::Time } else { Standstill::Over }
}

/// Whether the end of an attempt waits for nothing but a worktree in which its claims can be proven.
fn waits_for_set_up(state: &State, id: AttemptId) -> bool {
    let open = state.open_tasks(id);
    let mut proving = open.iter().filter(|task| state.tasks[*task].is_being_proven()).peekable();
    let exited = state.attempts.get(&id).is_some_and(|attempt| attempt.phase == AttemptPhase::Exited);
    exited && proving.peek().is_some() && proving.all(|task| state.claim_waits_for_set_up(task))
}

/// Pending tasks that depend on a failed one, directly or not.
pub(crate) fn unreachable(state: &State) -> BTreeSet<TaskId> {
    let mut found: BTreeSet<TaskId> = BTreeSet::new();
    let Some(run) = &state.run else { return found };
    if !state.has_failed() {
        return found;
    }
    // Document order is not dependency order, so this repeats until nothing is added; plans are shallow.
    loop {
        let before = found.len();
        for (id, task) in state.tasks.iter().filter(|(_, task)| task.state == TaskState::Pending) {
            let blocked_by = run.plan.tasks.get(task.index).map(|planned| planned.blocked_by.as_slice());
            let dead = |blocker: &TaskId| {
                found.contains(blocker) || state.tasks.get(blocker).is_some_and(|task| task.state == TaskState::Failed)
            };
            let mut before_it = blocked_by.unwrap_or_default().iter().chain(&task.workflow.parts);
            if !found.contains(id) && before_it.any(dead) {
                found.insert(id.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The lowest wave with a task that has not ended and can still be reached; later waves wait for it.
pub(super) fn open_wave(state: &State) -> u32 {
    let unreachable = unreachable(state);
    let Some(run) = &state.run else { return 0 };
    let open = |(id, task): &(&TaskId, &Task)| !task.state.is_terminal() && !unreachable.contains(*id);
    let planned = state.tasks.iter().filter(open).filter_map(|(_, task)| run.plan.tasks.get(task.index));
    planned.map(|task| task.wave).min().unwrap_or(run.wave)
}

pub(super) fn finish_if_over(step: &mut OpenStep<'_>) {
    let Some(phase) = step.state.run.as_ref().map(|run| run.phase) else {
        return;
    };
    let busy = step.state.attempts.values().any(|attempt| attempt.phase != AttemptPhase::Ended);
    // A claim that waits for a person is proven when the run goes on.
    let over = |(id, attempt): (&AttemptId, &Attempt)| {
        attempt.phase == AttemptPhase::Ended || waits_for_set_up(step.state, *id)
    };
    let may_pause = step.state.attempts.iter().all(over);
    match phase {
        RunPhase::Pausing(_) if may_pause => step.emit_run(RunEvent::RunPaused {}),
        // What can still be taken back may change how it ends.
        RunPhase::Running if !step.state.steering.placed.is_empty() => {}
        RunPhase::Running => match standstill(step.state) {
            Standstill::Over => finish(step),
            Standstill::Person | Standstill::Reset if step.state.limits.no_wait => {
                session::pause(step, PauseReason::NoWait);
                finish_if_over(step);
            }
            Standstill::Person if budget::is_handed_back(step.state) && !busy => {
                session::pause(step, PauseReason::Budget);
                finish_if_over(step);
            }
            Standstill::Time if hold::lasts(step.state) && !busy => session::pause_for_want(step),
            Standstill::Reset if gate::pause_for_reset(step) => finish_if_over(step),
            Standstill::Working | Standstill::Time | Standstill::Reset | Standstill::Person => {}
        },
        RunPhase::Waiting(_) if step.state.limits.no_wait => {
            session::pause(step, PauseReason::NoWait);
            finish_if_over(step);
        }
        RunPhase::Created
        | RunPhase::Pausing(_)
        | RunPhase::Paused(_)
        | RunPhase::Waiting(_)
        | RunPhase::Finished(_) => {}
    }
}

fn finish(step: &mut OpenStep<'_>) {
    let count = |state: TaskState| {
        u32::try_from(step.state.tasks.values().filter(|task| task.state == state).count()).unwrap_or(u32::MAX)
    };
    let (complete, failed, skipped) = (count(TaskState::Complete), count(TaskState::Failed), count(TaskState::Skipped));
    let unreachable = u32::try_from(unreachable(step.state).len()).unwrap_or(u32::MAX);
    let outcome = if failed + unreachable == 0 { Outcome::Complete } else { Outcome::Failed };
    step.emit_run(RunEvent::RunFinished(Finish { outcome, complete, failed, skipped, unreachable }));
}
