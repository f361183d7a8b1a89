//! What a session's own record holds when its process is gone: the calls that the resumed conversation will know. Each adapter
//! reads its program's record; comparing it with what the stream told is the core's business.

use rekindle_core::activity::{CALL_BYTES, Held, Ledger};
use rekindle_core::text;
use serde_json::Value;

/// Calls of one record that are looked at; a session of a day has fewer.
const CALLS_MAX: usize = 20_000;

/// The part of a session's record that one attempt added.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its lines.
    pub lines: &'a str,
    /// Whether that is all of the part; if not, it is the end of it.
    pub whole: bool,
    /// What the stream told.
    pub ledger: &'a Ledger,
}

impl Record<'_> {
    /// Its lines that are whole; the last one may be cut off in the middle.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.lines.lines().filter_map(|line| serde_json::from_str(line).ok())
    }
}

/// The calls of a record, in order.
#[derive(Debug, Default)]
pub struct Calls(Vec<Held>);

impl Calls {
    /// A call is recorded.
    pub fn begun(&mut self, id: &str, tool: &str, input: &str) {
        if self.0.iter().rev().any(|held| held.id == id) || self.0.len() == CALLS_MAX {
            return;
        }
        let input = text::fold(input, CALL_BYTES).into_owned();
        self.0.push(Held { id: id.to_owned(), tool: tool.to_owned(), input, answered: false });
    }

    /// A call's result is recorded.
    pub fn answered(&mut self, id: &str) {
        if let Some(held) = self.0.iter_mut().rev().find(|held| held.id == id) {
            held.answered = true;
        }
    }

    /// All of them.
    pub fn into_held(self) -> Vec<Held> {
        self.0
    }
}
