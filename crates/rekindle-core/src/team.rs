//! The state of a live agent in the team: in progress, idle and available again, or unresponsive. It is shown to people and
//! counted after a restart; the consequences are decided in `decide/team`.

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Working,
    Idle,
    /// It was silent for longer than allowed, and was asked for its status.
    Unresponsive,
}

impl Class {
    /// Its name, as readers see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Unresponsive => "unresponsive",
        }
    }
}

/// The state of an attempt's agent; `None` if the agent is not alive.
pub fn class_of(state: &State, id: AttemptId) -> Option<Class> {
    let found = state.attempts.get(&id).filter(|found| found.is_live())?;
    Some(match (found.cli_session.status_asked, state.open_tasks(id).is_empty()) {
        (Some(_), _) => Class::Unresponsive,
        (None, true) => Class::Idle,
        (None, false) => Class::Working,
    })
}
