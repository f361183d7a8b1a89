//! `rekindle report`: the report on a run, written for people or for a CI.

use std::path::{Path, PathBuf};

use clap::Args;
use rekindle_engine::clock;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::output_file::{self, Existing, STANDARD_OUTPUT};
use crate::picture::{RunReader, result};
use crate::report::{gather, html, junit, markdown, trace};
use crate::story::chapters;

/// Report on a run: tasks, proof, recoveries, questions, decisions, cost
///
/// Reads only the store, whether or not a coordinator is running. Without a flag, Markdown goes to standard output. The HTML
/// file is self-contained: it needs no network and no script.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle report\n  rekindle report --html report.html\n  rekindle report --junit junit.xml --markdown \"$GITHUB_STEP_SUMMARY\"\n  rekindle report --trace trace.json    open it in ui.perfetto.dev"
)]
pub(crate) struct ReportArgs {
    /// Write one self-contained HTML file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown to this file, fit for the summary of a CI step; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write JUnit XML to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a trace for Perfetto or `chrome://tracing` to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

pub(crate) fn run(args: &ReportArgs, context: &Context) -> Result<Exit> {
    let standard = Path::new(STANDARD_OUTPUT);
    let named = [&args.html, &args.markdown, &args.junit, &args.trace];
    if named.iter().filter(|path| path.as_deref() == Some(standard)).count() > 1 {
        return Err(CliError::usage("only one report can go to standard output").hint("name a file for the other"));
    }
    let view = context.view()?;
    let run = match &args.run {
        Some(name) => view.run_named(name)?,
        None => view.the_run()?,
    };
    let now = view.coordinator()?.map(|_| clock::wall());
    let mut report = gather(&run, now)?;
    report.result = result::of(&context.project, &run.row, &run.tasks()?);
    let write = |path: &Path, text: &str| output_file::write(path, text.as_bytes(), Existing::Replaced, &context.ui);
    if args.html.is_some() || args.trace.is_some() {
        let Some(picture) = RunReader::new(&context.project, Some(&report.run.id)).look()? else {
            return Err(CliError::internal("the run is gone"));
        };
        if let Some(path) = &args.html {
            let names: Vec<&str> = report.tasks.iter().map(|task| task.row.id.as_str()).collect();
            let told = chapters::of_each(&run, &names, html::CHAPTERS_MAX)?;
            write(path, &html::render(&report, &picture, &told))?;
        }
        if let Some(path) = &args.trace {
            write(path, &trace::render(&picture))?;
        }
    }
    let nothing_named = named.iter().all(|path| path.is_none());
    if let Some(path) = args.markdown.as_deref().or(nothing_named.then_some(standard)) {
        write(path, &markdown::render(&report))?;
    }
    if let Some(path) = &args.junit {
        let xml = junit::render(&report);
        write(path, &xml.map_err(|error| CliError::internal("cannot write XML").because(&error))?)?;
    }
    Ok(Exit::Success)
}
