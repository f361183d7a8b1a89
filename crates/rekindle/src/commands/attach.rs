//! `rekindle attach`: hands a task's own session to a person, and gives the task back when their program ends.
//!
//! There are two processes. The inner one takes the hold in its own name, waits until the agent is gone and becomes the
//! program: watching that process shows exactly how long the person has the task, whatever is killed. The outer one waits
//! for it and reports what became of the task.

mod inner;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use rekindle_core::input::Order;
use rekindle_core::steering::PersonProcess;
use rekindle_engine::person;
use rekindle_engine::state_dir::StateDir;

use super::Context;
use crate::client::orders::{self, Taken, refuse_own_agent};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::{self, one_line};
use crate::view::task_id;

pub(crate) use inner::{COMMAND, main as inner_main};

/// Work on a task yourself, in its agent's own session
///
/// The agent is stopped (this does not count as an attempt), and nothing else is started on the task or in its workspace while you have it;
/// the rest of the run continues. When you leave the program, the task is given back, and its agent continues in the same session and is
/// told what you changed. Agents without sessions of their own (kinds `command` and `acp`) open a shell in the workspace.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle attach T3")]
pub(crate) struct AttachArgs {
    /// The task
    task: String,
}

/// How long the coordinator may take to notice that the person has left, and git to find what changed.
const LOOKS: u32 = 300;

/// Pause between two checks.
const LOOK_MS: u32 = 100;

/// How many lines of the changes are shown.
const SHOWN: usize = 10;

/// Opens the session and waits for it to end.
pub(crate) fn run(args: &AttachArgs, context: &Context) -> Result<Exit> {
    refuse_own_agent(&context.project)?;
    let task = task_id(&args.task)?;
    context.view()?.the_run()?.task(&args.task)?;
    let fail = |error: std::io::Error| CliError::internal("the session cannot be opened").because(&error);
    // The keys of this terminal are for the program: an interrupt ends a turn there, not this command.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        let _heard = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(fail)?;
    }
    context.ui.flush()?;
    let mut child = Command::new(std::env::current_exe().map_err(fail)?)
        .arg(COMMAND)
        .arg(&context.project.state_dir)
        .arg(&args.task)
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(fail)?;
    let by = person::of_child(child.id()).map_err(fail)?;
    let status = child.wait().map_err(fail)?;
    if status.code() == Some(i32::from(inner::NOT_OPENED)) {
        give_back(context, &task, &by, false)?;
        return Ok(Exit::Failure);
    }
    give_back(context, &task, &by, true)?;
    Ok(Exit::Success)
}

/// Makes sure that the task is given back, by the coordinator or otherwise here, and says what became of it.
fn give_back(context: &Context, task: &rekindle_core::ids::TaskId, by: &PersonProcess, opened: bool) -> Result<()> {
    let dir = StateDir::open(&context.project.state_dir)?;
    for _ in 0..LOOKS {
        let row = context.view()?.the_run()?.task(task.as_str())?;
        if row.attached.is_none_or(|held| held.pid != by.pid) {
            return if opened { say(context, task) } else { Ok(()) };
        }
        if dir.owner()?.is_none() {
            let changed = inner::worked_on(context, task)?.map(|(place, work)| place.changed(work.as_ref()));
            let order = Order::Detach { task: task.clone(), by: by.clone(), changed: changed.unwrap_or_default() };
            // A coordinator that has just started sees to it itself.
            let _told_by_either: Taken = orders::give(&context.project, &order)?;
        }
        ui::pause(LOOK_MS);
    }
    context.ui.warn(&format!("{task} is not given back yet; look at it: rekindle why {task}"));
    Ok(())
}

/// Prints what changed, from the task's newest `detached` event.
fn say(context: &Context, task: &rekindle_core::ids::TaskId) -> Result<()> {
    let view = context.view()?;
    let run = view.the_run()?;
    let mut changed: Option<Vec<String>> = None;
    run.events(0, |event| {
        if event.kind == "detached" && event.task.as_deref() == Some(task.as_str()) {
            let details: serde_json::Value = serde_json::from_str(&event.details).unwrap_or_default();
            let lines = details["changed"].as_array().cloned().unwrap_or_default();
            changed = Some(lines.iter().filter_map(|line| line.as_str().map(str::to_owned)).collect());
        }
        Ok(())
    })?;
    let Some(changed) = changed else { return Ok(()) };
    let what = if changed.is_empty() { "nothing changed" } else { "its agent is told what changed:" };
    context.ui.say(&format!("{task} is given back; {what}"));
    for line in changed.iter().take(SHOWN) {
        context.ui.say(&format!("  {}", one_line(line)));
    }
    if changed.len() > SHOWN {
        context.ui.say(&format!("  and {} more", changed.len() - SHOWN));
    }
    if StateDir::open(&context.project.state_dir)?.owner()?.is_none() {
        context.ui.hint("no coordinator is running; continue: rekindle resume");
    }
    Ok(())
}
