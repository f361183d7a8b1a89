//! `rekindle runs`: every run of the project, newest first.

use clap::Args;
use rekindle_core::view::{Counts, RunRow};
use rekindle_engine::clock;
use serde::Serialize;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Align, Table, Tone, date_time, elapsed, stamp, zone_line};
use crate::view::View;

/// List the runs of this project
///
/// Newest first. Every view takes one of them: --run ID, or the beginning of its id.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle runs\n  rekindle status --run r7f3\n  rekindle runs --json | jq '.[0].id'"
)]
pub(crate) struct RunsArgs {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

/// A run, for programs.
#[derive(Serialize)]
struct RunJson {
    id: String,
    plan: String,
    title: String,
    plan_path: String,
    state: String,
    started_at: String,
    ended_at: Option<String>,
    resumes: u32,
    branch: Option<String>,
    complete: usize,
    failed: usize,
    skipped: usize,
    total: usize,
    coordinated: bool,
}

pub(crate) fn run(args: &RunsArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let runs = read(&view)?;
    if args.json {
        context.ui.json(&runs.iter().map(|(row, counts, live)| json(row, *counts, *live)).collect::<Vec<_>>())?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&[
        ("RUN", Align::Left),
        ("STATE", Align::Left),
        ("TASKS", Align::Left),
        ("BEGAN", Align::Left),
        ("TOOK", Align::Right),
        ("PLAN", Align::Left),
        ("BRANCH", Align::Left),
    ]);
    let now = clock::wall();
    for (row, counts, live) in &runs {
        let interrupted = !live && matches!(row.state.as_str(), "created" | "running" | "pausing" | "waiting");
        let state = if interrupted { "interrupted" } else { row.state.as_str() };
        let until = row.ended_at.or(live.then_some(now));
        table.row([
            (row.id.clone(), Some(Tone::Strong)),
            (state.to_owned(), Some(if interrupted { Tone::Warning } else { Tone::of_state(state) })),
            (counts.words(), None),
            (date_time(row.started_at), None),
            (until.map(|until| elapsed(until.since_ms(row.started_at))).unwrap_or_default(), None),
            (row.plan_path.clone(), None),
            (row.work_branch.clone().unwrap_or_default(), None),
        ]);
    }
    if table.is_empty() {
        context.ui.say("there is no run yet");
        return Ok(Exit::Success);
    }
    context.ui.line(&table.render(context.ui.paint(), context.ui.width()))?;
    context.ui.say(&zone_line(now));
    Ok(Exit::Success)
}

/// Runs with their counts, newest first, and whether a coordinator is running them: only the newest can have one.
fn read(view: &View) -> Result<Vec<(RunRow, Counts, bool)>> {
    let coordinated = view.coordinator()?.is_some();
    let mut runs = Vec::new();
    for (place, row) in view.runs()?.into_iter().rev().enumerate() {
        let counts = Counts::of(&view.run_named(&row.id)?.tasks()?);
        runs.push((row, counts, coordinated && place == 0));
    }
    Ok(runs)
}

fn json(row: &RunRow, counts: Counts, coordinated: bool) -> RunJson {
    RunJson {
        id: row.id.clone(),
        plan: row.plan.clone(),
        title: row.title.clone(),
        plan_path: row.plan_path.clone(),
        state: row.state.clone(),
        started_at: stamp(row.started_at),
        ended_at: row.ended_at.map(stamp),
        resumes: row.resumes,
        branch: row.work_branch.clone(),
        complete: counts.complete,
        failed: counts.failed,
        skipped: counts.skipped,
        total: counts.all,
        coordinated,
    }
}
