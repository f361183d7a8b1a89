//! What a coordinator looks at before it begins: who works here already, what the log has lost.

use rekindle_core::state::State;

use super::{Error, Setup};
use crate::control;
use crate::driver;
use crate::world::real::{self, Lost, RealWorld};

/// A coordinator that an agent of this run started would speak as the operator, and end with its agent.
pub(super) fn refuse_agents(state: &State) -> Result<(), Error> {
    match state.holds_any_of(&control::server::ancestors(std::process::id())) {
        true => Err(Error::Refused(driver::HIDDEN_TOKEN.to_owned())),
        false => Ok(()),
    }
}

/// Agents of a state that was deleted end by themselves; until they have, nobody else begins.
pub(super) fn refuse_beside(world: &RealWorld) -> Result<(), Error> {
    let pids: Vec<String> = world.outlasting().iter().map(ToString::to_string).collect();
    match pids.is_empty() {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "an agent of a run whose state was deleted still works here, as process {}: wait for it, or end it",
            pids.join(" and ")
        ))),
    }
}

/// Attempts that the log has lost. Nothing is begun before a person has said to go on, and while an agent of theirs works.
pub(super) fn look_for_lost(setup: &Setup, state: &State) -> Result<Option<Lost>, Error> {
    match real::lost(setup.dir.path(), state.last_attempt) {
        Some(lost) if !setup.forget_lost || !lost.living.is_empty() => Err(Error::AttemptsLost(lost)),
        found => Ok(found),
    }
}
