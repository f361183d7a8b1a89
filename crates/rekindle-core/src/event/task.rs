//! What happens to a task: from its first claim to its end.

use serde::{Deserialize, Serialize};

use super::{Added, ChangedTask};
use crate::cause::Cause;
use crate::ids::{AttemptId, QuestionId};
use crate::report::{Baseline, Channel, Checkpoint, Evidence};
use crate::review::Verdict;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEvent {
    /// A task that is not in the plan's file: a part of a split, a repair, or one that a person added.
    TaskAdded(Box<Added>),
    TaskEdited(Box<ChangedTask>),
    /// An idle agent continues with another task of its name.
    TaskAssigned {
        attempt: AttemptId,
    },
    /// What a task's checks said before any work on it.
    BaselineSeen(Baseline),
    /// A task was handed over: it is in progress, and this counts as one attempt at it.
    TaskStarted {
        attempt: AttemptId,
        /// The number of the attempt.
        number: u32,
        /// The number of the attempt as people see it: uncounted attempts and those of reviewers count here. 0 in older
        /// logs.
        #[serde(default)]
        nth: u32,
    },
    /// An agent claims that a task is complete; the checks run after this is durable.
    TaskClaimed {
        attempt: AttemptId,
        #[serde(rename = "door")]
        channel: Channel,
        /// The outcome in the agent's words.
        result: Option<String>,
        /// The verdict that is being proven, if it is a reviewer's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    ChecksFinished {
        evidence: Evidence,
        passed: bool,
    },
    TaskCompleted {
        /// The outcome in the agent's words.
        result: Option<String>,
        /// There are neither artifacts nor checks: only the agent's word.
        unproven: bool,
        /// No agent reported it: its checks, or a person, showed that it is complete.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unreported: bool,
    },
    /// A person said that a task is complete: it will be, whatever its checks say, as soon as its work is merged.
    OperatorCompleted {
        /// The outcome in the person's words.
        #[serde(default)]
        result: Option<String>,
    },
    /// An agent gave up a task.
    TaskFailReported {
        attempt: AttemptId,
        reason: String,
    },
    /// An agent reported its progress.
    CheckpointSaved {
        checkpoint: Checkpoint,
    },
    /// An agent broke its task into smaller ones, which it works through in order.
    SplitProposed {
        /// The parts, in order.
        subtasks: Vec<String>,
    },
    /// A task proved too large again and again: it should be split.
    SplitSuggested {
        reason: String,
    },
    /// A task is pending again.
    TaskRequeued {
        #[serde(flatten)]
        cause: Cause,
        counted: bool,
        not_before: Option<Time>,
        /// In words, for `why`.
        reason: String,
    },
    /// A task waits for a person's answer; its agent has ended.
    TaskParked {
        question: QuestionId,
    },
    /// A task reached its limit.
    WorkflowFailed {
        reason: String,
        /// The last cause, in words.
        detail: String,
    },
    TaskSkipped {
        reason: String,
    },
    /// An ended task was reopened, with a new epoch.
    TaskReopened {
        reason: String,
        /// Whether its attempts start from zero.
        reset_attempts: bool,
    },
    /// A task that was completed shortly before a pause or a crash is validated again.
    ValidationStarted {},
}
