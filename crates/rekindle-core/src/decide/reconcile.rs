//! When memory and disk disagree, the disk wins.

use super::{Reply, Turn};
use crate::event::Body;
use crate::ids::{Epoch, TaskId};
use crate::state::{Inspection, RunPhase, TaskState};

/// The look at the disk between two waves.
pub(super) fn disk_inspected(turn: &mut Turn<'_>, missing: Vec<(TaskId, Vec<String>)>) -> Reply {
    if turn.state.run.as_ref().is_none_or(|run| run.inspection != Inspection::Asked) {
        return Reply::Already;
    }
    turn.emit_run(Body::DiskInspected { missing: u32::try_from(missing.len()).unwrap_or(u32::MAX) });
    reopen_missing(turn, missing);
    Reply::Accepted
}

/// Complete tasks whose artifacts are gone are open again.
pub(super) fn reopen_missing(turn: &mut Turn<'_>, missing: Vec<(TaskId, Vec<String>)>) {
    let over = turn.state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Finished(_)));
    for (id, paths) in missing {
        if over || turn.state.tasks.get(&id).is_none_or(|task| task.state != TaskState::Complete) {
            continue;
        }
        let reason = format!("it was complete, but {} is no longer on disk", paths.join(", "));
        let event_type = "artifacts_missing".to_owned();
        turn.emit_task(&id, Body::StateReconciled { event_type, detail: reason.clone() });
        reopen(turn, &id, reason, true);
    }
}

/// Opens an ended task again with a new epoch, so that nothing late from before counts.
pub(super) fn reopen(turn: &mut Turn<'_>, id: &TaskId, reason: String, reset_attempts: bool) {
    let epoch = Epoch(turn.state.tasks[id].epoch.0 + 1);
    let about = super::About { attempt: None, task: Some(id.clone()), epoch: Some(epoch) };
    turn.emit(about, Body::TaskReopened { reason, reset_attempts });
}
