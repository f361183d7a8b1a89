//! `rekindle resume`: continue the run of this state directory.

use clap::Args;

use super::Context;
use super::run::{RunOptions, continue_run};
use crate::error::Result;
use crate::exit_code::Exit;

/// Continue the paused or interrupted run
///
/// The same as running its plan again, without naming it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle resume\n  rekindle resume --detach")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    options: RunOptions,
}

pub(crate) fn run(args: &ResumeArgs, context: &Context) -> Result<Exit> {
    continue_run(&args.options, context)
}
