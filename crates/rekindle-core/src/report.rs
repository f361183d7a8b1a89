//! What an agent says about its work, and what rekindle has found out about it. Reports are claims; check results are
//! evidence.

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::refusal::Refusal;
use crate::role::Role;

/// The channel that a report came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The command line, over the coordinator's socket.
    Command,
    /// A signal line in the agent's output.
    Signal,
    /// Kept in the bundle while no coordinator was alive.
    Kept,
    Mcp,
    Operator,
    /// rekindle itself, to check work again.
    Own,
    /// rekindle itself, to check work that its agent left without a report.
    Unreported,
}

/// What an agent says it has done and has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// One line on its progress.
    #[serde(default)]
    pub status: String,
    /// What is done, an item each; a replacement must not do it again.
    #[serde(default)]
    pub completed: Vec<String>,
    #[serde(default)]
    pub remaining: Vec<String>,
    #[serde(default)]
    pub files: Vec<String>,
    /// Progress in percent, where it can tell.
    #[serde(default)]
    pub progress: Option<u8>,
}

impl Checkpoint {
    /// Whether it says that something is left to do.
    pub fn leaves_work(&self) -> bool {
        !self.remaining.is_empty() || self.progress.is_some_and(|percent| percent < 100)
    }
}

/// What an agent is told when its reports no longer count: the last words of every such refusal.
pub const OVER: &str = "stop working and exit";

/// A report by an agent on its own attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Report {
    Start {
        task: TaskId,
    },
    /// It claims that a task is complete.
    Done {
        task: TaskId,
        /// The outcome in the agent's words.
        result: Option<String>,
    },
    Fail {
        task: TaskId,
        reason: String,
    },
    Checkpoint {
        task: TaskId,
        checkpoint: Checkpoint,
    },
    Ask {
        /// The task that waits for the answer.
        task: TaskId,
        text: String,
        options: Vec<String>,
        /// What a person needs to know to answer.
        context: String,
    },
    /// It breaks a task into smaller ones, to be worked through in order.
    Split {
        task: TaskId,
        subtasks: Vec<String>,
    },
    /// A reviewer's verdict on a task's work.
    Verdict {
        /// The task; `None` means the only one it has.
        #[serde(default)]
        task: Option<TaskId>,
        /// The role that it speaks in.
        role: Role,
        verdict: Verdict,
        #[serde(flatten)]
        findings: Findings,
    },
    Note {
        text: String,
    },
}

impl Report {
    /// The task a report is about, if it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Start { task }
            | Self::Done { task, .. }
            | Self::Fail { task, .. }
            | Self::Checkpoint { task, .. }
            | Self::Ask { task, .. }
            | Self::Split { task, .. } => Some(task),
            Self::Verdict { task, .. } => task.as_ref(),
            Self::Note { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    /// It goes back to the developer.
    Fail,
    /// It cannot be judged until a person has fixed something.
    Blocked,
}

/// What was found in a task's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// What is wrong, an item each.
    pub issues: Vec<String>,
    /// What must be done about it.
    pub required: Vec<String>,
    /// What is good as it is and must not be broken.
    pub passed: Vec<String>,
}

/// The outcome of one acceptance command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command, as in the plan.
    pub command: String,
    /// Whether it exited with 0 in time.
    pub passed: bool,
    /// Exit code, where it had one.
    pub code: Option<i32>,
    /// Whether it was ended for taking too long.
    pub timed_out: bool,
    /// The end of its output, if it failed; what is kept outside the state is named by `kept`.
    pub output: String,
    /// The hash under which its output is kept outside the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    pub took_ms: u64,
    /// The environment it ran in, where the plan names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

impl CheckResult {
    /// How it ended, in words.
    pub fn outcome(&self) -> String {
        match (self.passed, self.timed_out, self.code) {
            (true, ..) => "passed".to_owned(),
            (false, true, _) => "timed out".to_owned(),
            (false, false, Some(code)) => format!("exited with {code}"),
            (false, false, None) => "was killed".to_owned(),
        }
    }
}

/// Bytes of one failed check's output in the state: what a brief shows of it.
pub const TAIL_BYTES: usize = 4 * 1024;

/// Bytes of all outputs of one claim in the state: a plan with a thousand failing checks must not outgrow an event.
pub const TAILS_BYTES: usize = 64 * 1024;

/// Cuts outputs down to what the state keeps: the end of each failed one, the first ones first. Doing it twice changes
/// nothing.
pub fn cut_outputs<'a>(checks: impl IntoIterator<Item = &'a mut CheckResult>) {
    let mut room = TAILS_BYTES;
    for check in checks {
        let wanted = if check.passed { 0 } else { TAIL_BYTES.min(room) };
        if check.output.len() > wanted {
            check.output = crate::text::tail_bytes(&check.output, wanted).to_owned();
        }
        room -= check.output.len();
    }
}

/// Where a failing health check comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It failed before the work began.
    Before,
    /// It passed before the work began.
    Introduced,
    /// Unknown.
    Uncertain,
}

/// The result of one of the plan's health checks that ran with a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthResult {
    #[serde(flatten)]
    pub check: CheckResult,
    /// Where its failure comes from; `None` if it passed.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// All the evidence on one claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Acceptance commands in the plan's order.
    pub checks: Vec<CheckResult>,
    /// Declared artifacts that are not on disk.
    pub missing_artifacts: Vec<String>,
    /// The plan's health commands; only a failure that the work introduced speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<HealthResult>,
}

impl Evidence {
    pub fn passed(&self) -> bool {
        self.missing_artifacts.is_empty()
            && self.checks.iter().all(|check| check.passed)
            && self.introduced().next().is_none()
    }

    /// Every check and health check in it.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut CheckResult> {
        self.checks.iter_mut().chain(self.health.iter_mut().map(|seen| &mut seen.check))
    }

    /// The same without the outputs that the state does not keep.
    pub fn cut(mut self) -> Self {
        cut_outputs(self.all_mut());
        self
    }

    /// Health checks that the work broke.
    pub fn introduced(&self) -> impl Iterator<Item = &CheckResult> {
        self.health.iter().filter(|seen| seen.origin == Some(Origin::Introduced)).map(|seen| &seen.check)
    }

    /// What is wrong, in one line.
    pub fn complaint(&self) -> String {
        if let Some(check) = self.checks.iter().find(|check| !check.passed).or_else(|| self.introduced().next()) {
            let how = check.outcome();
            let place = check.environment.as_ref().map(|name| format!(" in `{name}`")).unwrap_or_default();
            return format!("check `{}` {how}{place}", check.command);
        }
        if self.missing_artifacts.is_empty() {
            "nothing is wrong".to_owned()
        } else {
            format!("missing artifact: {}", self.missing_artifacts.join(", "))
        }
    }
}

/// What a task's checks said before any work on it. They are run until the first one fails: one is enough to show that the
/// work was still to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The check that failed, or the artifact that was missing.
    #[serde(default)]
    pub failed: Option<String>,
    /// Why it is unknown, if a check took too long or could not be run.
    #[serde(default)]
    pub unknown: Option<String>,
}

/// How a process ended, as its shim recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code, where it had one.
    pub code: Option<i32>,
    /// Signal number, if a signal ended it.
    pub signal: Option<i32>,
    /// Why the program could not be started.
    pub start_error: Option<String>,
    /// Whether the kernel killed it for lack of memory.
    #[serde(default)]
    pub out_of_memory: bool,
    /// The cap in bytes that it met then; `None` if the machine had no memory left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<u64>,
    /// The machine had no room for its first instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// It ran and ended before it was asked to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_itself: bool,
}
