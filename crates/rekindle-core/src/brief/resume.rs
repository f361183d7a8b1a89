//! Work that was interrupted and is handed back, after a pause or a compaction: the Resume Task Assignment Format.

use std::fmt::Write;

use super::facts::TaskFacts;
use super::parts;
use crate::cause::Cause;
use crate::ids::TaskId;
use crate::text::sanitize;

/// Heading of the section in a brief.
const HEADING: &str = "## Your Task (resumed)\n\n";

/// The last line of the format.
const PREVIOUS: &str = "Previous Progress: Review existing work before continuing.\n";

/// Whether work that ended with this cause is handed back in this format rather than retried.
pub(super) fn hands_back(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::StoppedByOperator
            | Cause::UsageLimit { .. }
            | Cause::Compacted
            | Cause::CompactionLoop
            | Cause::ContextExhausted
    )
}

/// The block for one task with its heading, at most `room` bytes; the checkpoint is in the record. Without the task's text
/// for a session that has it.
pub(super) fn block(task: &TaskFacts, has_checkpoint: bool, has_text: bool, path: &str, room: usize) -> String {
    let head = format!("{HEADING}Task: {}\nWork: {}\n", task.id, sanitize(&task.title));
    let context = match has_checkpoint {
        true => "Resume Context: see \"Last Checkpoint\" in the record below.\n",
        false => "Resume Context: no checkpoint was saved.\n",
    };
    let around = head.len() + context.len() + PREVIOUS.len() + 2;
    // The criteria first, then the work.
    let fixed = parts::cut(&criteria(task), path, room.saturating_sub(around));
    let Some(left) = room.checked_sub(around + fixed.len()) else {
        return parts::cut(&head, path, room);
    };
    let body = if has_text { String::new() } else { parts::cut(&task.body, path, left) };
    let body = if body.is_empty() { body } else { format!("{body}\n") };
    format!("{head}{body}{fixed}\n{context}{PREVIOUS}")
}

fn criteria(task: &TaskFacts) -> String {
    let mut out = "Acceptance Criteria:".to_owned();
    if task.accept.is_empty() && task.artifacts.is_empty() {
        out.push_str(" none");
    }
    out.push('\n');
    for command in &task.accept {
        let _ = writeln!(out, "- `{}`", sanitize(command));
    }
    for artifact in &task.artifacts {
        let _ = writeln!(out, "- file exists: {}", sanitize(artifact));
    }
    let blockers: Vec<&str> = task.blocked_by.iter().map(TaskId::as_str).collect();
    let blockers = match blockers.is_empty() {
        true => "none".to_owned(),
        false => blockers.join(", "),
    };
    let _ = writeln!(out, "Blocked By: {blockers}");
    if !task.reading.is_empty() {
        let _ = writeln!(out, "Reading: {}", sanitize(&task.reading.join(", ")));
    }
    out
}
