//! Why an attempt ended: one typed cause for every end, taken from structured evidence and never from free text.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::size;
use crate::time::Time;

/// The failure taxonomy. The consequences of each cause are in `policy::row`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// Every task it was given has ended.
    Completed,
    /// It exited with code 0 although it had open tasks.
    ExitedIncomplete,
    /// It ended by a Unix signal or with a code other than 0.
    Crashed {
        /// Exit code, where it had one.
        code: Option<i32>,
        /// Signal number, if a signal ended it.
        signal: Option<i32>,
    },
    /// No event ever came from it.
    HungBeforeFirstEvent,
    /// It fell silent in the middle of its work.
    HungMidStream,
    /// It gave its result and did not exit.
    HungAfterResult,
    /// A task took longer than its role allows.
    TimedOut,
    /// Its context was compacted before the work was finished.
    Compacted,
    /// It compacted again and again without making progress.
    CompactionLoop,
    ContextExhausted,
    /// The account's usage limit was met.
    UsageLimit {
        /// When the limit is lifted, where the agent said so.
        resets_at: Option<Time>,
    },
    Overloaded,
    Auth,
    WaitingForInput,
    /// The kernel killed it for lack of memory.
    OutOfMemory {
        /// Its own cap in bytes, if it met that; `None` if the machine had no memory left.
        #[serde(rename = "memory_cap_bytes", default, skip_serializing_if = "Option::is_none")]
        cap: Option<u64>,
    },
    /// Its program could not be started.
    StartFailed {
        /// What the operating system said. Not `reason` in the log: events that carry a cause have one of their own.
        #[serde(rename = "start_error")]
        reason: String,
    },
    /// Its worktree could not be set up, so it never started.
    SetupFailed {
        #[serde(rename = "setup_error")]
        reason: String,
    },
    /// The machine had no room for it, so it never started.
    Machine(MachineRefusal),
    /// The shim that held it died.
    ShimLost,
    /// The machine went down while it was running.
    HostLost,
    /// The same call with the same result again and again.
    StalledNoProgress,
    /// An operator stopped or paused it.
    StoppedByOperator,
}

/// What a machine without room said. Not `reason` in the log: events that carry a cause have one of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRefusal {
    #[serde(rename = "refusal")]
    pub reason: String,
    /// What to type, or where to look.
    #[serde(default)]
    pub hint: String,
}

impl From<Refusal> for MachineRefusal {
    fn from(Refusal { reason, hint }: Refusal) -> Self {
        Self { reason, hint }
    }
}

impl From<&MachineRefusal> for Refusal {
    fn from(refused: &MachineRefusal) -> Self {
        Self { reason: refused.reason.clone(), hint: refused.hint.clone() }
    }
}

impl Cause {
    /// The name in the log, in `status` and in `why`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ExitedIncomplete => "exited_incomplete",
            Self::Crashed { .. } => "crashed",
            Self::HungBeforeFirstEvent => "hung_before_first_event",
            Self::HungMidStream => "hung_mid_stream",
            Self::HungAfterResult => "hung_after_result",
            Self::TimedOut => "timed_out",
            Self::Compacted => "compacted",
            Self::CompactionLoop => "compaction_loop",
            Self::ContextExhausted => "context_exhausted",
            Self::UsageLimit { .. } => "usage_limit",
            Self::Overloaded => "overloaded",
            Self::Auth => "auth",
            Self::WaitingForInput => "waiting_for_input",
            Self::OutOfMemory { .. } => "out_of_memory",
            Self::StartFailed { .. } => "start_failed",
            Self::SetupFailed { .. } => "setup_failed",
            Self::Machine(_) => "machine",
            Self::ShimLost => "shim_lost",
            Self::HostLost => "host_lost",
            Self::StalledNoProgress => "stalled_no_progress",
            Self::StoppedByOperator => "stopped_by_operator",
        }
    }

    /// The cause in words, for a brief and for people.
    pub fn words(&self) -> String {
        match self {
            Self::Completed => "it had nothing left to do".into(),
            Self::ExitedIncomplete => "it ended by itself before its work was complete".into(),
            Self::Crashed { signal: Some(signal), .. } => format!("it was ended by signal {signal}"),
            Self::Crashed { code, .. } => {
                format!("it crashed with exit code {}", code.map_or("unknown".into(), |code| code.to_string()))
            }
            Self::HungBeforeFirstEvent => "it never gave a sign of life".into(),
            Self::HungMidStream => "it stopped giving signs of life in the middle of its work".into(),
            Self::HungAfterResult => "it gave its result but did not exit".into(),
            Self::TimedOut => "it ran out of the time allowed for the task".into(),
            Self::Compacted => "its context was compacted and it lost its thread".into(),
            Self::CompactionLoop => "it compacted its context again and again without getting on".into(),
            Self::ContextExhausted => "its context window was full".into(),
            Self::UsageLimit { .. } => "the account's usage limit was reached".into(),
            Self::Overloaded => "the model's provider was overloaded".into(),
            Self::Auth => "its credentials were refused".into(),
            Self::WaitingForInput => "it waited for a person's answer".into(),
            Self::OutOfMemory { cap: Some(cap) } => {
                format!("it needed more memory than its cap of {}, and the kernel killed it", size::format(*cap))
            }
            Self::OutOfMemory { cap: None } => "the machine ran out of memory, and the kernel killed it".into(),
            Self::StartFailed { reason } => format!("it could not be started: {reason}"),
            Self::SetupFailed { reason } => format!("its worktree could not be set up: {reason}"),
            Self::Machine(refused) => format!("it was not started: {}", refused.reason),
            Self::ShimLost => "the process that supervised it was killed".into(),
            Self::HostLost => "the machine was restarted".into(),
            Self::StalledNoProgress => "it repeated the same step without any progress".into(),
            Self::StoppedByOperator => "the run was paused or stopped by its operator".into(),
        }
    }

    /// What a person can do about it, for an agent of `[agents.CLI]`; `None` where the words say it all.
    pub fn remedy(&self, cli: &str) -> Option<String> {
        let Self::OutOfMemory { cap } = self else { return None };
        Some(match cap.map(size::format) {
            Some(cap) => {
                format!("raise `memory_max` of [agents.{cli}] in rekindle.toml above {cap}, or split the task")
            }
            None => format!("run fewer agents at once (`run.max_agents`), or cap `memory_max` of [agents.{cli}]"),
        })
    }

    /// What the agent that takes over the work should do differently.
    pub fn lesson(&self) -> Option<&'static str> {
        matches!(self, Self::OutOfMemory { .. }).then_some(
            "Use less memory than it did: fewer jobs at once (`make -j1`, one test process), smaller pieces of data, and no \
             server or watcher left running.",
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
