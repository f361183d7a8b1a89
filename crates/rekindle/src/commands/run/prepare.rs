//! Everything that is known before a coordinator starts: the plan, the configuration, and what the state directory holds.

use std::path::{Path, PathBuf};

use rekindle_core::event::Outcome;
use rekindle_core::ids::RunId;
use rekindle_core::input::Input;
use rekindle_core::plan::{FrontMatter, Plan};
use rekindle_core::state::{Run, RunPhase};
use rekindle_engine::clock;
use rekindle_engine::coordinator::Setup;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::SqliteReader;

use super::{RunArgs, RunOptions, git};
use crate::commands::Context;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::plan_file::PlanFile;

/// What is to be done.
pub enum Prepared {
    /// A coordinator runs this plan already.
    Attach,
    /// The run is finished; this is how it ended.
    Over(Exit),
    /// Coordinate it here.
    Coordinate(Box<Setup>),
}

/// Looks at a plan's file and at the state, and decides what `run` does.
pub fn for_plan(args: &RunArgs, context: &Context) -> Result<Prepared> {
    let file = PlanFile::read(&args.plan)?;
    let plan = file.plan()?;
    context.ui.diagnose(&file.diagnostics());
    let path = std::path::absolute(&args.plan).unwrap_or_else(|_| args.plan.clone());
    let config = configure(context, &args.plan, plan, &args.options)?;
    let dir = StateDir::open_or_create(&context.project.state_dir)?;
    let known = known_run(&dir)?;
    if let Some(attached) = attach_to_owner(&dir, known.as_ref(), Some(&plan.name))? {
        return Ok(attached);
    }
    let branch = git::branch(&context.project.root);
    let new_run = match &known {
        Some(run) if !matches!(run.phase, RunPhase::Finished(_)) => {
            continue_unfinished(run, plan, branch.as_deref())?;
            if args.again {
                let message = format!("run {} of plan `{}` is not finished", run.id, run.plan.name);
                let hint = "go on with it without --again, or skip what is left: rekindle task skip TASK";
                return Err(CliError::usage(message).hint(hint));
            }
            if run.plan.hash != plan.hash {
                context.ui.warn(
                    "the plan's file has changed since the run began; the run goes on with the plan it began with",
                );
            }
            None
        }
        Some(run) if run.plan.name == plan.name && !args.again => return Ok(Prepared::Over(exit_of(run.phase))),
        _ => Some(new_run(plan, &path, branch)),
    };
    let setup = setup(context, &config, dir, &path, new_run, args.options.no_wait)?;
    Ok(Prepared::Coordinate(Box::new(setup)))
}

/// Looks at the state alone: the run there is gone on with, by its pinned plan.
pub fn for_resume(options: &RunOptions, context: &Context) -> Result<Prepared> {
    let dir = StateDir::open(&context.project.state_dir)?;
    let known = known_run(&dir)?;
    if let Some(attached) = attach_to_owner(&dir, known.as_ref(), None)? {
        return Ok(attached);
    }
    let Some(run) = known else {
        return Err(CliError::usage("there is no run to go on with").hint("start one: rekindle run plan.md"));
    };
    if let RunPhase::Finished(_) = run.phase {
        return Ok(Prepared::Over(exit_of(run.phase)));
    }
    refuse_other_branch(&run, git::branch(&context.project.root).as_deref())?;
    let path = PathBuf::from(&run.plan_path);
    let config = configure(context, &path, &run.plan, options)?;
    let setup = setup(context, &config, dir, &path, None, options.no_wait)?;
    Ok(Prepared::Coordinate(Box::new(setup)))
}

/// How a run that stands like this ends `run`.
#[must_use]
pub fn exit_of(phase: RunPhase) -> Exit {
    use rekindle_core::event::PauseReason;
    match phase {
        RunPhase::Finished(Outcome::Complete) => Exit::Success,
        RunPhase::Finished(Outcome::Failed) => Exit::TasksFailed,
        RunPhase::Paused(PauseReason::Interrupt) => Exit::Interrupted,
        RunPhase::Paused(PauseReason::Terminate) => Exit::Terminated,
        RunPhase::Paused(_) => Exit::Paused,
        RunPhase::Created | RunPhase::Running | RunPhase::Pausing(_) => Exit::Failure,
    }
}

fn configure(context: &Context, path: &Path, plan: &Plan, options: &RunOptions) -> Result<Config> {
    let shown = path.display().to_string();
    let settings: &FrontMatter = &plan.settings;
    let sources = Sources {
        file: context.project.config.as_deref(),
        plan: Some((&shown, settings)),
        flags: options.flags(),
        ..Sources::default()
    };
    let config = Config::load(&sources.with_environment())?;
    context.ui.diagnose(&config.warnings);
    config.check_plan(plan, std::env::var_os("PATH").as_deref(), &context.project.root)?;
    Ok(config)
}

/// The run that the state holds, if any.
fn known_run(dir: &StateDir) -> Result<Option<Run>> {
    if !dir.database().exists() {
        return Ok(None);
    }
    // A damaged store is repaired by the coordinator, which then tells what it found; here it counts as unknown.
    let Ok(reader) = SqliteReader::open(dir) else { return Ok(None) };
    match driver::load(&reader) {
        Ok((state, _)) => Ok(state.run),
        Err(error) => {
            Err(CliError::internal("the state cannot be read").because(&error).hint("look at it: rekindle doctor"))
        }
    }
}

/// A living coordinator: of this plan, then its run is shown; of another, then it is in the way.
fn attach_to_owner(dir: &StateDir, known: Option<&Run>, plan: Option<&str>) -> Result<Option<Prepared>> {
    let Some(owner) = dir.owner()? else { return Ok(None) };
    match (known, plan) {
        (Some(run), Some(plan)) if run.plan.name != plan => {
            let who = owner.map_or_else(|| "another process".to_owned(), |owner| owner.to_string());
            let message = format!("the state directory is in use: {who} coordinates plan `{}`", run.plan.name);
            Err(CliError::usage(message).hint("wait for it, or pause it: rekindle pause"))
        }
        _ => Ok(Some(Prepared::Attach)),
    }
}

fn continue_unfinished(run: &Run, plan: &Plan, branch: Option<&str>) -> Result<()> {
    if run.plan.name != plan.name {
        let message = format!("plan `{}` has an unfinished run ({}) in this state directory", run.plan.name, run.id);
        return Err(CliError::usage(message)
            .hint(format!("go on with it: rekindle resume (its plan is {})", run.plan_path))
            .hint("or keep the other plan's state elsewhere: rekindle run PLAN --state-dir DIR"));
    }
    refuse_other_branch(run, branch)
}

fn refuse_other_branch(run: &Run, branch: Option<&str>) -> Result<()> {
    match (&run.branch, branch) {
        (Some(then), Some(now)) if then != now => {
            let message = format!("the run was started on branch `{then}`, the project is now on `{now}`");
            Err(CliError::usage(message).hint(format!("git switch {then}")))
        }
        _ => Ok(()),
    }
}

fn new_run(plan: &Plan, path: &Path, branch: Option<String>) -> Input {
    let now = clock::wall();
    let id = format!("r{:x}-{:x}", now.0, std::process::id());
    Input::RunRequested {
        run: RunId::new(id).expect("hexadecimal digits and a dash make a name"),
        plan: Box::new(plan.clone()),
        plan_path: path.to_string_lossy().into_owned(),
        branch,
    }
}

fn setup(
    context: &Context,
    config: &Config,
    dir: StateDir,
    plan_path: &Path,
    new_run: Option<Input>,
    no_wait: bool,
) -> Result<Setup> {
    let files_dir = match config.files_dir() {
        Some(files) => context.project.root.join(files),
        None => dir.path().to_owned(),
    };
    Ok(Setup {
        workspace: context.project.root.clone(),
        limits: config.limits(no_wait)?,
        programs: config.programs(),
        log_context_lines: config.log_context_lines(),
        brief_budget_bytes: config.brief_budget_bytes(),
        files_dir,
        new_run,
        plan_path: plan_path.to_owned(),
        dir,
    })
}
