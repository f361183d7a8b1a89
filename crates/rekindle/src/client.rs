//! The command line's side of the control socket: who is calling (an agent with its token, or the operator), how a call
//! reaches the coordinator, and what happens when none is running.

pub(crate) mod agent;
mod attempt_variables;
mod control;
pub(crate) mod orders;
mod stall;

pub(crate) use agent::Agent;
pub(crate) use attempt_variables::AttemptVariables;
pub(crate) use control::{Away, ControlSocket};

/// The variable that holds an agent's token.
pub(crate) const TOKEN: &str = "REKINDLE_TOKEN";
/// The variable that names the coordinator's socket to an agent.
pub(crate) const SOCKET: &str = "REKINDLE_SOCKET";
/// The variable that names an agent's first task.
pub(crate) const TASK: &str = "REKINDLE_TASK";
/// The variable that names the bundle of an agent's attempt.
pub(crate) const BUNDLE: &str = "REKINDLE_BUNDLE";
/// The variable that names all of an agent's tasks, separated by commas.
pub(crate) const TASKS: &str = "REKINDLE_TASKS";

/// The variable that names an agent's role.
pub(crate) const ROLE: &str = "REKINDLE_ROLE";

/// The variable that holds the number of the attempt.
pub(crate) const NUMBER: &str = "REKINDLE_ATTEMPT";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
