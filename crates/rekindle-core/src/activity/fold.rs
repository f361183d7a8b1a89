//! What must be known across many activities: the open call, repetition, totals, and what came after a compaction.

use std::collections::VecDeque;

use super::progress::Progress;
use super::{Activity, Call, Ledger, Measure, StreamEvent};
use crate::text;

/// Concurrent calls that are remembered; parallel calls are few.
const OPEN_CALLS: usize = 64;

/// Longest last words that are kept: the end of a final message, where it sums up. They are truncated again after secrets
/// are removed: a cut through a secret would hide the secret from that removal.
const LAST_WORDS_BYTES: usize = 4 * 1024;

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
    background: u32,
}

impl Fold {
    /// Takes one activity and returns the stream events that follow from it.
    pub fn take(&mut self, activity: &Activity) -> Vec<StreamEvent> {
        self.ledger.take(activity);
        self.note_words(activity);
        match activity {
            Activity::Session { id, model } => vec![StreamEvent::Session { id: id.clone(), model: model.clone() }],
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
                vec![StreamEvent::Compacted { automatic: *automatic, turns: self.turns, calls: self.calls }]
            }
            Activity::Failed(failure) => vec![StreamEvent::Failed(failure.clone())],
            // The end of a turn is not the end of the work while agents in the background continue: another turn follows theirs.
            Activity::Result { .. } if self.background > 0 => Vec::new(),
            Activity::Result { ok, .. } => vec![StreamEvent::Result { ok: *ok }],
            Activity::Background { open } => {
                self.background = *open;
                Vec::new()
            }
            Activity::Said { .. } | Activity::Compacting | Activity::Retrying { .. } | Activity::Heartbeat => {
                Vec::new()
            }
        }
    }

    /// The newest call that has started and not ended: what a killed agent was in the middle of.
    pub fn open_call(&self) -> Option<&Call> {
        self.open.back()
    }

    /// How many agents it runs in the background.
    pub fn background(&self) -> u32 {
        self.background
    }

    /// Every call that was seen, with its outcome.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The agent's last message in its own words, or the end of it if it is long.
    pub fn last_words(&self) -> &str {
        &self.last_words
    }

    /// Whether its last words are a question that it asked with its program's own tool.
    pub fn asks(&self) -> bool {
        self.asks
    }

    fn note_words(&mut self, activity: &Activity) {
        if let Activity::CallStarted(call) = activity {
            return self.note_question(call);
        }
        let (Activity::Said { text } | Activity::Result { text: Some(text), .. }) = activity else { return };
        let words = text.trim();
        // Its question stays until it continues to work.
        if !words.is_empty() && !self.asks {
            self.last_words = text::tail_bytes(words, LAST_WORDS_BYTES).to_owned();
        }
    }

    /// Programs have tools of their own for asking the person; nobody is there to answer, so the call has no effect.
    fn note_question(&mut self, call: &Call) {
        if let Some(question) = asked(call) {
            self.asks = true;
            self.last_words = text::tail_bytes(&question, LAST_WORDS_BYTES).to_owned();
        } else if call.acts {
            self.asks = false;
        }
    }

    /// What was used and how full the context is.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    fn measured(&mut self) -> Vec<StreamEvent> {
        if self.told == Some(self.measure) {
            return Vec::new();
        }
        self.told = Some(self.measure);
        vec![StreamEvent::Measured(self.measure)]
    }

    fn call_started(&mut self, call: &Call) -> Vec<StreamEvent> {
        self.calls += 1;
        if self.open.len() == OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back(call.clone());
        let mut signs = Vec::new();
        if self.after_compaction {
            signs.push(StreamEvent::Called { calls: self.calls });
            if call.acts {
                signs.push(StreamEvent::Acted);
            }
        }
        signs
    }

    fn call_ended(&mut self, id: &str, ok: bool, output: &str) -> Vec<StreamEvent> {
        let Some(at) = self.open.iter().position(|call| call.id == id) else { return Vec::new() };
        let Some(call) = self.open.remove(at) else { return Vec::new() };
        match self.progress.ended(&call, ok, output) {
            Some(circle) => {
                vec![StreamEvent::Stalled { times: circle.times, words: circle.words, printed: circle.printed }]
            }
            None => Vec::new(),
        }
    }
}

/// The question, with its choices, in a call that contains one: every program's tool for asking has a field of that name.
/// Reports to rekindle are handled separately.
fn asked(call: &Call) -> Option<String> {
    /// Part of the names of our own tools.
    const OWN_TOOLS: &str = "rekindle";
    if call.tool.contains(OWN_TOOLS) || !call.input.starts_with('{') {
        return None;
    }
    let input: serde_json::Value = serde_json::from_str(&call.input).ok()?;
    let one = |value: &serde_json::Value| {
        let question = value["question"].as_str()?.trim();
        let choices = value["options"].as_array().into_iter().flatten();
        let choices: Vec<&str> = choices.filter_map(|choice| choice["label"].as_str().or(choice.as_str())).collect();
        let choices = if choices.is_empty() { String::new() } else { format!(" ({})", choices.join(" / ")) };
        (!question.is_empty()).then(|| format!("{question}{choices}"))
    };
    let listed: Vec<String> = input["questions"].as_array().into_iter().flatten().filter_map(one).collect();
    if listed.is_empty() { one(&input) } else { Some(listed.join("\n")) }
}
