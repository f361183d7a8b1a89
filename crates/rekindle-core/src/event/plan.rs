//! What a person changes in the plan of a run: the payloads of `plan_reloaded` and `task_edited`. They include the
//! consequences, so that replay does not depend on how those are decided today.

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::plan::{FrontMatter, PlanTask};

/// A changed plan was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanReloaded {
    /// Tasks that the plan did not have before.
    pub added: Vec<PlanTask>,
    /// Tasks whose text changed.
    pub changed: Vec<ChangedTask>,
    /// Tasks that the plan no longer has. Their work is kept.
    pub removed: Vec<TaskId>,
    pub plan: PlanHead,
}

/// A plan without its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHead {
    pub title: String,
    pub goal: String,
    pub dispatch_rules: Option<String>,
    /// They take effect with the next coordinator, whose configuration is made with them.
    pub settings: FrontMatter,
    pub explicit_waves: bool,
    /// The hash of the file's bytes.
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedTask {
    pub task: PlanTask,
    pub parts: Vec<ChangedPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
    /// Complete tasks that depend on it and are proven again when it is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<TaskId>,
}

/// What follows for the work of a task that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// It is reopened: an agent works on its new text.
    Redo,
    /// The existing work is proven by the new checks, without an agent.
    Prove,
    /// It is skipped: the plan no longer has it.
    Leave,
    /// It is complete on the word of whoever ticked it off.
    Complete,
}

/// A part of a task that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedPart {
    Title,
    Text,
    Reading,
    Role,
    Checks,
    Artifacts,
    Environments,
    BlockedBy,
    Wave,
    Agent,
    Cli,
    Timeout,
    Attempts,
    Priority,
    /// `done: yes`, or a ticked box.
    Done,
    /// It was removed before and is in the plan again.
    Restored,
    /// It was added by hand and is in the file now.
    Written,
}

impl ChangedPart {
    /// Whether it asks for different work.
    pub fn is_work(self) -> bool {
        matches!(self, Self::Title | Self::Text | Self::Reading | Self::Role | Self::Done | Self::Restored)
    }

    /// Whether the same work needs a different proof.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Checks | Self::Artifacts | Self::Environments)
    }

    /// The name that a person would use.
    pub fn words(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Text => "text",
            Self::Reading => "reading",
            Self::Role => "role",
            Self::Checks => "checks",
            Self::Artifacts => "artifacts",
            Self::Environments => "environments",
            Self::BlockedBy => "blocked by",
            Self::Wave => "wave",
            Self::Agent => "agent",
            Self::Cli => "cli",
            Self::Timeout => "timeout",
            Self::Attempts => "attempts",
            Self::Priority => "priority",
            Self::Done => "done",
            Self::Restored => "in the plan again",
            Self::Written => "now in the file",
        }
    }
}
