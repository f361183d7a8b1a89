//! The whole plan, shown to an agent again after every second compaction: all tasks with their states, what blocks what,
//! what proves them, and where state and plan contradict each other. What does not fit is in the plan's file.

use std::fmt::Write;

use super::facts::{Facts, PlanLine};
use super::parts;
use crate::ids::TaskId;
use crate::text::{one_line, sanitize};

/// Longest title on a line.
const TITLE_MAX_BYTES: usize = 100;

/// The section; empty if the agent does not get the plan.
pub(crate) fn whole_plan(facts: &Facts, room: usize) -> String {
    let Some(tasks) = &facts.whole_plan else { return String::new() };
    let heading = "## The Whole Plan (full reload)\n\nYour context was compacted more than once, so here is all of it again. Where a \
                   task is doubted, look at it before you build on it.\n\n";
    let room = room.saturating_sub(heading.len());
    let full: String = tasks.iter().map(|task| line(task, true)).collect();
    let short: String = tasks.iter().map(|task| line(task, false)).collect();
    // The whole graph is worth more than the proofs of a part of it.
    let fitting = [full, short.clone()].into_iter().find(|text| text.len() <= room);
    let text = fitting.unwrap_or_else(|| parts::cut(&short, &facts.plan_path, room));
    if text.is_empty() { text } else { format!("{heading}{text}") }
}

fn line(task: &PlanLine, proofs: bool) -> String {
    let mark = if task.state == "complete" { 'x' } else { ' ' };
    let mut out = format!("- [{mark}] {}: {} ({})", task.id, one_line(&task.title, TITLE_MAX_BYTES), task.state);
    let blockers: Vec<&str> = task.blocked_by.iter().map(TaskId::as_str).collect();
    if !blockers.is_empty() {
        let _ = write!(out, ", blocked by {}", blockers.join(", "));
    }
    out.push('\n');
    if let Some(doubt) = &task.doubt {
        let _ = writeln!(out, "  doubted: {}", sanitize(doubt));
    }
    if proofs {
        for command in &task.accept {
            let _ = writeln!(out, "  accept: `{}`", sanitize(command));
        }
        if !task.artifacts.is_empty() {
            let _ = writeln!(out, "  artifacts: {}", sanitize(&task.artifacts.join(", ")));
        }
    }
    out
}
