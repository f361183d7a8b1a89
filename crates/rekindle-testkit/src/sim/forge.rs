//! The simulated forge: pull requests, CI, reviewers, people who push, close and merge, lists that lag, and calls that are refused or
//! whose answer is lost. Owns what is really there; what the coordinator's log says of it is judged in `checkers/published`.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::forge::{Check, Comment, Found, LOOKS, Mergeable, Outcome, Standing, Status};

use super::rng::Rng;
use super::story::SECOND;

/// The run's branch, and what it goes into.
pub const BRANCH: &str = "rekindle/story";
pub const BASE: &str = "main";

/// What people do to one story's pull requests at most: each of it may begin the work anew.
const COMMENTS_MAX: usize = 6;
const PUSHES_MAX: u32 = 3;
const MOVES_MAX: u64 = 3;

/// By when a second job of a commit is known: before anybody looks a second time.
const JOB_APPEARS_MS: u64 = 3 * SECOND;

/// Why a call came to nothing that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// It was not done.
    Later,
    /// It may have been done.
    NoAnswer,
}

/// A job of the CI on one commit.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    appears_ms: u64,
    ends_ms: u64,
    outcome: Outcome,
}

/// A pull request as it really is.
#[derive(Clone, Debug)]
pub struct Pull {
    pub found: Found,
    /// Looks at the list that do not show it yet.
    hidden: u32,
    /// The commit that its page still shows, and until when.
    shown: Option<(String, u64)>,
    pub comments: Vec<Comment>,
    /// When each was written.
    pub written_ms: BTreeMap<String, u64>,
}

/// The forge and the remote.
#[derive(Debug)]
pub struct Forge {
    pub rng: Rng,
    pub pulls: Vec<Pull>,
    /// The commit of the run's branch at the remote.
    branch: Option<String>,
    /// Commits that are known here: our own, and those of others that were taken in.
    pub ours: BTreeSet<String>,
    jobs: BTreeMap<String, Vec<Job>>,
    /// How often the base moved, and how much of it was taken in.
    pub base_moves: u64,
    pub base_taken: u64,
    /// Whether the newest move of the base changes the same lines.
    pub clashes: bool,
    pushes: u32,
    made: u64,
    pub drawn: Vec<&'static str>,
}

impl Forge {
    pub fn new(rng: Rng) -> Self {
        Self {
            rng,
            pulls: Vec::new(),
            branch: None,
            ours: BTreeSet::new(),
            jobs: BTreeMap::new(),
            base_moves: 0,
            base_taken: 0,
            clashes: false,
            pushes: 0,
            made: 0,
            drawn: Vec::new(),
        }
    }

    /// Asks the forge something; now and then it does not answer.
    pub fn ask<T>(&mut self, calm: bool, what: impl FnOnce(&mut Self) -> T) -> Result<T, No> {
        if !calm && self.rng.chance(8) {
            self.drawn.push("forge refused");
            return Err(No::Later);
        }
        Ok(what(self))
    }

    /// Orders something from the forge. An answer that is lost says nothing about what was done.
    pub fn order<T>(&mut self, calm: bool, what: impl FnOnce(&mut Self) -> T) -> Result<T, No> {
        if !calm && self.rng.chance(40) {
            self.drawn.push("forge gave no answer");
            if self.rng.chance(50) {
                what(self);
            }
            return Err(No::NoAnswer);
        }
        self.ask(calm, what)
    }

    /// What the remote's branch has that is not known here.
    pub fn foreign(&self) -> Option<String> {
        self.branch.clone().filter(|commit| !self.ours.contains(commit))
    }

    /// Pushes a commit of ours; refused where the branch has one of somebody else.
    pub fn push(&mut self, tip: &str, now_ms: u64, calm: bool) -> Result<(), String> {
        if let Some(foreign) = self.foreign() {
            return Err(foreign);
        }
        self.ours.insert(tip.to_owned());
        self.shows(tip, now_ms, calm);
        Ok(())
    }

    /// The branch has another commit: its open pull request shows it, perhaps later, and the CI begins.
    fn shows(&mut self, commit: &str, now_ms: u64, calm: bool) {
        if self.branch.as_deref() == Some(commit) {
            return;
        }
        self.branch = Some(commit.to_owned());
        let lags = !calm && self.rng.chance(30);
        let until_ms = now_ms + self.rng.between(SECOND, 8 * SECOND);
        for pull in self.pulls.iter_mut().filter(|pull| pull.found.state == Standing::Open) {
            let before = std::mem::replace(&mut pull.found.head, commit.to_owned());
            pull.shown = lags.then_some((before, until_ms));
        }
        self.begin_jobs(commit, now_ms, calm);
    }

    fn begin_jobs(&mut self, commit: &str, now_ms: u64, calm: bool) {
        let mut jobs = Vec::new();
        for number in 0..self.rng.between(1, 2) {
            let outcome = match self.rng.weighted(&[72, 24, 4]) {
                1 if !calm => Outcome::Failed,
                2 if !calm => Outcome::Other,
                _ => Outcome::Passed,
            };
            let appears_ms = now_ms + if number == 0 { 0 } else { self.rng.below(JOB_APPEARS_MS) };
            let ends_ms = appears_ms + self.rng.between(SECOND, 20 * SECOND);
            if outcome == Outcome::Failed {
                self.drawn.push("ci failed");
            }
            jobs.push(Job { name: format!("job {number}"), appears_ms, ends_ms, outcome });
        }
        self.jobs.insert(commit.to_owned(), jobs);
    }

    /// The jobs of a commit as they are known at a moment.
    pub fn checks(&self, commit: &str, now_ms: u64) -> Vec<Check> {
        let jobs = self.jobs.get(commit).into_iter().flatten().filter(|job| job.appears_ms <= now_ms);
        let outcome = |job: &Job| if job.ends_ms <= now_ms { job.outcome } else { Outcome::Pending };
        jobs.map(|job| Check { name: job.name.clone(), outcome: outcome(job), url: String::new() }).collect()
    }

    /// The list of pull requests, which lags behind.
    pub fn find(&mut self) -> Vec<Found> {
        let mut seen = Vec::new();
        for pull in &mut self.pulls {
            match pull.hidden {
                0 => seen.push(pull.found.clone()),
                _ => pull.hidden -= 1,
            }
        }
        seen
    }

    pub fn create(&mut self, head: &str, body: &str, calm: bool) {
        let id = (self.pulls.len() + 1).to_string();
        let hidden = if calm { 0 } else { u32::try_from(self.rng.below(u64::from(LOOKS))).unwrap_or(0) };
        let (url, base) = (format!("https://forge.example/{id}"), BASE.to_owned());
        let found = Found { id, url, state: Standing::Open, head: head.to_owned(), base, body: body.to_owned() };
        let (comments, written_ms) = (Vec::new(), BTreeMap::new());
        self.pulls.push(Pull { found, hidden, shown: None, comments, written_ms });
    }

    pub fn pull(&mut self, id: &str) -> Option<&mut Pull> {
        self.pulls.iter_mut().find(|pull| pull.found.id == id)
    }

    pub fn status(&mut self, id: &str, now_ms: u64) -> Option<Status> {
        let mergeable = match (self.base_taken < self.base_moves, self.clashes) {
            (false, _) => Mergeable::Yes,
            (true, false) => Mergeable::Behind,
            (true, true) => Mergeable::Conflict,
        };
        let pull = self.pull(id)?;
        let shown = pull.shown.clone().filter(|(_, until)| now_ms < *until).map(|(commit, _)| commit);
        let (state, head) = (pull.found.state, shown.unwrap_or_else(|| pull.found.head.clone()));
        let checks = self.checks(&head, now_ms);
        Some(Status { state, head, mergeable, checks })
    }

    /// Merges a commit, if it is the one that the pull request has. Returns the commit that was merged.
    pub fn merge(&mut self, id: &str, head: Option<&str>) -> Option<String> {
        let pull = self.pull(id).filter(|pull| pull.found.state == Standing::Open)?;
        if head.is_some_and(|head| head != pull.found.head) {
            return None;
        }
        pull.found.state = Standing::Merged;
        Some(pull.found.head.clone())
    }

    /// What people do meanwhile.
    pub fn people_act(&mut self, now_ms: u64) {
        let commits: Vec<String> = self.ours.iter().cloned().collect();
        let open = self.pulls.iter().rposition(|pull| pull.found.state == Standing::Open);
        let Some(at) = open else { return };
        let written = self.pulls[at].comments.len();
        match self.rng.weighted(&[36, 10, 10, 8, 12, 1, 1, 22]) {
            kind @ 0..=2 if written < COMMENTS_MAX => {
                self.made += 1;
                let now = self.pulls[at].found.head.clone();
                let old = self.rng.pick(&commits).cloned().unwrap_or_default();
                let (what, head) = match kind {
                    0 => ("comment", Some(now).filter(|_| self.rng.chance(50))),
                    1 => ("comment on an older commit", Some(old)),
                    _ => ("comment of a stranger", None),
                };
                self.drawn.push(what);
                self.write(at, head, kind != 2, now_ms);
            }
            3 if self.pushes < PUSHES_MAX => self.somebody_pushes(now_ms),
            4 if self.base_moves < MOVES_MAX => {
                self.drawn.push("base moved");
                self.base_moves += 1;
                self.clashes = self.rng.chance(40);
            }
            5 => {
                self.drawn.push("closed by a person");
                self.pulls[at].found.state = Standing::Closed;
            }
            6 => self.merged_by_hand(at),
            _ => {}
        }
    }

    /// Somebody pushes a commit of their own to the run's branch.
    pub fn somebody_pushes(&mut self, now_ms: u64) {
        self.drawn.push("push by somebody else");
        self.pushes += 1;
        let commit = format!("x{}", self.pushes);
        self.shows(&commit, now_ms, false);
    }

    fn write(&mut self, at: usize, head: Option<String>, trusted: bool, now_ms: u64) {
        let id = format!("line-{}", self.made);
        let comment = Comment {
            id: id.clone(),
            by: "ann".to_owned(),
            body: format!("please change <{id}>"),
            path: None,
            line: None,
            head,
            trusted,
            settled: false,
            thread: None,
        };
        self.pulls[at].comments.push(comment);
        self.pulls[at].written_ms.insert(id, now_ms);
    }

    /// A person merges what is open, whatever it is.
    pub fn merge_what_is_open(&mut self) {
        if let Some(at) = self.pulls.iter().rposition(|pull| pull.found.state == Standing::Open) {
            self.merged_by_hand(at);
        }
    }

    fn merged_by_hand(&mut self, at: usize) {
        self.drawn.push("merged by a person");
        self.pulls[at].found.state = Standing::Merged;
    }
}
