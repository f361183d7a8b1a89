//! The larger facts of the log as structures of their own: what stands in their details.

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

/// What a coordinator found that took over after a crash.
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
    /// Time of the newest event before.
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
    /// When it is tried again, where something was refused and nothing but trying tells.
    #[serde(default)]
    pub until: Option<Time>,
    /// A person is told.
    #[serde(default)]
    pub alerts: bool,
}

/// A pause was ordered: no new work, agents are stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub reason: PauseReason,
    pub remaining_percent: Option<u8>,
    pub resets_at: Option<Time>,
    /// When the run resumes by itself, where it does.
    #[serde(default)]
    pub resumes_at: Option<Time>,
    /// Which try since the reset that comes then, from 1; 0 where the run waits for something else.
    #[serde(default)]
    pub probe: u32,
    #[serde(default)]
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// How often by now.
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
    /// Which compaction of the session this is.
    pub compaction_number: u32,
    /// Whether the whole plan was put before the agent again.
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
    /// What they said, one each.
    pub results: Vec<CheckResult>,
}

/// What is left of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLeft {
    /// In percent; nothing where the command gave no answer.
    pub remaining_percent: Option<u8>,
    /// When it is whole again.
    #[serde(default)]
    pub resets_at: Option<Time>,
}

/// The branch that a run's accepted work goes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBranch {
    pub branch: String,
    /// The commit that it was at.
    pub base: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The result of a run in a branch of the person's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    pub into: String,
    /// The commit of that branch that has it.
    pub commit: String,
    /// The newest commit of the run's branch then.
    pub tip: String,
    /// `merge`, `squash` or `rebase`.
    pub form: String,
}

/// What retention, or the person, removed of what a run had left. It is on record before it goes for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// The run; none for copies that belong to no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub parts: Vec<Part>,
    /// Bytes that this frees in the state directory.
    pub bytes: u64,
    /// The person gave work up that was in no branch of theirs.
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

/// How the agents of a run stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamStanding {
    /// At work on a task.
    pub working: u32,
    /// Alive without a task.
    pub idle: u32,
    /// Alive by their shims, but nothing else was heard or seen of them.
    pub unresponsive: u32,
}

/// An agent's context was compacted: it has forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCompacted {
    pub attempt: AttemptId,
    /// How often during its task by now.
    pub compactions: u32,
    /// By the program itself, where known.
    pub automatic: Option<bool>,
    /// Answers of the model so far.
    pub turns: u64,
    pub calls: u64,
}

/// An agent loops: told of it where it listens, stopped where it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStalled {
    pub attempt: AttemptId,
    /// How often it went round, in calls.
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
    /// The calls that its resumed conversation lacks or holds without an outcome.
    #[serde(default, skip_serializing_if = "UnderWay::is_empty")]
    pub under_way: UnderWay,
}

/// An account has to wait: nothing more is started on it until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateClosed {
    pub account: String,
    #[serde(flatten)]
    pub cause: Cause,
    /// Until when; nothing means until a person answers.
    pub until: Option<Time>,
    /// The question that a person has to answer.
    #[serde(default)]
    pub question: Option<QuestionId>,
    pub strikes: u32,
    /// The reset that was named, where one was.
    #[serde(default)]
    pub reset: Option<Time>,
    /// Which probe since that reset comes then, from 1; 0 where no limit is waited for.
    #[serde(default)]
    pub probe: u32,
    /// The end of the wait for an overloaded provider, where there is one besides: no clock that is set moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overloaded_until: Option<Time>,
    /// The end of the wait for the limit alone, where the provider is overloaded besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_until: Option<Time>,
}

/// An agent's context is nearly full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionNear {
    pub attempt: AttemptId,
    /// Which compaction of the session this is.
    pub compaction_number: u32,
    pub context_remaining: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSaid {
    pub attempt: AttemptId,
    /// In its own words, without secrets, cut to a bound.
    pub text: String,
    /// It asked them as a question, with a tool of its own program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// What the machine's clocks say beside the coordinator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockSeen {
    pub boot_id: String,
    /// How long it has slept since that boot, in all.
    pub slept_ms: u64,
    /// How far the wall clock is ahead of the coordinator's; negative where it is behind.
    pub wall_ahead_ms: i64,
}

impl ClockSeen {
    /// How long the machine has slept since an earlier look; nothing over another boot.
    pub fn slept_since(&self, earlier: &Self) -> u64 {
        if self.boot_id == earlier.boot_id { self.slept_ms.saturating_sub(earlier.slept_ms) } else { 0 }
    }

    /// What the wall shows at a moment of the coordinator's clock.
    pub fn wall(&self, at: Time) -> Time {
        Time(at.0.saturating_add(self.wall_ahead_ms))
    }

    /// The moment of the coordinator's clock at which the wall shows this.
    pub fn at_wall(&self, wall: Time) -> Time {
        Time(wall.0.saturating_sub(self.wall_ahead_ms))
    }
}

/// A number that is left out of the log.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn none(bytes: &u64) -> bool {
    *bytes == 0
}
