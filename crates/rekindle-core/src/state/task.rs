//! A task of the run: how it stands, who holds it, and its way through review.

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
    /// Not begun, or waiting for another attempt.
    Pending,
    /// An agent is at it, or its claim is being proven.
    InProgress,
    /// Its agent has left and a person's answer is missing.
    Blocked,
    /// Proven.
    Complete,
    /// Its attempts are used up.
    Failed,
    /// An operator left it out.
    Skipped,
}

impl TaskState {
    /// Whether nothing more happens to it without an operator or the disk reopening it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Skipped)
    }

    /// Whether tasks behind it may begin.
    pub fn unblocks(self) -> bool {
        matches!(self, Self::Complete | Self::Skipped)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its place in the plan.
    pub index: usize,
    pub state: TaskState,
    /// The newest epoch it was given to; nothing older counts.
    pub epoch: Epoch,
    /// Attempts that count.
    pub attempts: u32,
    /// Attempts that have begun it, whether they count or not, of every role: they are numbered by it for people.
    #[serde(default)]
    pub begun: u32,
    /// The attempt that holds it: working on it, or with it in its list.
    pub holder: Option<AttemptId>,
    /// When the current attempt at it began.
    pub started_at: Option<Time>,
    /// Time of that attempt spent waiting for a person, which does not count.
    pub waited_ms: u64,
    /// Backoff.
    pub not_before: Option<Time>,
    /// Why the last attempt at it ended.
    pub last_cause: Option<Cause>,
    /// Why it failed, was skipped or reopened, in words.
    pub reason: Option<String>,
    /// The outcome in the agent's words.
    pub result: Option<String>,
    /// Complete on an agent's word alone.
    pub unproven: bool,
    /// Where its agent said it stood.
    pub checkpoint: Option<Checkpoint>,
    /// The parts that its agent broke it into, in order.
    #[serde(default)]
    pub split: Vec<String>,
    /// A claim that is being proven.
    pub claim: Option<Claim>,
    pub evidence: Option<Evidence>,
    /// Coordinator crashes that took its agent with them.
    pub crashes: u32,
    pub ended_at: Option<Time>,
    /// How many tasks wait for it, directly or not.
    pub unblocks: u32,
    /// The newest attempt at each stage.
    #[serde(default)]
    pub last_attempts: LastAttempts,
    /// Compactions of agents while they were at it.
    #[serde(default)]
    pub compactions: u32,
    /// How many of them were before the current attempt at it.
    #[serde(default)]
    pub compactions_before: u32,
    /// It ended long ago: only what decisions need is kept, and its row says the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// What its agents have spent.
    #[serde(default, skip_serializing_if = "Spending::is_none")]
    pub spending: Spending,
    /// What belongs to review, environments, parts and merges.
    #[serde(default)]
    #[serde(rename = "way")]
    pub workflow: Workflow,
}

/// A task's way through the stages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workflow {
    pub stage: Stage,
    /// Attempts of critics that count.
    pub review_tries: u32,
    /// Attempts of auditors that count.
    pub audit_tries: u32,
    /// Its critics failed too often: nobody asks for another.
    pub bypassed: bool,
    /// Why its work was sent back, until it is proven again.
    pub rework: Option<Rework>,
    /// How often its work was sent back.
    pub reworks: u32,
    /// What reviewers said, newest last.
    pub verdicts: Vec<GivenVerdict>,
    /// Its work is accepted and on its way into the run's branch.
    pub merging: Option<Merging>,
    /// How often its accepted work did not fit what others had merged.
    pub conflicts: u32,
    /// The commit of the run's branch that holds its work.
    pub merged: Option<String>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// The parts that it was split into, in order.
    pub parts: Vec<TaskId>,
    /// It repairs what the plan's health commands found.
    pub health: bool,
    /// It was complete and is looked at again.
    pub validating: bool,
    /// What its checks said before anybody worked on it.
    pub baseline: Option<Baseline>,
    /// No agent reported its work: its checks or a person showed that it is done.
    pub unreported: bool,
    /// Compactions and timeouts that show it to be too large.
    pub too_large: u32,
    /// A person decided how it ended: nothing but a person changes that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
    /// The plan no longer has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// A person added it to the run; the plan's file does not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// The workspace that holds its work, where the plan would name another one by now.
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
    /// Whether a claim or the acceptance of its work is under way: nothing else is decided about it meanwhile.
    pub fn is_being_proven(&self) -> bool {
        self.claim.is_some() || self.workflow.merging.is_some()
    }

    /// Whether its parts are worked on in its place.
    pub fn is_in_parts(&self) -> bool {
        !self.workflow.parts.is_empty() && self.holder.is_none() && !self.state.is_terminal()
    }

    /// Attempts that count at the stage where it stands.
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

    /// The newest attempt at the stage where it stands.
    pub fn last_attempt(&self) -> Option<AttemptId> {
        self.last_attempts.at(self.workflow.stage)
    }

    /// Whether it was split and nobody has looked at the whole since.
    pub fn waits_for_parts(&self) -> bool {
        let free = self.state == TaskState::Pending && self.holder.is_none() && self.workflow.stage == Stage::Implement;
        free && !self.workflow.parts.is_empty()
    }

    /// Whether its work has begun and is not through: others leave its files alone.
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
    /// The verdict that is being proven, where it is a reviewer's.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The checks were changed since it was made: what the old ones say decides nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
}
