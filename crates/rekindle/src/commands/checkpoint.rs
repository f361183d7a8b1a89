//! `rekindle checkpoint`: an agent reports its progress, for itself after a compaction or for its replacement.

use clap::Args;
use rekindle_core::report::{Checkpoint, Report};

use super::Context;
use crate::client::agent::task_or_own;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Report your progress on a task (for agents)
///
/// If you crash, hang or run out of context, a replacement continues from it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle checkpoint \"parser done, tests missing\" --completed parser --remaining tests --file src/parse.rs --progress 60"
)]
pub(crate) struct CheckpointArgs {
    /// Your progress in one line
    #[arg(value_name = "STATUS", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    status: String,
    /// The task [default: your first task]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Something that is done (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    completed: Vec<String>,
    /// Something that is left (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    remaining: Vec<String>,
    /// A file that you changed (repeatable)
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    /// Progress in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    progress: Option<u8>,
}

pub(crate) fn run(args: &CheckpointArgs, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        return Err(CliError::usage("only an agent can save checkpoints: REKINDLE_TOKEN is not set"));
    };
    let checkpoint = Checkpoint {
        status: args.status.clone(),
        completed: args.completed.clone(),
        remaining: args.remaining.clone(),
        files: args.files.clone(),
        progress: args.progress,
    };
    if checkpoint == Checkpoint::default() {
        return Err(CliError::usage("the checkpoint is empty")
            .hint("say what is done: rekindle checkpoint \"parser done\" --remaining tests"));
    }
    let task = task_or_own(args.task.as_deref())?;
    let outcome = agent.report(&Report::Checkpoint { task, checkpoint })?;
    context.say_kept(&outcome);
    Ok(Exit::Success)
}
