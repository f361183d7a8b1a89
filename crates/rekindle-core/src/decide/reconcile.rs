//! When memory and disk disagree, the disk wins.

use super::{Reply, Turn};
use crate::event::Body;
use crate::ids::{Epoch, TaskId};
use crate::state::{Inspection, RunPhase, TaskState};

/// Complete tasks whose artifacts are gone are open again.
pub(super) fn disk_inspected(turn: &mut Turn<'_>, missing: Vec<(TaskId, Vec<String>)>) -> Reply {
    let over = turn
        .state
        .run
        .as_ref()
        .is_none_or(|run| matches!(run.phase, RunPhase::Finished(_)));
    let asked = turn
        .state
        .run
        .as_ref()
        .is_some_and(|run| run.inspection == Inspection::Asked);
    if asked {
        turn.emit_run(Body::DiskInspected {
            missing: u32::try_from(missing.len()).unwrap_or(u32::MAX),
        });
    }
    for (id, paths) in missing {
        let Some(task) = turn.state.tasks.get(&id) else {
            continue;
        };
        if task.state != TaskState::Complete || over {
            continue;
        }
        let reason = format!(
            "it was complete, but {} is no longer on disk",
            paths.join(", ")
        );
        turn.emit_task(
            &id,
            Body::StateReconciled {
                event_type: "artifacts_missing".to_owned(),
                detail: reason.clone(),
            },
        );
        reopen(turn, &id, reason, true);
    }
    Reply::Accepted
}

/// Opens an ended task again with a new epoch, so that nothing late from before counts.
pub(super) fn reopen(turn: &mut Turn<'_>, id: &TaskId, reason: String, reset_attempts: bool) {
    let epoch = Epoch(turn.state.tasks[id].epoch.0 + 1);
    let about = super::About {
        attempt: None,
        task: Some(id.clone()),
        epoch: Some(epoch),
    };
    turn.emit(
        about,
        Body::TaskReopened {
            reason,
            reset_attempts,
        },
    );
}
