//! What a person said to agents, which tasks they hold, and which of their orders can still be taken back.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::State;
use crate::ids::{AttemptId, TaskId};
use crate::phone::PhoneMessage;
use crate::steering::{Attached, Placed, Tell, TellStage};

/// A person's interventions in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steering {
    /// The highest message number assigned so far.
    pub last_tell: u64,
    /// Messages by number.
    pub tells: BTreeMap<u64, Tell>,
    /// Tasks that the person holds.
    pub attached: BTreeMap<TaskId, Attached>,
    /// The highest number assigned to an order that can be undone.
    pub last_placed: u64,
    /// Orders that can still be taken back.
    pub placed: BTreeMap<u64, Placed>,
    /// Messages from phones whose orders for this run were accepted, newest last.
    pub from_phone: VecDeque<PhoneMessage>,
}

impl Steering {
    /// Whether there were no interventions; most runs are never steered.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl State {
    /// Whether a message about one task is for the agent that works on another: the same task, or a part of it.
    pub fn concerns(&self, about: &TaskId, worked_on: &TaskId) -> bool {
        let mut id = worked_on;
        loop {
            if id == about {
                return true;
            }
            match self.tasks.get(id).and_then(|task| task.workflow.parent.as_ref()) {
                Some(parent) => id = parent,
                None => return false,
            }
        }
    }

    /// Messages that no agent has received yet, oldest first.
    pub fn waiting_tells(&self) -> impl Iterator<Item = (u64, &Tell)> {
        let waiting = self.steering.tells.iter().filter(|(_, tell)| tell.stage == TellStage::Waiting);
        waiting.map(|(number, tell)| (*number, tell))
    }

    /// Messages of a task, oldest first.
    pub fn tells_of<'a>(&'a self, task: &'a TaskId) -> impl Iterator<Item = (u64, &'a Tell)> {
        let own = self.steering.tells.iter().filter(move |(_, tell)| tell.task == *task);
        own.map(|(number, tell)| (*number, tell))
    }

    /// Whether an attempt works on a task that a message is about.
    pub fn is_for(&self, tell: &Tell, attempt: AttemptId) -> bool {
        let tasks = self.attempts.get(&attempt).map(|found| found.tasks.as_slice()).unwrap_or_default();
        tasks.iter().any(|task| self.concerns(&tell.task, task))
    }
}
