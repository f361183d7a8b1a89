//! What a coordinator checks before it starts: which agents are still running here, and what the log has lost.

use rekindle_core::state::State;

use super::{Error, Setup};
use crate::alert::{Alert, Alerts, Kind, Session};
use crate::clock;
use crate::control;
use crate::driver;
use crate::lost;
use crate::world::real::{self, Lost, RealWorld};

/// A coordinator that an agent of this run started would speak as the operator, and end with its agent.
pub(super) fn refuse_agents(state: &State) -> Result<(), Error> {
    match state.holds_any_of(&control::server::ancestors(std::process::id())) {
        true => Err(Error::Refused(driver::HIDDEN_TOKEN.to_owned())),
        false => Ok(()),
    }
}

/// Agents of a state that was deleted end on their own; until then, no other coordinator starts.
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

/// Attempts that the log has lost. Nothing starts before a person has decided to continue, nor while an agent of these
/// attempts is running.
pub(super) fn look_for_lost(setup: &Setup, state: &State) -> Result<Option<Lost>, Error> {
    let dir = setup.dir.path();
    let Some(found) = real::lost(dir, state.last_attempt) else { return Ok(None) };
    let answered = setup.forget_lost || lost::forgotten(dir) >= found.highest;
    if !answered || !found.living.is_empty() {
        tell_lost(setup, state, &found);
        return Err(Error::AttemptsLost(found));
    }
    lost::forget(dir, found.highest).map_err(|source| Error::Os { what: "cannot put the answer down", source })?;
    Ok(Some(found))
}

/// Nobody may be at the terminal, so this is sent as an alert like every question.
fn tell_lost(setup: &Setup, state: &State, found: &Lost) {
    let run = state.run.as_ref();
    let alert = Alert {
        kind: Kind::NeedsYou,
        text: found.to_string(),
        choices: [lost::FORGET, lost::RESTORE].map(|word| format!("rekindle answer 0 {word}")).to_vec(),
        run: run.map(|run| run.id.to_string()).unwrap_or_default(),
        plan: run.map(|run| run.plan.name.clone()).unwrap_or_default(),
        task: None,
        question: None,
        evidence: Vec::new(),
        time: clock::wall(),
    };
    Alerts::start(&setup.programs.alerts, &Session::of_this_process()).tell(&alert);
}
