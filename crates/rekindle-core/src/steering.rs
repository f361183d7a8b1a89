//! What a person and the agents of a run share beyond orders: messages, and tasks that the person has taken into their own hands.
//! Types only; what follows from them is decided in `decide/steer`.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::time::Time;

/// Longest message to an agent: some screens of text. What is longer belongs into a file that the message names.
pub const TELL_MAX_BYTES: usize = 8 * 1024;

/// Messages of one task that may wait for an agent: a person who writes more has not seen that nobody reads them.
pub const TELLS_WAITING: usize = 16;

/// Messages of one task that are kept for briefs once they were delivered; older ones stay in the log.
pub const TELLS_KEPT: usize = 32;

/// Longest list of what a person changed: the names of many files fit, a diff does not.
pub const CHANGED_MAX_BYTES: usize = 4 * 1024;

/// How long an order with a way back waits before it is acted on: long enough to see a slip, short enough to wait for.
pub const UNDO_MS: u64 = 10_000;

/// How a message reached an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// While it ran, through its input.
    Message,
    /// With the prompt that it was started with: a brief, or the words of a resumed session.
    Prompt,
}

/// A message to the agent of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tell {
    pub task: TaskId,
    /// The message; for a task that was given back, what changed meanwhile.
    pub text: String,
    pub at: Time,
    /// Tells one message from the same words sent again on purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// It says what a person did who held the task, and was written by rekindle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_back: bool,
    pub stage: TellStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum TellStage {
    Waiting,
    /// It stands in the prompt of an attempt that is being started.
    InPrompt {
        attempt: AttemptId,
    },
    /// It is on its way to a running agent.
    Sent {
        attempt: AttemptId,
        /// The message's number within the attempt.
        number: u32,
    },
    Delivered {
        attempt: AttemptId,
        how: How,
        at: Time,
        /// The agent ended a turn since, so its session holds it.
        heard: bool,
    },
}

/// A process of the person's own: an identity that no other process can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonProcess {
    /// The boot in which it lives.
    pub boot_id: String,
    pub pid: u32,
    /// The inode of its pidfd, where the kernel never reuses one.
    pub pidfd_inode: Option<u64>,
    /// When it started, in the system's unit since boot.
    pub start_ticks: u64,
    /// The namespace in which the number has meaning.
    pub pid_ns_inode: u64,
}

/// A task in the person's own hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The program that the person works in; the task is given back when it ends.
    pub by: PersonProcess,
    pub since: Time,
    /// The newest attempt at the task by then: its session is opened, and its end is what changes are counted from.
    pub attempt: AttemptId,
}

/// What a person may order with a way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Undoable {
    Skip {
        task: TaskId,
        reason: String,
    },
    /// Complete a task on the person's word.
    Complete {
        task: TaskId,
        result: Option<String>,
    },
    Answer {
        id: QuestionId,
        text: String,
    },
}

impl Undoable {
    /// The task that it is about, where it names one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Skip { task, .. } | Self::Complete { task, .. } => Some(task),
            Self::Answer { .. } => None,
        }
    }
}

/// An order that can still be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub order: Undoable,
    pub due: Time,
}
