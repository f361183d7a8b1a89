//! Questions to people, what their answers change, and notes.

use crate::event::{Event, PersonEvent};
use crate::ids::{AgentName, QuestionId};
use crate::phone::{PhoneMessage, TAKEN_KEPT, Via};
use crate::state::{NOTES_KEPT, Note, Question, State, TaskState};
use crate::steering::{Attached, Placed};

pub(super) fn apply(state: &mut State, event: &Event, fact: &PersonEvent) {
    match fact {
        PersonEvent::QuestionAsked { id, attempt, text, options, context, takes_work } => {
            super::cli_session::asked(state, *attempt, *takes_work);
            // A question that rekindle itself asks may be about a task that no agent has worked on.
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
                is_budget: false,
                answer: None,
                via: None,
                asked_at: event.time,
            };
            state.questions.insert(*id, new);
        }
        PersonEvent::QuestionAnswered { id, answer, via } => answered(state, event, *id, answer, *via),
        PersonEvent::NoteRecorded { text } => noted(state, event, text),
        PersonEvent::Told { number, text, key, given_back } => {
            super::steering::told(state, event, *number, text, key, *given_back);
        }
        PersonEvent::TellDelivered { number, attempt, how } => {
            super::steering::delivered(state, event, *number, *attempt, *how);
        }
        PersonEvent::Attached { by, attempt } => {
            let attached = Attached { by: by.clone(), since: event.time, attempt: *attempt };
            state.steering.attached.extend(event.task.clone().map(|task| (task, attached)));
        }
        PersonEvent::Detached { .. } => {
            if let Some(task) = &event.task {
                state.steering.attached.remove(task);
            }
        }
        PersonEvent::OrderPlaced { number, order, due } => {
            state.steering.last_placed = state.steering.last_placed.max(*number);
            state.steering.placed.insert(*number, Placed { order: order.clone(), due: *due });
        }
        PersonEvent::OrderTaken { number } | PersonEvent::OrderUndone { number } => {
            state.steering.placed.remove(number);
        }
        PersonEvent::PhoneOrder { via, message, .. } => from_phone(state, *via, message),
        PersonEvent::PersonAlerted { .. } => {}
    }
}

fn answered(state: &mut State, event: &Event, id: QuestionId, answer: &str, via: Option<Via>) {
    super::cli_session::answered(state, id, event.time);
    super::preparing::answered(state, id, answer);
    let Some(question) = state.questions.get_mut(&id) else {
        return;
    };
    question.answer = Some(answer.to_owned());
    question.via = via;
    let (task, waited) = (question.task.clone(), event.time.since_ms(question.asked_at));
    let more = state.open_question(&task).is_some();
    super::on_task(state, &task, |task| match task.state {
        TaskState::Blocked if !more => task.state = TaskState::Pending,
        TaskState::InProgress => task.waited_ms = task.waited_ms.saturating_add(waited),
        TaskState::Blocked | TaskState::Pending | TaskState::Complete | TaskState::Failed | TaskState::Skipped => {}
    });
    super::settle::answers(state);
}

/// Remembers which message's order was taken, so that the same message is not taken again.
fn from_phone(state: &mut State, via: Via, message: &str) {
    let taken = &mut state.steering.from_phone;
    taken.push_back(PhoneMessage { via, message: message.to_owned() });
    taken.drain(..taken.len().saturating_sub(TAKEN_KEPT));
}

fn noted(state: &mut State, event: &Event, text: &str) {
    state.notes.push(Note { time: event.time, agent: event.agent.clone(), text: text.to_owned() });
    let excess = state.notes.len().saturating_sub(NOTES_KEPT);
    state.notes.drain(..excess);
}
