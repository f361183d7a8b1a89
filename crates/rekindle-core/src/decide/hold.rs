//! Holds on new starts when the machine is short of something. Running agents continue, no task pays for it, and the run
//! resumes on its own.
//!
//! There are two kinds of hold. One that started with a check of the machine ends with the next check that finds room. One
//! that started with a refusal ends after a while, because only trying can tell: then one thing is started at a time until
//! one has worked.

use super::{OpenStep, Reply, attempt, session};
use crate::cause::Cause;
use crate::event::{Held, MachineEvent, PauseReason};
use crate::ids::AttemptId;
use crate::input::Refused;
use crate::refusal::Refusal;
use crate::state::{AttemptPhase, RunPhase, State};
use crate::time::Time;

/// Wait after the first refusal: a process or a descriptor is often free again in a moment.
const FIRST_MS: u64 = 1_000;

/// Longest wait between two retries: a machine that has been fixed continues within a minute.
const LONGEST_MS: u64 = 60_000;

/// Doublings from the first wait to the longest.
const DOUBLINGS: u32 = 6;

/// Refusals in a row after which a person is alerted: a single one may be over before anybody has read about it.
const ALERT_STRIKES: u32 = 2;

/// Shortest time between two alerts about the machine, however often it runs out of something.
const ALERT_EVERY_MS: u64 = 10 * 60 * 1000;

/// Refusals in a row after which a run that must not wait is paused if no agent is running.
const PAUSE_STRIKES: u32 = 4;

pub(super) fn pressure_seen(step: &mut OpenStep<'_>, short: Option<Refusal>) -> Reply {
    let by_look = step.state.held.is_some() && step.state.hold.until.is_none();
    match short {
        Some(refusal) if !by_look => begin(step, refusal, None),
        None if by_look => release(step),
        _ => return Reply::Already,
    }
    Reply::Accepted
}

/// The machine had no room for something.
pub(super) fn refused(step: &mut OpenStep<'_>, what: Refused, refusal: Refusal) -> Reply {
    let told = match &what {
        Refused::Attempt(id) => {
            if !step.state.attempts.get(id).is_some_and(|found| found.is_live()) {
                return Reply::Already;
            }
            attempt::end_once_proven(step, *id, Cause::Machine(refusal.into()), true);
            return Reply::Accepted;
        }
        Refused::Checks(task, epoch) => {
            let claim = step.state.tasks.get(task).and_then(|task| task.claim.as_ref());
            claim.filter(|claim| claim.epoch == *epoch).map(|_| format!("the checks of {task} could not be run"))
        }
        Refused::Merge(task, epoch) => {
            let merging =
                step.state.tasks.get(task).filter(|task| task.workflow.merging.is_some() && task.epoch == *epoch);
            merging.map(|_| format!("the work of {task} could not be merged"))
        }
        Refused::Health => step.state.health.checking.then(|| "the plan's health commands could not be run".to_owned()),
    };
    let Some(told) = told else { return Reply::Already };
    strike(step, Refusal { reason: format!("{told}: {}", refusal.reason), hint: refusal.hint });
    Reply::Accepted
}

/// Something was refused: starts are held for a period that grows. What is refused during a hold is part of it.
pub(super) fn strike(step: &mut OpenStep<'_>, refusal: Refusal) {
    if step.state.held.is_some() {
        return;
    }
    let wait_ms = (FIRST_MS << step.state.hold.strikes.min(DOUBLINGS)).min(LONGEST_MS);
    let until = step.now.plus_ms(wait_ms);
    begin(step, refusal, Some(until));
}

/// The machine had no memory left and the kernel killed an agent: the next agents are started one at a time.
pub(super) fn out_of_memory(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(ended) = step.state.attempts.get(&id) else { return };
    let reason = format!("the machine ran out of memory, and the kernel killed `{}`", ended.agent);
    let hint = Cause::OutOfMemory { cap: None }.remedy(&ended.cli).unwrap_or_default();
    strike(step, Refusal { reason, hint });
}

fn begin(step: &mut OpenStep<'_>, Refusal { reason, hint }: Refusal, until: Option<Time>) {
    let hold = &step.state.hold;
    let lasts = until.is_none() || hold.strikes + 1 >= ALERT_STRIKES;
    let alerts = lasts && hold.alerted_at.is_none_or(|at| step.now.since_ms(at) >= ALERT_EVERY_MS);
    step.emit_run(MachineEvent::StartsHeld(Held { reason, hint, until, alerts }));
}

/// Ends the hold, because the machine has room or is to be retried.
pub(super) fn release(step: &mut OpenStep<'_>) {
    if step.state.held.is_none() {
        return;
    }
    step.emit_run(MachineEvent::StartsReleased {});
    let over = RunPhase::Waiting(PauseReason::SystemError);
    if step.state.run.as_ref().is_some_and(|run| run.phase == over) {
        session::go_on_by_itself(step);
    }
}

/// Ends a hold that started with a refusal: a new coordinator has descriptors of its own and starts afresh, and what was
/// refused may have succeeded.
pub(super) fn forget_refusal(step: &mut OpenStep<'_>) {
    if step.state.hold.until.is_some() {
        release(step);
    }
}

/// When a machine that refused something is retried.
pub(super) fn until(state: &State) -> Option<Time> {
    state.hold.until.filter(|_| state.held.is_some())
}

/// Whether a hold that leaves no agent running is worth a pause: one that is retried within a minute is not, unless the run
/// must not wait at all.
pub(super) fn lasts(state: &State) -> bool {
    let spent = state.limits.no_wait && state.hold.strikes >= PAUSE_STRIKES;
    state.held.is_some() && (state.hold.until.is_none() || spent)
}

/// How many attempts may start now, given the free slots: one after a refusal, until something has worked.
pub(super) fn allowed(state: &State, free: usize) -> usize {
    if state.hold.strikes == 0 {
        return free;
    }
    let starting = state.live_attempts().any(|(_, attempt)| attempt.phase == AttemptPhase::Starting);
    if starting { 0 } else { free.min(1) }
}
