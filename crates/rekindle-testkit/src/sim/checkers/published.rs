//! Pull requests: there is one at a time, what was said about it becomes rework once and for the commit that it was said about, every
//! comment is answered once, and nothing is merged but the commit that everything passed on.

use std::collections::BTreeSet;

use rekindle_core::event::{Added, AttemptEvent, Body, Event, ReviewEvent, RunEvent};
use rekindle_core::forge::{Outcome, Standing, answer_marker};
use rekindle_core::pull_request::{PullRequestAction, PullRequestChange};
use rekindle_core::review::{Rework, ReworkSource};

use super::super::lander::RENAMED;
use super::super::world::Sim;
use super::Invariant;

/// How a task is called that exists for the words about a pull request.
const TITLE: &str = "Address the feedback on ";

/// What the log has told of pull requests.
#[derive(Debug, Default)]
pub struct Published {
    taken: BTreeSet<String>,
    /// Points that were taken, and stand in no rework yet.
    owed: BTreeSet<String>,
    /// Points were taken in this step: a task for them may be added.
    just_taken: bool,
}

impl Published {
    /// Whether a task was added for the words about a pull request.
    pub fn explains(&self, added: &Added) -> bool {
        self.just_taken && added.task.title.starts_with(TITLE)
    }
}

impl Sim {
    /// Judges what the log says about the pull request. The event is not applied yet.
    pub fn check_published(&mut self, event: &Event) {
        match &event.body {
            Body::Run(RunEvent::PullRequest(change)) => {
                self.nothing_owed();
                if change.action == PullRequestAction::Reworked {
                    self.check_taken(change);
                }
            }
            Body::Review(ReviewEvent::TaskRework(rework)) => self.note_rework(rework),
            Body::Attempt(AttemptEvent::Dispatched { .. }) | Body::Run(RunEvent::RunFinished { .. }) => {
                self.nothing_owed();
                self.checkers.truth.published.just_taken = false;
            }
            _ => {}
        }
    }

    fn check_taken(&mut self, change: &PullRequestChange) {
        let known = self.checkers.replayed.run.as_ref().and_then(|run| run.pull_request.as_ref());
        let current = known.is_some_and(|known| known.at.head == change.at.head && known.at.id == change.at.id);
        if !current {
            let what = format!("{:?} were taken for {}, and the record has another", change.points, change.at.head);
            self.checkers.broken(Invariant::Reviewers, what);
        }
        for id in &change.points {
            let real = id.trim_end_matches(RENAMED).to_owned();
            let pull = self.lander.forge.pull(&change.at.id);
            let head = pull.and_then(|pull| pull.comments.iter().find(|comment| comment.id == real)?.head.clone());
            if let Some(head) = head.filter(|head| *head != change.at.head) {
                let what = format!("{real} was said about {head} and is taken for {}", change.at.head);
                self.checkers.broken(Invariant::Reviewers, what);
            }
            if !self.checkers.truth.published.taken.insert(real.clone()) {
                self.checkers.broken(Invariant::Reviewers, format!("{real} becomes rework a second time"));
            }
            self.checkers.truth.published.owed.insert(id.clone());
        }
        self.checkers.truth.published.just_taken = true;
    }

    fn note_rework(&mut self, rework: &Rework) {
        if rework.source == ReworkSource::PullRequest {
            let words = rework.findings.issues.join("\n");
            // The clash with a base has one point, and no name of its own in its words.
            let told =
                |id: &String| id.starts_with("base-") || words.contains(&format!("<{}>", id.trim_end_matches(RENAMED)));
            self.checkers.truth.published.owed.retain(|id| !told(id));
        }
    }

    fn nothing_owed(&mut self) {
        let owed = std::mem::take(&mut self.checkers.truth.published.owed);
        if !owed.is_empty() {
            self.checkers.broken(Invariant::Reviewers, format!("{owed:?} were taken, and nobody is told of them"));
        }
    }

    /// A pull request is about to be opened: none of ours may be open.
    pub fn check_may_open(&mut self) {
        let open = self.lander.forge.pulls.iter().find(|pull| pull.found.state == Standing::Open);
        if let Some(open) = open.map(|pull| pull.found.id.clone()) {
            self.checkers.broken(Invariant::OnePullRequest, format!("another is opened beside {open}"));
        }
    }

    /// A comment was answered at the forge.
    pub fn check_answered(&mut self, id: &str, comment: &str) {
        let marker = answer_marker(comment);
        let Some(pull) = self.lander.forge.pull(id) else { return };
        let answers = pull.comments.iter().filter(|other| other.body.contains(&marker)).count();
        if answers > 1 {
            self.checkers.broken(Invariant::Reviewers, format!("{comment} is answered {answers} times"));
        }
    }

    /// A commit was merged: the CI passed on exactly it, and what was said about it until the last look became rework.
    pub fn check_merged(&mut self, id: &str, commit: &str) {
        let (now_ms, looked_ms) = (self.queue.now_ms(), self.lander.looked_ms);
        let checks = self.lander.forge.checks(commit, now_ms);
        if checks.is_empty() || checks.iter().any(|check| check.outcome != Outcome::Passed) {
            self.checkers.broken(Invariant::StaleMerge, format!("{commit} is merged on {checks:?}"));
        }
        let taken = &self.checkers.truth.published.taken;
        let Some(pull) = self.lander.forge.pulls.iter().find(|pull| pull.found.id == id) else { return };
        let lost = pull.comments.iter().find(|comment| {
            let here = comment.head.as_deref().is_none_or(|head| head == commit);
            let seen = pull.written_ms.get(&comment.id).is_some_and(|at| *at < looked_ms);
            comment.trusted && here && seen && !taken.contains(&comment.id)
        });
        if let Some(lost) = lost.map(|comment| comment.id.clone()) {
            self.checkers.broken(Invariant::Reviewers, format!("{commit} is merged, and {lost} was never taken"));
        }
    }
}
