//! `rekindle clean`: removes what finished runs have left. `core::retention` decides what may be removed, and the engine
//! removes it; this file asks for it and reports it.

mod show;

use std::collections::BTreeSet;

use clap::Args;
use rekindle_core::event::Cleaned;
use rekindle_core::input::Order;
use rekindle_core::retention::{Kept, Rules};
use rekindle_engine::clean::{self, Alone, Hand, Place, Plan, Report, Survey};
use rekindle_engine::clock;
use rekindle_engine::offline;
use rekindle_engine::state_dir::{self, StateDir};
use rekindle_engine::store::{self, RemovedLines};

use super::Context;
use crate::client::orders;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::project::Project;
use crate::view::View;

/// Remove what old runs have left: output, snapshots, worktrees, damaged copies
///
/// Goes by `[retention]` in rekindle.toml. Never touches a run that is not over, and keeps the branch and the snapshots of a result
/// that is not in a branch of yours, however old it is. Works while a run is in progress. The log of events stays. Exits with 1 when
/// something could not be removed; the rest is removed all the same, and the next call tries again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle clean --dry-run\n  rekindle clean --older-than 7d\n  rekindle clean --all\n  rekindle clean --discard r7f3"
)]
pub(crate) struct CleanArgs {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Remove what ended longer ago than this, whatever `[retention]` keeps
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
    /// Remove what is left of all runs that are over
    #[arg(long, conflicts_with = "older_than")]
    all: bool,
    /// Give up the result of this run, landed or not, and remove everything of it
    #[arg(long, value_name = "RUN")]
    discard: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CleanArgs, context: &Context) -> Result<Exit> {
    orders::refuse_own_agent(&context.project)?;
    let rules = rules(args, context)?;
    let dir = StateDir::open(&context.project.state_dir)?;
    let place = Place { state_dir: dir.path().to_owned(), root: context.project.root.clone() };
    let discard = discarded(args, &context.project)?;
    if args.dry_run {
        let (survey, plan) = looked(&dir, &place, &rules, &discard)?;
        refuse_in_flight(&plan, &discard)?;
        show::planned(args.json, context, &survey, &plan)?;
        return Ok(Exit::Success);
    }
    clean::take(dir.path());
    let done = carry_out(&dir, &place, &rules, &discard, context);
    clean::give_back(dir.path());
    let (report, plan) = done?;
    show::done(args.json, context, &place, &plan, &report)?;
    Ok(if report.refused.is_empty() { Exit::Success } else { Exit::Failure })
}

/// What is kept, according to the arguments and the configuration.
fn rules(args: &CleanArgs, context: &Context) -> Result<Rules> {
    if args.all {
        return Ok(Rules { older_than_ms: 0, keep_runs: 0, max_bytes: None });
    }
    if let Some(time) = &args.older_than {
        let older_than_ms = rekindle_core::duration::parse(time)
            .map_err(|error| CliError::usage(format!("--older-than: {error}")).hint(error.hint()))?;
        return Ok(Rules { older_than_ms, keep_runs: 0, max_bytes: None });
    }
    let sources = Sources { file: context.project.config.as_deref(), ..Sources::default() };
    Ok(Config::load(&sources.with_environment())?.retention())
}

/// The full ids of the runs whose work is given up.
fn discarded(args: &CleanArgs, project: &Project) -> Result<BTreeSet<String>> {
    if args.discard.is_empty() {
        return Ok(BTreeSet::new());
    }
    let view = View::open(project)?;
    args.discard.iter().map(|name| Ok(view.run_named(name)?.row.id)).collect()
}

/// Surveys and decides; changes nothing.
fn looked(dir: &StateDir, place: &Place, rules: &Rules, discard: &BTreeSet<String>) -> Result<(Survey, Plan)> {
    let driven = dir.owner()?.is_some();
    let survey = match store::reader(dir)? {
        Some(reader) => Survey::of(place, reader.as_ref(), driven, discard)?,
        None => Survey::of(place, &store::MemoryStore::new(), driven, discard)?,
    };
    let plan = clean::plan(&survey, rules, clock::wall());
    Ok((survey, plan))
}

fn refuse_in_flight(plan: &Plan, discard: &BTreeSet<String>) -> Result<()> {
    let in_flight = |item: &&clean::Item| discard.contains(&item.run) && item.work == Some(Kept::InFlight);
    match plan.items.iter().find(in_flight) {
        Some(item) => Err(CliError::refused(format!("run {} is not over: nothing of it is removed", item.run))
            .hint("a paused run continues with: rekindle resume")),
        None => Ok(()),
    }
}

fn carry_out(
    dir: &StateDir,
    place: &Place,
    rules: &Rules,
    discard: &BTreeSet<String>,
    context: &Context,
) -> Result<(Report, Plan)> {
    if dir.owner()?.is_some() || !store::may_have_log(dir) {
        return beside(dir, place, rules, discard, context);
    }
    let mut alone = match open_alone(dir, rules) {
        Ok(alone) => alone,
        Err(offline::Error::StateDir(state_dir::Error::Held { .. })) => {
            return beside(dir, place, rules, discard, context);
        }
        Err(error) => {
            return Err(CliError::internal("the state cannot be opened")
                .because(&error)
                .hint("look at it: rekindle doctor"));
        }
    };
    if alone.is_called_by_agent().map_err(|error| CliError::internal("the state cannot be read").because(&error))? {
        return Err(CliError::refused("that is for the operator, not for an agent"));
    }
    let survey = Survey::of(place, alone.log(), false, discard)?;
    let plan = clean::plan(&survey, rules, clock::wall());
    refuse_in_flight(&plan, discard)?;
    let report = clean::carry_out(&survey, &plan, &mut alone);
    if report.done.iter().any(|done| done.lines > 0) {
        alone.compact();
    }
    Ok((report, plan))
}

/// Opens the store exclusively. If the disk has no space even for that, removing copies that belong to no run makes some.
fn open_alone(dir: &StateDir, rules: &Rules) -> std::result::Result<Alone, offline::Error> {
    match Alone::open(dir) {
        Err(offline::Error::StateDir(held @ state_dir::Error::Held { .. })) => Err(held.into()),
        Err(error) => match clean::remove_spare_copies(dir.path(), clock::wall().minus_ms(rules.older_than_ms)) {
            0 => Err(error),
            _ => Alone::open(dir),
        },
        opened => opened,
    }
}

/// Cleans while a coordinator is running: the coordinator writes the record and removes the lines.
fn beside(
    dir: &StateDir,
    place: &Place,
    rules: &Rules,
    discard: &BTreeSet<String>,
    context: &Context,
) -> Result<(Report, Plan)> {
    let (survey, plan) = looked(dir, place, rules, discard)?;
    refuse_in_flight(&plan, discard)?;
    let report = clean::carry_out(&survey, &plan, &mut Beside(&context.project));
    Ok((report, plan))
}

struct Beside<'a>(&'a Project);

impl Hand for Beside<'_> {
    fn record(&mut self, cleaned: Cleaned) -> std::result::Result<(), String> {
        orders::give(self.0, &Order::Clean(cleaned)).map(drop).map_err(|error| error.message)
    }

    fn remove_lines(&mut self, _attempt: u64) -> std::result::Result<RemovedLines, String> {
        Ok(RemovedLines::default())
    }

    fn goes_on(&mut self) -> bool {
        true
    }
}
