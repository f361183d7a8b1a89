//! `rekindle note`: a decision that later agents should know of; outside a run, one that the calling session should know of
//! after its context was compacted.

use clap::Args;
use rekindle_core::input::Order;
use rekindle_core::report::Report;

use rekindle_engine::guard::{note, place};

use super::{Context, hook};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::view::View;

/// Record a decision for every later brief; outside a run, for the guarded session that calls it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle note \"errors are JSON problem details, everywhere\"")]
pub(crate) struct NoteArgs {
    /// The decision
    #[arg(allow_hyphen_values = true)]
    text: String,
}

/// Records the note, as the agent that called or as the operator.
pub(crate) fn run(args: &NoteArgs, context: &Context) -> Result<Exit> {
    if args.text.trim().is_empty() {
        return Err(CliError::usage("the note is empty"));
    }
    let text = args.text.clone();
    match context.agent() {
        Some(agent) => {
            let outcome = agent.report(&Report::Note { text })?;
            context.say_kept(&outcome);
            Ok(Exit::Success)
        }
        None => from_outside(text, context),
    }
}

/// An operator's note goes to the run and to the guarded session that calls; outside a run, to that session, or if no
/// session calls, to the one last heard of here.
fn from_outside(text: String, context: &Context) -> Result<Exit> {
    let var = |name: &str| std::env::var(name).ok();
    let root = &context.project.root;
    let here = hook::places(root, &var).map(|places| places.guard_dir);
    let in_run = has_open_run(context);
    let session = match note::calling(&var) {
        // An unknown session is not guarded, or starts with this note.
        Some(key) => place::of_session(&key, root, &var).or(here.filter(|dir| dir.is_dir())).map(|dir| (dir, key)),
        None if in_run => None,
        None => here.and_then(|dir| note::newest(&dir).map(|key| (dir, key))),
    };
    if let Some((dir, key)) = &session {
        let kept = note::note(dir, key, &text, root);
        kept.map_err(|error| CliError::internal("the note cannot be saved").because(&error))?;
        if !in_run {
            context.ui.say(&format!("noted for the session {key}"));
            return Ok(Exit::Success);
        }
    }
    if !in_run && !context.project.state_dir.join("state.db").exists() {
        return Err(CliError::usage("there is no run and no guarded session here that the note could belong to")
            .hint("start a run: rekindle run plan.md; or guard your own sessions: rekindle guard install"));
    }
    context.order(&Order::Note { text }, "noted")
}

/// Whether this project has an unfinished run.
fn has_open_run(context: &Context) -> bool {
    let Ok(view) = View::open(&context.project) else {
        return false;
    };
    let run = view.run();
    run.is_ok_and(|run| run.is_some_and(|run| !matches!(run.row.state.as_str(), "complete" | "failed")))
}
