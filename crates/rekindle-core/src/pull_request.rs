//! The pull request of a run: where it is, what became of it, and what its reviewers and its CI said. Types and the one
//! sentence about it that every view shows; the consequences are decided in `decide/pull_request`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;

/// Points taken at once: more than a person writes in one review.
pub const POINTS_MAX: usize = 100;

/// Longest words of one point: a long comment, or the end of a job's log.
pub const POINT_MAX_BYTES: usize = 8 * 1024;

/// Points of one pull request that are known by their ids. What is more is a conversation that no agent can end.
pub const TAKEN_MAX: usize = 2_000;

/// Longest name, URL or id that a forge gives.
pub const FIELD_MAX_BYTES: usize = 512;

/// A pull request, and the commit that it was last seen or pushed at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullRequest {
    /// `gh`, `glab` or `command`.
    pub forge: String,
    pub remote: String,
    /// Its number at the forge; empty while it is being opened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The run's branch at the remote.
    pub branch: String,
    pub base: String,
    /// The commit of the run that it shows.
    pub head: String,
}

/// What became of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestAction {
    /// It is being opened: from here on it may exist.
    Opening,
    Opened,
    /// It shows newer work.
    Updated,
    /// Comments on it became rework.
    Reworked,
    /// Comments on it were answered.
    Answered,
    Merged,
    Closed,
}

/// The payload of `pull_request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestChange {
    pub action: PullRequestAction,
    #[serde(flatten)]
    pub at: PullRequest,
    /// The points that were taken as rework, or answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<String>,
}

/// The state of a run's pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPullRequest {
    pub stage: PullRequestStage,
    #[serde(flatten)]
    pub at: PullRequest,
    /// Points that became rework; none is taken twice.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub taken: BTreeSet<String>,
    /// Comments among them that were answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub answered: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestStage {
    Opening,
    Open,
    Merged,
    Closed,
}

impl KnownPullRequest {
    /// The sentence about it, the same in every view.
    pub fn words(&self) -> String {
        let (number, at) = (self.name(), if self.at.url.is_empty() { &self.at.branch } else { &self.at.url });
        match self.stage {
            PullRequestStage::Opening => {
                format!("a pull request of {at} is being opened; finish it: rekindle land --pr")
            }
            PullRequestStage::Open => format!("{number} is open: {at}"),
            PullRequestStage::Merged => format!("{number} is merged: {at}"),
            PullRequestStage::Closed => format!("{number} was closed: {at}"),
        }
    }

    /// Its number, as a person says it.
    pub fn name(&self) -> String {
        format!("pull request {}", self.at.id).trim_end().to_owned()
    }

    /// The state after an event; if nothing was known before, the event is the first information about it.
    pub(crate) fn after(known: Option<Self>, change: &PullRequestChange) -> Self {
        let at = change.at.clone();
        let same = known.filter(|known| known.at.id.is_empty() || at.id.is_empty() || known.at.id == at.id);
        let (mut taken, mut answered, before) = same.map_or_else(
            || (BTreeSet::new(), BTreeSet::new(), PullRequestStage::Open),
            |known| (known.taken, known.answered, known.stage),
        );
        let stage = match change.action {
            PullRequestAction::Opening => PullRequestStage::Opening,
            PullRequestAction::Opened | PullRequestAction::Updated => PullRequestStage::Open,
            PullRequestAction::Reworked => {
                taken.extend(change.points.iter().cloned());
                before
            }
            PullRequestAction::Answered => {
                answered.extend(change.points.iter().cloned());
                before
            }
            PullRequestAction::Merged => PullRequestStage::Merged,
            PullRequestAction::Closed => PullRequestStage::Closed,
        };
        Self { stage, at, taken, answered }
    }
}

/// Where a point comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// A job of the CI failed.
    Ci,
    /// Somebody wrote it.
    Comment,
    /// It conflicts with its target branch.
    Conflict,
}

/// One comment on a pull request: other people's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The same for as long as it is the same point.
    pub id: String,
    pub kind: PointKind,
    /// The person or the job.
    pub by: String,
    /// The file and line that it is about.
    #[serde(default)]
    pub place: String,
    pub text: String,
    /// The task that made what it is about, if known.
    #[serde(default)]
    pub task: Option<TaskId>,
}

/// What was said about exactly one commit of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The pull request's number.
    pub id: String,
    /// The commit that all of it was made on.
    pub head: String,
    pub points: Vec<Point>,
}
