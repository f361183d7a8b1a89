//! What the checks of a plan said before the first agent began.

use serde::{Deserialize, Serialize};

use crate::ids::{QuestionId, TaskId};
use crate::preflight::Outcome;
use crate::report::CheckResult;
use crate::text;

/// Bytes of a check's last line in an event.
const SAID_BYTES: usize = 200;

/// One check that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightCheck {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    pub outcome: Outcome,
    /// The last line of what it printed, or how it ended.
    pub said: String,
}

impl PreflightCheck {
    pub fn of(result: &CheckResult) -> Self {
        let last = result.output.lines().rev().find(|line| !line.trim().is_empty());
        let said = last.map_or_else(|| result.outcome(), |line| text::one_line(line, SAID_BYTES));
        let (command, environment) = (result.command.clone(), result.environment.clone());
        Self { command, environment, outcome: Outcome::of(result), said }
    }
}

/// All checks that were run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightSeen {
    pub checks: Vec<PreflightCheck>,
    /// Why not all of them were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub took_ms: u64,
    /// The question to a person about those that cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Tasks that wait for the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<TaskId>,
}

impl PreflightSeen {
    /// Whether a person should see it.
    pub fn is_notable(&self) -> bool {
        let fine = |check: &PreflightCheck| matches!(check.outcome, Outcome::Fails | Outcome::Slow);
        self.problem.is_some() || !self.checks.iter().all(fine)
    }

    /// The checks with a given outcome.
    pub fn with(&self, outcome: Outcome) -> impl Iterator<Item = &PreflightCheck> {
        self.checks.iter().filter(move |check| check.outcome == outcome)
    }
}
