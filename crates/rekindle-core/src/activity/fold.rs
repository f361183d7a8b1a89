//! What must be known over many activities: the call that is open, repetition, totals, and what came after a compaction.

use std::collections::VecDeque;

use super::progress::Progress;
use super::{Activity, Call, Ledger, Measure, Sign};
use crate::text;

/// Calls that are under way at once and remembered; parallel calls are few.
const OPEN_CALLS: usize = 64;

/// Longest last words that are kept: the end of a final message, where it says how things stand.
const LAST_WORDS_BYTES: usize = 2 * 1024;

/// Everything that one attempt's activities add up to.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    measure: Measure,
    told: Option<Measure>,
    turns: u64,
    calls: u64,
    open: VecDeque<Call>,
    progress: Progress,
    after_compaction: bool,
    ledger: Ledger,
    last_words: String,
    asks: bool,
}

impl Fold {
    /// Takes one activity and gives the signs that follow from it.
    pub fn take(&mut self, activity: &Activity) -> Vec<Sign> {
        self.ledger.take(activity);
        self.note_words(activity);
        match activity {
            Activity::Session { id, model } => vec![Sign::Session { id: id.clone(), model: model.clone() }],
            Activity::Turn => {
                self.turns += 1;
                Vec::new()
            }
            Activity::Used(usage) => {
                self.measure.usage = *usage;
                self.measured()
            }
            Activity::Context { used, window } => {
                self.measure.context_used = Some(*used);
                self.measure.context_window = window.or(self.measure.context_window);
                self.measured()
            }
            Activity::CallStarted(call) => self.call_started(call),
            Activity::CallEnded { id, ok, output } => self.call_ended(id, *ok, output),
            Activity::Compacted { automatic } => {
                self.after_compaction = true;
                self.progress.begin_anew();
                vec![Sign::Compacted { automatic: *automatic, turns: self.turns, calls: self.calls }]
            }
            Activity::Failed(failure) => vec![Sign::Failed(failure.clone())],
            Activity::Result { ok, .. } => vec![Sign::Result { ok: *ok }],
            Activity::Said { .. } | Activity::Compacting | Activity::Retrying { .. } | Activity::Heartbeat => {
                Vec::new()
            }
        }
    }

    /// The newest call that has begun and not ended: what a killed agent was in the middle of.
    #[must_use]
    pub fn open_call(&self) -> Option<&Call> {
        self.open.back()
    }

    /// Every call that was seen, with its outcome.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the agent said last, in its own words: the end of it where it is long.
    #[must_use]
    pub fn last_words(&self) -> &str {
        &self.last_words
    }

    /// Whether its last words are a question that it asked with its program's own tool.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }

    fn note_words(&mut self, activity: &Activity) {
        let words = match activity {
            Activity::Said { text } | Activity::Result { text: Some(text), .. } => text.trim(),
            _ => return,
        };
        if !words.is_empty() {
            self.last_words = text::tail_bytes(words, LAST_WORDS_BYTES).to_owned();
        }
    }

    /// What was used and how full the context is.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    fn measured(&mut self) -> Vec<Sign> {
        if self.told == Some(self.measure) {
            return Vec::new();
        }
        self.told = Some(self.measure);
        vec![Sign::Measured(self.measure)]
    }

    fn call_started(&mut self, call: &Call) -> Vec<Sign> {
        self.calls += 1;
        if self.open.len() == OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back(call.clone());
        let mut signs = Vec::new();
        if self.after_compaction {
            signs.push(Sign::Called { calls: self.calls });
            if call.acts {
                signs.push(Sign::Acted);
            }
        }
        signs
    }

    fn call_ended(&mut self, id: &str, ok: bool, output: &str) -> Vec<Sign> {
        let Some(at) = self.open.iter().position(|call| call.id == id) else { return Vec::new() };
        let Some(call) = self.open.remove(at) else { return Vec::new() };
        match self.progress.ended(&call, ok, output) {
            Some(circle) => vec![Sign::Stalled { times: circle.times, words: circle.words }],
            None => Vec::new(),
        }
    }
}
