//! Everything that is determined before a coordinator starts: the plan, the configuration, and the contents of the state
//! directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_core::event::Outcome;
use rekindle_core::ids::RunId;
use rekindle_core::input::Input;
use rekindle_core::plan::{FrontMatter, Plan};
use rekindle_core::state::{Run, RunPhase, State};
use rekindle_engine::clean;
use rekindle_engine::clock;
use rekindle_engine::control::wire::Request;
use rekindle_engine::coordinator::{Opened, Setup};
use rekindle_engine::driver;
use rekindle_engine::state_dir::{Owner, Standing, StateDir};
use rekindle_engine::store;

use super::foreground::coordinator_error;
use super::watch::summary_of;
use super::{RunArgs, RunOptions, commands, git};
use crate::client::ControlSocket;
use crate::commands::Context;
use crate::commands::plan::reload;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::plan_file::PlanFile;
use crate::ui;
use crate::view::View;

/// How often a coordinator that holds the lock and does not answer is called before it is assumed to be alive.
const OWNER_LOOKS: u32 = 20;

/// Pause between two calls: together they outlast the end of a killed process on a loaded machine.
const OWNER_PAUSE_MS: u32 = 50;

/// How often a state directory that is being cleaned is checked: ten minutes in total, enough to remove gigabytes.
const CLEANING_LOOKS: u32 = 6_000;

/// Pause between two checks.
const CLEANING_PAUSE_MS: u32 = 100;

/// How long a coordinator may take to answer a ping; a stopped one is not waited for long.
const OWNER_PATIENCE: Duration = Duration::from_millis(200);

pub(super) enum Prepared {
    /// A coordinator runs this plan already.
    Attach,
    /// The run is finished; this is how it ended.
    Over(Exit),
    /// The run was finished earlier, and its summary has been printed.
    Told(Exit),
    Coordinate(Box<Setup>),
    /// The state cannot be read before it is repaired, which the coordinator in the background does.
    RepairInBackground,
}

/// What is known about the run in a state directory.
enum PlanMatch {
    /// The run, if there is one.
    Read(Option<Box<Run>>),
    /// It could only be read by opening it: it was damaged, and this process holds it now.
    Opened(Box<Opened>),
    Unreadable,
}

impl PlanMatch {
    fn run(&self) -> Option<&Run> {
        match self {
            Self::Read(run) => run.as_deref(),
            Self::Opened(opened) => opened.run(),
            Self::Unreadable => None,
        }
    }

    fn opened(self) -> Option<Opened> {
        match self {
            Self::Opened(opened) => Some(*opened),
            Self::Read(_) | Self::Unreadable => None,
        }
    }
}

/// Reads a plan's file and the state, and decides what `run` does.
pub(super) fn for_plan(args: &RunArgs, context: &Context) -> Result<Prepared> {
    let file = PlanFile::read(&args.plan)?;
    let plan = file.plan()?;
    let path = std::path::absolute(&args.plan).unwrap_or_else(|_| args.plan.clone());
    let config = configure(context, &args.plan, plan, &args.options)?;
    let dir = open_dir(context)?;
    let known = read_run(&dir);
    if let Some(attached) = attach_to_owner(&dir, known.run(), Some(&plan.name))? {
        offer(known.run(), &file, plan, context)?;
        if args.again {
            let message = format!("plan `{}` is already running", plan.name);
            return Err(CliError::usage(message).hint("watch it without --again, or pause it: rekindle pause"));
        }
        return Ok(attached);
    }
    let Some(known) = repaired(known, &dir, &path, args.options.detach)? else {
        return Ok(Prepared::RepairInBackground);
    };
    let offered = !args.again && matches!(known, PlanMatch::Read(_)) && offer(known.run(), &file, plan, context)?;
    let known = if offered { read_run(&dir) } else { known };
    if let (Some(exit), false) = (finished_earlier(context, known.run(), &plan.name)?, args.again) {
        return Ok(Prepared::Told(exit));
    }
    let branch = git::branch(&context.project.root);
    let new_run = match known.run() {
        Some(run) if !matches!(run.phase, RunPhase::Finished(_)) => {
            continue_unfinished(run, plan, branch.as_deref())?;
            if args.again {
                let message = format!("run {} of plan `{}` is not finished", run.id, run.plan.name);
                let hint = "continue it without --again, or skip what is left: rekindle task skip TASK";
                return Err(CliError::usage(message).hint(hint));
            }
            None
        }
        Some(run) if run.plan.name == plan.name && !args.again => {
            match known {
                // A repaired run is coordinated once more, finished or not: its coordinator reads lost lines again.
                PlanMatch::Opened(_) => None,
                _ => return Ok(Prepared::Over(exit_of(run.phase))),
            }
        }
        _ => {
            context.ui.diagnose(&file.diagnostics());
            Some(new_run(plan, &path, branch))
        }
    };
    commands::tell_new(context, &dir, &config, &args.plan, plan)?;
    let setup = setup(context, &config, dir, &path, new_run, &args.options)?;
    Ok(Prepared::Coordinate(Box::new(Setup { opened: known.opened(), ..setup })))
}

/// Offers to apply a file that has changed since its run started. Returns whether it was applied.
fn offer(run: Option<&Run>, file: &PlanFile, plan: &Plan, context: &Context) -> Result<bool> {
    match run.filter(|run| run.plan.name == plan.name && run.plan.hash != plan.hash) {
        Some(_) => reload::offer(file, plan, context),
        None => Ok(false),
    }
}

/// Opens the state directory for use, and says so if it was elsewhere before.
fn open_dir(context: &Context) -> Result<StateDir> {
    let dir = StateDir::open_or_create(&context.project.state_dir)?;
    if let Standing::Moved { from } = dir.standing() {
        context.ui.say(&format!("the state directory was at {} before; the run continues here", from.display()));
    }
    Ok(dir)
}

/// Warns when the pinned plan differs from the plan in the file, so that it is never run silently.
fn warn_of_other_plan(context: &Context, path: &Path, run: &Run) {
    let same = PlanFile::read(path).is_ok_and(|file| file.plan().is_ok_and(|plan| plan.hash == run.plan.hash));
    if !same {
        let path = path.display();
        context
            .ui
            .warn(&format!("{path} is no longer the plan of this run; the run continues with the plan it began with"));
        context.ui.hint("what is different: rekindle plan diff; apply it: rekindle plan reload");
        context.ui.hint("show the plan of the run: rekindle plan show --run --commands");
    }
}

/// Finds a finished run of this plan that was followed by another plan's run, and prints its summary.
fn finished_earlier(context: &Context, newest: Option<&Run>, plan: &str) -> Result<Option<Exit>> {
    let Some(newest) = newest.filter(|run| run.plan.name != plan && matches!(run.phase, RunPhase::Finished(_))) else {
        return Ok(None);
    };
    let view = View::open(&context.project)?;
    let Some(run) = view.run_of(plan)? else { return Ok(None) };
    let exit = match run.row.state.as_str() {
        "complete" => Exit::Success,
        "failed" => Exit::TasksFailed,
        _ => return Ok(None),
    };
    summary_of(context, &run)?;
    context.ui.hint(&format!("plan `{}` has run since; run this one again: --again", newest.plan.name));
    Ok(Some(exit))
}

/// Reads only the state: its run continues with its pinned plan.
pub(super) fn for_resume(options: &RunOptions, context: &Context) -> Result<Prepared> {
    // Checked before it is opened for use: `resume` does not create one.
    StateDir::open(&context.project.state_dir)?;
    let dir = open_dir(context)?;
    let known = read_run(&dir);
    if let Some(attached) = attach_to_owner(&dir, known.run(), None)? {
        return Ok(attached);
    }
    let Some(known) = repaired(known, &dir, Path::new("a repair"), options.detach)? else {
        return Ok(Prepared::RepairInBackground);
    };
    let Some(run) = known.run().cloned() else {
        return Err(CliError::usage("there is no run to continue").hint("start one: rekindle run plan.md"));
    };
    if let (RunPhase::Finished(_), PlanMatch::Read(_)) = (run.phase, &known) {
        return Ok(Prepared::Over(exit_of(run.phase)));
    }
    refuse_other_branch(&run, git::branch(&context.project.root).as_deref())?;
    let path = PathBuf::from(&run.plan_path);
    warn_of_other_plan(context, &path, &run);
    // Settings of a reloaded plan count from this start on.
    let plan = Plan { settings: run.settings().clone(), ..run.plan.clone() };
    let config = configure(context, &path, &plan, options)?;
    commands::tell_new(context, &dir, &config, &path, &plan)?;
    let setup = setup(context, &config, dir, &path, None, options)?;
    Ok(Prepared::Coordinate(Box::new(Setup { opened: known.opened(), ..setup })))
}

/// The exit code of `run` for a run in this phase.
pub(super) fn exit_of(phase: RunPhase) -> Exit {
    use rekindle_core::event::PauseReason;
    match phase {
        RunPhase::Finished(Outcome::Complete) => Exit::Success,
        RunPhase::Finished(Outcome::Failed) => Exit::TasksFailed,
        RunPhase::Paused(PauseReason::Interrupt) => Exit::Interrupted,
        RunPhase::Paused(PauseReason::Terminate) => Exit::Terminated,
        RunPhase::Paused(_) | RunPhase::Waiting(_) => Exit::Paused,
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

/// The run in the state directory, as far as it can be read without changing anything.
fn read_run(dir: &StateDir) -> PlanMatch {
    // A missing database leaves its shadow log and its backups: then there is something to restore.
    if !store::may_have_log(dir) {
        return PlanMatch::Read(None);
    }
    let read = |reader: Option<Box<dyn store::Read>>| match (store::lag(dir, reader.as_deref())?, reader) {
        (None, None) if store::locate::space(dir.path())?.is_some() => Ok((State::default(), 0)),
        (None, None) => Err(store::Error::Corrupt("the database is missing".to_owned()).into()),
        (None, Some(reader)) => driver::load(reader.as_ref()),
        // Its contents do not match what happened: opening it repairs that.
        (Some(lag), _) => Err(store::Error::Corrupt(lag.to_string()).into()),
    };
    let state = store::reader(dir).map_err(Into::into).and_then(read);
    state.map_or(PlanMatch::Unreadable, |(state, _)| PlanMatch::Read(state.run.map(Box::new)))
}

/// Opens a state that cannot be read, which repairs it or says why not: the next step depends on the run it holds. In the
/// background this is left to the coordinator there, which must find the state unlocked.
fn repaired(known: PlanMatch, dir: &StateDir, plan_path: &Path, detach: bool) -> Result<Option<PlanMatch>> {
    match known {
        PlanMatch::Unreadable if detach => Ok(None),
        PlanMatch::Unreadable => {
            let opened = Opened::new(dir, plan_path).map_err(coordinator_error)?;
            Ok(Some(PlanMatch::Opened(Box::new(opened))))
        }
        known => Ok(Some(known)),
    }
}

/// Handles a live coordinator: if it runs this plan, its run is shown; if it runs another one, it is in the way.
fn attach_to_owner(dir: &StateDir, known: Option<&Run>, plan: Option<&str>) -> Result<Option<Prepared>> {
    let Some(owner) = serving_owner(dir)? else { return Ok(None) };
    match (known, plan) {
        (Some(run), Some(plan)) if run.plan.name != plan => {
            let who = owner.map_or_else(|| "another process".to_owned(), |owner| owner.to_string());
            let message = format!("the state directory is in use: {who} coordinates plan `{}`", run.plan.name);
            Err(CliError::usage(message).hint("wait for it, or pause it: rekindle pause"))
        }
        _ => Ok(Some(Prepared::Attach)),
    }
}

/// The coordinator that holds the directory. One that was just killed holds it until its last descriptor is closed, so it is
/// called repeatedly before it is believed. One that is starting or stopped does not answer either, and is believed in the
/// end.
fn serving_owner(dir: &StateDir) -> Result<Option<Option<Owner>>> {
    wait_for_cleaning(dir)?;
    let socket = ControlSocket::of_state_dir(dir.path());
    for _ in 0..OWNER_LOOKS {
        let Some(owner) = dir.owner()? else { return Ok(None) };
        if socket.call(Request::Ping, OWNER_PATIENCE).is_ok() {
            return Ok(Some(owner));
        }
        ui::pause(OWNER_PAUSE_MS);
    }
    Ok(dir.owner()?)
}

/// Waits for `rekindle clean`, which holds the directory as a coordinator does but drives nothing.
fn wait_for_cleaning(dir: &StateDir) -> Result<()> {
    for _ in 0..CLEANING_LOOKS {
        match dir.owner()? {
            Some(Some(owner)) if owner.plan == clean::OWNER => ui::pause(CLEANING_PAUSE_MS),
            _ => return Ok(()),
        }
    }
    Err(CliError::refused("`rekindle clean` still holds the state directory")
        .hint("wait until it has ended, then try again"))
}

fn continue_unfinished(run: &Run, plan: &Plan, branch: Option<&str>) -> Result<()> {
    if run.plan.name != plan.name {
        let message = format!("plan `{}` has an unfinished run ({}) in this state directory", run.plan.name, run.id);
        return Err(CliError::usage(message)
            .hint(format!("continue it: rekindle resume (its plan is {})", run.plan_path))
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
    options: &RunOptions,
) -> Result<Setup> {
    let files_dir = match config.files_dir() {
        Some(files) => context.project.root.join(files),
        None => dir.path().to_owned(),
    };
    Ok(Setup {
        workspace: context.project.root.clone(),
        isolation: config.isolation(),
        limits: config.limits(options.no_wait)?,
        programs: config.programs(),
        log_context_lines: config.log_context_lines(),
        brief_budget_bytes: config.brief_budget_bytes(),
        prompts: config.prompts(&context.project.root)?,
        files_dir,
        new_run,
        plan_path: plan_path.to_owned(),
        forget_lost: options.forget_lost,
        opened: None,
        retention: config.cleans_by_itself().then(|| config.retention()),
        dir,
    })
}
