//! `rekindle land`: brings the result of a run into the person's own branch, proven again if that branch has moved; or
//! publishes it as a pull request, which is followed until it is merged.

mod body;
mod points;
mod publish;
mod watch;

use clap::Args;
use rekindle_core::duration;
use rekindle_core::event::Landed;
use rekindle_core::input::Order;
use rekindle_core::preflight;
use rekindle_core::pull_request::{KnownPullRequest, PullRequestStage};
use rekindle_core::state::{State, TaskState};
use rekindle_core::text::counted;
use rekindle_engine::git::{self, Form, Prepared, Ready, Repo, Work};
use serde::Serialize;

use super::{Context, trial};
use crate::client::orders;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::picture::result;
use crate::pinned;
use crate::ui::{Tone, elapsed, one_line, pause, short_commit};

/// How often to try to update the branch before somebody else moves it again.
const TRIES: u32 = 5;

/// The first pause after a temporary problem at the forge.
const PAUSE_MS: u32 = 500;

/// How many files of a conflict are named.
const FILES_SHOWN: usize = 20;

/// Take the result of the run into your branch
///
/// If your branch moved while the run worked, merges both first and runs every check of the plan on the merged files; your branch
/// moves only if they pass. This is the only command that changes your checkout, which must have no uncommitted changes.
///
/// With --pr your checkout stays as it is: the run's branch is pushed and a pull request is opened. With --watch it is followed until it is
/// merged or closed, and what reviewers and CI ask for is done by the run's agents.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle land\n  rekindle land --squash\n  rekindle land --into release --merge\n  rekindle land --pr\n  rekindle land --watch --for 8h"
)]
pub(crate) struct LandArgs {
    /// The branch to land in [default: the one that is checked out; for a pull request the remote's own]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Make one commit of it
    #[arg(long, group = "form")]
    squash: bool,
    /// Make a merge commit, even where your branch has not moved
    #[arg(long, group = "form")]
    merge: bool,
    /// Put its commits on top of your branch, one by one
    #[arg(long, group = "form")]
    rebase: bool,
    /// Land although tasks are open or failed
    #[arg(long)]
    partial: bool,
    /// Push the run's branch and open a pull request
    #[arg(long, conflicts_with = "form")]
    pr: bool,
    /// The same, and follow it until it is merged or closed
    #[arg(long, conflicts_with = "form")]
    watch: bool,
    /// Follow it no longer than this, such as 30m or 8h; exits with 4 if it is still open
    #[arg(long = "for", value_name = "TIME", requires = "watch")]
    watch_for: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was landed, for programs.
#[derive(Serialize)]
struct LandedJson<'a> {
    into: &'a str,
    commit: &'a str,
    form: &'a str,
    /// The branch had it already.
    already: bool,
    /// Checks that were run on the merged files.
    checks: usize,
    /// The commit that has reverted it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverted_by: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reverts: Vec<String>,
}

/// Why nothing was landed, for programs.
#[derive(Serialize)]
struct NotLandedJson<'a> {
    error: NotLanded<'a>,
}

#[derive(Serialize)]
struct NotLanded<'a> {
    /// `not_complete`, `conflict`, `check_failed`, `unclean`, `no_room`, `half_written`, `busy`, `no_branch`, `shared`, `moving`, `incomplete`
    /// or, for anything else, `failed`.
    code: &'a str,
    message: &'a str,
    hints: &'a [String],
}

impl LandArgs {
    fn form(&self) -> (Form, &'static str) {
        match (self.squash, self.rebase, self.merge) {
            (true, ..) => (Form::Squash, "squash"),
            (_, true, _) => (Form::Rebase, "rebase"),
            (_, _, true) => (Form::Merge, "merge"),
            _ => (Form::Plain, "merge"),
        }
    }
}

pub(crate) fn run(args: &LandArgs, context: &Context) -> Result<Exit> {
    match land(args, context) {
        Ok(End::Landed) => Ok(Exit::Success),
        Ok(End::Open) => Ok(Exit::Paused),
        Ok(End::Closed(name)) => {
            context.ui.error(&closed(&name));
            Ok(Exit::Failure)
        }
        Err(error) => {
            if args.json {
                let (code, hints) = (error.code.unwrap_or("failed"), error.hints.as_slice());
                context.ui.json(&NotLandedJson { error: NotLanded { code, message: &error.message, hints } })?;
            }
            Err(error)
        }
    }
}

/// How it ended. There is no failure among these that is not told as an error.
enum End {
    Landed,
    /// The pull request is still open, and the time is over.
    Open,
    /// The pull request of this name was closed without a merge.
    Closed(String),
}

fn closed(name: &str) -> CliError {
    let error = CliError::refused(format!("{name} was closed without being merged: nothing is landed"));
    error.hint("open it again at the forge, then: rekindle land --watch").hint("or land it here: rekindle land")
}

fn land(args: &LandArgs, context: &Context) -> Result<End> {
    orders::refuse_own_agent(&context.project)?;
    let state = pinned::state_of(&context.project)?;
    let Some(run) = &state.run else { return Err(CliError::usage("there is no run here")) };
    let Some(branch) = &run.work_branch else {
        let message = "this run shares your checkout: its work is there already";
        return Err(CliError::usage(message).code("shared").hint("see it: git status"));
    };
    if args.pr || args.watch {
        return published(args, context, &state);
    }
    if !args.partial {
        whole(&state)?;
    }
    let repo = Repo::of(&context.project.root)?;
    let into = target(args, &repo, branch)?;
    let work = Work::new(repo, &context.project.state_dir, run.id.as_str(), branch)?;
    if work.settle_landing().map_err(|error| not_landed(&work, error))? {
        context.ui.say("an earlier landing was cut short: the files of your checkout are whole again");
    }
    let (form, word) = args.form();
    // If part of the result was landed as other commits before, land the rest from there.
    let before = run.landed.as_ref().filter(|landed| landed.into == into && landed.form != "merge");
    let since = before.map(|landed| landed.tip.as_str());
    let message =
        format!("{}\n\nThe result of rekindle's run {} of the plan {}.", title(&state), run.id, run.plan.name);
    let mut proven: Option<(Ready, usize)> = None;
    for _ in 0..TRIES {
        let prepared = work.prepare_landing(&into, form, (run.work_base.as_deref(), since), &message);
        let ready = match prepared.map_err(|error| result::gone(&context.project, run.id.as_str(), error))? {
            Prepared::Ready(ready) => ready,
            Prepared::Nothing => {
                context.ui.say(&format!("there is nothing on {branch} that {into} does not have"));
                return nothing(args, context, &work, &into, word);
            }
            Prepared::Already => {
                let (commit, tip) = (work.repo().branch_commit(&into)?, work.repo().branch_commit(branch)?);
                record(context, &run.landed, &into, commit.clone(), tip.clone(), word)?;
                let reverts = work.reverts(&into, run.work_base.as_deref())?;
                let (into, commit, reverted_by) = (into.as_str(), commit.as_str(), reverts.first().cloned());
                let landed = LandedJson { into, commit, form: word, already: true, checks: 0, reverted_by, reverts };
                return told(args, context, landed);
            }
            Prepared::Conflict { files } => {
                return Err(taken_back(conflict(&into, branch, &files), &work, &state, &into));
            }
            Prepared::Incomplete => return Err(incomplete()),
        };
        let checks = match proven.take().filter(|(before, _)| before.target == ready.target) {
            Some((_, checks)) => checks,
            None if ready.moved => {
                context.ui.say(&format!("{into} has moved since the run began: its checks run on the merged files"));
                let proven = proven_anew(context, &state, &work, &ready, &into);
                proven.map_err(|error| taken_back(error, &work, &state, &into))?
            }
            None => 0,
        };
        if work.land(&into, &ready).map_err(|error| not_landed(&work, error))? {
            record(context, &run.landed, &into, ready.commit.clone(), ready.tip.clone(), word)?;
            let commit = &ready.commit;
            let (into, reverts) = (into.as_str(), Vec::new());
            let landed = LandedJson { into, commit, form: word, already: false, checks, reverted_by: None, reverts };
            return told(args, context, landed);
        }
        proven = Some((ready, checks));
    }
    Err(CliError::refused(format!("{into} keeps moving: another process commits to it"))
        .code("moving")
        .hint("try again: rekindle land"))
}

/// Says what a person took back of the run before: what was landed since builds on it.
fn taken_back(error: CliError, work: &Work, state: &State, into: &str) -> CliError {
    let base = state.run.as_ref().and_then(|run| run.work_base.as_deref());
    match work.reverts(into, base).unwrap_or_default().as_slice() {
        [] => error,
        reverts => error.hint(format!("{into} took back what was landed before; take it again: {}", again(reverts))),
    }
}

/// The command that takes again what reverts took back, newest first.
fn again(reverts: &[String]) -> String {
    let named: Vec<&str> = reverts.iter().map(|revert| short_commit(revert)).collect();
    format!("git revert {}", named.join(" "))
}

fn incomplete() -> CliError {
    let message = "a merge of this run holds changes of its own, which a rebase would leave out";
    CliError::refused(message).code("incomplete").hint("take all of it: rekindle land --squash, or --merge")
}

/// The branch has all of it, and nothing was ever to be landed.
fn nothing(args: &LandArgs, context: &Context, work: &Work, into: &str, form: &'static str) -> Result<End> {
    let commit = &work.repo().branch_commit(into)?;
    let reverts = Vec::new();
    let nothing = LandedJson { into, commit, form, already: true, checks: 0, reverted_by: None, reverts };
    if args.json { told(args, context, nothing) } else { Ok(End::Landed) }
}

/// Refuses a run with open or failed tasks.
fn whole(state: &State) -> Result<()> {
    let of = |wanted: fn(TaskState) -> bool| -> Vec<&str> {
        let tasks = state.tasks.iter().filter(|(_, task)| !task.workflow.removed && wanted(task.state));
        tasks.map(|(id, _)| id.as_str()).collect()
    };
    let failed = of(|state| state == TaskState::Failed);
    let open = of(|state| !state.is_terminal());
    if failed.is_empty() && open.is_empty() {
        return Ok(());
    }
    let part = |ids: &[&str], word: &str| match ids {
        [] => None,
        ids => Some(format!("{} {word}", counted(ids.len(), "task", "tasks"))),
    };
    let parts: Vec<String> = [part(&failed, "failed"), part(&open, "open")].into_iter().flatten().collect();
    let error = CliError::refused(format!("the run is not complete: {}", parts.join(", ")));
    Err(error.code("not_complete").hint("see why: rekindle status").hint("land what is there: rekindle land --partial"))
}

fn title(state: &State) -> String {
    let title = state.run.as_ref().map(|run| run.plan.title.clone()).unwrap_or_default();
    one_line(&title)
}

fn conflict(into: &str, branch: &str, files: &[String]) -> CliError {
    let named = files.iter().take(FILES_SHOWN).map(|file| one_line(file)).collect::<Vec<_>>().join(", ");
    let error = CliError::refused(format!("{into} and {branch} change the same lines: {named}"));
    error.code("conflict").hint(format!("nothing was changed; merge it by hand: git merge {branch}"))
}

/// The error for a failed landing: what is left of it, and what to type.
fn not_landed(work: &Work, error: git::Error) -> CliError {
    let again = match error {
        git::Error::HalfWritten { .. } => {
            "free space there; then the same command puts the rest back and lands: rekindle land"
        }
        _ if work.landing_is_open() => "the same command finishes it or puts everything back: rekindle land",
        git::Error::NoRoom { .. } => "nothing was changed; free space there, then: rekindle land",
        _ => "nothing was changed: your branch and your files are as they were",
    };
    CliError::from(error).hint(again)
}

/// The person's own branch that the result goes into.
fn target(args: &LandArgs, repo: &Repo, branch: &str) -> Result<String> {
    let into = match &args.into {
        Some(into) => into.clone(),
        None => repo.current_branch()?.ok_or_else(|| {
            CliError::usage("no branch is checked out here").hint("name one: rekindle land --into main")
        })?,
    };
    if into.is_empty() || into == branch {
        let message = format!("the result is on {branch}: name a branch of your own");
        return Err(CliError::usage(message).hint("for example: rekindle land --into main"));
    }
    Ok(into)
}

/// Opens the pull request or brings it up to date, and follows it where that is wanted.
fn published(args: &LandArgs, context: &Context, state: &State) -> Result<End> {
    if !args.partial && !args.watch {
        whole(state)?;
    }
    let for_ms = args.watch_for.as_deref().map(duration::parse).transpose();
    let for_ms = for_ms.map_err(|error| CliError::usage(format!("--for: {error}")).hint(error.hint()))?;
    let into = args.into.as_deref();
    if !args.watch {
        let known = open(context, into, state)?;
        told_of(args, context, &known)?;
        return Ok(if known.stage == PullRequestStage::Closed { End::Closed(known.name()) } else { End::Landed });
    }
    match watch::follow(context, (into, args.partial), for_ms)? {
        None => {
            context.ui.say("it is still open; follow it further: rekindle land --watch");
            Ok(End::Open)
        }
        Some(known) => {
            told_of(args, context, &known)?;
            Ok(if known.stage == PullRequestStage::Merged { End::Landed } else { End::Closed(known.name()) })
        }
    }
}

/// Opens the pull request, retrying after temporary problems.
fn open(context: &Context, into: Option<&str>, state: &State) -> Result<KnownPullRequest> {
    let mut pause_ms = PAUSE_MS;
    let mut last = String::new();
    for _ in 0..TRIES {
        let done = publish::Publisher::open(context, into).and_then(|publisher| {
            let state = pinned::state_of(&context.project)?;
            publisher.publish(&state)
        });
        match done {
            Ok(known) => return Ok(known),
            Err(publish::Trouble::Fatal(error)) => return Err(error),
            Err(publish::Trouble::Foreign(commit)) => {
                let branch = state.run.as_ref().and_then(|run| run.work_branch.clone()).unwrap_or_default();
                let message = format!("somebody pushed {} to {branch} at the remote", short_commit(&commit));
                return Err(CliError::refused(message).hint("merge it into the run's branch: rekindle land --watch"));
            }
            Err(publish::Trouble::Passing(words)) => {
                context.ui.say(&format!("waiting: {words}"));
                last = words;
            }
        }
        pause(pause_ms);
        pause_ms *= 2;
    }
    let error = CliError::refused(format!("it is not known whether the pull request is open: {last}"));
    Err(error.hint("give it again, it is opened once only: rekindle land --pr"))
}

fn told_of(args: &LandArgs, context: &Context, known: &KnownPullRequest) -> Result<()> {
    if args.json {
        return context.ui.json(known);
    }
    let tone = if known.stage == PullRequestStage::Closed { Tone::Warning } else { Tone::Good };
    context.ui.line(&context.ui.paint().tone(tone, &one_line(&known.words())))
}

/// Runs every check on what is to be landed; the first failure ends it. Returns the number of checks.
fn proven_anew(context: &Context, state: &State, work: &Work, ready: &Ready, into: &str) -> Result<usize> {
    match prove(context, state, work, &ready.commit)? {
        Proof::Passed(checks) => Ok(checks),
        Proof::Failed { command, output } => {
            context.ui.say(&output);
            let message = format!("a check fails on the merged files: {}", one_line(&command));
            let error =
                CliError::refused(message).hint(format!("nothing was changed: {into} and your checkout are unchanged"));
            Err(error.code("check_failed").hint("look at both: rekindle diff"))
        }
    }
}

/// The result of the checks on merged files.
enum Proof {
    /// All checks passed; how many there were.
    Passed(usize),
    Failed {
        command: String,
        /// The end of the failed check's output.
        output: String,
    },
}

/// Runs every check of complete tasks on merged files.
fn prove(context: &Context, state: &State, work: &Work, commit: &str) -> Result<Proof> {
    let config =
        Config::load(&Sources { file: context.project.config.as_deref(), ..Sources::default() }.with_environment())?;
    let plan = state.present_plan();
    let planned = plan.iter().flat_map(|plan| &plan.tasks);
    let complete = |id| state.tasks.get(id).is_some_and(|task| task.state == TaskState::Complete);
    let planned = planned.filter(|task| complete(&task.id));
    let checks = preflight::distinct(planned.map(|task| (task, state.environments_of(task))));
    if checks.is_empty() {
        return Ok(Proof::Passed(0));
    }
    context.ui.say(&format!("running {} on the merged files", counted(checks.len(), "check", "checks")));
    let fresh = work.trial(commit)?;
    let place = trial::Place::set_up(context, &config, &fresh.project)?;
    for check in &checks {
        let (tried, command) = (place.run(check)?, &check.command);
        if !tried.passed() {
            return Ok(Proof::Failed { command: command.clone(), output: tried.output });
        }
        context.ui.say(&format!("passed {} in {}", one_line(command), elapsed(tried.took_ms)));
    }
    Ok(Proof::Passed(checks.len()))
}

/// Records where the result went. The branch keeps it even if the record cannot be written.
fn record(
    context: &Context,
    known: &Option<Landed>,
    into: &str,
    commit: String,
    tip: String,
    form: &str,
) -> Result<()> {
    if known.as_ref().is_some_and(|known| known.into == into && known.tip == tip) {
        return Ok(());
    }
    let landed = Landed { into: into.to_owned(), commit, tip, form: form.to_owned() };
    match orders::give(&context.project, &Order::Landed(landed)) {
        Ok(_) => Ok(()),
        Err(error) => {
            context.ui.warn(&format!("it is landed, but recording it failed: {}", error.message));
            Ok(())
        }
    }
}

fn told(args: &LandArgs, context: &Context, landed: LandedJson<'_>) -> Result<End> {
    if args.json {
        context.ui.json(&landed)?;
        return Ok(End::Landed);
    }
    let paint = context.ui.paint();
    let words = match landed.already {
        true => format!("{} has it already, at {}", landed.into, short_commit(landed.commit)),
        false => format!("landed in {} as {}", landed.into, short_commit(landed.commit)),
    };
    context.ui.line(&paint.tone(Tone::Good, &words))?;
    if let Some(newest) = &landed.reverted_by {
        let (newest, others) = (short_commit(newest), landed.reverts.len() - 1);
        let who = if others == 0 { newest.to_owned() } else { format!("{newest} and {others} before it") };
        context.ui.warn(&format!("{who} took it back since: the files do not have it"));
        context.ui.hint(&format!("take it again: {}", again(&landed.reverts)));
    }
    Ok(End::Landed)
}
