//! `rekindle note`: a decision that later agents should know of.

use clap::Args;
use rekindle_core::input::Order;
use rekindle_core::report::Report;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Note a decision; every later brief tells it
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
        None => context.order(&Order::Note { text }, "noted"),
    }
}
