//! How sleep of the machine, a reboot and a changed wall clock change the state. Limits on agents count the time awake: an
//! agent that slept with the machine has not used its time. What a provider names by the wall clock (a reset) follows the
//! wall clock.

use crate::event::{Body, ClockSeen, Event, PauseReason, RunEvent};
use crate::ids::TaskId;
use crate::state::{RunPhase, State, TaskState};
use crate::time::Time;

pub(super) fn moved(state: &mut State, now: Time, seen: &ClockSeen) {
    let slept_ms = seen.slept_since(&state.clocks);
    let wall_moved_ms = seen.wall_ahead_ms.saturating_sub(state.clocks.wall_ahead_ms);
    state.clocks = seen.clone();
    if slept_ms > 0 {
        give_back(state, slept_ms);
    }
    if wall_moved_ms != 0 {
        follow_wall(state, now, wall_moved_ms);
    }
}

/// A new boot starts with the wall clock, which may have been set meanwhile: how much time passed since the last event is
/// unknown, and nothing was awake in it. What is found of an old attempt decides its end, not a limit.
pub(super) fn rebooted(state: &mut State, event: &Event) {
    let Body::Run(RunEvent::CoordinatorStarted { boot_id, .. }) = &event.body else { return };
    let before = state.coordinator.as_ref().map_or("", |known| &known.boot_id);
    if !before.is_empty() && !boot_id.is_empty() && before != *boot_id {
        give_back(state, event.time.since_ms(state.last_time));
    }
}

/// Moves every start of a measurement by the time that the machine slept.
fn give_back(state: &mut State, slept_ms: u64) {
    let later = |time: &mut Time| *time = time.plus_ms(slept_ms);
    for attempt in state.attempts.values_mut().filter(|attempt| attempt.is_live()) {
        attempt.idle_since.as_mut().map(later);
        attempt.cli_session.preparing.as_mut().map(later);
        attempt.cli_session.status_asked.as_mut().map(later);
        if let Some(astray) = &mut attempt.cli_session.astray {
            later(&mut astray.since);
        }
        if let Some(stop) = &mut attempt.stop {
            later(&mut stop.ordered_at);
            later(&mut stop.repeated_at);
        }
    }
    super::budget::slept(state, slept_ms);
    if let Some(run) = state.run.as_mut().filter(|run| matches!(run.phase, RunPhase::Pausing(_))) {
        run.paused_at.as_mut().map(later);
    }
    // A question's whole wait is given back when it is answered.
    let asked: Vec<TaskId> =
        state.questions.values().filter(|asked| asked.answer.is_none()).map(|asked| asked.task.clone()).collect();
    for (id, task) in &mut state.tasks {
        if task.state == TaskState::InProgress && !asked.contains(id) {
            task.waited_ms = task.waited_ms.saturating_add(slept_ms);
        }
    }
}

/// Moves waits for a reset that was named by the wall clock. A wait that is over stays over: the wall clock has shown that
/// reset, whatever it shows next, and agents that started on the account since then started in time.
fn follow_wall(state: &mut State, now: Time, ahead_ms: i64) {
    let moved = |time: Time| Time(time.0.saturating_sub(ahead_ms));
    for gate in state.gates.values_mut().filter(|gate| gate.reset.is_some()) {
        let Some(limit) = gate.limit_until().filter(|until| *until > now).map(moved) else { continue };
        gate.until = Some(limit).max(gate.overloaded_until);
        gate.limit_until = Some(limit).filter(|_| gate.overloaded_until.is_some());
    }
    let waits = |phase| {
        matches!(phase, RunPhase::Pausing(PauseReason::UsageLimit) | RunPhase::Waiting(PauseReason::UsageLimit))
    };
    let named = state.usage.tried.is_some();
    if let Some(run) = state.run.as_mut().filter(|run| named && waits(run.phase)) {
        run.resumes_at = run.resumes_at.map(|at| if at > now { moved(at) } else { at });
    }
}
