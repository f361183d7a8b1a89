//! The beginning of a run, of a coordinator, and of a pause: what is taken over from before.

use super::{About, Reply, Turn, attempt, reconcile, report};
use crate::cause::Cause;
use crate::event::{Body, PauseReason};
use crate::ids::{AttemptId, RunId, TaskId};
use crate::input::Found;
use crate::plan::Plan;
use crate::state::{AttemptPhase, RunPhase, TaskState};

pub(super) fn run_requested(
    turn: &mut Turn<'_>,
    id: RunId,
    plan: Box<Plan>,
    plan_path: String,
    branch: Option<String>,
) -> Reply {
    if let Some(run) = &turn.state.run
        && !matches!(run.phase, RunPhase::Finished(_))
    {
        return Reply::Refused { reason: format!("run {} of plan `{}` is not finished", run.id, run.plan.name) };
    }
    turn.emit_for(id, About::default(), Body::RunStarted { plan, plan_path, branch });
    Reply::Accepted
}

pub(super) fn coordinator_started(
    turn: &mut Turn<'_>,
    started: Body,
    found: Vec<(AttemptId, Found)>,
    missing: Vec<(TaskId, Vec<String>)>,
) -> Reply {
    let Some(phase) = turn.state.run.as_ref().map(|run| run.phase) else {
        return Reply::Refused { reason: "there is no run to coordinate".to_owned() };
    };
    turn.emit_run(started);
    match phase {
        RunPhase::Created => {}
        RunPhase::Finished(_) => {}
        RunPhase::Paused(_) => resume(turn),
        RunPhase::Running | RunPhase::Pausing(_) => recover(turn, found),
    }
    reconcile::reopen_missing(turn, missing);
    Reply::Accepted
}

fn resume(turn: &mut Turn<'_>) {
    let resumes = turn.state.run.as_ref().map_or(0, |run| run.resumes);
    turn.emit_run(Body::SessionResume { resume_count: resumes + 1, tasks_to_revalidate: 0 });
}

/// The last coordinator did not leave cleanly. Everything it held is settled by what was found, then the run goes on.
fn recover(turn: &mut Turn<'_>, found: Vec<(AttemptId, Found)>) {
    let (mut orphaned, mut adopted, mut finished) = (0, 0, 0);
    for (id, what) in found {
        if !turn.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
            continue;
        }
        match what {
            Found::Alive { pid, shim_pid } => {
                adopted += 1;
                turn.emit_attempt(id, Body::AgentAdopted { attempt: id, pid, shim_pid });
            }
            Found::Unresponsive => {}
            Found::Finished(_) => {
                finished += 1;
                note_found(turn, id, "attempt_exited", "it had ended while no coordinator was there");
            }
            Found::Lost => {
                orphaned += 1;
                orphan(turn, id);
            }
            Found::HostLost => {
                orphaned += 1;
                note_found(turn, id, "host_lost", "the machine was restarted under it");
            }
            Found::NeverStarted => {
                orphaned += 1;
                note_found(turn, id, "never_started", "its process was never started");
                attempt::end(turn, id, &Cause::ShimLost, false);
            }
            Found::Unreadable { reason } => {
                orphaned += 1;
                orphan(turn, id);
                note_found(turn, id, "bundle_unreadable", &reason);
            }
        }
    }
    mend(turn);
    let events_reconciled = finished + orphaned;
    turn.emit_run(Body::CoordinatorRecovered { orphaned_agents: orphaned, events_reconciled, adopted, finished });
}

/// Takes up whatever a log that ends anywhere left half said: ended attempts whose work was not settled, and living ones that
/// were never told what to begin with. A whole step is durable at once, so this is a second net.
fn mend(turn: &mut Turn<'_>) {
    let exited: Vec<AttemptId> = turn.state.attempts.keys().copied().collect();
    for id in exited {
        attempt::end_if_settled(turn, id);
        report::go_on(turn, id);
    }
    let ended = |id: AttemptId| turn.state.attempts.get(&id).is_none_or(|found| found.phase == AttemptPhase::Ended);
    let stranded: Vec<TaskId> = turn
        .state
        .tasks
        .iter()
        .filter(|(_, task)| {
            task.state == TaskState::InProgress && task.claim.is_none() && task.holder.is_none_or(ended)
        })
        .map(|(id, _)| id.clone())
        .collect();
    for task in stranded {
        attempt::settle(turn, &task, &Cause::ShimLost, false);
    }
}

fn orphan(turn: &mut Turn<'_>, id: AttemptId) {
    let role = turn.state.attempts[&id].role;
    turn.emit_attempt(id, Body::OrphanAgentDetected { attempt: id, role });
}

fn note_found(turn: &mut Turn<'_>, id: AttemptId, event_type: &str, detail: &str) {
    turn.emit_attempt(id, Body::StateReconciled { event_type: event_type.to_owned(), detail: detail.to_owned() });
}

/// Stops assignments and every agent. A second, sharper order while agents are leaving takes their grace away.
pub(super) fn pause(turn: &mut Turn<'_>, reason: PauseReason) -> Reply {
    let at_once = reason == PauseReason::Stop;
    let Some(phase) = turn.state.run.as_ref().map(|run| run.phase) else {
        return Reply::Refused { reason: "there is no run to pause".to_owned() };
    };
    match phase {
        RunPhase::Running | RunPhase::Created => {
            turn.emit_run(Body::SessionPause { reason, remaining_percent: None, resets_at: None });
        }
        RunPhase::Pausing(_) if at_once => {}
        RunPhase::Pausing(_) | RunPhase::Paused(_) => return Reply::Already,
        RunPhase::Finished(_) => {
            return Reply::Refused { reason: "the run is finished".to_owned() };
        }
    }
    let live: Vec<AttemptId> = turn.state.live_attempts().map(|(id, _)| id).collect();
    for id in live {
        attempt::order_stop(turn, id, Cause::StoppedByOperator, at_once);
    }
    Reply::Accepted
}

pub(super) fn plan_file_changed(turn: &mut Turn<'_>, hash: String) -> Reply {
    let known = turn.state.run.as_ref().is_some_and(|run| run.changed_plan.as_ref() == Some(&hash));
    if known {
        return Reply::Already;
    }
    turn.emit_run(Body::PlanChanged { hash });
    Reply::Accepted
}

/// Nothing new is started on a machine that is short of something; whoever runs goes on.
pub(super) fn pressure_seen(turn: &mut Turn<'_>, reason: Option<String>) -> Reply {
    match (reason, turn.state.held.is_some()) {
        (Some(reason), false) => turn.emit_run(Body::StartsHeld { reason }),
        (None, true) => turn.emit_run(Body::StartsReleased {}),
        _ => return Reply::Already,
    }
    Reply::Accepted
}
