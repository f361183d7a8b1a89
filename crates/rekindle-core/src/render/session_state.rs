//! `session-state.md`: the whole run to date in at most [`MAX_BYTES`], for someone who has forgotten everything. What is
//! over is folded into counts before anything that is still open.

use std::fmt::Write;

use super::sections::{self, Item, Section};
use super::{as_spoken, depth, in_plan_order, label, status_word};
use crate::ids::AttemptId;
use crate::review::Stage;
use crate::state::{Attempt, AttemptPhase, State, TaskState};
use crate::text::{counted, one_line};
use crate::view;

/// Longest file: it must fit into a context that has just been compacted. 10 KB in the smaller of the two readings.
pub const MAX_BYTES: usize = 10_000;

/// Longest piece of an agent's own words; the build status file and the store have all of it.
const WORDS_MAX_BYTES: usize = 600;

/// The file's text, at most [`MAX_BYTES`]. `files` are modified files that are known from sources other than checkpoints.
/// `None` without a run.
pub fn render(state: &State, files: &[String]) -> Option<String> {
    let out = head(state)?;
    let sections = [
        Section::new("Pending Questions", "questions", questions(state), 1_200),
        Section::new("Agents", "ended attempts", agents(state), 1_600),
        Section::new("Tasks", "tasks", tasks(state), 2_800),
        Section::new("Decisions", "older decisions", decisions(state), 1_300),
        Section::new("Files Modified", "files", modified(state, files), 900),
        Section::new("Next Steps", "steps", next_steps(state), 900),
    ];
    let room = MAX_BYTES.saturating_sub(out.len());
    Some(out + &sections::texts(&sections, &LEFT_OVER_ORDER, room))
}

/// Which lists are served first if room is left over: tasks, questions, steps, decisions, agents, files.
const LEFT_OVER_ORDER: [usize; 6] = [2, 0, 5, 3, 1, 4];

fn head(state: &State) -> Option<String> {
    let (run, row) = (state.run.as_ref()?, view::run_row(state)?);
    let mut out = format!("# Session State: {}\n\n", label(&run.plan.title));
    let _ = writeln!(out, "- Run: {} ({})", run.id, row.state);
    let _ = writeln!(out, "- Plan: {} in {}", label(&run.plan.name), one_line(&run.plan_path, 400));
    if let Some(branch) = &run.branch {
        let _ = writeln!(out, "- Branch: {}", label(branch));
    }
    let counts = view::Counts::of_state(state);
    let in_progress = state.tasks.values().filter(|task| task.state == TaskState::InProgress).count();
    let _ = writeln!(
        out,
        "- Progress: {} {} complete, {in_progress} in progress, {} failed, {} skipped",
        counts.progress(),
        if counts.all == 1 { "task" } else { "tasks" },
        counts.failed,
        counts.skipped,
    );
    if run.resumes > 0 {
        let _ = writeln!(out, "- Resumed: {}", counted(run.resumes, "time", "times"));
    }
    if run.changed_plan.is_some() {
        out += "- The plan's file differs from the plan of this run.\n";
    }
    Some(out)
}

fn agents(state: &State) -> Vec<Item> {
    let item = |(id, attempt): (&AttemptId, &Attempt)| Item {
        text: agent_line(*id, attempt),
        weight: u8::from(attempt.phase != AttemptPhase::Ended),
    };
    state.attempts.iter().map(item).collect()
}

fn agent_line(id: AttemptId, attempt: &Attempt) -> String {
    let tasks: Vec<&str> = attempt.tasks.iter().map(|task| task.as_str()).collect();
    let outcome = match (&attempt.cause, attempt.phase, &attempt.stop) {
        (Some(cause), ..) => label(&cause.words()),
        (None, AttemptPhase::Exited, _) => "has exited, its claim is being proven".to_owned(),
        (None, _, Some(stop)) => format!("is being stopped: {}", label(&stop.cause.words())),
        (None, AttemptPhase::Starting, _) => "is being started".to_owned(),
        _ => "is running".to_owned(),
    };
    format!(
        "- {} ({}, {}, attempt {id}, epoch {}) on {}: {outcome}\n",
        attempt.agent,
        attempt.role,
        label(&attempt.cli),
        attempt.epoch,
        one_line(&tasks.join(", "), 200),
    )
}

fn tasks(state: &State) -> Vec<Item> {
    let item = |(planned, task): (&crate::plan::PlanTask, &crate::state::Task)| {
        let mark = if task.state == TaskState::Complete { 'x' } else { ' ' };
        let word = status_word(state, &planned.id, task);
        let indent = "  ".repeat(depth(state, task));
        let mut text = format!("{indent}- [{mark}] {}: {} ({word}", planned.id, label(&planned.title));
        if task.attempts > 0 {
            let _ = write!(text, ", attempt {}/{}", task.attempts, state.attempt_limit(&planned.id));
        }
        if task.state == TaskState::Complete && task.unproven {
            text += ", unproven";
        }
        if task.state == TaskState::Complete && task.workflow.unreported {
            text += ", unreported";
        }
        text += ")\n";
        if let Some(rework) = &task.workflow.rework {
            let _ = writeln!(text, "{indent}  sent back: {}", label(&rework.findings.issues.join("; ")));
        }
        match (&task.result, &task.reason) {
            (Some(result), _) => text += &as_spoken(result, &format!("{indent}  > "), WORDS_MAX_BYTES),
            (None, Some(reason)) => {
                let _ = writeln!(text, "{indent}  {}", label(reason));
            }
            (None, None) => {}
        }
        let weight = match task.state {
            TaskState::InProgress => 4,
            TaskState::Blocked => 3,
            TaskState::Failed => 2,
            TaskState::Pending => 1,
            TaskState::Complete | TaskState::Skipped => 0,
        };
        Item { text, weight }
    };
    in_plan_order(state).map(item).collect()
}

fn decisions(state: &State) -> Vec<Item> {
    let item = |note: &crate::state::Note| {
        let by = note.agent.as_ref().map_or("operator", |agent| agent.as_str());
        let text = format!("- {by}:\n{}", as_spoken(&note.text, "  > ", WORDS_MAX_BYTES));
        Item { text, weight: 0 }
    };
    state.notes.iter().map(item).collect()
}

fn modified(state: &State, more: &[String]) -> Vec<Item> {
    let checkpoints = state.tasks.values().filter_map(|task| task.checkpoint.as_ref());
    let files = checkpoints.flat_map(|checkpoint| &checkpoint.files).chain(more);
    let mut files: Vec<String> = files.map(|file| one_line(file, 300)).collect();
    files.sort();
    files.dedup();
    files
        .into_iter()
        .filter(|file| !file.is_empty())
        .map(|file| Item { text: format!("- {file}\n"), weight: 0 })
        .collect()
}

/// What can be done next: people first, then what is under way, then what could start.
fn next_steps(state: &State) -> Vec<Item> {
    let open = state.questions.iter().filter(|(_, question)| question.answer.is_none());
    let mut items: Vec<Item> = open
        .map(|(id, question)| Item {
            text: format!("- answer question {id} for {}: `rekindle answer {id} TEXT`\n", question.task),
            weight: 3,
        })
        .collect();
    for (planned, task) in in_plan_order(state) {
        let id = &planned.id;
        let (text, weight) = match task.state {
            TaskState::Failed => {
                (format!("- decide on {id}: `rekindle task retry {id}` or `rekindle task skip {id}`\n"), 2)
            }
            TaskState::InProgress => {
                let rest = task.checkpoint.as_ref().map(|checkpoint| checkpoint.remaining.join("; "));
                let rest = rest.filter(|rest| !rest.is_empty());
                let rest = rest.map(|rest| format!(", left: {}", label(&rest))).unwrap_or_default();
                (format!("- finish {id}{rest}\n"), 1)
            }
            TaskState::Pending if state.blockers_met(id) => (format!("- {} {id}\n", next_verb(task)), 0),
            TaskState::Pending | TaskState::Blocked | TaskState::Complete | TaskState::Skipped => continue,
        };
        items.push(Item { text, weight });
    }
    items
}

/// What comes next for a task that no agent is working on.
fn next_verb(task: &crate::state::Task) -> &'static str {
    match task.workflow.stage {
        Stage::Review => "review",
        Stage::Audit => "audit",
        Stage::Implement if task.workflow.rework.is_some() => "rework",
        Stage::Implement => "begin",
    }
}

fn questions(state: &State) -> Vec<Item> {
    let open = state.questions.iter().filter(|(_, question)| question.answer.is_none());
    open.map(|(id, question)| {
        let mut text = format!("- question {id}, {} by {}:\n", question.task, question.agent);
        text += &as_spoken(&question.text, "  > ", WORDS_MAX_BYTES);
        if !question.options.is_empty() {
            let _ = writeln!(text, "  options: {}", label(&question.options.join(" | ")));
        }
        Item { text, weight: 0 }
    })
    .collect()
}
