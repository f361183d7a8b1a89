//! The ways to start an attempt. Which one is chosen, and why, is decided in `decide/strategy`.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// No agent has worked on the task before.
    #[default]
    First,
    Resume,
    /// A new agent with a brief.
    Fresh,
    /// A new agent of another kind with a brief.
    Other,
}

impl Strategy {
    /// The name in the log and in `why`.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Resume => "resume",
            Self::Fresh => "fresh",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
