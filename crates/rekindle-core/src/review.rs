//! Types for what reviewers say about a task's work: stages, verdicts, rework, and what is learned from disagreements of
//! critic and auditor. When each of them happens is decided in `decide/review`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, TaskId};
use crate::report::{CheckResult, Evidence};
use crate::role::Role;
use crate::time::Time;

pub use crate::report::{Findings, Verdict};

/// Conflicts with the work of others that cost a task no attempt: one is bad luck, more of them are work not done.
pub const FREE_CONFLICTS: u32 = 3;

/// Verdicts kept with a task: what a developer and the next reviewer need; older ones stay in the log.
pub const VERDICTS_KEPT: usize = 12;

/// Disagreements kept to learn from, over all runs of a state directory.
pub const DISAGREEMENTS_KEPT: usize = 50;

/// How often a kind of issue must have been missed before critics are told about it.
pub const MISSES_TO_LEARN: usize = 2;

/// Maximum number of kinds of issues that one critic is told about: a list of everything is a list of nothing.
pub const FOCUS_MAX: usize = 5;

/// Examples under each of them.
pub const EXAMPLES_MAX: usize = 2;

/// What makes checks differ between environments most often, and what helps.
pub const COMMON_CAUSES: &str = "Common causes where environments differ: missing dependencies (a package is not in some of \
    them: add it to all of their configurations); path differences (hard-coded paths: use relative or environment-aware \
    ones); version mismatches (pin versions consistently); platform-specific code (add platform guards).";

/// A task's stage on its way to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The work is being done.
    #[default]
    Implement,
    /// A critic has to judge it.
    Review,
    /// An auditor has to prove it.
    Audit,
}

impl Stage {
    /// The state that readers see for an open task at this stage, where it is not the ordinary one.
    pub fn awaiting(self) -> Option<&'static str> {
        match self {
            Self::Implement => None,
            Self::Review => Some("awaiting_review"),
            Self::Audit => Some("awaiting_audit"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenVerdict {
    pub attempt: AttemptId,
    pub role: Role,
    pub verdict: Verdict,
    #[serde(flatten)]
    pub findings: Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReworkSource {
    Critic,
    Auditor,
    /// The checks after a verdict, or after the last part of a split task.
    Checks,
    /// The checks, in some environments only.
    Environment,
    /// The merge into the run's branch.
    Merge,
    /// The validation of recent completions after a pause or a crash.
    Validation,
    /// Reviewers or the CI of the run's pull request.
    PullRequest,
}

/// Work that was sent back, with everything the developer needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rework {
    pub source: ReworkSource,
    #[serde(flatten)]
    pub findings: Findings,
    /// More text: outputs of checks, common causes, how to proceed.
    #[serde(default)]
    pub context: String,
}

/// Accepted work on its way into the run's branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merging {
    /// The outcome in the agent's words.
    pub result: Option<String>,
    /// Accepted without proof, on a report alone.
    pub unproven: bool,
}

/// Why critic and auditor did not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisagreementType {
    /// A check fails: the auditor's own field, not a true disagreement.
    AcceptanceCriteria,
    /// Issues although all checks pass: the critic missed them.
    CodeQuality,
    /// Checks pass in some environments and fail in others.
    EnvironmentSpecific,
}

/// A critic passed what an auditor failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// What the critic said, in one line.
    pub critic_passed: String,
    pub auditor_failed: Vec<String>,
    pub disagreement_type: DisagreementType,
    /// What the issues are about, by their words.
    pub issue_category: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDisagreement {
    pub task: TaskId,
    pub time: Time,
    #[serde(flatten)]
    pub what: Disagreement,
}

/// An environment in which a check failed that passed in another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedEnvironment {
    pub env: String,
    pub check: String,
    /// Its exit code, where it had one.
    pub code: Option<i32>,
    pub error: String,
}

/// What reviewers are told to check, because it was missed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FocusArea {
    pub category: String,
    pub misses: usize,
    /// The newest of them, in the auditors' words.
    pub examples: Vec<String>,
}

/// Why critic and auditor did not agree, by rule.
pub fn categorise(evidence: &Evidence) -> DisagreementType {
    if environments(evidence).is_some() {
        DisagreementType::EnvironmentSpecific
    } else if evidence.passed() {
        DisagreementType::CodeQuality
    } else {
        DisagreementType::AcceptanceCriteria
    }
}

/// The environments in which everything passed and those in which something failed, where there are both.
pub fn environments(evidence: &Evidence) -> Option<(Vec<String>, Vec<FailedEnvironment>)> {
    let mut by_name: BTreeMap<&str, Vec<&CheckResult>> = BTreeMap::new();
    for check in &evidence.checks {
        by_name.entry(check.environment.as_deref()?).or_default().push(check);
    }
    let all_passed = |checks: &Vec<&CheckResult>| checks.iter().all(|check| check.passed);
    let passed: Vec<String> =
        by_name.iter().filter(|(_, checks)| all_passed(checks)).map(|(name, _)| (*name).to_owned()).collect();
    let failed: Vec<FailedEnvironment> = evidence
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| FailedEnvironment {
            env: check.environment.clone().unwrap_or_default(),
            check: check.command.clone(),
            code: check.code,
            error: if check.timed_out { "timed out".to_owned() } else { check.output.clone() },
        })
        .collect();
    (!passed.is_empty() && !failed.is_empty()).then_some((passed, failed))
}

/// What issues are about, by the words in them; the first row that fits.
const CATEGORIES: [(&str, &[&str]); 8] = [
    ("security", &["secur", "inject", "escap", "credential", "password", "token", "permission", "xss", "sanitiz"]),
    ("error_handling", &["error", "exception", "panic", "unwrap", "failure", "fallback", "timeout", "crash"]),
    ("concurrency", &["race", "deadlock", "concurren", "thread", "lock", "atomic"]),
    ("tests", &["test", "coverage", "assert"]),
    ("edge_cases", &["edge", "empty", "null", "none", "boundary", "overflow", "unicode", "negative", "off-by"]),
    ("performance", &["slow", "performance", "quadratic", "memory", "leak"]),
    ("documentation", &["document", "comment", "readme", "docs"]),
    ("style", &["naming", "style", "format", "duplicate", "dead code", "unused", "readab"]),
];

/// What a list of issues is about.
pub fn category(issues: &[String]) -> &'static str {
    let words = issues.join("\n").to_lowercase();
    let fits = |row: &&(&str, &[&str])| row.1.iter().any(|word| words.contains(word));
    CATEGORIES.iter().find(fits).map_or("other", |row| row.0)
}

/// What critics have missed again and again, most often first.
pub fn focus_areas(history: &[KeptDisagreement]) -> Vec<FocusArea> {
    let missed = history.iter().filter(|kept| kept.what.disagreement_type == DisagreementType::CodeQuality);
    let mut areas: BTreeMap<&str, FocusArea> = BTreeMap::new();
    for kept in missed {
        let area = areas.entry(&kept.what.issue_category).or_insert_with(|| FocusArea {
            category: kept.what.issue_category.clone(),
            misses: 0,
            examples: Vec::new(),
        });
        area.misses += 1;
        area.examples.extend(kept.what.auditor_failed.first().cloned());
    }
    let mut areas: Vec<FocusArea> = areas.into_values().filter(|area| area.misses >= MISSES_TO_LEARN).collect();
    areas.sort_by(|a, b| b.misses.cmp(&a.misses).then(a.category.cmp(&b.category)));
    areas.truncate(FOCUS_MAX);
    for area in &mut areas {
        let excess = area.examples.len().saturating_sub(EXAMPLES_MAX);
        area.examples.drain(..excess);
    }
    areas
}
