//! The simulated `land --watch`: a process beside the coordinator that publishes the run and follows its pull request. What it does next
//! is decided by the product (`rekindle_core::forge`, and the core for what is put down); here it is played, with a kill between any two
//! acts. Chance of its own, so that stories without a pull request stay as they are.

use rekindle_core::forge::{self, Comment, Found, Green, LOOKS, Standing, Status, Wanted};
use rekindle_core::input::Order;
use rekindle_core::pull_request::{
    Feedback, KnownPullRequest, Point, PointKind, PullRequest, PullRequestAction, PullRequestChange, PullRequestStage,
};
use rekindle_core::state::RunPhase;
use rekindle_engine::control::wire::Request;

use super::calls::Caller;
use super::forge::{BASE, BRANCH, Forge, No};
use super::plant::Plant;
use super::rng::Rng;
use super::story::{MINUTE, SECOND};
use super::world::{Happening, Sim};

/// What the lander's chance is drawn from, beside the story's seed.
const OWN: u64 = 0x1a4d_0f04_6e00_0001;

/// Between two looks when nothing is to be done.
const POLL_MS: u64 = 5 * SECOND;

/// How long a person leaves a pull request to the lander when nothing goes wrong any more: several rounds of CI and looks.
const LONG_ENOUGH_MS: u64 = 3 * MINUTE;

/// A point that a planted bug has given another name ends so.
pub const RENAMED: char = '\'';

/// The lander, and the forge that it publishes at.
#[derive(Debug)]
pub struct Lander {
    rng: Rng,
    /// It publishes while the run is going on.
    beside: bool,
    /// It merges what is green; else a person does, when the faults are over.
    auto_merge: bool,
    /// What was green at the last look; a kill forgets it.
    green: Option<Green>,
    /// The call that it waits for, and what was put down by those that were answered since its round began.
    waits: Option<(u64, Order)>,
    given: Vec<Order>,
    /// Commits of the run's branch that no task made.
    joins: u64,
    /// Somebody pushed just before it merged.
    surprised: bool,
    /// Agents were told to bring the base in.
    base_is_rework: bool,
    /// It has ended, or this story has none.
    pub over: bool,
    pub forge: Forge,
    /// How long people and faults go on after the run's first end, and until when that is.
    trouble_ms: u64,
    trouble_until_ms: Option<u64>,
    /// When it last saw all comments.
    pub looked_ms: u64,
}

/// Why a round stopped.
enum Stop {
    Killed,
    Passing,
    /// For the coordinator's answer.
    Waits,
}

impl From<No> for Stop {
    fn from(_: No) -> Self {
        Self::Passing
    }
}

type Act<T> = Result<T, Stop>;

enum Round {
    Again,
    Quiet,
    Over,
}

impl Lander {
    /// The lander of a seed, if it has one.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ OWN);
        let (used, beside, auto_merge) = (rng.chance(35), rng.chance(30), rng.chance(85));
        let trouble_ms = rng.between(MINUTE, 8 * MINUTE);
        Self {
            forge: Forge::new(Rng::new(seed ^ OWN.rotate_left(7))),
            rng,
            beside,
            auto_merge,
            green: None,
            waits: None,
            given: Vec::new(),
            joins: 0,
            surprised: false,
            base_is_rework: false,
            over: !used,
            trouble_ms,
            trouble_until_ms: None,
            looked_ms: 0,
        }
    }
}

impl Sim {
    /// The lander takes its next round. Says whether it was the last.
    pub fn lander_looks(&mut self) -> bool {
        if self.lander.over || self.lander.waits.is_some() {
            return false;
        }
        if self.is_finished() {
            let until = self.queue.now_ms() + self.lander.trouble_ms;
            self.lander.trouble_until_ms.get_or_insert(until);
        }
        let round = self.lander_round();
        for what in std::mem::take(&mut self.lander.forge.drawn) {
            self.count(what);
        }
        if !matches!(round, Err(Stop::Waits)) {
            self.lander.given.clear();
        }
        let next = match round {
            Ok(Round::Over) => {
                self.say(format_args!("lander: it is over"));
                self.lander.over = true;
                return true;
            }
            Err(Stop::Waits) => return false,
            Ok(Round::Again) => 50,
            Ok(Round::Quiet) => POLL_MS,
            Err(Stop::Passing) => 2 * POLL_MS,
            Err(Stop::Killed) => {
                self.say(format_args!("lander: killed"));
                self.count("lander killed");
                self.lander.green = None;
                self.lander.rng.between(SECOND, 30 * SECOND)
            }
        };
        self.queue.after_ms(next, Happening::LanderLooks);
        false
    }

    /// People act at the forge, and again later.
    pub fn forge_moves(&mut self) {
        if self.lander.over {
            return;
        }
        let next = self.lander.rng.between(2 * SECOND, 15 * SECOND);
        self.queue.after_ms(next, Happening::ForgeMoves);
        let now_ms = self.queue.now_ms();
        // A job that says nothing about the work, or one that fails and whose rework changed nothing, is a person's to judge.
        let patience_ms = if self.lander.auto_merge { LONG_ENOUGH_MS } else { 0 };
        let waited = self.lander.trouble_until_ms.is_some_and(|until| now_ms > until + patience_ms);
        match self.is_calm() {
            false => self.lander.forge.people_act(now_ms),
            true if waited && self.is_finished() => self.lander.forge.merge_what_is_open(),
            true => {}
        }
    }

    /// The answer to its call has come, or never will.
    pub fn lander_heard(&mut self, id: u64, answered: bool) {
        let Some((_, order)) = self.lander.waits.take_if(|(waits, _)| *waits == id) else { return };
        if answered {
            self.lander.given.push(order);
        }
        let delay = if answered { 5 } else { SECOND };
        self.queue.after_ms(delay, Happening::LanderLooks);
    }

    /// Nothing more goes wrong with publishing.
    pub fn is_calm(&self) -> bool {
        self.lander.trouble_until_ms.is_some_and(|until| self.queue.now_ms() > until)
    }

    pub fn is_finished(&self) -> bool {
        self.checkers.replayed.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)))
    }

    fn lander_may_die(&mut self) -> Act<()> {
        if !self.is_calm() && self.lander.rng.chance(6) { Err(Stop::Killed) } else { Ok(()) }
    }

    /// The run's newest commit: every completion and every merge makes one.
    fn tip(&mut self) -> Option<String> {
        let complete = self.checkers.told.get("task_completed").copied().filter(|complete| *complete > 0)?;
        let tip = format!("c{complete}-{}", self.lander.joins);
        self.lander.forge.ours.insert(tip.clone());
        Some(tip)
    }

    fn known(&self) -> Option<KnownPullRequest> {
        self.checkers.replayed.run.as_ref().and_then(|run| run.pull_request.clone())
    }

    /// One round, as `commands/land/watch` has it.
    fn lander_round(&mut self) -> Act<Round> {
        if !self.is_finished() && !self.lander.beside {
            return Ok(Round::Quiet);
        }
        if self.is_finished() && std::mem::take(&mut self.lander.base_is_rework) {
            self.lander.forge.base_taken = self.lander.forge.base_moves;
            self.lander.joins += 1;
        }
        let Some(tip) = self.tip() else {
            // Nothing was made, and nothing will be.
            return Ok(if self.is_finished() { Round::Over } else { Round::Quiet });
        };
        let Some(known) = self.publish(&tip)? else {
            let open = self.known().is_some_and(|known| known.stage == PullRequestStage::Open);
            return Ok(if open && self.take_in_branch() { Round::Again } else { Round::Over });
        };
        if !self.is_finished() {
            return Ok(Round::Quiet);
        }
        if matches!(known.stage, PullRequestStage::Merged | PullRequestStage::Closed) {
            return Ok(Round::Over);
        }
        self.follow(&known)
    }

    /// Pushes the newest commit and sees to it that it has one pull request; nothing where the branch has a commit of somebody else.
    fn publish(&mut self, tip: &str) -> Act<Option<KnownPullRequest>> {
        let (now_ms, calm) = (self.queue.now_ms(), self.is_calm());
        let known = self.known();
        let Some(beginning) = forge::begin(known.as_ref(), tip) else { return Ok(known) };
        let text = |text: &str| text.to_owned();
        let (forge, remote, branch, base) = (text("command"), text("origin"), text(BRANCH), text(BASE));
        let at = PullRequest { forge, remote, branch, base, head: text(tip), ..PullRequest::default() };
        if beginning.records_opening && self.plant != Some(Plant::ForgetOpening) {
            self.put_on_record(PullRequestAction::Opening, at.clone(), Vec::new())?;
        }
        self.lander_may_die()?;
        let pushed = self.lander.forge.ask(calm, |forge| forge.push(tip, now_ms, calm))?;
        if pushed.is_err() {
            return Ok(None);
        }
        let marker = forge::marker("story");
        let wanted = Wanted { id: beginning.open.as_deref(), marker: &marker, tip };
        let found = match self.found(&wanted, beginning.looks)? {
            Some(found) => found,
            None => {
                self.check_may_open();
                let made = self.lander.forge.order(calm, |forge| forge.create(tip, &marker, calm));
                self.lander_may_die()?;
                let looks = if made == Err(No::Later) { 0 } else { LOOKS };
                self.found(&wanted, looks)?.ok_or(Stop::Passing)?
            }
        };
        let head = if found.state == Standing::Open { at.head } else { found.head.clone() };
        let action = forge::became(&found, known.as_ref());
        let at = PullRequest { id: found.id, url: found.url, base: found.base, head, ..at };
        self.put_on_record(action, at, Vec::new())?;
        Ok(self.known())
    }

    fn found(&mut self, wanted: &Wanted<'_>, looks: u32) -> Act<Option<Found>> {
        for _ in 0..looks {
            self.lander_may_die()?;
            let calm = self.is_calm();
            let list = self.lander.forge.ask(calm, Forge::find)?;
            if let Some(found) = forge::choose(list, wanted, BASE) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn follow(&mut self, known: &KnownPullRequest) -> Act<Round> {
        let (now_ms, calm, id) = (self.queue.now_ms(), self.is_calm(), known.at.id.as_str());
        let status = self.lander.forge.ask(calm, |forge| forge.status(id, now_ms))?.ok_or(Stop::Passing)?;
        if let Some(action) = status.ended() {
            let at = PullRequest { head: status.head, ..known.at.clone() };
            self.put_on_record(action, at, Vec::new())?;
            return Ok(Round::Over);
        }
        if status.head != known.at.head {
            if !self.lander.forge.ours.contains(&status.head) {
                self.take_in_branch();
                return Ok(Round::Again);
            }
            return Ok(Round::Quiet);
        }
        if status.is_behind() && self.take_in_base(known)? {
            return Ok(Round::Again);
        }
        let comments = self.lander.forge.ask(calm, |forge| forge.pull(id).map(|pull| pull.comments.clone()))?;
        let comments = self.comments_for_lander(comments.unwrap_or_default(), known);
        self.lander.looked_ms = now_ms;
        let points = self.points(known, &status, &comments);
        if self.give_points(known, points)? {
            return Ok(Round::Again);
        }
        self.answer_comments(known, &comments)?;
        self.merge_if_green(known, &status)
    }

    /// A commit that somebody pushed to the run's branch comes into it.
    fn take_in_branch(&mut self) -> bool {
        let Some(commit) = self.lander.forge.foreign() else { return false };
        self.lander.forge.ours.insert(commit);
        self.lander.joins += 1;
        true
    }

    /// The base comes into the run's branch, or its clash becomes rework. Says whether anything changed.
    fn take_in_base(&mut self, known: &KnownPullRequest) -> Act<bool> {
        let number = self.lander.forge.base_moves;
        if !self.lander.forge.clashes {
            self.lander.forge.base_taken = number;
            self.lander.joins += 1;
            return Ok(true);
        }
        let (id, text) = (format!("base-b{number}-{}", known.at.head), "bring the base in".to_owned());
        let point = Point { id, kind: PointKind::Conflict, by: String::new(), place: String::new(), text, task: None };
        let given = self.give_points(known, vec![point])?;
        self.lander.base_is_rework |= given;
        Ok(given)
    }

    /// What CI and reviewers say that was not taken before.
    fn points(&mut self, known: &KnownPullRequest, status: &Status, comments: &[Comment]) -> Vec<Point> {
        let place = String::new;
        let failures = forge::new_failures(known, status).into_iter().map(|(id, check)| {
            let text = format!("the job fails <{id}>");
            Point { id, kind: PointKind::Ci, by: check.name.clone(), place: place(), text, task: None }
        });
        let mut points: Vec<Point> = failures.collect();
        let tasks = self.checkers.all_tasks();
        for comment in forge::new_comments(known, comments, &[]) {
            let task = self.lander.rng.pick(&tasks).filter(|_| self.lander.rng.clone().chance(70)).cloned();
            let (id, by, text) = (comment.id.clone(), comment.by.clone(), comment.body.clone());
            points.push(Point { id, kind: PointKind::Comment, by, place: place(), text, task });
        }
        points
    }

    /// Makes rework of points. Says whether there was any.
    fn give_points(&mut self, known: &KnownPullRequest, mut points: Vec<Point>) -> Act<bool> {
        points.retain(|point| !known.taken.contains(&point.id));
        if points.is_empty() {
            return Ok(false);
        }
        let feedback = Feedback { id: known.at.id.clone(), head: known.at.head.clone(), points };
        self.land_order(Order::Feedback(Box::new(feedback)))?;
        Ok(true)
    }

    fn answer_comments(&mut self, known: &KnownPullRequest, comments: &[Comment]) -> Act<()> {
        let id = known.at.id.as_str();
        for (comment, given) in forge::unanswered(known, comments) {
            if !given || self.plant == Some(Plant::AnswerUnlooked) {
                self.lander_may_die()?;
                let body = format!("Addressed. {}", forge::answer_marker(&comment.id));
                let answer = Comment { id: format!("{}-answer", comment.id), body, trusted: true, ..comment.clone() };
                let calm = self.is_calm();
                self.lander.forge.order(calm, |forge| {
                    if let Some(pull) = forge.pull(id) {
                        pull.comments.push(answer);
                    }
                })?;
                self.check_answered(id, &comment.id);
            }
            let ids = vec![comment.id.clone()];
            self.put_on_record(PullRequestAction::Answered, known.at.clone(), ids)?;
        }
        Ok(())
    }

    fn merge_if_green(&mut self, known: &KnownPullRequest, status: &Status) -> Act<Round> {
        let id = known.at.id.as_str();
        if !forge::may_merge(&mut self.lander.green, status) || !self.lander.auto_merge {
            return Ok(Round::Quiet);
        }
        self.lander_may_die()?;
        // Somebody may push in between, once.
        let calm = self.is_calm();
        if !self.lander.surprised && self.lander.rng.chance(60) {
            self.lander.surprised = true;
            self.lander.forge.somebody_pushes(self.queue.now_ms());
        }
        let head = Some(status.head.as_str()).filter(|_| self.plant != Some(Plant::MergeAnyCommit));
        let mut merged = None;
        let said = self.lander.forge.order(calm, |forge| merged = forge.merge(id, head));
        if let Some(commit) = merged {
            self.check_merged(id, &commit);
        }
        said?;
        Ok(Round::Again)
    }

    fn put_on_record(&mut self, action: PullRequestAction, at: PullRequest, points: Vec<String>) -> Act<()> {
        self.land_order(Order::PullRequest(Box::new(PullRequestChange { action, at, points })))
    }

    /// Gives the run an order: to the coordinator, whose answer is waited for, or into the log where none runs.
    fn land_order(&mut self, order: Order) -> Act<()> {
        if self.lander.given.contains(&order) {
            return Ok(());
        }
        self.lander_may_die()?;
        self.say(format_args!("lander: {order:?}"));
        if self.coordinator.up {
            let id = self.call(None, Vec::new(), Request::Order(order.clone()), Caller::Lander);
            self.lander.waits = Some((id, order));
            return Err(Stop::Waits);
        }
        let finished = self.is_finished();
        let put = self.put_down_offline(order);
        if finished && !self.is_finished() {
            self.queue.after_ms(SECOND, Happening::CoordinatorStarts);
        }
        self.lander_may_die()?;
        if put { Ok(()) } else { Err(Stop::Passing) }
    }

    /// The comments as the lander sees them: as they are, unless a bug is planted.
    fn comments_for_lander(&self, mut comments: Vec<Comment>, known: &KnownPullRequest) -> Vec<Comment> {
        match self.plant {
            Some(Plant::LoseComment) => comments.retain(|comment| comment.head.is_some()),
            Some(Plant::OldComment) => {
                for comment in comments.iter_mut().filter(|comment| comment.head.is_some()) {
                    comment.head = Some(known.at.head.clone());
                }
            }
            Some(Plant::CommentRenamed) => {
                let taken = known.taken.clone();
                for comment in comments.iter_mut().filter(|comment| taken.contains(&comment.id)) {
                    comment.id.push(RENAMED);
                }
            }
            _ => {}
        }
        comments
    }
}
