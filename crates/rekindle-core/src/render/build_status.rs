//! `build-status--{slug}.md`: every task with its status, the dispatch rules, the current wave. Laid out so that a program
//! can parse the table and a session that lost its context can continue from it.

use std::fmt::Write;

use super::{as_spoken, depth, in_plan_order, label, status_word};
use crate::ids::{TaskId, name_from};
use crate::last_words;
use crate::plan::PlanTask;
use crate::state::{State, Task, TaskState};
use crate::text::{one_line, sanitize};
use crate::view;

/// Longest result shown of one task; the whole of it is in the store.
const RESULT_MAX_BYTES: usize = 4 * 1024;

pub fn file_name(plan_name: &str) -> String {
    let slug = name_from(plan_name).unwrap_or_else(|| "plan".to_owned());
    format!("build-status--{slug}.md")
}

/// The file's text; `None` without a run.
pub fn render(state: &State) -> Option<String> {
    let run = state.run.as_ref()?;
    let row = view::run_row(state)?;
    let slug = name_from(&run.plan.name).unwrap_or_else(|| "plan".to_owned());
    let mut out = format!("# Build Status: {}\n\n", label(&run.plan.title));
    let _ = writeln!(out, "- Plan slug: {slug}");
    let _ = writeln!(out, "- Plan: {}", one_line(&run.plan_path, 4096));
    let _ = writeln!(out, "- Run: {} ({})", run.id, row.state);
    let wave = current_wave(state).map_or("none".to_owned(), |wave| wave.to_string());
    let _ = writeln!(out, "- Current wave: {wave}");
    let _ = writeln!(out, "- Tasks: {}\n", counts(state));
    let rules = run.plan.dispatch_rules.as_deref().map(sanitize);
    let rules = rules.as_deref().map(str::trim).filter(|rules| !rules.is_empty());
    let _ = writeln!(out, "## Dispatch Rules\n\n{}\n", rules.unwrap_or("None."));
    out += "## Tasks\n\n| Task | Status | Attempts | Wave | Agent | Title | Detail |\n|---|---|---|---|---|---|---|\n";
    for (planned, task) in in_plan_order(state) {
        out += &row_for(state, planned, task);
    }
    out += &results(state);
    Some(out)
}

/// The highest wave with open tasks among those that have started; the first one if none has.
pub fn current_wave(state: &State) -> Option<u32> {
    let begun = |task: &Task| task.state.is_terminal() || task.attempts > 0 || task.state != TaskState::Pending;
    let highest_begun = in_plan_order(state)
        .filter(|(_, task)| begun(task))
        .map(|(planned, _)| planned.wave)
        .chain(state.run.as_ref().map(|run| run.wave))
        .max();
    let open = || in_plan_order(state).filter(|(_, task)| !task.state.is_terminal()).map(|(planned, _)| planned.wave);
    open().filter(|wave| Some(*wave) <= highest_begun).max().or_else(|| open().min())
}

fn counts(state: &State) -> String {
    let words =
        ["PASS", "FAIL", "SKIPPED", "IN PROGRESS", "AWAITING REVIEW", "AWAITING AUDIT", "REWORK", "PENDING", "BLOCKED"];
    // A task that gets another attempt says FAIL in its row but is still open: it is counted as open.
    let counted_as = |planned: &PlanTask, task: &Task| match status_word(state, &planned.id, task) {
        "FAIL" if task.state != TaskState::Failed => "PENDING",
        word => word,
    };
    let count = |word: &str| in_plan_order(state).filter(|(planned, task)| counted_as(planned, task) == word).count();
    // Review states are named only if there are any.
    let always = |word: &str| !matches!(word, "AWAITING REVIEW" | "AWAITING AUDIT" | "REWORK");
    let counted = words.iter().map(|word| (*word, count(word))).filter(|(word, count)| *count > 0 || always(word));
    let parts: Vec<String> = counted.map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} in all, {}", state.tasks.len(), parts.join(", "))
}

fn row_for(state: &State, planned: &PlanTask, task: &Task) -> String {
    let word = status_word(state, &planned.id, task);
    let limit = state.attempt_limit(&planned.id);
    let status = if word == "FAIL" { format!("FAIL ({}/{limit})", task.attempts) } else { word.to_owned() };
    let agent = state.agent_for(&planned.id, state.role_of(&planned.id));
    let cells = [
        format!("{}{}", "↳ ".repeat(depth(state, task)), planned.id),
        status,
        format!("{}/{limit}", task.attempts),
        planned.wave.to_string(),
        agent.map(|agent| agent.to_string()).unwrap_or_default(),
        cell(&planned.title),
        cell(&detail(state, &planned.id, task)),
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// Why the task is in its state, in a label.
fn detail(state: &State, id: &TaskId, task: &Task) -> String {
    let (_, waits_for) = view::shown_state(state, id);
    if let Some(waits_for) = waits_for {
        return waits_for;
    }
    match task.state {
        TaskState::Complete if task.workflow.unreported => {
            last_words::with("unreported: its agent did not report it", task.result.as_deref())
        }
        TaskState::Complete if task.unproven => "unproven: on its agent's word".to_owned(),
        TaskState::Complete => task.result.clone().unwrap_or_default(),
        TaskState::InProgress if task.claim.is_some() => "its checks are running".to_owned(),
        TaskState::InProgress => {
            task.checkpoint.as_ref().map(|checkpoint| checkpoint.status.clone()).unwrap_or_default()
        }
        TaskState::Pending | TaskState::Blocked | TaskState::Failed | TaskState::Skipped => {
            let cause = task.last_cause.as_ref().map(ToString::to_string);
            let parts = [cause, task.reason.clone()];
            parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
        }
    }
}

/// One line that cannot end its cell or begin markup of its own.
fn cell(words: &str) -> String {
    let mut out = String::new();
    for c in label(words).chars() {
        if matches!(c, '|' | '\\' | '<' | '`' | '[') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What agents said about their tasks, in their words.
fn results(state: &State) -> String {
    let mut out = String::new();
    for (planned, task) in in_plan_order(state) {
        let Some(result) = task.result.as_deref().filter(|words| !words.trim().is_empty()) else {
            continue;
        };
        if out.is_empty() {
            out.push_str("\n## Results\n");
        }
        let _ = write!(out, "\n### {}\n\n{}", planned.id, as_spoken(result, "> ", RESULT_MAX_BYTES));
    }
    out
}
