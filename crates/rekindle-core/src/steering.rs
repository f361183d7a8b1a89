//! What a person and the agents of a run exchange besides orders: messages, and tasks that the person has taken over. Types
//! only; the consequences are decided in `decide/steer`.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::time::Time;

/// Longest message to an agent: a few screens of text. Anything longer belongs in a file that the message names.
pub const TELL_MAX_BYTES: usize = 8 * 1024;

/// Messages for one task that may wait for an agent: a person who writes more has not noticed that no agent reads them.
pub const TELLS_WAITING: usize = 16;

/// Messages for one task that are kept for briefs after delivery; older ones stay in the log.
pub const TELLS_KEPT: usize = 32;

/// Longest list of what a person changed: it fits the names of many files, but not a diff.
pub const CHANGED_MAX_BYTES: usize = 4 * 1024;

/// How long an order that can be undone is delayed: long enough to notice a slip, short enough to wait for.
pub const UNDO_MS: u64 = 10_000;

/// How a message reached an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// While the agent ran, through its input.
    Message,
    /// In the prompt that it was started with: a brief, or the prompt of a resumed session.
    Prompt,
}

/// A message to the agent of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tell {
    pub task: TaskId,
    /// The message; for a task that was given back, what changed meanwhile.
    pub text: String,
    pub at: Time,
    /// Distinguishes one message from the same text sent again on purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// rekindle wrote it; it says what the person who held the task did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_back: bool,
    pub stage: TellStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum TellStage {
    Waiting,
    /// It is in the prompt of an attempt that is being started.
    InPrompt {
        attempt: AttemptId,
    },
    /// It is being sent to a running agent.
    Sent {
        attempt: AttemptId,
        /// The message's number within the attempt.
        number: u32,
    },
    Delivered {
        attempt: AttemptId,
        how: How,
        at: Time,
        /// The agent has ended a turn since, so its session contains the message.
        heard: bool,
    },
}

/// A process of the person, identified so that no other process can be mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonProcess {
    /// The boot in which it lives.
    pub boot_id: String,
    pub pid: u32,
    /// The inode of its pidfd, on kernels that never reuse one.
    pub pidfd_inode: Option<u64>,
    /// When it started, in the system's unit since boot.
    pub start_ticks: u64,
    /// The namespace in which the number has meaning.
    pub pid_ns_inode: u64,
}

/// A task that the person has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The program that the person works in; the task is given back when it ends.
    pub by: PersonProcess,
    pub since: Time,
    /// The newest attempt at the task by then: its session is opened, and changes are counted from its end.
    pub attempt: AttemptId,
}

/// Orders that a person can undo.
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
    /// The task that it is about, if it names one.
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
