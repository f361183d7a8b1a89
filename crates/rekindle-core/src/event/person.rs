//! Questions, notes and alerts: what people are told, asked and say.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, QuestionId};

/// What passed between a run and a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "body", rename_all = "snake_case")]
pub enum PersonEvent {
    QuestionAsked {
        id: QuestionId,
        attempt: AttemptId,
        text: String,
        /// Answers to choose from.
        options: Vec<String>,
        /// What a person needs to know.
        context: String,
        /// The answer `done` takes the work as it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takes_work: bool,
    },
    QuestionAnswered {
        id: QuestionId,
        answer: String,
    },
    /// An agent or a person noted a decision.
    NoteRecorded {
        text: String,
    },
    /// A person should look.
    PersonAlerted {
        text: String,
        /// The commands to choose from.
        choices: Vec<String>,
    },
}
