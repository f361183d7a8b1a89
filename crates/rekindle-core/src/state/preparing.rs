//! What precedes the work on a task: a worktree that is set up, and checks that can run. This state holds the questions to a
//! person about either, and which tasks wait for the answer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::State;
use crate::ids::{QuestionId, TaskId};
use crate::plan::PlanTask;
use crate::time::Time;

/// The answers to a question about a set-up or about checks that cannot run; only the first one means another attempt.
pub const RETRY: &str = "try it again";
pub const WITHOUT: &str = "go on without the set-up";
pub const STOP: &str = "stop the run";

/// What is known of set-ups and of the pre-flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preparing {
    /// Tasks whose worktrees could not be set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupWait>,
    /// A person decided to continue without a set-up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without: bool,
    #[serde(skip_serializing_if = "Preflight::is_none")]
    pub preflight: Preflight,
    /// Tasks with checks that cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Asked>,
}

/// A set-up that failed: a person is asked, and meanwhile it is retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupWait {
    pub asked: Asked,
    /// Failures in a row.
    pub failures: u32,
    /// When one of the tasks retries.
    pub retry_at: Time,
    /// The task that retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrying: Option<TaskId>,
}

/// Tasks that wait for the answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub question: QuestionId,
    pub tasks: BTreeSet<TaskId>,
}

/// The state of a run's pre-flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preflight {
    /// There is none, as in runs of earlier versions.
    #[default]
    None,
    /// The checks are being tried; nothing starts before their results are known.
    Ordered,
    Done,
    /// It is tried again when the run resumes.
    Again,
}

impl Preflight {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Preparing {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The question about the set-up or the checks that a task waits for.
    pub fn question_of(&self, task: &TaskId) -> Option<QuestionId> {
        let setup = self.setup.as_ref().map(|wait| &wait.asked);
        setup.into_iter().chain(&self.checks).find(|asked| asked.tasks.contains(task)).map(|asked| asked.question)
    }
}

impl State {
    /// Where a task's checks run: the task's environments, else the plan's.
    pub fn environments_of(&self, planned: &PlanTask) -> Vec<String> {
        let of_plan = || self.run.as_ref().and_then(|run| run.plan.settings.environments.clone());
        if planned.environments.is_empty() { of_plan().unwrap_or_default() } else { planned.environments.clone() }
    }

    /// Whether a task is claimed and cannot be proven before a worktree can be set up.
    pub fn claim_waits_for_set_up(&self, task: &TaskId) -> bool {
        let waits = self.preparing.setup.as_ref().is_some_and(|wait| wait.asked.tasks.contains(task));
        waits && self.tasks.get(task).is_some_and(|task| task.claim.is_some())
    }

    /// Whether the task waits for the answer to a question about its set-up or checks.
    pub fn waits_for_preparing(&self, task: &TaskId) -> bool {
        self.preparing.question_of(task).is_some()
    }
}
