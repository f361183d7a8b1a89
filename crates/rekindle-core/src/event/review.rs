//! The path of proven work: critics, auditors, rework, merge.

use serde::{Deserialize, Serialize};

use super::{EnvironmentsDiffer, HandedOn};
use crate::review::{Disagreement, GivenVerdict, Merging, Rework};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewEvent {
    /// The work of a task was proven and goes to a reviewer.
    TaskHandedOn(HandedOn),
    VerdictGiven(GivenVerdict),
    /// A task's work goes back to its developer.
    TaskRework(Rework),
    /// The critic failed too often: the work goes to the auditor without it.
    CriticBypassed {},
    /// A critic passed what an auditor failed.
    ReviewAuditDisagreement(Disagreement),
    /// The auditor found issues that the critic missed although every check passes.
    CriticMissedQualityIssue {
        issues: Vec<String>,
    },
    /// Checks passed in some environments and failed in others.
    EnvironmentDisagreement(EnvironmentsDiffer),
    /// What was learned from disagreements is forgotten.
    FocusReset {},
    /// Accepted work is to be merged into the run's branch.
    MergeOrdered(Merging),
    /// Accepted work is in the run's branch.
    WorkMerged {
        /// The commit that contains it; `None` if nothing had changed.
        commit: Option<String>,
    },
    /// Accepted work conflicts with what others have merged meanwhile.
    MergeConflicted {
        files: Vec<String>,
    },
}
