//! The numbers of a run that configuration may change, as the decisions see them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::{Budgets, Price};
use crate::role::Role;

/// Every limit that decisions depend on. Recorded in the log when a coordinator starts, so that replay sees the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Agents that may run at once.
    pub max_agents: u32,
    /// Total attempts per task.
    pub attempts: u32,
    /// Base of the exponential backoff.
    pub backoff_ms: u64,
    /// Whether failed attempts are recovered automatically.
    pub recover: bool,
    /// Time a role has for a task.
    pub timeout_ms: BTreeMap<Role, u64>,
    /// How long an agent may linger after its last task has ended.
    pub after_result_ms: u64,
    /// How long an agent may be silent before it counts as hung.
    pub silence_ms: u64,
    /// Which `[agents.NAME]` runs tasks that name none.
    pub default_cli: String,
    pub clis: Vec<String>,
    /// Grace on each step of the stop ladder.
    pub stop_grace_ms: u64,
    /// End instead of waiting when only a person or a reset is missing.
    pub no_wait: bool,
    /// Run every check of the plan once before the first agent starts.
    #[serde(default)]
    pub preflight: bool,
    /// What the agents of each `[agents.NAME]` can do; one that is missing here can do nothing special.
    #[serde(default)]
    pub traits: BTreeMap<String, Traits>,
    /// How long an agent may take until its first output.
    #[serde(default = "default_first_event_ms")]
    pub first_event_ms: u64,
    #[serde(default)]
    pub usage: UsageLimits,
    #[serde(default)]
    pub compaction: CompactionLimits,
    /// Which `[agents.NAME]` runs each role; a role that is not in here is run like any task.
    #[serde(default)]
    pub roles: BTreeMap<Role, String>,
    /// Whether every task is worked on in a worktree of its own.
    #[serde(default)]
    pub worktrees: bool,
    /// Completions within this time before a pause or a crash are validated again afterwards.
    #[serde(default = "default_validation_ms")]
    pub validation_window_ms: u64,
    /// Ended tasks that are known in full; of older ones only what decisions need is kept.
    #[serde(default = "default_ended_kept")]
    pub ended_kept: u32,
    #[serde(default, skip_serializing_if = "Budgets::is_none")]
    pub budget: Budgets,
    /// What models cost, where their programs do not say it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

/// What one kind of agent can do, as decisions see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traits {
    pub kind: String,
    /// The account whose allowance it uses: agents of the same account wait for the same reset.
    pub account: String,
    /// Which `[agents.NAME]` takes over while its account has to wait.
    pub fallback: Option<String>,
    /// Its stream can be parsed: it reports its session, its calls and its ends.
    #[serde(rename = "tells")]
    pub structured_output: bool,
    /// It reports every call when it starts: without an open call, it waits for its model.
    pub shows_calls: bool,
    /// A CLI session can be resumed by its id.
    pub resumes: bool,
    /// It takes messages while it runs.
    pub takes_messages: bool,
    /// It compacts its context on its own.
    pub compacts: bool,
    /// What it has to know is put back into its context after a compaction without a message.
    pub reinjects: bool,
    /// It has rekindle's MCP tools.
    pub mcp: bool,
}

impl Traits {
    /// A kind that can do nothing special.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), account: kind.to_owned(), ..Self::default() }
    }
}

/// How usage limits are waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageLimits {
    /// The wait where no reset time is known.
    pub default_wait_ms: u64,
    /// The extra wait after the reset.
    pub grace_ms: u64,
    /// Whether the user has a command that reports what is left.
    pub asks: bool,
    /// What is left, in percent, at which the run is paused.
    pub threshold_percent: u8,
    /// The `[agents.NAME]` that the command reports on; empty means all.
    pub agents: Vec<String>,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            default_wait_ms: 15 * 60 * 1000,
            grace_ms: 5 * 60 * 1000,
            asks: false,
            threshold_percent: 10,
            agents: Vec::new(),
        }
    }
}

/// When a compaction is prepared for and when it is too much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionLimits {
    /// Context left, in percent, at which it is prepared for.
    pub threshold_percent: u8,
    /// Compactions on one task after which a fresh agent takes over.
    pub hand_over_after: u32,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self { threshold_percent: 10, hand_over_after: 2 }
    }
}

fn default_validation_ms() -> u64 {
    60 * 60 * 1000
}

/// More than a person looks back at, and a fraction of what a plan may hold.
fn default_ended_kept() -> u32 {
    256
}

fn default_first_event_ms() -> u64 {
    2 * 60 * 1000
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
            preflight: false,
            traits: BTreeMap::new(),
            first_event_ms: default_first_event_ms(),
            usage: UsageLimits::default(),
            compaction: CompactionLimits::default(),
            roles: BTreeMap::new(),
            worktrees: false,
            validation_window_ms: default_validation_ms(),
            ended_kept: default_ended_kept(),
            budget: Budgets::default(),
            prices: BTreeMap::new(),
        }
    }
}

impl Limits {
    /// Time a role has for a task that names none of its own.
    pub fn timeout_for(&self, role: Role) -> u64 {
        self.timeout_ms.get(&role).copied().unwrap_or(15 * 60 * 1000)
    }

    /// Whether the agents of an `[agents.NAME]` can do something; an unknown one can do nothing special.
    pub fn has(&self, cli: &str, what: impl FnOnce(&Traits) -> bool) -> bool {
        self.traits.get(cli).is_some_and(what)
    }

    /// What the agents of an `[agents.NAME]` can do.
    pub fn traits_of(&self, cli: &str) -> Cow<'_, Traits> {
        self.traits.get(cli).map_or_else(|| Cow::Owned(Traits::new(cli)), Cow::Borrowed)
    }
}
