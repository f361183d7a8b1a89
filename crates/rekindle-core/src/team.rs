//! How a living agent stands in the team: in progress, idle and to be used again, or without an answer. Shown to people, counted
//! after a restart; what follows from it is decided in `decide/team`.

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Working,
    Idle,
    /// Nothing was seen of it for longer than it may be silent, and it was asked how it stands.
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

/// How the agent of an attempt stands; nothing for one that does not live.
pub fn class_of(state: &State, id: AttemptId) -> Option<Class> {
    let found = state.attempts.get(&id).filter(|found| found.is_live())?;
    Some(match (found.cli_session.status_asked, state.open_tasks(id).is_empty()) {
        (Some(_), _) => Class::Unresponsive,
        (None, true) => Class::Idle,
        (None, false) => Class::Working,
    })
}
