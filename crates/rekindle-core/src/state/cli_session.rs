//! What is known of an agent's own session: its id, how full its context is, what it forgot, and the state of its turn.

use serde::{Deserialize, Serialize};

use crate::activity::{Failure, Measure, Transcript, UnderWay};
use crate::budget::Bill;
use crate::strategy::Strategy;
use crate::time::Time;

/// Messages to one agent that are kept; no more than this are in transit at once.
pub const TOLD_KEPT: usize = 8;

/// An agent's own session, as far as its stream reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CliSession {
    pub strategy: Strategy,
    pub resumes: Option<String>,
    /// It was started only to report, because its predecessor ended without a report.
    pub asks_for_report: bool,
    pub session: Option<String>,
    pub model: Option<String>,
    /// What it has used, and how full its context is.
    pub measure: Measure,
    /// When the measure was last recorded.
    pub measured_at: Option<Time>,
    pub bill: Bill,
    pub compactions: u32,
    /// Model answers counted at the last compaction.
    pub compacted_at_turn: Option<u64>,
    /// It was compacted and has not been seen working on its task since.
    pub astray: Option<Astray>,
    /// Since when rekindle has been preparing for a compaction.
    pub preparing: Option<Time>,
    /// What it was last seen repeating without progress, in words.
    pub stalled: Option<String>,
    /// Whether it has repeated itself since its last report.
    pub circled: bool,
    pub failure: Option<Failure>,
    /// When its turn ended.
    pub turn_ended: Option<Time>,
    /// Whether it reported anything on a task.
    pub reported: bool,
    /// Whether the last thing it said of its task was a question.
    pub asked: bool,
    pub last_words: String,
    /// Its last words were asked with its program's own question tool.
    pub asks: bool,
    /// Turns in a row that it ended in a question.
    pub asking: u32,
    /// Its last turn ended with an error.
    pub turn_failed: bool,
    /// It saved a checkpoint that leaves work, and claimed nothing since.
    pub leaves_work: bool,
    /// It left without a report, and rekindle inspected its work.
    pub looked: bool,
    /// Whether it was reminded since it last reported.
    pub reminded: bool,
    /// How often it was reminded in all.
    pub reminders: u32,
    /// Bytes that rekindle itself sent to it: its prompt without the plan's text, and messages.
    pub own_bytes: u64,
    /// The last messages sent to it, newest last; delivery is repeated until they are known to have arrived.
    pub told: Vec<ToldMessage>,
    /// How many records of its own words the log holds; bounds what a confused program writes into the log.
    pub words: u32,
    pub input_closed: bool,
    /// It was found alive after a restart.
    pub adopted: bool,
    /// Since when a status check has been waiting for its answer.
    pub status_asked: Option<Time>,
    /// The state in which its transcript was found after it ended.
    pub transcript: Option<Transcript>,
    /// The call that was in progress when it ended.
    pub cut_off: Option<String>,
    /// The calls that its resumed conversation lacks or holds without an outcome.
    #[serde(default, skip_serializing_if = "UnderWay::is_empty")]
    pub under_way: UnderWay,
}

/// An agent that lost its context and has not yet been seen working on its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Astray {
    pub since: Time,
    /// Calls it had made by then.
    pub calls: u64,
    /// Whether it was given the notice a second time.
    pub told_again: bool,
}

/// A message sent to a running agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldMessage {
    /// Its number within the attempt.
    pub number: u32,
    pub text: String,
}

/// An account that has to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The name of the cause.
    pub cause: String,
    pub closed_at: Time,
    /// When the wait ends; `None` means when a person answers.
    pub until: Option<Time>,
    /// The question that a person has to answer.
    pub question: Option<crate::ids::QuestionId>,
    /// The newest attempt when the gate closed; later attempts are the ones that try the account again.
    pub after: u64,
    /// How often in a row it was closed.
    pub strikes: u32,
    /// The reset time that the provider named, if any.
    #[serde(default)]
    pub reset: Option<Time>,
    /// The number, counted from that reset, of the probe at the end of the wait.
    #[serde(default)]
    pub probe: u32,
    /// The end of the wait for an overloaded provider; setting the clock does not move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overloaded_until: Option<Time>,
    /// The end of the wait for the limit alone, if the provider is overloaded as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_until: Option<Time>,
    /// How many agents may run at once after the wait.
    pub allowed: u32,
}

impl Gate {
    /// The end of the wait for a limit, regardless of any other wait.
    pub fn limit_until(&self) -> Option<Time> {
        if self.overloaded_until.is_some() { self.limit_until } else { self.until }
    }
}
