//! A task of the run: its state, which attempt holds it, and its progress in review.

use serde::{Deserialize, Serialize};

use crate::budget::Spending;
use crate::cause::Cause;
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::report::{Baseline, Channel, Checkpoint, Evidence};
use crate::review::{GivenVerdict, Merging, Rework, Stage, Verdict};
use crate::state::LastAttempts;
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not started, or waiting for another attempt.
    Pending,
    /// An agent is working on it, or its claim is being proven.
    InProgress,
    /// Its agent has left, and a person has to answer first.
    Blocked,
    /// Proven.
    Complete,
    /// Its attempts are used up.
    Failed,
    /// An operator skipped it.
    Skipped,
}

impl TaskState {
    /// Whether nothing more happens to it unless an operator or the state of the disk reopens it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Skipped)
    }

    /// Whether tasks that depend on it may start.
    pub fn unblocks(self) -> bool {
        matches!(self, Self::Complete | Self::Skipped)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its place in the plan.
    pub index: usize,
    pub state: TaskState,
    /// The newest epoch in which it was assigned; older ones do not count.
    pub epoch: Epoch,
    /// Attempts that count.
    pub attempts: u32,
    /// Attempts that have started on it, counted or not, of every role; people see attempts numbered by this.
    #[serde(default)]
    pub begun: u32,
    /// The attempt that holds it: the one working on it, or the one that has it in its list.
    pub holder: Option<AttemptId>,
    /// When the current attempt at it began.
    pub started_at: Option<Time>,
    /// Time of that attempt spent waiting for a person, which does not count.
    pub waited_ms: u64,
    /// Backoff: it does not start before this time.
    pub not_before: Option<Time>,
    /// Why the last attempt at it ended.
    pub last_cause: Option<Cause>,
    /// Why it failed, was skipped or reopened, in words.
    pub reason: Option<String>,
    /// The outcome in the agent's words.
    pub result: Option<String>,
    /// Complete on an agent's word alone.
    pub unproven: bool,
    /// The progress that its agent reported last.
    pub checkpoint: Option<Checkpoint>,
    /// The parts that its agent broke it into, in order.
    #[serde(default)]
    pub split: Vec<String>,
    /// A claim that is being proven.
    pub claim: Option<Claim>,
    pub evidence: Option<Evidence>,
    /// Coordinator crashes that ended its agent too.
    pub crashes: u32,
    pub ended_at: Option<Time>,
    /// How many tasks wait for it, directly or not.
    pub unblocks: u32,
    /// The newest attempt at each stage.
    #[serde(default)]
    pub last_attempts: LastAttempts,
    /// Compactions of agents while they worked on it.
    #[serde(default)]
    pub compactions: u32,
    /// How many of them were before the current attempt at it.
    #[serde(default)]
    pub compactions_before: u32,
    /// It ended long ago: only what decisions need is kept here; its row has the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// What its agents have spent.
    #[serde(default, skip_serializing_if = "Spending::is_none")]
    pub spending: Spending,
    /// State for review, environments, parts and merges.
    #[serde(default)]
    #[serde(rename = "way")]
    pub workflow: Workflow,
}

/// A task's progress through the stages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workflow {
    pub stage: Stage,
    /// Attempts of critics that count.
    pub review_tries: u32,
    /// Attempts of auditors that count.
    pub audit_tries: u32,
    /// Its critics failed too often, so no other one is started.
    pub bypassed: bool,
    /// Why its work was sent back, until it is proven again.
    pub rework: Option<Rework>,
    /// How often its work was sent back.
    pub reworks: u32,
    /// What reviewers said, newest last.
    pub verdicts: Vec<GivenVerdict>,
    /// Its work is accepted and is being merged into the run's branch.
    pub merging: Option<Merging>,
    /// How often its accepted work conflicted with what others had merged.
    pub conflicts: u32,
    /// The commit of the run's branch that holds its work.
    pub merged: Option<String>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// The parts that it was split into, in order.
    pub parts: Vec<TaskId>,
    /// It repairs what the plan's health commands found.
    pub health: bool,
    /// It was complete and is being checked again.
    pub validating: bool,
    /// What its checks returned before any agent worked on it.
    pub baseline: Option<Baseline>,
    /// No agent reported its work: its checks or a person showed that it is done.
    pub unreported: bool,
    /// Compactions and timeouts that indicate that it is too large.
    pub too_large: u32,
    /// A person decided how it ended; only a person can change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
    /// The plan no longer has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// A person added it to the run; the plan's file does not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// The workspace that holds its work, if the plan would name another one by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// How a person decided on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Done,
    Skipped,
    Failed,
}

impl Task {
    /// Whether a claim is being proven or its work is being accepted; nothing else is decided about it meanwhile.
    pub fn is_being_proven(&self) -> bool {
        self.claim.is_some() || self.workflow.merging.is_some()
    }

    /// Whether agents work on its parts instead of on it.
    pub fn is_in_parts(&self) -> bool {
        !self.workflow.parts.is_empty() && self.holder.is_none() && !self.state.is_terminal()
    }

    /// Attempts that count at its current stage.
    pub fn tries(&self) -> u32 {
        match self.workflow.stage {
            Stage::Implement => self.attempts,
            Stage::Review => self.workflow.review_tries,
            Stage::Audit => self.workflow.audit_tries,
        }
    }

    pub(crate) fn tries_mut(&mut self) -> &mut u32 {
        match self.workflow.stage {
            Stage::Implement => &mut self.attempts,
            Stage::Review => &mut self.workflow.review_tries,
            Stage::Audit => &mut self.workflow.audit_tries,
        }
    }

    /// The newest attempt at its current stage.
    pub fn last_attempt(&self) -> Option<AttemptId> {
        self.last_attempts.at(self.workflow.stage)
    }

    /// Whether it was split and no agent has worked on the whole since.
    pub fn waits_for_parts(&self) -> bool {
        let free = self.state == TaskState::Pending && self.holder.is_none() && self.workflow.stage == Stage::Implement;
        free && !self.workflow.parts.is_empty()
    }

    /// Whether its work has started and is not complete; other agents leave its files alone.
    pub fn is_between_stages(&self) -> bool {
        !self.state.is_terminal()
            && (self.workflow.stage != Stage::Implement
                || self.workflow.rework.is_some()
                || self.workflow.merging.is_some())
    }
}

/// A claim that is being proven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    pub attempt: AttemptId,
    pub epoch: Epoch,
    #[serde(rename = "door")]
    pub channel: Channel,
    /// The outcome in the agent's words.
    pub result: Option<String>,
    /// The verdict that is being proven, if the claim is a reviewer's.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The checks have changed since the claim was made, so the results of the old ones decide nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
}
