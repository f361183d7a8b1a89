//! What rows show of a person's interventions in a run: messages and their delivery, tasks that are held, pending orders.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, TaskId};
use crate::state::State;
use crate::steering::{How, TellStage, Undoable};
use crate::time::Time;

/// A message to the agent of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldRow {
    /// Its number within the run.
    pub number: u64,
    pub text: String,
    pub at: Time,
    /// It says what the person who held the task changed.
    #[serde(default)]
    pub given_back: bool,
    /// The attempt that received it; `None` means that it is still waiting.
    #[serde(default)]
    pub attempt: Option<AttemptId>,
    #[serde(default)]
    pub delivered_at: Option<Time>,
    #[serde(default)]
    pub how: Option<How>,
}

impl ToldRow {
    /// Its delivery state, in a few words.
    pub fn standing(&self) -> &'static str {
        match (self.how, self.attempt) {
            (Some(How::Message), _) => "delivered while its agent ran",
            (Some(How::Prompt), _) => "delivered with its agent's prompt",
            (None, Some(_)) => "on its way to its agent",
            (None, None) => "waits for its agent's next brief",
        }
    }
}

/// A task that a person holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedRow {
    /// The person's program.
    pub pid: u32,
    pub since: Time,
}

/// An order that can still be taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedRow {
    pub number: u64,
    pub due: Time,
    pub order: Undoable,
}

pub(super) fn told(state: &State, task: &TaskId) -> Vec<ToldRow> {
    let row = |(number, tell): (u64, &crate::steering::Tell)| {
        let (attempt, delivered_at, how) = match tell.stage {
            TellStage::Waiting => (None, None, None),
            TellStage::InPrompt { attempt } | TellStage::Sent { attempt, .. } => (Some(attempt), None, None),
            TellStage::Delivered { attempt, how, at, .. } => (Some(attempt), Some(at), Some(how)),
        };
        let (text, at, given_back) = (tell.text.clone(), tell.at, tell.given_back);
        ToldRow { number, text, at, given_back, attempt, delivered_at, how }
    };
    state.tells_of(task).map(row).collect()
}

pub(super) fn attached(state: &State, task: &TaskId) -> Option<AttachedRow> {
    let held = state.steering.attached.get(task)?;
    Some(AttachedRow { pid: held.by.pid, since: held.since })
}

pub(super) fn placed(state: &State) -> Vec<PlacedRow> {
    let placed = state.steering.placed.iter();
    placed.map(|(number, placed)| PlacedRow { number: *number, due: placed.due, order: placed.order.clone() }).collect()
}

/// Why a task that a person holds is waiting.
pub(super) fn held_for_you(state: &State, task: &TaskId) -> Option<String> {
    let held = state.steering.attached.get(task)?;
    Some(format!("held for you: rekindle attach, process {}", held.by.pid))
}

/// Tasks whose rows an event changed because the delivery of messages to their agents advanced.
pub(super) fn tasks_with_tells_of(state: &State, attempt: AttemptId) -> impl Iterator<Item = TaskId> {
    state.steering.tells.values().filter(move |tell| state.is_for(tell, attempt)).map(|tell| tell.task.clone())
}
