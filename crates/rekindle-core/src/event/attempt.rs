//! The life of one attempt at a task: its start, its process, its end.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::ids::{AttemptId, TaskId};
use crate::report::Exit;
use crate::role::Role;
use crate::strategy::Strategy;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEvent {
    /// An attempt was decided on; its process is started after this is durable.
    Dispatched {
        attempt: AttemptId,
        role: Role,
        /// Which `[agents.NAME]` runs it.
        cli: String,
        tasks: Vec<TaskId>,
        /// What the first task was blocked by.
        blocked_by: Vec<TaskId>,
        /// Whether earlier work on the task is continued.
        resumed: bool,
        #[serde(default)]
        strategy: Strategy,
        /// The CLI session that is resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Whether only a report is asked for, after an end without one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks_for_report: bool,
        /// Why it is started this way.
        reason: String,
    },
    /// As `Dispatched`, recorded again for a replacement.
    Redispatched {
        role: Role,
        /// The number of this attempt at the task.
        attempt: u32,
    },
    AgentStarted {
        attempt: AttemptId,
        pid: u32,
        shim_pid: u32,
        /// Bytes of its prompt that are neither the plan's text nor a record of the work.
        #[serde(default, skip_serializing_if = "super::facts::none")]
        own_bytes: u64,
    },
    /// A living agent was found and is supervised again.
    AgentAdopted {
        attempt: AttemptId,
        pid: u32,
        shim_pid: u32,
    },
    /// An agent had been dispatched and nothing is left of it.
    OrphanAgentDetected {
        attempt: AttemptId,
        #[serde(rename = "type")]
        role: Role,
    },
    ReportRefused {
        attempt: AttemptId,
        reason: String,
    },
    /// A task took longer than its role allows.
    RoleTimeout {
        role: Role,
        attempt: AttemptId,
        timeout_ms: u64,
    },
    /// The agent shows no activity.
    AgentHung {
        attempt: AttemptId,
        quiet_ms: u64,
        evidence: String,
    },
    /// An attempt is to be stopped.
    StopOrdered {
        attempt: AttemptId,
        /// The cause that its end will have.
        #[serde(flatten)]
        cause: Cause,
        at_once: bool,
    },
    /// An agent ended by a Unix signal or with a code other than 0, with open work.
    AgentCrashed {
        attempt: AttemptId,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// An agent's process has ended, by its exit record.
    AttemptExited {
        attempt: AttemptId,
        exit: Exit,
    },
    /// An attempt is over: nothing of it is running and none of its claims is open.
    AttemptEnded {
        attempt: AttemptId,
        #[serde(flatten)]
        cause: Cause,
        /// What it said last, in one short line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
    },
}
