//! The process that becomes the person's program: it takes the hold in its own name, so that the hold lasts as long as the program.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rekindle_core::ids::TaskId;
use rekindle_core::input::Order;
use rekindle_core::view::{AttemptRow, TaskRow};
use rekindle_engine::agents::Place;
use rekindle_engine::agents::interactive::Interactive;
use rekindle_engine::git::{Repo, Work};
use rekindle_engine::person::{self, WorkedOn};
use rekindle_engine::state_dir::StateDir;

use crate::client::orders;
use crate::commands::Context;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::project::Project;
use crate::ui::{self, ColorChoice, Ui};
use crate::view::{View, task_id};

/// The hidden subcommand.
pub(crate) const COMMAND: &str = "__attach";

/// The exit code when the program was not opened; programs seldom exit with it.
pub(super) const NOT_OPENED: u8 = 213;

/// How long an agent may take to end: its whole ladder of signals, and the inspection of what it left.
const LOOKS: u32 = 3_000;

/// Pause between two checks.
const LOOK_MS: u32 = 100;

/// Becomes the program, or says why not.
pub(crate) fn main(state_dir: &Path, task: &str) -> ExitCode {
    let ui = Ui::new(ColorChoice::Auto);
    let outcome = Project::find(Some(state_dir)).and_then(|project| open(&Context { ui, project }, task));
    if let Err(error) = outcome {
        ui.error(&error);
    }
    ExitCode::from(NOT_OPENED)
}

fn open(context: &Context, name: &str) -> Result<()> {
    let task = task_id(name)?;
    refuse_without_coordinator(context, &task)?;
    let fail = |error: std::io::Error| CliError::internal("this process cannot be described").because(&error);
    let by = person::this_process().map_err(fail)?;
    orders::give(&context.project, &Order::Attach { task: task.clone(), by })?;
    wait_for_agents(context, &task)?;
    let Some((place, work)) = worked_on(context, &task)? else {
        return Err(CliError::refused(format!("no agent has worked on {task} yet")));
    };
    if let Some(work) = &work {
        place.keep(work);
    }
    let dir = place.dir(work.as_ref(), &context.project.root);
    let attempt = last_attempt(context, &task)?;
    let program = program_of(context, attempt.as_ref(), &dir)?;
    let Some((words, arguments)) = program.argv.split_first() else { return Ok(()) };
    context.ui.flush()?;
    let mut command = Command::new(words);
    command.args(arguments).envs(&program.env).current_dir(&dir);
    for name in &program.env_remove {
        command.env_remove(name);
    }
    let failed = command.exec();
    Err(CliError::internal(format!("{words} cannot be started")).because(&failed))
}

/// Refuses when no coordinator is running and an agent would have to be stopped first.
fn refuse_without_coordinator(context: &Context, task: &TaskId) -> Result<()> {
    if StateDir::open(&context.project.state_dir)?.owner()?.is_some() {
        return Ok(());
    }
    if living(context, task)?.is_empty() {
        return Ok(());
    }
    let message = format!("an agent of {task} may still be running, and no coordinator is there to stop it");
    Err(CliError::refused(message).hint("start one first: rekindle resume --detach; then attach again"))
}

/// Attempts on a task or in its workspace that have not ended.
fn living(context: &Context, task: &TaskId) -> Result<Vec<AttemptRow>> {
    let view = View::open(&context.project)?;
    let run = view.the_run()?;
    let row = run.task(task.as_str())?;
    let mut same = vec![task.clone()];
    if row.workspace.is_some() {
        let there = |other: &TaskRow| other.workspace == row.workspace;
        same.extend(run.tasks()?.into_iter().filter(there).map(|other| other.id));
    }
    let on_it = |attempt: &AttemptRow| attempt.ended_at.is_none() && attempt.tasks.iter().any(|id| same.contains(id));
    Ok(run.attempts()?.into_iter().filter(on_it).collect())
}

fn wait_for_agents(context: &Context, task: &TaskId) -> Result<()> {
    let dir = StateDir::open(&context.project.state_dir)?;
    for look in 0..LOOKS {
        let living = living(context, task)?;
        let Some(first) = living.first() else { return Ok(()) };
        if look == 0 {
            context.ui.say(&format!("{} is being stopped; its session is kept and this costs no attempt", first.name));
        }
        if dir.owner()?.is_none() {
            let message = "the coordinator ended before it had stopped the agent";
            return Err(CliError::refused(message).hint("start one: rekindle resume --detach; then attach again"));
        }
        ui::pause(LOOK_MS);
    }
    Err(CliError::refused(format!("the agent of {task} does not end")).hint("look at it: rekindle doctor"))
}

fn last_attempt(context: &Context, task: &TaskId) -> Result<Option<AttemptRow>> {
    let attempts = View::open(&context.project)?.the_run()?.attempts()?;
    let on_it = attempts.into_iter().filter(|attempt| attempt.tasks.contains(task));
    Ok(on_it.max_by_key(|attempt| attempt.attempt))
}

/// Where a task was worked on last, and the run's part of the repository, if it has one.
pub(super) fn worked_on(context: &Context, task: &TaskId) -> Result<Option<(WorkedOn, Option<Work>)>> {
    let view = View::open(&context.project)?;
    let run = view.the_run()?;
    let row = run.task(task.as_str())?;
    let Some(attempt) = last_attempt(context, task)? else { return Ok(None) };
    let branch = run.row.work_branch.clone().unwrap_or_default();
    let repo = Repo::of(&context.project.root).ok();
    let work = repo.and_then(|repo| Work::new(repo, &context.project.state_dir, &run.row.id, &branch).ok());
    let place = WorkedOn { workspace: row.workspace, task: task.to_string(), attempt: attempt.attempt.0 };
    Ok(Some((place, work)))
}

/// The session in the agent's own program, or a shell if there is no session to open.
fn program_of(context: &Context, attempt: Option<&AttemptRow>, dir: &Path) -> Result<Interactive> {
    let project = &context.project;
    let sources = Sources { file: project.config.as_deref(), ..Sources::default() };
    let config = Config::load(&sources.with_environment())?;
    let known = attempt.and_then(|attempt| Some((attempt, config.agents.get(&attempt.cli)?)));
    let Some((attempt, agent)) = known else {
        return Ok(shell(context, dir, "its agent is no longer in rekindle.toml"));
    };
    let bundle = bundle_of(project, attempt);
    let place = Place { program: &agent.program, workspace: dir, bundle: &bundle };
    let kind = agent.program.kind;
    let Some(session) = attempt.session_id.as_deref() else {
        return Ok(shell(context, dir, &no_session(kind.kind())));
    };
    match kind.open(&place, session) {
        Some(Ok(program)) => {
            let words = format!(
                "the session of {} is yours, in {}; leave it to give the task back",
                attempt.name,
                dir.display()
            );
            context.ui.say(&words);
            Ok(program)
        }
        Some(Err(why)) => Err(CliError::refused(why)),
        None => Ok(shell(context, dir, &no_session(kind.kind()))),
    }
}

fn no_session(kind: &str) -> String {
    format!("an agent of the kind `{kind}` has no session that a person can open")
}

fn bundle_of(project: &Project, attempt: &AttemptRow) -> PathBuf {
    project.state_dir.join("attempts").join(format!("{:08}", attempt.attempt.0))
}

fn shell(context: &Context, dir: &Path, why: &str) -> Interactive {
    let shell = std::env::var("SHELL").ok().filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned());
    context.ui.say(&format!("{why}: here is a shell in {}; leave it to give the task back", dir.display()));
    Interactive { argv: vec![shell], env: Default::default(), env_remove: Default::default() }
}
