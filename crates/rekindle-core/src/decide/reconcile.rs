//! When memory and disk disagree, the disk wins.

use super::{OpenStep, Reply, review};
use crate::event::{RunEvent, TaskEvent};
use crate::ids::{Epoch, TaskId};
use crate::input::Noted;
use crate::role::Role;
use crate::state::{Inspection, RunPhase, State, Task, TaskState};
use crate::time::Time;

/// The inspection of the disk between two waves.
pub(super) fn disk_inspected(step: &mut OpenStep<'_>, missing: Vec<(TaskId, Vec<String>)>) -> Reply {
    if step.state.run.as_ref().is_none_or(|run| run.inspection != Inspection::Asked) {
        return Reply::Already;
    }
    step.emit_run(RunEvent::DiskInspected { missing: u32::try_from(missing.len()).unwrap_or(u32::MAX) });
    reopen_missing(step, missing);
    Reply::Accepted
}

/// Records that something outside was fixed, or is being waited for.
pub(super) fn noted(step: &mut OpenStep<'_>, noted: Noted) -> Reply {
    if step.state.run.is_none() {
        return Reply::Already;
    }
    let Noted { task, event_type, detail } = noted;
    let body = RunEvent::StateReconciled { event_type, detail };
    match task.filter(|id| step.state.tasks.contains_key(id)) {
        Some(task) => step.emit_task(&task, body),
        None => step.emit_run(body),
    }
    Reply::Accepted
}

/// Reopens complete tasks whose artifacts are gone.
pub(super) fn reopen_missing(step: &mut OpenStep<'_>, missing: Vec<(TaskId, Vec<String>)>) {
    let over = step.state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Finished(_)));
    for (id, paths) in missing {
        if over || !step.state.tasks.get(&id).is_some_and(may_be_doubted) {
            continue;
        }
        let reason = format!("it was complete, but {} is no longer on disk", paths.join(", "));
        let event_type = "artifacts_missing".to_owned();
        step.emit_task(&id, RunEvent::StateReconciled { event_type, detail: reason.clone() });
        reopen(step, &id, reason, true);
    }
}

/// Whether rekindle may find that a complete task is not complete. A person's word is final, and tasks that were removed
/// from the plan are left alone.
fn may_be_doubted(task: &Task) -> bool {
    task.state == TaskState::Complete && task.workflow.word.is_none() && !task.workflow.removed
}

/// Completions shortly before a moment that can be validated again.
pub(super) fn recent(state: &State, before: Time) -> Vec<TaskId> {
    let from = before.minus_ms(state.limits.validation_window_ms);
    let recent = state.tasks.iter().filter(|(id, task)| {
        let provable = state.plan_task(id).is_some_and(|planned| !planned.is_unproven());
        may_be_doubted(task)
            && task.workflow.parent.is_none()
            && task.ended_at.is_some_and(|at| at >= from)
            && (provable || state.reviews(Role::Auditor))
    });
    recent.map(|(id, _)| id.clone()).collect()
}

/// Validates recent completions again: their checks are run, and an auditor judges them if the plan has one.
pub(super) fn validate_recent(step: &mut OpenStep<'_>, before: Time) {
    for id in recent(step.state, before) {
        reopen(step, &id, "completed shortly before the run was interrupted: checked again".to_owned(), false);
        step.emit_task(&id, TaskEvent::ValidationStarted {});
        review::claim_for_itself(step, &id);
    }
}

/// Reopens an ended task with a new epoch, so that late reports from before do not count.
pub(super) fn reopen(step: &mut OpenStep<'_>, id: &TaskId, reason: String, reset_attempts: bool) {
    let epoch = Epoch(step.state.tasks[id].epoch.0 + 1);
    let about = super::About { attempt: None, task: Some(id.clone()), epoch: Some(epoch) };
    step.emit(about, TaskEvent::TaskReopened { reason, reset_attempts });
}
