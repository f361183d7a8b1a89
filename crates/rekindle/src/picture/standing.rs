//! The state of a task, as a symbol, a word and a line that says what it waits for: never by colour alone. Every view shows
//! these words; the core decides what a task waits for.

use rekindle_core::text;
use rekindle_core::view::{Because, PersonAct, QuestionRow, TaskRow, WaitsFor};

use super::Picture;
use crate::ui::{Tone, one_line};
use crate::waits;

/// Longest question in a note: the whole question is shown elsewhere.
const NOTE_MAX_BYTES: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub symbol: &'static str,
    /// The same for terminals that have only ASCII.
    pub ascii: &'static str,
    pub word: &'static str,
    pub tone: Tone,
    /// What it waits for, or how it ended; countdowns in it are relative to the picture's time.
    pub note: Option<String>,
}

/// The position of a task in a list that shows first what needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A person has to do something.
    NeedsYou,
    Working,
    /// It waits for something that happens on its own.
    Waiting,
    Ended,
}

/// The state of a task of the picture.
pub(crate) fn of(picture: &Picture, task: &TaskRow) -> Standing {
    let note = || task.reason.as_deref().map(one_line);
    match task.state.as_str() {
        "complete" if task.by_operator => ended("complete by you", Tone::Good, task),
        "complete" if task.unreported => ended("complete, unreported", Tone::Warning, task),
        "complete" if task.unproven => ended("complete, unproven", Tone::Warning, task),
        "complete" => ended("complete", Tone::Good, task),
        "failed" => Standing { symbol: "✖", ascii: "x", word: "failed", tone: Tone::Error, note: note() },
        "skipped" => Standing { symbol: "–", ascii: "-", word: "skipped", tone: Tone::Dim, note: note() },
        _ => match picture.waits_for(&task.id) {
            Some(waits) => waiting(picture, task, waits),
            None => begun(picture, task),
        },
    }
}

fn ended(word: &'static str, tone: Tone, task: &TaskRow) -> Standing {
    Standing { symbol: "✔", ascii: "+", word, tone, note: task.result.as_deref().map(one_line) }
}

fn begun(picture: &Picture, task: &TaskRow) -> Standing {
    let attempt = picture.at_work(&task.id);
    if task.verifying || attempt.is_none() {
        let note = Some("rekindle runs its checks".to_owned());
        return Standing { symbol: "◌", ascii: "o", word: "proving", tone: Tone::Active, note };
    }
    let word = match (attempt.map(|attempt| attempt.state.as_str()), task.state.as_str()) {
        (Some("starting"), _) => "starting",
        (Some("stopping"), _) => "stopping",
        (_, "awaiting_review") => "in review",
        (_, "awaiting_audit") => "in audit",
        _ => "in progress",
    };
    let number = attempt.map(|attempt| picture.number_of(&task.id, attempt.attempt));
    let note = Some(match number.filter(|number| *number != task.attempts) {
        // Attempts that do not count and those of reviewers are numbered with the others.
        Some(number) => format!("attempt {number}; {} of {} used", task.attempts, task.attempt_limit),
        None => format!("attempt {} of {}", task.attempts, task.attempt_limit),
    });
    Standing { symbol: "▶", ascii: ">", word, tone: Tone::Active, note }
}

fn waiting(picture: &Picture, task: &TaskRow, waits: &WaitsFor) -> Standing {
    let reason = || task.reason.as_deref().map(one_line);
    let words = waits::words(waits, task, &picture.run, picture.now);
    match waits {
        WaitsFor::Person { act: PersonAct::Answer, question } => {
            let asked = picture.questions.iter().find(|asked| Some(asked.id) == *question);
            let note =
                asked.map(|asked| format!("question {}: {}", asked.id, text::one_line(&asked.text, NOTE_MAX_BYTES)));
            let note = note.or_else(reason);
            Standing { symbol: "?", ascii: "?", word: "asks you", tone: Tone::Warning, note }
        }
        WaitsFor::Task { because: Because::Plan | Because::Failed, .. } => {
            Standing { symbol: "·", ascii: ".", word: "blocked", tone: Tone::Dim, note: Some(words) }
        }
        WaitsFor::Person { act: PersonAct::Resume | PersonAct::GoOn, .. } => {
            Standing { symbol: "‖", ascii: "=", word: "paused", tone: Tone::Warning, note: Some(words) }
        }
        WaitsFor::Person { act: PersonAct::GiveBack, .. } => {
            Standing { symbol: "✎", ascii: "@", word: "yours", tone: Tone::Warning, note: Some(words) }
        }
        WaitsFor::Account { .. } | WaitsFor::Machine { .. } | WaitsFor::Budget { .. } | WaitsFor::Quiet { .. } => {
            Standing { symbol: "‖", ascii: "=", word: "waits", tone: Tone::Warning, note: Some(words) }
        }
        WaitsFor::Time { .. } => {
            Standing { symbol: "↻", ascii: "~", word: "tries again", tone: Tone::Warning, note: Some(words) }
        }
        WaitsFor::Wave { .. }
        | WaitsFor::Slot { .. }
        | WaitsFor::SetUp { .. }
        | WaitsFor::Agent { .. }
        | WaitsFor::Task { .. } => {
            let word = match task.state.as_str() {
                "awaiting_review" => "awaits review",
                "awaiting_audit" => "awaits audit",
                _ => "pending",
            };
            let note = reason().map_or_else(|| words.clone(), |reason| format!("{words}; {reason}"));
            Standing { symbol: "·", ascii: ".", word, tone: Tone::Dim, note: Some(note) }
        }
    }
}

/// The question that a task waits for.
pub(crate) fn question_of<'a>(picture: &'a Picture, task: &TaskRow) -> Option<&'a QuestionRow> {
    picture.open_questions().find(|question| question.task == task.id)
}

/// The position of a task in a list.
pub(crate) fn urgency(picture: &Picture, task: &TaskRow) -> Urgency {
    match task.state.as_str() {
        // Whatever became of the task: a question is unanswered.
        _ if question_of(picture, task).is_some() => Urgency::NeedsYou,
        "failed" => Urgency::NeedsYou,
        "complete" | "skipped" => Urgency::Ended,
        _ if picture.waits_for(&task.id).is_none() => Urgency::Working,
        _ => Urgency::Waiting,
    }
}
