//! What a killed agent's resumed conversation will not know: the calls in its stream, compared with the program's own record
//! of the session. A program may print a result before it records it, drop a call without a result, or answer it as aborted;
//! each adapter says what its program's record holds, the comparison is the same for all of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ledger::{Entry, Ledger, Outcome};

/// Calls that are named at most: more than any model orders in one turn, few enough to be read.
pub const CALLS_MAX: usize = 24;

/// Bytes of all calls that are named: a small part of any prompt.
pub const BYTES_MAX: usize = 16 * 1024;

/// A call in the program's own record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id, as in the stream; for a call that the stream does not name, any other.
    pub id: String,
    pub tool: String,
    pub input: String,
    /// Whether its result is in the record too.
    pub answered: bool,
}

/// What the conversation will hold when the session is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum History {
    Read {
        /// The calls of this attempt in the conversation, in order.
        held: Vec<Held>,
        /// Whether the attempt's prompt is in the conversation.
        prompted: bool,
        /// Whether all of the attempt's part was read; if not, only its end was.
        whole: bool,
    },
    /// The program records a call before it runs and its result before it prints it, and shows a call without a result as
    /// interrupted.
    ShowsAll,
    /// There is no readable record.
    Unknown,
}

/// How a call that the agent has to be told about ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Ending {
    /// It finished, and the resumed conversation lacks the result.
    Finished {
        /// Whether the tool says that it worked.
        ok: bool,
        output: String,
    },
    /// It finished, and it is unknown whether the resumed conversation has the result.
    MayBeKnown {
        /// Whether the tool says that it worked.
        ok: bool,
        output: String,
    },
    /// It started, and its end was not seen.
    Open,
}

/// A call that the agent has to be told about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub tool: String,
    pub input: String,
    #[serde(flatten)]
    pub ending: Ending,
}

impl Lost {
    fn bytes(&self) -> usize {
        let output = match &self.ending {
            Ending::Finished { output, .. } | Ending::MayBeKnown { output, .. } => output.len(),
            Ending::Open => 0,
        };
        self.tool.len() + self.input.len() + output
    }
}

/// What an attempt's session was in the middle of at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnderWay {
    /// The calls that the agent has to be told about, in the order in which they started.
    pub calls: Vec<Lost>,
    pub left_out: u64,
    /// The attempt's own prompt is not in the record: what it said has to be said again.
    pub unheard: bool,
}

impl UnderWay {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What an earlier attempt left, followed by this one's: for a prompt that never reached the record.
    pub fn after(self, earlier: Self) -> Self {
        let mut calls = earlier.calls;
        calls.extend(self.calls);
        let (calls, left_out) = bounded(calls);
        Self { calls, left_out: left_out + self.left_out + earlier.left_out, unheard: self.unheard }
    }
}

/// The calls that the resumed conversation lacks or holds without an outcome.
pub fn under_way(ledger: &Ledger, history: &History) -> UnderWay {
    let seen: BTreeSet<&str> = ledger.entries().map(|entry| entry.call.id.as_str()).collect();
    let began = ledger.entries().next().is_some() || ledger.turns() > 0;
    let (calls, unheard) = match history {
        History::Read { held, prompted, whole } => {
            let mut calls = compared(ledger, held, *whole);
            let unseen = held.iter().filter(|held| !held.answered && !seen.contains(held.id.as_str()));
            calls.extend(unseen.map(|held| Lost {
                tool: held.tool.clone(),
                input: held.input.clone(),
                ending: Ending::Open,
            }));
            (calls, *whole && !prompted)
        }
        History::ShowsAll => (open_calls(ledger), !began),
        History::Unknown => (uncertain(ledger), !began),
    };
    let (calls, left_out) = bounded(calls);
    UnderWay { calls, left_out, unheard }
}

fn compared(ledger: &Ledger, held: &[Held], whole: bool) -> Vec<Lost> {
    let answered: BTreeSet<&str> = held.iter().filter(|held| held.answered).map(|held| held.id.as_str()).collect();
    let known: BTreeSet<&str> = held.iter().map(|held| held.id.as_str()).collect();
    // If the beginning of the record was not read, calls before the first known one are assumed to be in it too.
    let first = ledger.entries().position(|entry| known.contains(entry.call.id.as_str()));
    let from = match (whole, first) {
        (true, _) => 0,
        (false, Some(first)) => first,
        (false, None) => return uncertain(ledger),
    };
    let later = ledger.entries().enumerate().filter(|(at, entry)| *at >= from || entry.outcome.is_none());
    let lost = later.map(|(_, entry)| entry).filter(|entry| !answered.contains(entry.call.id.as_str()));
    lost.map(|entry| named(entry, |Outcome { ok, output }| Ending::Finished { ok, output })).collect()
}

fn open_calls(ledger: &Ledger) -> Vec<Lost> {
    let open = ledger.entries().filter(|entry| entry.outcome.is_none());
    open.map(|entry| named(entry, |Outcome { ok, output }| Ending::Finished { ok, output })).collect()
}

/// Without a record: what was open, and what finished since the agent last ended a turn.
fn uncertain(ledger: &Ledger) -> Vec<Lost> {
    let recent = ledger.entries().filter(|entry| entry.outcome.is_none() || !entry.settled);
    recent.map(|entry| named(entry, |Outcome { ok, output }| Ending::MayBeKnown { ok, output })).collect()
}

fn named(entry: &Entry, ended: impl FnOnce(Outcome) -> Ending) -> Lost {
    Lost {
        tool: entry.call.tool.clone(),
        input: entry.call.input.clone(),
        ending: entry.outcome.clone().map_or(Ending::Open, ended),
    }
}

/// As many as may be named, in order: those without an outcome first, then the newest; and how many are left out.
fn bounded(calls: Vec<Lost>) -> (Vec<Lost>, u64) {
    let mut order: Vec<usize> = (0..calls.len()).rev().collect();
    order.sort_by_key(|at| calls[*at].ending != Ending::Open);
    let (mut bytes, mut kept) = (0, BTreeSet::new());
    for at in order.into_iter().take(CALLS_MAX) {
        bytes += calls[at].bytes();
        if bytes > BYTES_MAX {
            break;
        }
        kept.insert(at);
    }
    let left_out = calls.len() - kept.len();
    let kept = calls.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, call)| call).collect();
    (kept, left_out as u64)
}
