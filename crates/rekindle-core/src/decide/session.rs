//! The beginning of a run, of a coordinator, and of a pause: what is taken over from before.

use super::{
    About, OpenStep, Reply, attempt, health, hold, placed, preflight, reconcile, reload, report, review, steer, stream,
};
use crate::cause::Cause;
use crate::event::{
    AttemptEvent, AttemptsLost, Pause, PauseReason, PersonEvent, Recovery, Resume, RunEvent, TeamStanding,
};
use crate::ids::{AttemptId, RunId, TaskId};
use crate::input::Found;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::review::Stage;
use crate::state::{AttemptPhase, RunPhase, State, TaskState};
use crate::time::Time;

pub(super) fn run_requested(
    step: &mut OpenStep<'_>,
    id: RunId,
    plan: Box<Plan>,
    plan_path: String,
    branch: Option<String>,
) -> Reply {
    if let Some(run) = &step.state.run
        && !matches!(run.phase, RunPhase::Finished(_))
    {
        return Reply::Refused { reason: format!("run {} of plan `{}` is not finished", run.id, run.plan.name) };
    }
    step.emit_for(id, About::default(), RunEvent::RunStarted { plan, plan_path, branch });
    Reply::Accepted
}

pub(super) fn coordinator_started(
    step: &mut OpenStep<'_>,
    started: RunEvent,
    found: Vec<(AttemptId, Found)>,
    missing: Vec<(TaskId, Vec<String>)>,
) -> Reply {
    let Some(phase) = step.state.run.as_ref().map(|run| run.phase) else {
        return Reply::Refused { reason: "there is no run to coordinate".to_owned() };
    };
    let saved_at = step.state.last_time;
    step.emit_run(started);
    match phase {
        RunPhase::Created | RunPhase::Finished(_) => {}
        RunPhase::Paused(_) => {
            mend(step);
            resume(step);
        }
        RunPhase::Running | RunPhase::Pausing(_) | RunPhase::Waiting(_) => recover(step, found, saved_at),
    }
    placed::act_on_due(step);
    reconcile::reopen_missing(step, missing);
    validate(step, phase, saved_at);
    if !matches!(phase, RunPhase::Finished(_)) {
        health::order_baseline(step);
    }
    if matches!(phase, RunPhase::Created) {
        preflight::order(step);
    }
    preflight::order_again(step);
    hold::forget_refusal(step);
    Reply::Accepted
}

/// Keeps the numbers of attempts that the log has lost, so that none of their bundles is ever taken for a new attempt's.
pub(super) fn attempts_lost(step: &mut OpenStep<'_>, highest: AttemptId) -> Reply {
    let known = AttemptId(step.state.last_attempt);
    if highest <= known {
        return Reply::Already;
    }
    step.emit_run(RunEvent::AttemptsLost(AttemptsLost { known, highest }));
    Reply::Accepted
}

/// Continues a paused run: open questions to a person are announced first, then recent completions are validated again.
fn resume(step: &mut OpenStep<'_>) {
    let resumes = step.state.run.as_ref().map_or(0, |run| run.resumes);
    let recent = u32::try_from(reconcile::recent(step.state, paused_at(step)).len()).unwrap_or(u32::MAX);
    let reason = step.state.run.as_ref().and_then(|run| match run.phase {
        RunPhase::Paused(reason) | RunPhase::Waiting(reason) => Some(reason),
        RunPhase::Created | RunPhase::Running | RunPhase::Pausing(_) | RunPhase::Finished(_) => None,
    });
    step.emit_run(RunEvent::SessionResume(Resume { resume_count: resumes + 1, tasks_to_revalidate: recent, reason }));
    ask_again(step);
}

fn paused_at(step: &OpenStep<'_>) -> Time {
    step.state.run.as_ref().and_then(|run| run.paused_at).unwrap_or(step.state.last_time)
}

/// Ends a pause that ends on its own.
pub(super) fn go_on_by_itself(step: &mut OpenStep<'_>) {
    let waits = step.state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Waiting(_)));
    if waits {
        let since = paused_at(step);
        resume(step);
        reconcile::validate_recent(step, since);
    }
}

/// Validates again what was completed shortly before a pause or a crash. Not while a run waits for a reset: that happens
/// when it continues.
fn validate(step: &mut OpenStep<'_>, phase: RunPhase, saved_at: Time) {
    match phase {
        RunPhase::Paused(_) => {
            let since = paused_at(step);
            reconcile::validate_recent(step, since);
        }
        RunPhase::Running | RunPhase::Pausing(_) => reconcile::validate_recent(step, saved_at),
        RunPhase::Created | RunPhase::Waiting(_) | RunPhase::Finished(_) => {}
    }
}

/// Open questions come first after any restart.
fn ask_again(step: &mut OpenStep<'_>) {
    let open = step.state.questions.iter().filter(|(_, question)| question.answer.is_none());
    let open: Vec<_> = open.map(|(id, question)| (*id, question.task.clone(), question.text.clone())).collect();
    for (id, task, asked) in open {
        let text = format!("still waiting for an answer about {task}: {asked}");
        step.emit_task(&task, PersonEvent::PersonAlerted { text, choices: vec![format!("rekindle answer {id} TEXT")] });
    }
}

/// The last coordinator did not exit cleanly. Everything it held is settled by what was found, then the run continues.
fn recover(step: &mut OpenStep<'_>, found: Vec<(AttemptId, Found)>, saved_at: Time) {
    let (mut orphaned, mut adopted, mut finished, mut given_back) = (0, 0, 0, 0);
    let mut team = TeamStanding::default();
    for (id, what) in found {
        if !step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
            continue;
        }
        if matches!(what, Found::Lost | Found::HostLost | Found::Unreadable { .. }) {
            let begun = |task: &TaskId| step.state.tasks[task].state == TaskState::InProgress;
            given_back += step.state.open_tasks(id).into_iter().filter(begun).count();
        }
        match what {
            Found::Alive { pid, shim_pid } => {
                adopted += 1;
                step.emit_attempt(id, AttemptEvent::AgentAdopted { attempt: id, pid, shim_pid });
                steer::prompted(step, id);
                match step.state.open_tasks(id).is_empty() {
                    true => team.idle += 1,
                    false => team.working += 1,
                }
            }
            Found::Unresponsive => team.unresponsive += 1,
            Found::Finished(_) => {
                finished += 1;
                note_found(step, id, "attempt_exited", "it had ended while no coordinator was there");
            }
            Found::Lost => {
                orphaned += 1;
                orphan(step, id);
            }
            Found::HostLost => {
                orphaned += 1;
                note_found(step, id, "host_lost", "the machine was restarted under it");
            }
            Found::NeverStarted | Found::Refused(_) => {
                orphaned += 1;
                note_found(step, id, "never_started", "its process was never started");
                attempt::end_once_proven(step, id, Cause::ShimLost, false);
            }
            Found::Unreadable { reason } => {
                orphaned += 1;
                orphan(step, id);
                note_found(step, id, "bundle_unreadable", &reason);
            }
        }
    }
    mend(step);
    let to_validate = u32::try_from(reconcile::recent(step.state, saved_at).len()).unwrap_or(u32::MAX);
    // The tasks of lost attempts are handed out again as soon as their output is read.
    let mut progress = Progress::of(step.state);
    let given_back = u32::try_from(given_back).unwrap_or(u32::MAX).min(progress.in_progress);
    progress.in_progress -= given_back;
    progress.available += given_back;
    step.emit_run(RunEvent::CoordinatorRecovered(Recovery {
        orphaned_agents: orphaned,
        events_reconciled: finished + orphaned,
        adopted,
        finished,
        to_validate,
        saved_at,
        progress,
    }));
    step.emit_run(RunEvent::TeamChecked(team));
    ask_again(step);
}

/// Completes whatever a log that ends anywhere left half recorded: ended attempts whose work was not settled, and living
/// ones that were never told what to start with. A whole step is durable at once, so this is a second safety net.
fn mend(step: &mut OpenStep<'_>) {
    let exited: Vec<AttemptId> = step.state.attempts.keys().copied().collect();
    for id in exited {
        attempt::end_if_settled(step, id);
        report::go_on(step, id);
    }
    let ended = |id: AttemptId| step.state.attempts.get(&id).is_none_or(|found| found.phase == AttemptPhase::Ended);
    let stranded: Vec<TaskId> = step
        .state
        .tasks
        .iter()
        .filter(|(_, task)| {
            task.state == TaskState::InProgress && !task.is_being_proven() && task.holder.is_none_or(ended)
        })
        .map(|(id, _)| id.clone())
        .collect();
    for task in stranded {
        // A claim without a holder was made by rekindle itself: it is checked once more.
        if step.state.tasks[&task].holder.is_none() {
            review::claim_for_itself(step, &task);
        } else {
            attempt::retry_or_end(step, &task, &Cause::ShimLost, false);
        }
    }
    reopen_spent(step);
    reload::settle(step);
}

/// A log that ends inside a validation of a completion leaves a task open whose attempts are used up: the task starts again.
fn reopen_spent(step: &mut OpenStep<'_>) {
    let spent = step.state.tasks.iter().filter(|(id, task)| {
        let idle = task.state == TaskState::Pending && task.holder.is_none() && task.workflow.parts.is_empty();
        idle && task.workflow.stage == Stage::Implement && task.attempts >= step.state.attempt_limit(id)
    });
    let spent: Vec<TaskId> = spent.map(|(id, _)| id.clone()).collect();
    for id in spent {
        reconcile::reopen(step, &id, "its attempts are used up and it is open: counted anew".to_owned(), true);
    }
}

fn orphan(step: &mut OpenStep<'_>, id: AttemptId) {
    let found = &step.state.attempts[&id];
    if found.orphaned {
        return;
    }
    let role = found.role;
    step.emit_attempt(id, AttemptEvent::OrphanAgentDetected { attempt: id, role });
}

pub(super) fn note_found(step: &mut OpenStep<'_>, id: AttemptId, event_type: &str, detail: &str) {
    step.emit_attempt(id, RunEvent::StateReconciled { event_type: event_type.to_owned(), detail: detail.to_owned() });
}

/// Stops assignments and every agent. A second, more urgent order while agents are stopping takes away their grace period.
pub(super) fn pause(step: &mut OpenStep<'_>, reason: PauseReason) -> Reply {
    let at_once = reason == PauseReason::Stop;
    let Some(phase) = step.state.run.as_ref().map(|run| run.phase) else {
        return Reply::Refused { reason: "there is no run to pause".to_owned() };
    };
    match phase {
        RunPhase::Running | RunPhase::Created | RunPhase::Waiting(_) => {
            let (remaining_percent, resets_at) = (step.state.usage.left.and_then(|left| left.remaining_percent), None);
            let progress = Progress::of(step.state);
            let pause = Pause { reason, remaining_percent, resets_at, resumes_at: None, probe: 0, progress };
            step.emit_run(RunEvent::SessionPause(pause));
        }
        RunPhase::Pausing(_) if at_once => {}
        RunPhase::Pausing(_) | RunPhase::Paused(_) => return Reply::Already,
        RunPhase::Finished(_) => {
            return Reply::Refused { reason: "the run is finished".to_owned() };
        }
    }
    collect_and_stop(step, at_once);
    Reply::Accepted
}

/// Asks every agent that takes messages for a checkpoint and stops all others; an agent that was asked is stopped when it
/// has answered or had its time.
pub(super) fn collect_and_stop(step: &mut OpenStep<'_>, at_once: bool) {
    let live: Vec<AttemptId> = step.state.live_attempts().map(|(id, _)| id).collect();
    for id in live {
        if at_once || !stream::ask_for_checkpoint(step, id) {
            attempt::order_stop(step, id, Cause::StoppedByOperator, at_once);
        }
    }
}

/// When agents that were asked for a checkpoint are stopped without one.
pub(super) fn pause_stop_at(state: &State) -> Option<Time> {
    let run = state.run.as_ref().filter(|run| matches!(run.phase, RunPhase::Pausing(_)))?;
    run.paused_at.map(|at| at.plus_ms(stream::CHECKPOINT_MS))
}

/// An agent saved a checkpoint; in a pause it was kept running only for that.
pub(super) fn checkpoint_saved(step: &mut OpenStep<'_>, id: AttemptId) {
    if step.state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Pausing(_))) {
        attempt::order_stop(step, id, Cause::StoppedByOperator, false);
    }
}

pub(super) fn plan_file_changed(step: &mut OpenStep<'_>, hash: String) -> Reply {
    let known = step.state.run.as_ref().is_some_and(|run| run.changed_plan.as_ref() == Some(&hash));
    if known {
        return Reply::Already;
    }
    step.emit_run(RunEvent::PlanChanged { hash });
    Reply::Accepted
}

/// The machine is short of something and no agent is running: the run is paused until it has room again.
pub(super) fn pause_for_want(step: &mut OpenStep<'_>) {
    let (reason, progress) = (PauseReason::SystemError, Progress::of(step.state));
    let pause = Pause { reason, remaining_percent: None, resets_at: None, resumes_at: None, probe: 0, progress };
    step.emit_run(RunEvent::SessionPause(pause));
    step.emit_run(RunEvent::RunPaused {});
}
