//! The numbers of a run that configuration may change, as the decisions see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::role::Role;

/// Every limit that decisions depend on. Recorded in the log when a coordinator starts, so that replay sees the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Agents that may run at once.
    pub max_agents: u32,
    /// Attempts in all per task.
    pub attempts: u32,
    /// Base of the exponential backoff.
    pub backoff_ms: u64,
    /// Whether failed attempts are recovered by themselves.
    pub recover: bool,
    /// Time a role has for a task.
    pub timeout_ms: BTreeMap<Role, u64>,
    /// How long an agent may linger after its last task has ended.
    pub after_result_ms: u64,
    /// How long an agent may give no sign of life before it counts as hung.
    pub silence_ms: u64,
    /// Which `[agents.NAME]` runs tasks that name none.
    pub default_cli: String,
    /// All configured `[agents.NAME]`.
    pub clis: Vec<String>,
    /// Grace on each step of the stop ladder.
    pub stop_grace_ms: u64,
    /// End instead of waiting when only a person or a reset is missing.
    pub no_wait: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let minutes = |n: u64| n * 60 * 1000;
        Self {
            max_agents: 4,
            attempts: 3,
            backoff_ms: 2_000,
            recover: true,
            timeout_ms: BTreeMap::from([
                (Role::Developer, minutes(15)),
                (Role::Critic, minutes(10)),
                (Role::Auditor, minutes(10)),
                (Role::Remediation, minutes(5)),
                (Role::HealthAuditor, minutes(5)),
            ]),
            after_result_ms: 30_000,
            silence_ms: minutes(5),
            default_cli: "default".into(),
            clis: Vec::new(),
            stop_grace_ms: 5_000,
            no_wait: false,
        }
    }
}

impl Limits {
    /// Time a role has for a task that names none of its own.
    #[must_use]
    pub fn timeout_for(&self, role: Role) -> u64 {
        self.timeout_ms.get(&role).copied().unwrap_or(15 * 60 * 1000)
    }
}
