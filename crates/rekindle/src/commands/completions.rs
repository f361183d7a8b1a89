//! `rekindle completions`: what a shell needs to complete rekindle's commands.

use clap::{Args, Command};
use clap_complete::Shell;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle completions bash > ~/.local/share/bash-completion/completions/rekindle")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, mut program: Command, context: &Context) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "rekindle", &mut script);
    context.ui.raw(&script)?;
    Ok(Exit::Success)
}
