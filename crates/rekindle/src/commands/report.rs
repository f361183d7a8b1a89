//! `rekindle report`: the account of the newest run, written for people or for a CI.

use std::path::{Path, PathBuf};

use clap::Args;
use rekindle_engine::clock;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::output_file::{self, Existing, STANDARD_OUTPUT};
use crate::report::{gather, junit, markdown};
use crate::view::View;

/// Write an account of the run: tasks, proof, recoveries, questions, decisions, cost
///
/// Reads the store alone, with and without a living coordinator. Without a flag, Markdown goes to standard output.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle report\n  rekindle report --junit junit.xml --markdown \"$GITHUB_STEP_SUMMARY\""
)]
pub struct ReportArgs {
    /// Write Markdown to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write JUnit XML to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Writes it.
pub fn run(args: &ReportArgs, context: &Context) -> Result<Exit> {
    let standard = Path::new(STANDARD_OUTPUT);
    let named = [args.markdown.as_deref(), args.junit.as_deref()];
    if named.iter().filter(|path| **path == Some(standard)).count() > 1 {
        return Err(CliError::usage("only one report can go to standard output").hint("name a file for the other"));
    }
    let view = View::open(&context.project)?;
    let now = view.coordinator()?.map(|_| clock::wall());
    let report = gather(&view.the_run()?, now)?;
    let markdown_to = match named {
        [None, None] => Some(standard),
        [markdown, _] => markdown,
    };
    if let Some(path) = markdown_to {
        output_file::write(path, markdown::render(&report).as_bytes(), Existing::Replaced, &context.ui)?;
    }
    if let Some(path) = &args.junit {
        output_file::write(path, junit::render(&report).as_bytes(), Existing::Replaced, &context.ui)?;
    }
    Ok(Exit::Success)
}
