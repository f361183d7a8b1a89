//! What a forge says about the pull request of a run, and what follows from it for whoever publishes the run: which pull request is the
//! run's, which words become rework, which answers are still owed, when it may be merged. Decisions alone: who asks the forge, pushes
//! and records is the caller, and the simulator plays one.

use serde::{Deserialize, Serialize};

use crate::pull_request::{FIELD_MAX_BYTES, KnownPullRequest, PullRequestAction, PullRequestStage};
use crate::text::{self, truncate_bytes};

/// Characters of a commit in an id.
pub const COMMIT_IN_ID: usize = 12;

/// Looks at the forge before something that may have been ordered counts as never done: its lists lag behind its orders.
pub const LOOKS: u32 = 5;

/// How a pull request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Open,
    Merged,
    Closed,
}

/// A pull request of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub id: String,
    pub url: String,
    pub state: Standing,
    /// The commit that it shows.
    pub head: String,
    pub base: String,
    pub body: String,
}

/// Whether it can be merged into its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mergeable {
    Yes,
    /// Both change the same lines.
    Conflict,
    /// The base has moved, and the forge wants it merged first.
    Behind,
    /// A person or a rule of the forge is missing, or the forge does not know yet.
    #[default]
    NotYet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Pending,
    Passed,
    Failed,
    /// It ended without saying anything about the work: cancelled, or a person has to act.
    Other,
}

/// A job of the CI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: Outcome,
    #[serde(default)]
    pub url: String,
}

/// A pull request and what the CI says about exactly its head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub state: Standing,
    pub head: String,
    #[serde(default)]
    pub mergeable: Mergeable,
    #[serde(default)]
    pub checks: Vec<Check>,
}

impl Status {
    /// What became of it, where it is over.
    pub fn ended(&self) -> Option<PullRequestAction> {
        match self.state {
            Standing::Open => None,
            Standing::Merged => Some(PullRequestAction::Merged),
            Standing::Closed => Some(PullRequestAction::Closed),
        }
    }

    /// Whether its base has moved in a way that has to be taken in.
    pub fn is_behind(&self) -> bool {
        matches!(self.mergeable, Mergeable::Conflict | Mergeable::Behind)
    }

    /// How many jobs came to this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }

    /// The commit that every job passed on, and how many jobs that were; nothing while one has not.
    pub fn green(&self) -> Option<Green> {
        let jobs = self.count(Outcome::Passed);
        (jobs > 0 && jobs == self.checks.len()).then(|| Green { head: self.head.clone(), jobs })
    }
}

/// A commit that was green at one look, and how many jobs it had then: jobs may still be coming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Green {
    pub head: String,
    pub jobs: usize,
}

/// Something that was written about a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: String,
    pub by: String,
    pub body: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub line: Option<u32>,
    /// The commit that its line is in, by the forge's own account; nothing where it is about the whole.
    #[serde(default)]
    pub head: Option<String>,
    /// Whether the forge says that its writer belongs to the project.
    #[serde(default = "yes")]
    pub trusted: bool,
    /// It is settled: by the person who wrote it, or because its line is gone.
    #[serde(default)]
    pub settled: bool,
    /// What an answer goes to, where that is not the comment itself.
    #[serde(default)]
    pub thread: Option<String>,
}

fn yes() -> bool {
    true
}

/// The line by which the pull request of a run is recognised.
pub fn marker(run: &str) -> String {
    format!("<!-- rekindle-run: {run} -->")
}

/// The line by which the answer to a comment is recognised.
pub fn answer_marker(comment: &str) -> String {
    format!("{ANSWERS}{comment} -->")
}

/// Every line of this kind, whoever's.
const ANSWERS: &str = "<!-- rekindle-answer: ";

/// What publishing begins with, by what is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The pull request that is open, by its number.
    pub open: Option<String>,
    /// That it is being opened has to be on record first: from then on it may exist, whatever is killed.
    pub records_opening: bool,
    /// How often the forge's list is looked at before one counts as never opened.
    pub looks: u32,
}

/// How to begin with a commit to publish; nothing where the pull request is merged with exactly this commit.
pub fn begin(known: Option<&KnownPullRequest>, tip: &str) -> Option<Beginning> {
    let at = |stage: PullRequestStage| known.filter(|known| known.stage == stage);
    if at(PullRequestStage::Merged).is_some_and(|known| known.at.head == tip) {
        return None;
    }
    let open = at(PullRequestStage::Open).map(|known| known.at.id.clone());
    let closed = at(PullRequestStage::Closed).is_some_and(|known| known.at.head == tip);
    let looks = if at(PullRequestStage::Opening).is_some() { LOOKS } else { 1 };
    Some(Beginning { records_opening: open.is_none() && !closed, open, looks })
}

/// By what the pull request of a run is known.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The one that was open when it was last looked at: it is the run's, whatever became of it.
    pub id: Option<&'a str>,
    pub marker: &'a str,
    /// The run's newest commit.
    pub tip: &'a str,
}

/// The pull request of a run among those of its branch: the one that is known; an open one, ours before anybody else's and the oldest first;
/// else one of ours that has ended with exactly this commit.
pub fn choose(mut found: Vec<Found>, wanted: &Wanted<'_>, base: &str) -> Option<Found> {
    found.sort_by_key(|found| (found.id.len(), found.id.clone()));
    let ours = |found: &Found| found.body.contains(wanted.marker);
    let open = |found: &Found| found.state == Standing::Open;
    let ended = |found: &Found| ours(found) && found.head == wanted.tip;
    let at = found
        .iter()
        .position(|found| wanted.id == Some(found.id.as_str()))
        .or_else(|| found.iter().position(|found| open(found) && ours(found)))
        .or_else(|| found.iter().position(|found| open(found) && found.base == base))
        .or_else(|| found.iter().position(|found| found.state == Standing::Merged && ended(found)))
        .or_else(|| found.iter().position(ended))?;
    Some(found.swap_remove(at))
}

/// What is to be put down about the pull request that was found.
pub fn became(found: &Found, known: Option<&KnownPullRequest>) -> PullRequestAction {
    let before = known.filter(|known| known.stage == PullRequestStage::Open && known.at.id == found.id);
    match (found.state, before) {
        (Standing::Merged, _) => PullRequestAction::Merged,
        (Standing::Closed, _) => PullRequestAction::Closed,
        (Standing::Open, None) => PullRequestAction::Opened,
        (Standing::Open, Some(_)) => PullRequestAction::Updated,
    }
}

/// Whether a comment is to be acted on: somebody of the project wrote it, it is open, and it stands on the commit that is shown.
pub fn counts(comment: &Comment, head: &str, reviewers: &[String]) -> bool {
    let theirs = comment.trusted || reviewers.contains(&comment.by);
    let current = comment.head.as_deref().is_none_or(|at| at == head);
    theirs && current && !comment.settled && !comment.body.contains(ANSWERS) && !comment.body.trim().is_empty()
}

/// The id of a failing job of one commit.
pub fn check_id(name: &str, head: &str) -> String {
    let name = text::one_line(name, FIELD_MAX_BYTES);
    text::one_line(&format!("check-{}-{name}", truncate_bytes(head, COMMIT_IN_ID)), FIELD_MAX_BYTES)
}

/// Jobs that failed and were not taken before, with their ids. A job that still runs may fail too: all of them make one rework.
pub fn new_failures<'a>(known: &KnownPullRequest, status: &'a Status) -> Vec<(String, &'a Check)> {
    let mut new: Vec<(String, &Check)> = Vec::new();
    if status.count(Outcome::Pending) > 0 {
        return new;
    }
    for check in status.checks.iter().filter(|check| check.outcome == Outcome::Failed) {
        let id = check_id(&check.name, &status.head);
        if !known.taken.contains(&id) && new.iter().all(|(other, _)| *other != id) {
            new.push((id, check));
        }
    }
    new
}

/// Comments that are to be acted on and were not taken before.
pub fn new_comments<'a>(
    known: &'a KnownPullRequest,
    comments: &'a [Comment],
    reviewers: &'a [String],
) -> impl Iterator<Item = &'a Comment> {
    let head = known.at.head.as_str();
    comments.iter().filter(move |comment| counts(comment, head, reviewers) && !known.taken.contains(&comment.id))
}

/// Comments whose rework is complete and whose answer is not on record, each with whether the forge has the answer already: an answer
/// carries a mark, and is looked for before it is given.
pub fn unanswered<'a>(
    known: &'a KnownPullRequest,
    comments: &'a [Comment],
) -> impl Iterator<Item = (&'a Comment, bool)> {
    let owed = |comment: &&Comment| known.taken.contains(&comment.id) && !known.answered.contains(&comment.id);
    comments.iter().filter(owed).map(|comment| {
        let marker = answer_marker(&comment.id);
        (comment, comments.iter().any(|other| other.body.contains(&marker)))
    })
}

/// Whether exactly the commit that is shown may be merged: everything passed on it at two looks in a row. Remembers this look.
pub fn may_merge(last: &mut Option<Green>, status: &Status) -> bool {
    let now = status.green();
    let settled = now.is_some() && now == *last;
    *last = now;
    settled && status.mergeable == Mergeable::Yes
}

#[cfg(test)]
mod tests;
