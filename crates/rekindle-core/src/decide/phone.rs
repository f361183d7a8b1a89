//! What a person orders from elsewhere. Each message is taken once, however often its channel delivers it.

use super::{OpenStep, Reply, operator, session};
use crate::event::{PauseReason, PersonEvent};
use crate::phone::{PhoneMessage, PhoneOrder, PhoneWord};
use crate::state::RunPhase;

pub(super) fn ordered(step: &mut OpenStep<'_>, from: PhoneMessage, order: PhoneOrder) -> Reply {
    let word = match order {
        // An answered question takes no second answer, so this happens once.
        PhoneOrder::Answer { id, text } => return operator::answer(step, id, text, Some(from.via)),
        PhoneOrder::Pause => PhoneWord::Pause,
        PhoneOrder::Resume => PhoneWord::Resume,
    };
    if step.state.steering.from_phone.contains(&from) {
        return Reply::Already;
    }
    let reply = match word {
        PhoneWord::Pause => session::pause(step, PauseReason::Operator),
        PhoneWord::Resume => resumed(step),
    };
    if !matches!(reply, Reply::Refused { .. }) {
        let PhoneMessage { via, message } = from;
        step.emit_run(PersonEvent::PhoneOrder { via, message, word });
    }
    reply
}

/// A starting coordinator resumes a run: either it was this one, or the run was never paused.
fn resumed(step: &OpenStep<'_>) -> Reply {
    match step.state.run.as_ref().map(|run| run.phase) {
        Some(RunPhase::Created | RunPhase::Running | RunPhase::Waiting(_)) => Reply::Accepted,
        Some(RunPhase::Pausing(_) | RunPhase::Paused(_)) => {
            Reply::Refused { reason: "the run is still being paused: try again when it is".to_owned() }
        }
        Some(RunPhase::Finished(_)) | None => Reply::Refused { reason: "the run is finished".to_owned() },
    }
}
