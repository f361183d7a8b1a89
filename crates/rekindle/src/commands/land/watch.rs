//! Follows a pull request until it is merged or closed: what its CI and its reviewers say becomes rework, a base that moved
//! is merged in, and a green pull request is merged if that is wanted. Every round starts from the record and the forge, so
//! that a kill between any two steps loses nothing and repeats nothing.

use std::process::{Command, Stdio};

use rekindle_core::forge::{self, Comment, Green, Outcome, Status};
use rekindle_core::input::Order;
use rekindle_core::pull_request::{
    Feedback, KnownPullRequest, POINT_MAX_BYTES, POINTS_MAX, Point, PullRequest, PullRequestAction, PullRequestStage,
};
use rekindle_core::state::{RunPhase, State};
use rekindle_core::text::counted;
use rekindle_engine::clock;
use rekindle_engine::git::Joined;

use super::points;
use super::publish::{Publisher, Trouble};
use super::{Proof, prove, whole};
use crate::client::orders;
use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::pinned;
use crate::ui::{self, one_line, short_commit};

/// The longest pause after temporary problems: a forge that is down for an hour is queried a few times.
const PAUSE_MAX_MS: u64 = 900_000;

/// A pause consists of pieces: a signal ends only one of them.
const PIECE_MS: u64 = 60_000;

/// What is remembered from one poll to the next. A kill forgets it, and then one more poll is needed.
struct Looks<'a> {
    into: Option<&'a str>,
    partial: bool,
    poll_ms: u64,
    /// What was green at the last look.
    green: Option<Green>,
}

/// The result of a round.
enum Round {
    /// Something changed: poll again at once.
    Again,
    /// Nothing to do until the forge has news.
    Quiet(String),
    Over(KnownPullRequest),
}

/// Follows the pull request, at most for `for_ms`. Returns how it ended; `None` when the time is up.
pub(super) fn follow(
    context: &Context,
    (into, partial): (Option<&str>, bool),
    for_ms: Option<u64>,
) -> Result<Option<KnownPullRequest>> {
    let began_ms = clock::boottime_ms();
    let left = || for_ms.map(|for_ms| for_ms.saturating_sub(clock::boottime_ms().saturating_sub(began_ms)));
    let (mut told, mut pause_ms) = (String::new(), 0);
    let mut looks = Looks { into, partial, poll_ms: PIECE_MS, green: None };
    loop {
        let words = match round(context, &mut looks) {
            Ok(Round::Over(known)) => return Ok(Some(known)),
            Ok(Round::Again) if left() != Some(0) => continue,
            Ok(Round::Again) => return Ok(None),
            Ok(Round::Quiet(words)) => {
                pause_ms = looks.poll_ms;
                words
            }
            Err(Trouble::Passing(words)) => {
                pause_ms = (pause_ms * 2).clamp(looks.poll_ms, PAUSE_MAX_MS.max(looks.poll_ms));
                format!("waiting: {words}")
            }
            Err(Trouble::Foreign(commit)) => {
                return Err(CliError::refused(format!("commit {} cannot be taken in", short_commit(&commit))));
            }
            Err(Trouble::Fatal(error)) => return Err(error),
        };
        if words != told {
            context.ui.say(&words);
            told = words;
        }
        let until_ms = clock::boottime_ms().saturating_add(pause_ms.min(left().unwrap_or(u64::MAX)));
        while clock::boottime_ms() < until_ms {
            let piece = until_ms.saturating_sub(clock::boottime_ms()).clamp(1, PIECE_MS);
            ui::pause(u32::try_from(piece).unwrap_or(u32::MAX));
        }
        if left() == Some(0) {
            return Ok(None);
        }
    }
}

fn round(context: &Context, looks: &mut Looks<'_>) -> std::result::Result<Round, Trouble> {
    work_off(context, looks.partial)?;
    let publisher = Publisher::open(context, looks.into)?;
    looks.poll_ms = publisher.landing.poll_ms;
    let state = pinned::state_of(&context.project)?;
    let known = match publisher.publish(&state) {
        Err(Trouble::Foreign(_)) => {
            let branch = publisher.work.branch().to_owned();
            return take_in(&publisher, &state, &branch).map(|_| Round::Again);
        }
        known => known?,
    };
    if matches!(known.stage, PullRequestStage::Merged | PullRequestStage::Closed) {
        return Ok(Round::Over(known));
    }
    let status = publisher.forge.status(&known.at.id)?;
    if let Some(action) = status.ended() {
        let at = PullRequest { head: status.head.clone(), ..known.at.clone() };
        publisher.record(action, at, Vec::new())?;
        let state = pinned::state_of(&context.project)?;
        return Ok(Round::Over(state.run.and_then(|run| run.pull_request).unwrap_or(known)));
    }
    if status.head != known.at.head {
        if publisher.work.has(&status.head)? {
            return Ok(Round::Quiet(format!("{} does not show the newest commit yet", publisher.forge.name())));
        }
        let branch = publisher.work.branch().to_owned();
        return take_in(&publisher, &state, &branch).map(|_| Round::Again);
    }
    if status.is_behind() && take_in(&publisher, &state, &known.at.base.clone())? {
        return Ok(Round::Again);
    }
    let comments = publisher.forge.comments(&known.at.id)?;
    if rework(&publisher, &state, &known, &status, &comments)? {
        return Ok(Round::Again);
    }
    answer(&publisher, &known, &comments)?;
    merge_or_wait(&publisher, &known, &status, looks)
}

/// Lets the run's open tasks be done, by a coordinator of their own: a kill of this process stops none of them.
fn work_off(context: &Context, partial: bool) -> std::result::Result<(), Trouble> {
    let state = pinned::state_of(&context.project)?;
    let finished = state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)));
    if !finished {
        let failed = |error: std::io::Error| CliError::internal("the rework cannot be started").because(&error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("--state-dir").arg(&context.project.state_dir).arg("resume").current_dir(&context.project.root);
        // Only this command's own output is printed.
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(failed)?;
        let paused = [Exit::Paused, Exit::Interrupted, Exit::Terminated].map(|exit| Some(i32::from(exit.code())));
        if paused.contains(&ended.code()) {
            let error = CliError::refused("the run is paused, and the pull request is no longer watched");
            return Err(error.hint("continue: rekindle land --watch").into());
        }
        if ended.code().is_none() {
            return Err(Trouble::Passing(format!("the coordinator was killed ({ended}); it is started again")));
        }
    }
    // Failed tasks are published only if the person said so.
    if partial { Ok(()) } else { Ok(whole(&pinned::state_of(&context.project)?)?) }
}

/// Merges a branch of the remote into the run's branch, proven by every check; conflicts become rework. Returns whether
/// anything changed.
fn take_in(publisher: &Publisher<'_>, state: &State, branch: &str) -> std::result::Result<bool, Trouble> {
    let remote = &publisher.landing.remote;
    let Some(commit) = publisher.work.fetch(remote, branch)? else { return Ok(false) };
    let message = format!("Merge {remote}/{branch} into {}", publisher.work.branch());
    let text = match publisher.work.join_commit(&commit, &message)? {
        Joined::Already => return Ok(false),
        Joined::Conflict { files } => points::conflict(remote, branch, &commit, &files),
        Joined::Ready { commit: joined, old } => {
            publisher.context.ui.say(&format!("merging {remote}/{branch} into {}", publisher.work.branch()));
            match prove(publisher.context, state, &publisher.work, &joined)? {
                Proof::Passed(_) => {
                    publisher.work.advance_to(&joined, &old)?;
                    return Ok(true);
                }
                Proof::Failed { command, output } => points::broken(remote, branch, &commit, &command, &output),
            }
        }
    };
    let known = state.run.as_ref().and_then(|run| run.pull_request.as_ref());
    let Some(known) = known else { return Ok(false) };
    let point = points::of_base(&commit, &known.at.head, text);
    give(publisher, known, vec![point])
}

/// Turns what CI and reviewers say into rework, unless it was taken before. Returns whether there was any.
fn rework(
    publisher: &Publisher<'_>,
    state: &State,
    known: &KnownPullRequest,
    status: &Status,
    comments: &[Comment],
) -> std::result::Result<bool, Trouble> {
    let mut new: Vec<Point> = Vec::new();
    for (id, check) in forge::new_failures(known, status) {
        let log = publisher.forge.log(check).unwrap_or_default();
        new.push(points::ci(id, check, &log));
    }
    let base = state.run.as_ref().and_then(|run| run.work_base.as_deref());
    for comment in forge::new_comments(known, comments, &publisher.landing.reviewers) {
        let path = comment.path.as_deref();
        let task = path.and_then(|path| publisher.work.task_of(&status.head, base, path, comment.line));
        new.push(points::comment(comment, task.and_then(|task| task.parse().ok())));
    }
    give(publisher, known, new)
}

/// Turns points into rework. Returns whether there was any.
fn give(
    publisher: &Publisher<'_>,
    known: &KnownPullRequest,
    mut new: Vec<Point>,
) -> std::result::Result<bool, Trouble> {
    new.retain(|point| !known.taken.contains(&point.id));
    new.truncate(POINTS_MAX);
    if new.is_empty() {
        return Ok(false);
    }
    for point in &mut new {
        let clean = publisher.redactor.redact(&point.text).into_owned();
        point.text = rekindle_core::text::tail_bytes(&clean, POINT_MAX_BYTES).to_owned();
    }
    let many = counted(new.len(), "point", "points");
    let feedback = Feedback { id: known.at.id.clone(), head: known.at.head.clone(), points: new };
    orders::give(&publisher.context.project, &Order::Feedback(Box::new(feedback)))?;
    publisher.context.ui.say(&format!("{}: {many} became rework", known.name()));
    Ok(true)
}

/// Answers comments whose rework is complete. An answer carries a mark, and is looked for before it is given.
fn answer(
    publisher: &Publisher<'_>,
    known: &KnownPullRequest,
    comments: &[Comment],
) -> std::result::Result<(), Trouble> {
    for (comment, given) in forge::unanswered(known, comments) {
        if !given {
            let text = format!("Addressed in {}.\n\n{}", known.at.head, forge::answer_marker(&comment.id));
            publisher.order(|forge| forge.reply(&known.at.id, comment, &text))?;
        }
        publisher.record(PullRequestAction::Answered, known.at.clone(), vec![comment.id.clone()])?;
    }
    Ok(())
}

/// Merges exactly the commit on which everything passed in two polls in a row, if that is wanted.
fn merge_or_wait(
    publisher: &Publisher<'_>,
    known: &KnownPullRequest,
    status: &Status,
    looks: &mut Looks<'_>,
) -> std::result::Result<Round, Trouble> {
    let (passed, pending) = (status.count(Outcome::Passed), status.count(Outcome::Pending));
    let may_merge = forge::may_merge(&mut looks.green, status);
    if publisher.landing.auto_merge && may_merge {
        let form = &publisher.landing.merge_form;
        publisher.context.ui.say(&format!("{} is green: merging {}", known.name(), short_commit(&status.head)));
        // Whatever the forge answers, the next query shows what became of it.
        match publisher.order(|forge| forge.merge(&known.at.id, &status.head, form)) {
            Ok(()) => {}
            Err(Trouble::Fatal(error)) => return Ok(Round::Quiet(format!("not merged: {}", error.message))),
            Err(trouble) => return Err(trouble),
        }
        let status = publisher.forge.status(&known.at.id)?;
        if status.ended().is_some() {
            return Ok(Round::Again);
        }
        return Ok(Round::Quiet(format!("{}: the merge is on its way", known.name())));
    }
    let checks = match (pending, status.count(Outcome::Failed)) {
        _ if status.checks.is_empty() => "no checks".to_owned(),
        (0, 0) => format!("{} passed", counted(passed, "check", "checks")),
        (0, failed) => format!("{} failed", counted(failed, "check", "checks")),
        (pending, _) => format!("{} pending", counted(pending, "check", "checks")),
    };
    Ok(Round::Quiet(format!("{}; {checks}", one_line(&known.words()))))
}
