//! Work that was put down and is handed back, after a pause or a compaction: the Resume Task Assignment Format.

use std::fmt::Write;

use super::facts::{Facts, TaskFacts};
use super::fence::{self, Keep};
use super::{parts, past};
use crate::cause::Cause;
use crate::ids::TaskId;
use crate::report::Checkpoint;
use crate::text::sanitize;

/// Heading of the section in a brief.
const HEADING: &str = "## Your Task (resumed)\n\n";

/// Longest checkpoint: a page of lists; what it leaves out is on disk.
const CONTEXT_MAX_BYTES: usize = 6 * 1024;

/// The last line of the format.
const PREVIOUS: &str = "Previous Progress: Review existing work before continuing.\n";

/// Whether work that ended so is handed back in this format rather than retried.
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

/// The block for one task, at most `max_bytes` long: plan text as it is, the checkpoint as data behind a fence made of
/// `nonce`.
#[must_use]
pub fn resume_assignment(
    task: &TaskFacts,
    checkpoint: Option<&Checkpoint>,
    plan_path: &str,
    nonce: &str,
    max_bytes: usize,
) -> String {
    let draft = block(task, checkpoint, plan_path, max_bytes);
    fence::seal(&draft, nonce)
}

/// The same as a section of a brief.
pub(super) fn section(facts: &Facts, task: &TaskFacts, room: usize) -> String {
    let left = room.saturating_sub(HEADING.len() + 1);
    let block = block(task, facts.checkpoint.as_ref(), &facts.plan_path, left);
    if block.is_empty() {
        return block;
    }
    format!("{HEADING}{block}\n")
}

fn fixed(task: &TaskFacts) -> String {
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

/// Room goes to the criteria first, then to the work, then to the context.
fn block(task: &TaskFacts, checkpoint: Option<&Checkpoint>, path: &str, room: usize) -> String {
    let head = format!("Task: {}\nWork: {}\n", task.id, sanitize(&task.title));
    let around = head.len() + PREVIOUS.len() + 2;
    let fixed = parts::cut(&fixed(task), path, room.saturating_sub(around));
    let Some(left) = room.checked_sub(around + fixed.len()) else {
        return parts::cut(&head, path, room);
    };
    let body = parts::cut(&task.body, path, left);
    let context = resume_context(checkpoint, left - body.len());
    let body = if body.is_empty() { body } else { format!("{body}\n") };
    format!("{head}{body}{fixed}\n{context}{PREVIOUS}")
}

fn resume_context(checkpoint: Option<&Checkpoint>, room: usize) -> String {
    /// Stands over the checkpoint.
    const NAME: &str = "Resume Context:\n";
    /// Stands there if nothing was saved.
    const NONE: &str = "Resume Context: no checkpoint was saved.\n";
    let context = match checkpoint {
        None => NONE.to_owned(),
        Some(checkpoint) => {
            let room = room.saturating_sub(NAME.len()).min(CONTEXT_MAX_BYTES);
            let text = past::checkpoint_text(checkpoint);
            let data = fence::data("last checkpoint", &text, Keep::Ends, room);
            if data.is_empty() {
                return String::new();
            }
            format!("{NAME}{data}")
        }
    };
    if context.len() <= room { context } else { String::new() }
}
