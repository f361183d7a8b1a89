//! Where messages to agents are, which tasks a person holds, and which orders can still be taken back.

use crate::event::{AttemptEvent, Body, Event, RunEvent, SessionEvent};
use crate::ids::{AttemptId, TaskId};
use crate::state::{State, Steering};
use crate::steering::{How, TELLS_KEPT, Tell, TellStage};

/// What an event means for messages, besides the change that it makes itself.
pub(super) fn after(state: &mut State, event: &Event) {
    if state.steering.is_empty() {
        return;
    }
    match &event.body {
        Body::Run(RunEvent::RunStarted { .. }) => state.steering = Steering::default(),
        Body::Attempt(AttemptEvent::Dispatched { attempt, .. }) => {
            let waiting: Vec<u64> = state
                .waiting_tells()
                .filter(|(_, tell)| state.is_for(tell, *attempt))
                .map(|(number, _)| number)
                .collect();
            for number in waiting {
                place(state, number, TellStage::InPrompt { attempt: *attempt });
            }
        }
        Body::Attempt(AttemptEvent::AttemptEnded { attempt, .. }) => give_back(state, *attempt),
        Body::Session(SessionEvent::AgentTold { attempt, number, tell: Some(tell), .. }) => {
            place(state, *tell, TellStage::Sent { attempt: *attempt, number: *number });
        }
        Body::Session(SessionEvent::TurnEnded { attempt, .. }) => {
            for tell in state.steering.tells.values_mut() {
                if let TellStage::Delivered { attempt: by, heard, .. } = &mut tell.stage
                    && by == attempt
                {
                    *heard = true;
                }
            }
        }
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => {}
    }
}

fn place(state: &mut State, number: u64, stage: TellStage) {
    if let Some(tell) = state.steering.tells.get_mut(&number) {
        tell.stage = stage;
    }
}

/// Keeps messages that an ended attempt never received for the next attempt.
fn give_back(state: &mut State, ended: AttemptId) {
    for tell in state.steering.tells.values_mut() {
        let lost = match tell.stage {
            TellStage::InPrompt { attempt } | TellStage::Sent { attempt, .. } => attempt == ended,
            TellStage::Waiting | TellStage::Delivered { .. } => false,
        };
        if lost {
            tell.stage = TellStage::Waiting;
        }
    }
}

/// Records what a person said to a task's agent, or that they gave the task back.
pub(super) fn told(state: &mut State, event: &Event, number: u64, text: &str, key: &str, given_back: bool) {
    let Some(task) = event.task.clone() else { return };
    let stage = TellStage::Waiting;
    let (text, key) = (text.to_owned(), key.to_owned());
    let tell = Tell { task: task.clone(), text, at: event.time, key, given_back, stage };
    state.steering.last_tell = state.steering.last_tell.max(number);
    state.steering.tells.insert(number, tell);
    let delivered = state.tells_of(&task).filter(|(_, tell)| matches!(tell.stage, TellStage::Delivered { .. }));
    let delivered: Vec<u64> = delivered.map(|(number, _)| number).collect();
    let excess = delivered.len().saturating_sub(TELLS_KEPT);
    for number in delivered.into_iter().take(excess) {
        state.steering.tells.remove(&number);
    }
}

pub(super) fn delivered(state: &mut State, event: &Event, number: u64, attempt: AttemptId, how: How) {
    place(state, number, TellStage::Delivered { attempt, how, at: event.time, heard: false });
}

/// Drops the messages of a task that ended so long ago that only decisions need it.
pub(super) fn forget(state: &mut State, task: &TaskId) {
    state.steering.tells.retain(|_, tell| tell.task != *task);
}
