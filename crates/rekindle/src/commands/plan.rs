//! `rekindle plan`: inspects a plan without running it, or makes one from another tool's tasks.

mod ignored;
mod import;
mod readiness;
pub(crate) mod reload;
mod tried;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use rekindle_core::plan::{self, Problem, Severity};
use rekindle_core::state::Run;
use serde::Serialize;

use super::Context;
use crate::brought::{self, Brought};
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::pinned;
use crate::plan_file::{DEFAULT_PLAN, PlanFile};

/// Check, show, import, change or export a plan
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    command: PlanCommand,
}

#[derive(Debug, Subcommand)]
enum PlanCommand {
    Check(CheckArgs),
    Show(ShowArgs),
    Import(import::ImportArgs),
    Diff(reload::DiffArgs),
    Reload(reload::ReloadArgs),
    Export(reload::ExportArgs),
}

/// Report every problem of a plan at once, and how ready it is
///
/// Readiness counts tasks without checks, checks that cannot fail, vague and oversized texts, and files that two tasks touch
/// without an order between them. Exits with 2 when a problem keeps the plan from being run; warnings do not count.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle plan check plan.md\n  rekindle plan check --try")]
struct CheckArgs {
    /// The plan
    #[arg(default_value = DEFAULT_PLAN)]
    plan: PathBuf,
    /// Also run every check once in a fresh worktree, which is removed afterwards; exits with 1 when one cannot run there
    #[arg(long = "try")]
    tries: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show a plan as it will be run: waves, tasks, blockers, checks
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle plan show plan.md\n  rekindle plan show plan.md --commands")]
struct ShowArgs {
    /// The plan
    #[arg(default_value = DEFAULT_PLAN)]
    plan: PathBuf,
    /// Show every command that a run would start and where it comes from, without starting any
    #[arg(long)]
    commands: bool,
    /// Show the plan of the run here instead of the file
    #[arg(long, conflicts_with = "plan")]
    run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The outcome of a check, for programs.
#[derive(Serialize)]
struct CheckJson<'a> {
    schema_version: u32,
    plan: Option<&'a str>,
    tasks: usize,
    errors: usize,
    warnings: usize,
    problems: &'a [Problem],
    /// How ready it is, if it can be run.
    readiness: Option<plan::Readiness>,
    /// What to type to make a plan from a file that is not one.
    import: Option<String>,
    /// The result of every check, with `--try`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<Vec<tried::TriedJson>>,
}

#[derive(Serialize)]
struct ShowJson<'a> {
    schema_version: u32,
    plan: &'a plan::Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Vec<Brought>>,
}

pub(crate) fn run(args: &PlanArgs, context: &Context) -> Result<Exit> {
    match &args.command {
        PlanCommand::Check(args) => check(args, context),
        PlanCommand::Show(args) => show(args, context),
        PlanCommand::Import(args) => import::run(args, context),
        PlanCommand::Diff(args) => reload::diff(args, context),
        PlanCommand::Reload(args) => reload::reload(args, context),
        PlanCommand::Export(args) => reload::export(args, context),
    }
}

fn check(args: &CheckArgs, context: &Context) -> Result<Exit> {
    let mut file = PlanFile::read(&args.plan)?;
    ignored::warn(&mut file, &context.project.root);
    let count = |severity| file.parsed.problems.iter().filter(|problem| problem.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let tried = match file.parsed.plan.as_ref().filter(|_| args.tries) {
        Some(plan) => Some(tried::all(context, &configuration(&file, plan, context)?, plan)?),
        None => None,
    };
    if args.json {
        let plan = file.parsed.plan.as_ref();
        context.ui.json(&CheckJson {
            schema_version: 1,
            plan: plan.map(|plan| plan.name.as_str()),
            tasks: plan.map_or(0, |plan| plan.tasks.len()),
            errors,
            warnings,
            problems: &file.parsed.problems,
            readiness: plan.map(plan::readiness),
            import: file.offer().map(|offer| offer.command),
            tried,
        })?;
        return Ok(if errors > 0 { Exit::Usage } else { Exit::Success });
    }
    let plan = file.plan()?;
    context.ui.diagnose(&file.diagnostics());
    check_agents(&file, plan, context)?;
    let warned = match warnings {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        many => format!(", {many} warnings"),
    };
    let tasks = plan.tasks.len();
    let named = if tasks == 1 { "task" } else { "tasks" };
    context.ui.line(&format!("{}: plan {} with {tasks} {named} can be run{warned}", args.plan.display(), plan.name))?;
    for line in readiness::lines(&plan::readiness(plan)) {
        context.ui.line(&line)?;
    }
    if let Some(tried) = tried {
        context.ui.line("")?;
        return Ok(if tried::show(context, &tried)? { Exit::Success } else { Exit::Failure });
    }
    Ok(Exit::Success)
}

/// The settings that a run of this plan would have.
fn configuration(file: &PlanFile, plan: &plan::Plan, context: &Context) -> Result<Config> {
    let (shown, path) = (file.path.display().to_string(), context.project.config.as_deref());
    let sources = Sources { file: path, plan: Some((&shown, &plan.settings)), ..Sources::default() };
    Config::load(&sources.with_environment())
}

/// Checks the plan's agents and settings against the configuration, if there is one.
fn check_agents(file: &PlanFile, plan: &plan::Plan, context: &Context) -> Result<()> {
    if context.project.config.is_none() {
        return Ok(());
    }
    let config = configuration(file, plan, context)?;
    context.ui.diagnose(&config.warnings);
    for task in plan.tasks.iter().filter(|task| task.cli.is_some()) {
        config.agent_for(task)?;
    }
    config.check_environments(plan)?;
    config.prompts(&context.project.root)?;
    // A plan may be checked on another machine than it runs on: what is missing here does not make it wrong.
    if let Err(error) = config.check_plan(plan, std::env::var_os("PATH").as_deref(), &context.project.root) {
        let causes: Vec<&str> =
            std::iter::once(error.message.as_str()).chain(error.causes.iter().map(String::as_str)).collect();
        context.ui.warn(&causes.join(": "));
        error.hints.iter().for_each(|hint| context.ui.hint(hint));
    }
    Ok(())
}

fn show(args: &ShowArgs, context: &Context) -> Result<Exit> {
    let file;
    let pinned;
    let (path, plan) = if args.run {
        pinned = pinned_plan(context)?;
        (PathBuf::from(&pinned.plan_path), &pinned.plan)
    } else {
        file = PlanFile::read(&args.plan)?;
        (args.plan.clone(), file.plan()?)
    };
    let commands = if args.commands { Some(commands_of(&path, plan, context)?) } else { None };
    match (args.json, commands) {
        (true, commands) => context.ui.json(&ShowJson { schema_version: 1, plan, commands })?,
        (false, Some(commands)) => {
            for command in commands {
                context.ui.line(&command.line())?;
            }
        }
        (false, None) => context.ui.raw(plan::show(plan).as_bytes())?,
    }
    Ok(Exit::Success)
}

/// Every command that a run of a plan would start.
fn commands_of(path: &Path, plan: &plan::Plan, context: &Context) -> Result<Vec<Brought>> {
    let shown = path.display().to_string();
    let file = context.project.config.as_deref();
    let config = Config::load(&Sources { file, plan: Some((&shown, &plan.settings)), ..Sources::default() })?;
    Ok(brought::by_settings(&config, path, plan).into_iter().chain(brought::by_tasks(path, plan)).collect())
}

/// The run of the state directory, with its plan as it is now.
fn pinned_plan(context: &Context) -> Result<Run> {
    let state = pinned::state_of(&context.project)?;
    let plan = state.present_plan();
    let run = state.run.zip(plan).map(|(run, plan)| Run { plan, ..run });
    run.ok_or_else(|| CliError::usage("there is no run here").hint("start one: rekindle run plan.md"))
}
