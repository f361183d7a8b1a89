//! `rekindle demo`: a small plan with agents that crash, hang and lie, and a coordinator that is killed halfway. All of it
//! is real: real processes, a real SIGKILL, and the real log, which is read at the end to prove what was promised.

pub(crate) mod agent;
mod proof;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::project::Project;
use crate::ui;
use crate::view::View;

/// Pause between two polls of the run.
const LOOK_MS: u32 = 50;

/// Polls before the demonstration gives up: enough for a very slow machine.
const LOOKS: u32 = 2_400;

/// How long no coordinator runs, so that people can see agents work alone.
const ALONE_MS: u32 = 1_500;

/// How long the last lines of the first coordinator may take to appear.
const SHOW_MS: u32 = 300;

/// The plan of the demonstration.
const PLAN: &str = include_str!("demo/plan.md");

/// See a run survive a crash, a hang, a lie and a kill -9 of its coordinator, in under half a minute
///
/// Runs a small plan in a temporary directory with a stand-in for an AI agent. Needs no setup and spends no tokens.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle demo\n  rekindle demo --keep    keep the directory, to look at it with status, events, why and logs"
)]
pub(crate) struct DemoArgs {
    /// Keep the project with its state and say where it is
    #[arg(long)]
    keep: bool,
}

/// Runs the demonstration. Fails when something that it promises did not happen.
pub(crate) fn run(args: &DemoArgs, context: &Context) -> Result<Exit> {
    let failed = |error: std::io::Error| CliError::internal("cannot set up the demo").because(&error);
    let holder = tempfile::Builder::new().prefix("rekindle-demo-").tempdir().map_err(failed)?;
    let dir = holder.path().canonicalize().map_err(failed)?;
    write_project(&dir).map_err(failed)?;
    let project = Project::from(&dir, None);
    context.ui.say("Five tasks, four agents at once. One agent will crash, one hang, one lie;");
    context.ui.say("then the coordinator itself is killed with SIGKILL while an agent is running.\n");
    let mut first = start(&dir).map_err(failed)?;
    let victim = wait_for_victim(context, &project, &mut first)?;
    // Show what has happened before the coordinator dies.
    ui::pause(SHOW_MS);
    kill_coordinator(&mut first).map_err(failed)?;
    context.ui.say(&format!("\n>>> kill -9 {}: the coordinator is gone. Agent {victim} does not notice:", first.id()));
    let before = spool_length(&dir);
    ui::pause(ALONE_MS);
    let grown = spool_length(&dir).saturating_sub(before);
    context.ui.say(&format!(">>> it wrote {grown} more bytes meanwhile. The same command again:\n"));
    let status = start(&dir).and_then(|mut child| child.wait()).map_err(failed)?;
    if !status.success() {
        let kept = holder.keep();
        return Err(CliError::internal("the run did not finish").hint(format!("look at it: cd {}", kept.display())));
    }
    let proven = proof::show(context, &project)?;
    if args.keep || !proven {
        let kept = holder.keep();
        context.ui.say("");
        context.ui.line(&format!("kept: {}", kept.display()))?;
        context.ui.hint(&format!("cd {} && rekindle why hang", kept.display()));
    }
    if proven {
        Ok(Exit::Success)
    } else {
        Err(CliError::internal("the event log does not show what the demo promises"))
    }
}

fn write_project(dir: &Path) -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    let quoted = toml::Value::String(program.to_string_lossy().into_owned());
    let config = format!(
        "[agents.demo]\nkind = \"command\"\ncommand = [{quoted}, \"{}\"]\n\n[run]\nbackoff = \"500ms\"\n\n[stop]\ngrace = \"1s\"\n",
        agent::COMMAND
    );
    rekindle_shim::atomic::save(dir, "rekindle.toml", config.as_bytes())?;
    rekindle_shim::atomic::save(dir, "plan.md", PLAN.as_bytes())
}

/// `rekindle run plan.md`, as a user would type it.
fn start(dir: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    // A run inside a run must not take the outer one's place.
    for name in std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("REKINDLE_"))
    {
        command.env_remove(name);
    }
    command.args(["run", "plan.md"]).current_dir(dir).spawn()
}

/// Waits until the crash has happened and the long task's agent is running, and returns that agent's process id.
fn wait_for_victim(context: &Context, project: &Project, coordinator: &mut Child) -> Result<u32> {
    for _ in 0..LOOKS {
        if let Some(pid) = long_runner(project) {
            return Ok(pid);
        }
        if let Ok(Some(status)) = coordinator.try_wait() {
            return Err(CliError::internal(format!("the run ended before it could be killed: {status}")));
        }
        ui::pause(LOOK_MS);
    }
    context.ui.warn("the machine is too slow for the demo");
    Err(CliError::internal("the agents did not start working in time"))
}

fn long_runner(project: &Project) -> Option<u32> {
    let view = View::open(project).ok()?;
    let run = view.run().ok()??;
    let attempts = run.attempts().ok()?;
    let crashed = attempts.iter().any(|attempt| attempt.cause.as_deref() == Some("crashed"));
    let timed_out = attempts.iter().any(|attempt| attempt.cause.as_deref() == Some("timed_out"));
    let long =
        attempts.iter().find(|attempt| attempt.name.as_str() == "developer-long" && attempt.state == "running")?;
    if crashed && timed_out { long.pid } else { None }
}

/// Kills our own child, which is not yet waited for: its process id cannot have been reused.
fn kill_coordinator(child: &mut Child) -> std::io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, Signal::KILL)?;
    }
    child.wait().map(|_| ())
}

/// Bytes that all agents have written so far.
fn spool_length(dir: &Path) -> u64 {
    let bundles: PathBuf = dir.join(crate::project::STATE_DIR_NAME).join("attempts");
    let Ok(entries) = std::fs::read_dir(bundles) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| entry.path().join(rekindle_shim::bundle::OUT).metadata().ok())
        .map(|found| found.len())
        .sum()
}
