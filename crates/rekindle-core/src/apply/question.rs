//! Questions to people, and what their answers change.

use crate::event::{Body, Event};
use crate::ids::AgentName;
use crate::state::{Question, State, TaskState};

pub(super) fn apply(state: &mut State, event: &Event) {
    match &event.body {
        Body::QuestionAsked { id, attempt, text, options, context, takes_work } => {
            super::cli_session::heard(state, event);
            // A question of rekindle's own may be about a task that nobody has worked on.
            let agent = event.agent.clone().or_else(|| AgentName::new("rekindle").ok());
            let (Some(task), Some(agent)) = (event.task.clone(), agent) else {
                return;
            };
            state.last_question = state.last_question.max(id.0);
            let new = Question {
                task,
                agent,
                attempt: *attempt,
                text: text.clone(),
                options: options.clone(),
                context: context.clone(),
                takes_work: *takes_work,
                answer: None,
                asked_at: event.time,
            };
            state.questions.insert(*id, new);
        }
        Body::QuestionAnswered { id, answer } => {
            super::cli_session::answered(state, *id, event.time);
            let Some(question) = state.questions.get_mut(id) else {
                return;
            };
            question.answer = Some(answer.clone());
            let (task, waited) = (question.task.clone(), event.time.since_ms(question.asked_at));
            let more = state.open_question(&task).is_some();
            super::on_task(state, &task, |task| match task.state {
                TaskState::Blocked if !more => task.state = TaskState::Pending,
                TaskState::InProgress => task.waited_ms = task.waited_ms.saturating_add(waited),
                _ => {}
            });
        }
        _ => {}
    }
}
