//! Every call in an agent's stream, in order, with its outcome if there is one: what was done, what failed, and what was
//! under way when the agent ended. Bounded; the oldest calls that have ended are dropped first.

use std::collections::VecDeque;

use super::{Activity, Call};
use crate::text;

/// Calls that are kept: more than any text about them shows.
const ENTRIES_MAX: usize = 400;

/// Longest input and longest output that are kept of a call. What leaves the program is truncated further, after secrets are
/// removed from it: a cut through a secret would hide the secret from that removal, and that later cut drops the middle of
/// what is kept here.
pub const CALL_BYTES: usize = 2 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the tool says that it worked.
    pub ok: bool,
    /// What it printed: the beginning and the end.
    pub output: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The call, with its input truncated.
    pub call: Call,
    /// How it ended; `None` if its end was not seen.
    pub outcome: Option<Outcome>,
    /// Answers of the model before this call.
    pub turn: u64,
    /// The agent has ended a turn since it ended: the program had the time to record it.
    pub settled: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: VecDeque<Entry>,
    turns: u64,
    dropped: u64,
}

impl Ledger {
    pub fn take(&mut self, activity: &Activity) {
        match activity {
            Activity::Turn => self.turns += 1,
            Activity::CallStarted(call) => self.begun(call),
            Activity::CallEnded { id, ok, output } => self.ended(id, *ok, output),
            Activity::Result { .. } => self.close_turn(),
            Activity::Session { .. }
            | Activity::Said { .. }
            | Activity::Used(_)
            | Activity::Context { .. }
            | Activity::Compacting
            | Activity::Compacted { .. }
            | Activity::Retrying { .. }
            | Activity::Failed(_)
            | Activity::Background { .. }
            | Activity::Heartbeat => {}
        }
    }

    /// The calls in the order in which they began.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many older calls are no longer kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Answers of the model so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    fn close_turn(&mut self) {
        self.entries.iter_mut().filter(|entry| entry.outcome.is_some()).for_each(|entry| entry.settled = true);
    }

    fn begun(&mut self, call: &Call) {
        // A stream that is read twice, or that reports a call twice, lists it once.
        if self.entries.iter().any(|entry| entry.call.id == call.id && entry.outcome.is_none()) {
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            let oldest_ended = self.entries.iter().position(|entry| entry.outcome.is_some()).unwrap_or(0);
            self.entries.remove(oldest_ended);
            self.dropped += 1;
        }
        let call = Call { input: text::fold(&call.input, CALL_BYTES).into_owned(), ..call.clone() };
        self.entries.push_back(Entry { call, outcome: None, turn: self.turns, settled: false });
    }

    fn ended(&mut self, id: &str, ok: bool, output: &str) {
        let open = self.entries.iter_mut().rev().find(|entry| entry.call.id == id && entry.outcome.is_none());
        if let Some(entry) = open {
            entry.outcome = Some(Outcome { ok, output: text::fold(output, CALL_BYTES).into_owned() });
        }
    }
}
