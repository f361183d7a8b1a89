//! What happens between a run and a person, in words: questions, messages to agents, tasks they held, orders they can undo.

use rekindle_core::event::PersonEvent;
use rekindle_core::steering::{How, Undoable};

use super::Parts;
use crate::ui::Tone;

/// Describes one such event.
pub(super) fn tell(fact: &PersonEvent) -> Parts {
    match fact {
        PersonEvent::QuestionAsked { id, text, .. } => ("ASKED", Tone::Warning, format!("question {id}: {text}")),
        PersonEvent::QuestionAnswered { id, answer, via } => {
            let via = via.map(|via| format!(" (by {via})")).unwrap_or_default();
            ("ANSWERED", Tone::Good, format!("question {id}: {answer}{via}"))
        }
        PersonEvent::PhoneOrder { via, word, .. } => {
            ("ORDERED", Tone::Warning, format!("{} by {via}, from a phone", word.name()))
        }
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
            format!("order {number}: {}, which can be undone for ten seconds", order_words(order)),
        ),
        PersonEvent::OrderTaken { number } => ("TAKEN", Tone::Dim, format!("order {number} is carried out")),
        PersonEvent::OrderUndone { number } => ("UNDONE", Tone::Warning, format!("order {number} was undone")),
    }
}

/// An order in a few words.
pub(crate) fn order_words(order: &Undoable) -> String {
    match order {
        Undoable::Skip { task, .. } => format!("skip {task}"),
        Undoable::Complete { task, .. } => format!("complete {task} on your word"),
        Undoable::Answer { id, text } => format!("answer question {id}: {text}"),
    }
}

/// What was done with a task that a person held, one line each.
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
