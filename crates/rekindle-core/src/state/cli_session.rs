//! What is known of an agent's own session: its id, how full it is, what it forgot, and how it stands with its turn.

use serde::{Deserialize, Serialize};

use crate::activity::{Failure, Measure, Transcript, UnderWay};
use crate::budget::Bill;
use crate::strategy::Strategy;
use crate::time::Time;

/// Messages to one agent that are kept: more are not under way at once.
pub const TOLD_KEPT: usize = 8;

/// An agent's own session, as far as its stream tells of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CliSession {
    pub strategy: Strategy,
    pub resumes: Option<String>,
    /// It was started only to report, after an end without one.
    pub asks_for_report: bool,
    pub session: Option<String>,
    pub model: Option<String>,
    /// What it has used, and how full its context is.
    pub measure: Measure,
    /// When that was last put down.
    pub measured_at: Option<Time>,
    /// What it has cost.
    pub bill: Bill,
    pub compactions: u32,
    /// Answers of the model at the last compaction.
    pub compacted_at_turn: Option<u64>,
    /// It was compacted and has not been seen at its task since.
    pub astray: Option<Astray>,
    /// Since when a compaction is prepared for.
    pub preparing: Option<Time>,
    /// What it was last seen to repeat without getting anywhere, in words.
    pub stalled: Option<String>,
    /// Whether that was since it last reported.
    pub circled: bool,
    pub failure: Option<Failure>,
    /// Since when its turn is over.
    pub turn_ended: Option<Time>,
    /// Whether it reported anything on a task.
    pub reported: bool,
    /// Whether the last thing it said of its task was a question.
    pub asked: bool,
    pub last_words: String,
    /// It asked them with its program's own tool for questions.
    pub asks: bool,
    /// Turns in a row that it ended in a question.
    pub asking: u32,
    /// Its last turn ended with an error.
    pub turn_failed: bool,
    /// It saved a checkpoint that leaves work, and claimed nothing since.
    pub leaves_work: bool,
    /// It left without a report, and rekindle looked at its work.
    pub looked: bool,
    /// Whether it was reminded since it last reported.
    pub reminded: bool,
    /// How often it was reminded in all.
    pub reminders: u32,
    /// Bytes that rekindle itself said to it: its prompt beyond the plan's words, and messages.
    pub own_bytes: u64,
    /// The last messages that it was told, newest last: until they are known to have arrived they are delivered again.
    pub told: Vec<ToldMessage>,
    /// What of its own words was put down, to bound what a confused program writes into the log.
    pub words: u32,
    pub input_closed: bool,
    /// It was found alive after a restart.
    pub adopted: bool,
    /// Since when it owes an answer to a status check.
    pub status_asked: Option<Time>,
    /// How its transcript was found after its end.
    pub transcript: Option<Transcript>,
    /// The call that it was in the middle of when it ended.
    pub cut_off: Option<String>,
    /// The calls that its resumed conversation lacks or holds without an outcome.
    #[serde(default, skip_serializing_if = "UnderWay::is_empty")]
    pub under_way: UnderWay,
}

/// An agent that has forgotten and was not yet seen at its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Astray {
    pub since: Time,
    /// Calls it had made by then.
    pub calls: u64,
    /// Whether it was told a second time.
    pub told_again: bool,
}

/// A message that was told to a running agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldMessage {
    /// Its number within the attempt.
    pub number: u32,
    pub text: String,
}

/// An account that has to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Why, by the cause's name.
    pub cause: String,
    pub closed_at: Time,
    /// Until when; nothing means until a person answers.
    pub until: Option<Time>,
    /// The question that a person has to answer.
    pub question: Option<crate::ids::QuestionId>,
    /// The newest attempt by then: those after it are the ones that try again.
    pub after: u64,
    /// How often in a row it was closed.
    pub strikes: u32,
    /// The reset that was named, where one was.
    #[serde(default)]
    pub reset: Option<Time>,
    /// Which probe since that reset comes at the end of the wait.
    #[serde(default)]
    pub probe: u32,
    /// The end of the wait for an overloaded provider: no clock that is set moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overloaded_until: Option<Time>,
    /// The end of the wait for the limit alone, where the provider is overloaded besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_until: Option<Time>,
    /// How many agents may run at once after the wait.
    pub allowed: u32,
}

impl Gate {
    /// The end of the wait for a limit, whatever else is waited for.
    pub fn limit_until(&self) -> Option<Time> {
        if self.overloaded_until.is_some() { self.limit_until } else { self.until }
    }
}
