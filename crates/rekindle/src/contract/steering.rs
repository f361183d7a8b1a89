//! What a person said to agents, holds and can still undo, for programs.

use rekindle_core::steering::How;
use rekindle_core::view::{AttachedRow, PlacedRow, ToldRow};
use serde::Serialize;

use crate::story::person::order_words;
use crate::ui::stamp;

/// A message to a task's agent.
#[derive(Serialize)]
pub(super) struct ToldJson {
    number: u64,
    text: String,
    at: String,
    /// Whether it says what the person changed while holding the task.
    given_back: bool,
    attempt: Option<u64>,
    delivered_at: Option<String>,
    /// `message` or `prompt`.
    how: Option<How>,
}

impl From<ToldRow> for ToldJson {
    fn from(row: ToldRow) -> Self {
        let (number, text, given_back, how) = (row.number, row.text, row.given_back, row.how);
        let attempt = row.attempt.map(|attempt| attempt.0);
        Self { number, text, at: stamp(row.at), given_back, attempt, delivered_at: row.delivered_at.map(stamp), how }
    }
}

/// A task that the person holds.
#[derive(Serialize)]
pub(super) struct AttachedJson {
    pid: u32,
    since: String,
}

impl From<AttachedRow> for AttachedJson {
    fn from(row: AttachedRow) -> Self {
        Self { pid: row.pid, since: stamp(row.since) }
    }
}

/// An order that can still be undone.
#[derive(Serialize)]
pub(super) struct PlacedJson {
    number: u64,
    order: String,
    due: String,
}

impl From<&PlacedRow> for PlacedJson {
    fn from(row: &PlacedRow) -> Self {
        Self { number: row.number, order: order_words(&row.order), due: stamp(row.due) }
    }
}
