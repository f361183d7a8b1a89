//! The larger facts of the log as structures of their own: the details of their events.

use serde::{Deserialize, Serialize};

use super::{Outcome, PauseReason};
use crate::activity::{Transcript, UnderWay};
use crate::cause::Cause;
use crate::ids::{AttemptId, QuestionId, RunId, TaskId};
use crate::plan::PlanTask;
use crate::progress::Progress;
use crate::report::CheckResult;
use crate::retention::Part;
use crate::review::{FailedEnvironment, Stage};
use crate::time::Time;

/// What a coordinator that took over after a crash found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    pub orphaned_agents: u32,
    /// Facts found outside the log and taken into it.
    pub events_reconciled: u32,
    /// Agents that were still alive and were adopted.
    pub adopted: u32,
    pub finished: u32,
    #[serde(default)]
    pub to_validate: u32,
    /// Time of the newest event before the crash.
    #[serde(default)]
    pub saved_at: Time,
    #[serde(default)]
    pub progress: Progress,
}

/// The machine is short of something: nothing new is started until it no longer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub reason: String,
    /// What to type, or where to look.
    #[serde(default)]
    pub hint: String,
    /// When starts are retried, if something was refused and only a retry can tell.
    #[serde(default)]
    pub until: Option<Time>,
    /// This event alerts a person.
    #[serde(default)]
    pub alerts: bool,
}

/// A pause was ordered: no new work, agents are stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub reason: PauseReason,
    pub remaining_percent: Option<u8>,
    pub resets_at: Option<Time>,
    /// When the run resumes on its own, if it does.
    #[serde(default)]
    pub resumes_at: Option<Time>,
    /// The number of the probe since the reset that comes then, from 1; 0 if the run waits for something else.
    #[serde(default)]
    pub probe: u32,
    #[serde(default)]
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The number of resumes so far.
    pub resume_count: u32,
    pub tasks_to_revalidate: u32,
    #[serde(default)]
    pub reason: Option<PauseReason>,
}

/// A compaction that was prepared for is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionOver {
    /// The attempt that continues: the same, or the one that took over.
    pub attempt: AttemptId,
    /// The number of this compaction in the session.
    pub compaction_number: u32,
    /// Whether the agent got the whole plan again.
    pub full_reload: bool,
    #[serde(default)]
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    pub outcome: Outcome,
    pub complete: u32,
    pub failed: u32,
    pub skipped: u32,
    /// Tasks that can no longer be reached.
    pub unreachable: u32,
}

/// Work that was proven is handed to the next stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOn {
    pub stage: Stage,
    /// The outcome in the agent's words.
    #[serde(default)]
    pub result: Option<String>,
}

/// A task that is not in the plan's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub task: PlanTask,
    /// The task that it is a part of.
    #[serde(default)]
    pub parent: Option<TaskId>,
    /// Whether it repairs what the plan's health commands found.
    #[serde(default)]
    pub health: bool,
    /// The attempt that continues it at once.
    #[serde(default)]
    pub holder: Option<AttemptId>,
}

impl Added {
    pub fn is_by_hand(&self) -> bool {
        self.parent.is_none() && !self.health
    }
}

/// Checks that passed in some environments and failed in others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentsDiffer {
    pub passed: Vec<String>,
    pub failed: Vec<FailedEnvironment>,
}

/// What the plan's health commands said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthSeen {
    /// The results, one per command.
    pub results: Vec<CheckResult>,
}

/// What is left of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLeft {
    /// In percent; `None` if the command gave no answer.
    pub remaining_percent: Option<u8>,
    /// When it is full again.
    #[serde(default)]
    pub resets_at: Option<Time>,
}

/// The branch that a run's accepted work goes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBranch {
    pub branch: String,
    /// The commit that the branch was at.
    pub base: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The result of a run in one of the person's own branches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    pub into: String,
    /// The commit of that branch that contains it.
    pub commit: String,
    /// The newest commit of the run's branch then.
    pub tip: String,
    /// `merge`, `squash` or `rebase`.
    pub form: String,
}

/// What retention, or the person, removed of what a run had left. It is recorded before it is removed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// The run; `None` for copies that belong to no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub parts: Vec<Part>,
    /// Bytes that this frees in the state directory.
    pub bytes: u64,
    /// The person gave up work that was in none of their branches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
}

/// Attempts whose bundles exist and whose events are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptsLost {
    /// The highest attempt that the log knew.
    pub known: AttemptId,
    /// The highest attempt that has a bundle.
    pub highest: AttemptId,
}

/// The state of a run's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamStanding {
    /// Working on a task.
    pub working: u32,
    /// Alive without a task.
    pub idle: u32,
    /// Alive according to their shims, but nothing else was heard or seen from them.
    pub unresponsive: u32,
}

/// An agent's context was compacted: it has forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCompacted {
    pub attempt: AttemptId,
    /// How often during its task so far.
    pub compactions: u32,
    /// Whether the program compacted on its own, where known.
    pub automatic: Option<bool>,
    /// Answers of the model so far.
    pub turns: u64,
    pub calls: u64,
}

/// An agent loops: it is told if it takes messages, and stopped if it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStalled {
    pub attempt: AttemptId,
    /// The number of calls in the loop.
    pub times: u32,
    /// What it repeats, in words.
    pub words: String,
}

/// What an agent that has ended left of its own session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionClosed {
    pub attempt: AttemptId,
    pub transcript: Transcript,
    /// The call that it was in the middle of.
    pub cut_off: Option<String>,
    /// The calls that its resumed conversation lacks or contains without an outcome.
    #[serde(default, skip_serializing_if = "UnderWay::is_empty")]
    pub under_way: UnderWay,
}

/// An account has to wait: nothing more is started on it until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateClosed {
    pub account: String,
    #[serde(flatten)]
    pub cause: Cause,
    /// Until when; `None` means until a person answers.
    pub until: Option<Time>,
    /// The question that a person has to answer.
    #[serde(default)]
    pub question: Option<QuestionId>,
    pub strikes: u32,
    /// The named reset, if any.
    #[serde(default)]
    pub reset: Option<Time>,
    /// The number of the next probe since that reset, from 1; 0 if no limit is waited for.
    #[serde(default)]
    pub probe: u32,
    /// The end of the wait for an overloaded provider, if there is one as well: setting the clock does not move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overloaded_until: Option<Time>,
    /// The end of the wait for the limit alone, if the provider is overloaded as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_until: Option<Time>,
}

/// An agent's context is nearly full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionNear {
    pub attempt: AttemptId,
    /// The number of this compaction in the session.
    pub compaction_number: u32,
    pub context_remaining: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSaid {
    pub attempt: AttemptId,
    /// In its own words, without secrets, truncated to a bound.
    pub text: String,
    /// The agent asked this as a question, with a tool of its own program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// What the machine's clocks say, compared with the coordinator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockSeen {
    pub boot_id: String,
    /// How long the machine has slept in total since that boot.
    pub slept_ms: u64,
    /// How far the wall clock is ahead of the coordinator's clock; negative if it is behind.
    pub wall_ahead_ms: i64,
}

impl ClockSeen {
    /// How long the machine has slept since an earlier reading; 0 across a reboot.
    pub fn slept_since(&self, earlier: &Self) -> u64 {
        if self.boot_id == earlier.boot_id { self.slept_ms.saturating_sub(earlier.slept_ms) } else { 0 }
    }

    /// What the wall clock shows at a moment of the coordinator's clock.
    pub fn wall(&self, at: Time) -> Time {
        Time(at.0.saturating_add(self.wall_ahead_ms))
    }

    /// The moment of the coordinator's clock at which the wall clock shows this.
    pub fn at_wall(&self, wall: Time) -> Time {
        Time(wall.0.saturating_sub(self.wall_ahead_ms))
    }
}

/// Whether a number is left out of the log.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn none(bytes: &u64) -> bool {
    *bytes == 0
}
