//! `rekindle note`: a decision that later agents should know of; outside a run, one that the calling session should know of
//! after its context was compacted.

use clap::Args;
use rekindle_core::input::Order;
use rekindle_core::report::Report;

use rekindle_engine::guard::note;

use super::{Context, hook};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::view::View;

/// Note a decision; every later brief tells it, outside a run the guarded session it is called from
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle note \"errors are JSON problem details, everywhere\"")]
pub struct NoteArgs {
    /// The decision
    #[arg(allow_hyphen_values = true)]
    text: String,
}

/// Notes it, as the agent that called or as the operator.
pub fn run(args: &NoteArgs, context: &Context) -> Result<Exit> {
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

/// An operator's note goes to the run; outside one to the session that calls, else to the one last heard of here.
fn from_outside(text: String, context: &Context) -> Result<Exit> {
    let var = |name: &str| std::env::var(name).ok();
    let root = &context.project.root;
    let guard_dir = hook::places(root, &var).map(|places| places.guard_dir);
    let calling = guard_dir.as_deref().and_then(|dir| note::calling(dir, &var));
    let in_run = has_open_run(context);
    let session = if in_run { calling } else { calling.or_else(|| guard_dir.as_deref().and_then(note::newest)) };
    if let (Some(dir), Some(session)) = (&guard_dir, &session) {
        let kept = note::note(dir, session, &text, root);
        kept.map_err(|error| CliError::internal("the note is not kept").because(&error))?;
        if !in_run {
            context.ui.say(&format!("noted for the session {session}"));
            return Ok(Exit::Success);
        }
    }
    context.order(&Order::Note { text }, "noted")
}

/// Whether a run of this project is not over.
fn has_open_run(context: &Context) -> bool {
    let Ok(view) = View::open(&context.project) else {
        return false;
    };
    let run = view.run();
    run.is_ok_and(|run| run.is_some_and(|run| !matches!(run.row.state.as_str(), "complete" | "failed")))
}
