//! The run of a state directory with its pinned plan, read completely: for code that compares, changes or writes the plan.

use rekindle_core::ids::TaskId;
use rekindle_core::state::State;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store;

use crate::error::{CliError, Result};
use crate::project::Project;

/// The state of the run here.
pub(crate) fn state_of(project: &Project) -> Result<State> {
    let dir = StateDir::open(&project.state_dir)?;
    let none = || CliError::usage("there is no run here").hint("start one: rekindle run plan.md");
    let reader = store::reader(&dir)?.ok_or_else(none)?;
    let (state, _) = driver::load(reader.as_ref()).map_err(|error| CliError::internal(error.to_string()))?;
    match &state.run {
        Some(_) => Ok(state),
        None => Err(none()),
    }
}

/// An unused name for a new task.
pub(crate) fn free_id(project: &Project) -> Result<TaskId> {
    let free = state_of(project)?.free_task_id();
    free.ok_or_else(|| CliError::usage("no number is free for the task").hint("name it: --id ID"))
}
