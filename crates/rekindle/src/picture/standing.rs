//! How a task stands, in a symbol, a word and a line that says what it waits for: never by colour alone.

use rekindle_core::text;
use rekindle_core::time::Time;
use rekindle_core::view::{QuestionRow, TaskRow};

use super::Picture;
use crate::ui::{Tone, elapsed, near_time, one_line};

/// Longest question in a note: the question itself is shown elsewhere, whole.
const NOTE_MAX_BYTES: usize = 200;

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub symbol: &'static str,
    /// The same for terminals that have only ASCII.
    pub ascii: &'static str,
    pub word: &'static str,
    pub tone: Tone,
    /// What it waits for, or how it ended; countdowns in it are of the picture's time.
    pub note: Option<String>,
}

/// Where a task belongs in a list that shows first what needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A person has to do something.
    NeedsYou,
    /// It is being worked on.
    Working,
    /// It waits for something that comes by itself.
    Waiting,
    /// It has ended.
    Ended,
}

/// How a task of the picture stands.
#[must_use]
pub(crate) fn of(picture: &Picture, task: &TaskRow) -> Standing {
    let note = || task.reason.as_deref().map(one_line);
    match task.state.as_str() {
        "complete" if task.by_operator => ended("✔", "+", "done by you", Tone::Good, task),
        "complete" if task.unreported => ended("✔", "+", "done, unreported", Tone::Warning, task),
        "complete" if task.unproven => ended("✔", "+", "done, unproven", Tone::Warning, task),
        "complete" => ended("✔", "+", "done", Tone::Good, task),
        "failed" => Standing { symbol: "✖", ascii: "x", word: "failed", tone: Tone::Error, note: note() },
        "skipped" => Standing { symbol: "–", ascii: "-", word: "skipped", tone: Tone::Dim, note: note() },
        _ => open(picture, task),
    }
}

fn ended(symbol: &'static str, ascii: &'static str, word: &'static str, tone: Tone, task: &TaskRow) -> Standing {
    Standing { symbol, ascii, word, tone, note: task.result.as_deref().map(one_line) }
}

/// One that has not ended.
fn open(picture: &Picture, task: &TaskRow) -> Standing {
    if let Some(question) = question_of(picture, task) {
        let note = Some(format!("question {}: {}", question.id, text::one_line(&question.text, NOTE_MAX_BYTES)));
        return Standing { symbol: "?", ascii: "?", word: "asks you", tone: Tone::Warning, note };
    }
    if task.verifying {
        let note = Some("rekindle runs its checks".to_owned());
        return Standing { symbol: "◌", ascii: "o", word: "proving", tone: Tone::Active, note };
    }
    if let Some(attempt) = picture.at_work(&task.id) {
        let try_of = format!("attempt {} of {}", task.attempts, task.attempt_limit);
        let word = match (attempt.state.as_str(), task.state.as_str()) {
            ("starting", _) => "starting",
            ("stopping", _) => "stopping",
            (_, "awaiting_review") => "in review",
            (_, "awaiting_audit") => "in audit",
            _ => "working",
        };
        return Standing { symbol: "▶", ascii: ">", word, tone: Tone::Active, note: Some(try_of) };
    }
    waiting(picture, task)
}

/// One that nobody is at.
fn waiting(picture: &Picture, task: &TaskRow) -> Standing {
    let now = picture.now;
    if task.state == "blocked" {
        let note = task.reason.as_deref().map(|reason| one_line(reason).replace("blocked by", "after"));
        return Standing { symbol: "·", ascii: ".", word: "blocked", tone: Tone::Dim, note };
    }
    let paused =
        |note: String| Standing { symbol: "‖", ascii: "=", word: "paused", tone: Tone::Warning, note: Some(note) };
    let state = picture.run.state.as_str();
    if matches!(state, "paused" | "pausing") {
        return paused("type rekindle resume".to_owned());
    }
    // A wait that ends by itself needs somebody who waits.
    if picture.coordinator.is_none() {
        return paused("no coordinator: type rekindle resume".to_owned());
    }
    if state == "waiting" {
        let until = picture.run.resumes_at.filter(|until| *until > now);
        return paused(until.map_or_else(|| "for a limit".to_owned(), |until| countdown("resumes", until, now)));
    }
    if let Some(until) = task.not_before.filter(|until| *until > now) {
        let last = task.cause.as_deref().map(|cause| format!("; last: {cause}")).unwrap_or_default();
        let note = format!("attempt {} of {} in {}{last}", task.attempts + 1, task.attempt_limit, span(until, now));
        return Standing { symbol: "↻", ascii: "~", word: "tries again", tone: Tone::Warning, note: Some(note) };
    }
    let gate = picture.run.waits.iter().find(|wait| wait.until.is_none_or(|until| until > now));
    if let Some(wait) = gate {
        let until = wait.until.map_or_else(|| "until you answer".to_owned(), |until| countdown("opens", until, now));
        let then = crate::waits::probe(wait, now);
        let note = format!("{} {}: {until}{then}", wait.account, wait.cause.replace('_', " "));
        return Standing { symbol: "‖", ascii: "=", word: "limit", tone: Tone::Warning, note: Some(one_line(&note)) };
    }
    let word = match task.state.as_str() {
        "awaiting_review" => "awaits review",
        "awaiting_audit" => "awaits audit",
        _ => "queued",
    };
    let note = task.reason.as_deref().map_or_else(|| "for a free slot".to_owned(), one_line);
    Standing { symbol: "·", ascii: ".", word, tone: Tone::Dim, note: Some(note) }
}

/// The question that a task waits for.
#[must_use]
pub(crate) fn question_of<'a>(picture: &'a Picture, task: &TaskRow) -> Option<&'a QuestionRow> {
    picture.open_questions().find(|question| question.task == task.id)
}

/// Where a task belongs in a list.
#[must_use]
pub(crate) fn urgency(picture: &Picture, task: &TaskRow) -> Urgency {
    match task.state.as_str() {
        // Whatever became of the task: somebody asked and was not answered.
        _ if question_of(picture, task).is_some() => Urgency::NeedsYou,
        "failed" => Urgency::NeedsYou,
        "complete" | "skipped" => Urgency::Ended,
        _ if task.verifying || picture.at_work(&task.id).is_some() => Urgency::Working,
        _ => Urgency::Waiting,
    }
}

fn countdown(verb: &str, until: Time, now: Time) -> String {
    format!("{verb} in {} ({})", span(until, now), near_time(until, now))
}

fn span(until: Time, now: Time) -> String {
    elapsed(until.since_ms(now))
}
