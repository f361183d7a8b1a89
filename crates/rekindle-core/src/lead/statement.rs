//! What a line of prose states: a decision, something done that must not be done again, what comes next. By its words, not by
//! a model: a line too many costs a few bytes, a line too few costs the thread.

use serde::{Deserialize, Serialize};

/// What a line states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// A choice was made, with its reason where it is given.
    Decision,
    /// Something outside the conversation was changed: not to be done twice.
    Effect,
    /// What comes next, or is left.
    Next,
    /// Something the person wants kept to.
    Constraint,
    /// Something is not known or waits for the person.
    Question,
}

/// The statements in an assistant's text, in order.
#[must_use]
pub fn in_assistant_text(_text: &str) -> Vec<(Statement, String)> {
    Vec::new()
}
