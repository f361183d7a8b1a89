//! Questions, notes and alerts: what people are told, asked and say.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, QuestionId};

/// What passed between a run and a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonEvent {
    /// An agent asked a person.
    QuestionAsked {
        /// Its number.
        id: QuestionId,
        /// Who asked.
        attempt: AttemptId,
        /// The question.
        text: String,
        /// Answers to choose from.
        options: Vec<String>,
        /// What a person needs to know.
        context: String,
        /// The answer `done` takes the work as it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takes_work: bool,
    },
    /// A person answered.
    QuestionAnswered {
        /// Its number.
        id: QuestionId,
        answer: String,
    },
    /// An agent or a person noted a decision.
    NoteRecorded {
        /// The decision.
        text: String,
    },
    /// A person should look.
    PersonAlerted {
        /// What it is about.
        text: String,
        /// The commands to choose from.
        choices: Vec<String>,
    },
}
