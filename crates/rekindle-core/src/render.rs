//! The content of the files for people, made from the state alone. Writing them, and when, is left to the engine.
//!
//! They are derived and never read back. They contain no time of their own, so that a file whose content is the same need
//! not be written again.

pub mod build_status;
pub(crate) mod sections;
pub mod session_state;

use crate::review::Stage;
use crate::state::{State, Task, TaskState};
use crate::text::{folded, one_line, sanitize, truncate_bytes};

/// Longest one-line label.
const LABEL_MAX_BYTES: usize = 160;

/// Tasks in the plan's order, parts below the whole that they belong to.
fn in_plan_order(state: &State) -> impl Iterator<Item = (&crate::plan::PlanTask, &Task)> {
    let planned = state.run.iter().flat_map(|run| &run.plan.tasks);
    let all = planned.filter_map(|planned| Some((planned, state.tasks.get(&planned.id)?)));
    let mut ordered = Vec::new();
    for (planned, task) in all.filter(|(_, task)| task.workflow.parent.is_none()) {
        with_parts(state, (planned, task), &mut ordered);
    }
    ordered.into_iter()
}

fn with_parts<'a>(
    state: &'a State,
    whole: (&'a crate::plan::PlanTask, &'a Task),
    ordered: &mut Vec<(&'a crate::plan::PlanTask, &'a Task)>,
) {
    ordered.push(whole);
    for part in &whole.1.workflow.parts {
        if let (Some(planned), Some(task)) = (state.plan_task(part), state.tasks.get(part)) {
            with_parts(state, (planned, task), ordered);
        }
    }
}

/// How deep a task is a part of others.
fn depth(state: &State, task: &Task) -> usize {
    let parent = task.workflow.parent.as_ref().and_then(|parent| state.tasks.get(parent));
    parent.map_or(0, |parent| 1 + depth(state, parent))
}

/// The word for a task's state, as readers and programs look for it.
fn status_word(state: &State, id: &crate::ids::TaskId, task: &Task) -> &'static str {
    match task.state {
        TaskState::Complete => "PASS",
        TaskState::Failed => "FAIL",
        TaskState::Skipped => "SKIPPED",
        TaskState::Pending | TaskState::InProgress if task.workflow.stage == Stage::Review => "AWAITING REVIEW",
        TaskState::Pending | TaskState::InProgress if task.workflow.stage == Stage::Audit => "AWAITING AUDIT",
        TaskState::InProgress => "IN PROGRESS",
        TaskState::Blocked => "BLOCKED",
        TaskState::Pending if task.workflow.rework.is_some() => "REWORK",
        TaskState::Pending if task.attempts > 0 && task.last_cause.is_some() => "FAIL",
        TaskState::Pending if crate::view::shown_state(state, id).0 == "blocked" => "BLOCKED",
        TaskState::Pending => "PENDING",
    }
}

/// An agent's words unchanged, every line behind `prefix`; what exceeds `max_bytes` is marked as missing, never reworded.
fn as_spoken(words: &str, prefix: &str, max_bytes: usize) -> String {
    let clean = sanitize(words);
    let clean = clean.trim();
    let shown = truncate_bytes(clean, max_bytes);
    let mut out = String::new();
    for line in shown.lines() {
        out += &format!("{prefix}{line}\n");
    }
    if shown.len() < clean.len() {
        out += &format!("{prefix}{}\n", folded(clean.len() - shown.len()));
    }
    out
}

fn label(words: &str) -> String {
    one_line(words, LABEL_MAX_BYTES)
}

#[cfg(test)]
pub(crate) mod tests;
