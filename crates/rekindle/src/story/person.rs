//! What passes between a run and a person, in words: questions, messages to agents, tasks they held, orders they may take back.

use rekindle_core::event::PersonEvent;
use rekindle_core::input::Order;
use rekindle_core::steering::How;

use super::Parts;
use crate::ui::Tone;

/// What one such fact says.
pub(super) fn tell(fact: &PersonEvent) -> Parts {
    match fact {
        PersonEvent::QuestionAsked { id, text, .. } => ("ASKED", Tone::Warning, format!("question {id}: {text}")),
        PersonEvent::QuestionAnswered { id, answer } => ("ANSWERED", Tone::Good, format!("question {id}: {answer}")),
        PersonEvent::NoteRecorded { text } => ("NOTED", Tone::Dim, text.clone()),
        PersonEvent::PersonAlerted { text, .. } => ("ALERT", Tone::Error, text.clone()),
        PersonEvent::Told { given_back: true, .. } => {
            ("TOLD", Tone::Active, "its agent will be told that you held the task, and what you changed".to_owned())
        }
        PersonEvent::Told { number, text, .. } => ("TOLD", Tone::Active, format!("your message {number}: {text}")),
        PersonEvent::TellDelivered { number, how, .. } => {
            let how = match how {
                How::Message => "while its agent ran",
                How::Prompt => "with its agent's prompt",
            };
            ("DELIVERED", Tone::Good, format!("message {number}, {how}"))
        }
        PersonEvent::Attached { by, .. } => {
            let pid = by.pid;
            (
                "ATTACHED",
                Tone::Warning,
                format!("you hold the task (rekindle attach, process {pid}); no agent works on it"),
            )
        }
        PersonEvent::Detached { changed } => {
            let what = match changed.len() {
                0 => "nothing changed meanwhile".to_owned(),
                1 => "1 change".to_owned(),
                many => format!("{many} changes"),
            };
            ("DETACHED", Tone::Active, format!("the task is given back: {what}"))
        }
        PersonEvent::OrderPlaced { number, order, .. } => (
            "PLACED",
            Tone::Dim,
            format!("order {number}: {}, which can be taken back for ten seconds", order_words(order)),
        ),
        PersonEvent::OrderTaken { number } => ("TAKEN", Tone::Dim, format!("order {number} is acted on")),
        PersonEvent::OrderUndone { number } => ("UNDONE", Tone::Warning, format!("order {number} was taken back")),
    }
}

/// An order in a few words.
#[must_use]
pub(crate) fn order_words(order: &Order) -> String {
    match order {
        Order::Skip { task, .. } => format!("skip {task}"),
        Order::Stop { task } => format!("stop {task}"),
        Order::Retry { task } => format!("retry {task}"),
        Order::Complete { task, .. } => format!("complete {task} on your word"),
        Order::Fail { task, .. } => format!("fail {task}"),
        Order::Add(new) => format!("add {}", new.id),
        Order::Edit { task, .. } => format!("edit {task}"),
        Order::Reload { .. } => "reload the plan".to_owned(),
        Order::Answer { id, text } => format!("answer question {id}: {text}"),
        Order::Split { task, .. } => format!("split {task}"),
        Order::Recover { agent } => format!("replace {agent}"),
        Order::Tell { task, .. } => format!("tell {task}"),
        Order::Attach { task, .. } => format!("attach to {task}"),
        Order::Detach { task, .. } => format!("give {task} back"),
        Order::Pause(_) => "pause the run".to_owned(),
        Order::Note { .. } => "note a decision".to_owned(),
        Order::ForgetFocus => "forget what was learned".to_owned(),
        Order::WithUndo { order } => order_words(order),
        Order::Undo { number } => format!("take order {number} back"),
        Order::ActOnDue => "act on what is due".to_owned(),
    }
}

/// What was done with a task that was held, a line each.
pub(super) fn evidence(fact: &PersonEvent) -> Vec<String> {
    let mut lines = Vec::new();
    if let PersonEvent::Detached { changed } = fact {
        lines.extend(changed.iter().cloned());
    }
    if let PersonEvent::Told { text, .. } = fact {
        lines.extend(text.lines().map(str::to_owned));
    }
    lines
}
