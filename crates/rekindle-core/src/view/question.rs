//! A question to a person, as a table shows it.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentName, QuestionId, TaskId};
use crate::phone::Via;
use crate::state::State;
use crate::time::Time;

/// A question, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionRow {
    pub id: QuestionId,
    pub task: TaskId,
    pub agent: AgentName,
    pub text: String,
    pub options: Vec<String>,
    /// What a person needs to know.
    pub context: String,
    pub answer: Option<String>,
    /// The channel that the answer arrived through, if it came from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    pub asked_at: Time,
}

pub fn question_row(state: &State, id: QuestionId) -> Option<QuestionRow> {
    let question = state.questions.get(&id)?;
    Some(QuestionRow {
        id,
        task: question.task.clone(),
        agent: question.agent.clone(),
        text: question.text.clone(),
        options: question.options.clone(),
        context: question.context.clone(),
        answer: question.answer.clone(),
        via: question.via,
        asked_at: question.asked_at,
    })
}
