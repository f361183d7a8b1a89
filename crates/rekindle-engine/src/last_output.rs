//! The last lines that an agent printed, as evidence beside its crash. Which attempt is asked about, and where it is shown,
//! is left to the callers.
//!
//! The lines come from the store, where secrets are already removed and records are put into words; here they are made safe
//! for a terminal.

use rekindle_core::activity::ERROR_MARK;
use rekindle_core::ids::AttemptId;
use rekindle_core::text::one_line;
use rekindle_core::view::{AttemptRow, TaskRow};

use crate::agents::{KINDS, PLUGIN_MARK, command};
use crate::store::{Error, Read};

/// Lines that are shown: what fits on a screen beside what it is about.
pub const LINES: usize = 20;

/// Lines that are searched for an error: it often precedes a long report about it.
const LOOKED_THROUGH: usize = 200;

/// Longest line: enough for a path and a message.
const LINE_MAX_BYTES: usize = 400;

/// Words with which a line says that something is wrong, the most reliable first.
const ERRORS: [&[&str]; 3] = [
    &["panicked at", "fatal:", "fatal error", "traceback (most recent", "segmentation fault", "uncaught"],
    &["error:", "error[", "exception:", "err!", "failed:", "failure:"],
    &["error", "exception", "failed", "not found", "denied", "cannot "],
];

/// Causes after which an attempt's output explains nothing: it did what it should, or was told to end.
const WITHOUT_FAULT: [&str; 4] = ["completed", "stopped_by_operator", "waiting_for_input", "machine"];

/// The end of what an agent printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOutput {
    /// The line that best says what went wrong, if there is one.
    pub error: Option<String>,
    /// The last lines, oldest first.
    pub lines: Vec<String>,
}

impl LastOutput {
    /// All of it in display order: the error first.
    pub fn shown(&self) -> impl Iterator<Item = &str> {
        let repeated = self.error.as_ref().filter(|_| self.lines.len() == 1);
        let error = self.error.as_ref().filter(|_| repeated.is_none());
        error.into_iter().chain(&self.lines).map(String::as_str)
    }
}

/// The newest attempt at a task if it failed and the task has not ended well since: its output is evidence.
pub fn failing<'a>(task: &TaskRow, attempts: &'a [AttemptRow]) -> Option<&'a AttemptRow> {
    if matches!(task.state.as_str(), "complete" | "skipped") {
        return None;
    }
    let ended = attempts.iter().rev().filter(|attempt| attempt.tasks.contains(&task.id) && attempt.ended_at.is_some());
    ended.take(1).find(|attempt| has_failed(attempt))
}

/// Whether an attempt ended by a fault.
pub fn has_failed(attempt: &AttemptRow) -> bool {
    attempt.cause.as_deref().is_some_and(|cause| !WITHOUT_FAULT.contains(&cause))
}

/// What an attempt of an agent of this kind printed last; `None` if it printed nothing.
pub fn of(store: &(impl Read + ?Sized), attempt: AttemptId, kind: &str) -> Result<Option<LastOutput>, Error> {
    let stored = store.attempt_tail(attempt.0, LOOKED_THROUGH)?;
    // For a program with structured records the store has words; a record that could not be parsed means nothing to a
    // person.
    let records = KINDS.of(kind).is_some_and(|kind| kind.kind() != command::KIND);
    let is_record = |text: &str| records && ["{\"", PLUGIN_MARK].iter().any(|mark| text.starts_with(mark));
    let told = stored.iter().map(|line| line.line.text.as_str()).filter(|text| !is_record(text));
    let mut lines: Vec<String> = told.map(|text| one_line(text, LINE_MAX_BYTES)).collect();
    lines.retain(|line| !line.is_empty());
    let error = error_in(&lines).map(str::to_owned);
    let lines = lines.split_off(lines.len().saturating_sub(LINES));
    Ok((!lines.is_empty()).then_some(LastOutput { error, lines }))
}

/// The last line that says that something is wrong, by the most reliable words that occur.
fn error_in(lines: &[String]) -> Option<&str> {
    let lower: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    if let Some(marked) = lines.iter().rev().find(|line| line.starts_with(ERROR_MARK)) {
        return Some(marked);
    }
    let by = |words: &&[&str]| lower.iter().rposition(|line| words.iter().any(|word| line.contains(word)));
    ERRORS.iter().find_map(by).map(|at| lines[at].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surest_error_stands_first() {
        let lines = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let seen = lines(&["warning: unused", "error: cannot find `x`", "2 tests failed", "goodbye"]);
        assert_eq!(error_in(&seen), Some("error: cannot find `x`"));
        let panic = lines(&["thread 'main' panicked at src/a.rs:3", "error: process exited"]);
        assert_eq!(error_in(&panic), Some("thread 'main' panicked at src/a.rs:3"));
        assert_eq!(error_in(&lines(&["all is well"])), None);
    }

    #[test]
    fn one_line_is_not_shown_twice() {
        let line = "error: no".to_owned();
        let one = LastOutput { error: Some(line.clone()), lines: vec![line.clone()] };
        assert_eq!(one.shown().collect::<Vec<_>>(), ["error: no"]);
        let two = LastOutput { error: Some(line.clone()), lines: vec![line, "bye".to_owned()] };
        assert_eq!(two.shown().collect::<Vec<_>>(), ["error: no", "error: no", "bye"]);
    }
}
