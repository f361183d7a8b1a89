//! The part of the schedule that tells a reader which task is next. It decides nothing: it lets views see what `schedule`,
//! `gate` and `health` decide by.

use super::{gate, health, preflight, schedule};
use crate::ids::TaskId;
use crate::state::State;
use crate::time::Time;

/// Whether the plan's health commands must report before anything starts.
pub fn waits_for_health(state: &State) -> bool {
    health::baseline_missing(state)
}

/// Whether the checks of the plan are run before anything starts.
pub fn waits_for_preflight(state: &State) -> bool {
    preflight::is_open(state)
}

/// Whether recent completions are validated again before anything new starts.
pub fn waits_for_validation(state: &State) -> bool {
    schedule::validation_open(state)
}

/// Tasks that could begin now if there were a slot, in the order in which they would.
pub fn ready(state: &State, now: Time) -> Vec<TaskId> {
    schedule::ready(state, now).cloned().collect()
}

/// Which `[agents.NAME]` runs a task.
pub fn agent_program(state: &State, task: &TaskId) -> String {
    schedule::cli_for(state, task)
}

/// The accounts that could carry a task, its own first.
pub fn accounts(state: &State, task: &TaskId) -> Vec<String> {
    gate::accounts(state, task)
}
