//! `rekindle task add` and `rekindle task edit`: what a person changes in the plan of a run, a task at a time.

use clap::Args;
use rekindle_core::duration;
use rekindle_core::ids::AgentName;
use rekindle_core::input::{NewTask, Order, TaskEdit};

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::pinned;
use crate::view::task_id;

/// Add a task to the run
///
/// It starts after the tasks named with --after. The plan's file is not changed: `rekindle plan export` writes the plan as it is
/// now. A finished run becomes unfinished: continue it with `rekindle run PLAN`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle task add \"Document the API\" --after T3 --accept \"test -s docs/api.md\""
)]
pub(super) struct AddArgs {
    /// What is to be done, in one line
    title: String,
    /// The task, in full
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    text: String,
    /// A task that must be complete before it (repeatable)
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// A command that must exit 0 (repeatable)
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    accept: Vec<String>,
    /// A file that must exist (repeatable)
    #[arg(long, value_name = "FILE")]
    artifact: Vec<String>,
    /// The agent that does it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How long it may take, such as 20m
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Its id [default: the next free number, such as T7]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

/// Change a task of the run
///
/// New text reopens the task. If only the checks change, rekindle proves the existing work again, without an agent. Everything
/// else applies from the next attempt. The plan's file is not changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle task edit T3 --accept \"cargo test -p parser\"\n  rekindle task edit T3 --timeout 1h"
)]
pub(super) struct EditArgs {
    /// The task
    task: String,
    /// Its title
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// Its text, in full
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// All its checks; they replace the old ones. An empty one means none
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    accept: Vec<String>,
    /// All files that must exist; they replace the old ones. An empty one means none
    #[arg(long, value_name = "FILE")]
    artifact: Vec<String>,
    /// All tasks that must be complete before it; they replace the old ones. An empty one means none
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// The agent that does it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How long it may take, such as 20m
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
}

pub(super) fn add(args: &AddArgs, context: &Context) -> Result<Exit> {
    let id = args.id.as_deref().map_or_else(|| pinned::free_id(&context.project), task_id)?;
    let new = NewTask {
        id: id.clone(),
        title: args.title.clone(),
        text: args.text.clone(),
        after: args.after.iter().map(|name| task_id(name)).collect::<Result<_>>()?,
        accept: args.accept.clone(),
        artifacts: paths(&args.artifact)?,
        agent: agent(args.agent.as_deref())?,
        timeout_ms: timeout(args.timeout.as_deref())?,
    };
    context.order(&Order::Add(Box::new(new)), &format!("task {id} is added"))
}

pub(super) fn edit(args: &EditArgs, context: &Context) -> Result<Exit> {
    let task = task_id(&args.task)?;
    let after = given(&args.after).map(|names| names.iter().map(|name| task_id(name)).collect::<Result<_>>());
    let edit = TaskEdit {
        title: args.title.clone(),
        text: args.text.clone(),
        accept: given(&args.accept),
        artifacts: given(&args.artifact).map(|files| paths(&files)).transpose()?,
        after: after.transpose()?,
        agent: agent(args.agent.as_deref())?,
        timeout_ms: timeout(args.timeout.as_deref())?,
    };
    if edit == TaskEdit::default() {
        return Err(CliError::usage("there is nothing to change")
            .hint("for example: --text TEXT, --accept COMMAND, --timeout 1h"));
    }
    context.order(&Order::Edit { task: task.clone(), edit: Box::new(edit) }, &format!("task {task} is changed"))
}

/// Values that replace all earlier ones; a single empty value means none.
fn given(values: &[String]) -> Option<Vec<String>> {
    let filled: Vec<String> = values.iter().filter(|value| !value.trim().is_empty()).cloned().collect();
    (!values.is_empty()).then_some(filled)
}

fn paths(files: &[String]) -> Result<Vec<String>> {
    let path = |file: &String| {
        rekindle_core::plan::workspace_path(file).map_err(|why| CliError::usage(format!("the artifact {file} {why}")))
    };
    files.iter().map(path).collect()
}

fn agent(name: Option<&str>) -> Result<Option<AgentName>> {
    let named = name.map(AgentName::new).transpose();
    named.map_err(|error| CliError::usage("that is not an agent's name").because(&error))
}

fn timeout(text: Option<&str>) -> Result<Option<u64>> {
    let read = text.map(duration::parse).transpose();
    read.map_err(|error| CliError::usage("bad timeout").because(&error).hint(error.hint()))
}
