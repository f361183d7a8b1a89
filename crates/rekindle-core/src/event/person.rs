//! Questions, notes and alerts: what people are told, what they are asked, and what they say.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, QuestionId};
use crate::phone::{PhoneWord, Via};
use crate::steering::{How, PersonProcess, Undoable};
use crate::time::Time;

/// What passed between a run and a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonEvent {
    QuestionAsked {
        id: QuestionId,
        attempt: AttemptId,
        text: String,
        options: Vec<String>,
        /// What a person needs to know.
        context: String,
        /// The answer `done` accepts the work as it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takes_work: bool,
    },
    QuestionAnswered {
        id: QuestionId,
        answer: String,
        /// The channel of the answer, if it came from elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
    },
    /// A person gave an order about the run from elsewhere.
    PhoneOrder {
        via: Via,
        /// The channel's own id of their message: one message is taken once.
        message: String,
        word: PhoneWord,
    },
    /// An agent or a person noted a decision.
    NoteRecorded {
        text: String,
    },
    PersonAlerted {
        text: String,
        choices: Vec<String>,
    },
    /// A person has a message for the agent of a task.
    Told {
        /// The message's number within the run.
        number: u64,
        text: String,
        /// Distinguishes one message from the same words sent again on purpose.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
        /// It describes, in rekindle's words, what a person who held the task did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        given_back: bool,
    },
    /// An agent has received a person's message.
    TellDelivered {
        number: u64,
        attempt: AttemptId,
        how: How,
    },
    /// A person took over a task.
    Attached {
        /// The program that they work in.
        by: PersonProcess,
        /// The attempt whose session the person opens.
        attempt: AttemptId,
    },
    /// A person's program has ended: the task is given back.
    Detached {
        /// What changed meanwhile, a line each.
        #[serde(default)]
        changed: Vec<String>,
    },
    /// A person gave an order that they can cancel for a moment.
    OrderPlaced {
        number: u64,
        order: Undoable,
        due: Time,
    },
    /// The moment is over: the order takes effect.
    OrderTaken {
        number: u64,
    },
    /// The person cancelled the order.
    OrderUndone {
        number: u64,
    },
}
