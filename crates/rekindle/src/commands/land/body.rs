//! Title and text of a pull request: the result, each task with its proof, and what is unproven. Everything that a plan or
//! an agent wrote goes into code spans or code blocks, where a forge interprets nothing: no mention, no reference, no
//! closing keyword, no HTML.

use rekindle_core::forge::marker;
use rekindle_core::state::{State, Task, TaskState};
use rekindle_core::text::{self, truncate_bytes};
use rekindle_engine::git::Counted;
use rekindle_engine::redact::Redactor;

use crate::picture::result::RunResult;
use crate::ui::one_line;

/// Longest title: what forges show in a list.
const TITLE_BYTES: usize = 120;

/// Longest text of a pull request: below the limit of every forge (GitHub: 65,536 characters).
const BODY_BYTES: usize = 50_000;

/// What is shown of an agent's own words, and of one line of a plan.
const RESULT_BYTES: usize = 600;
const LINE_BYTES: usize = 160;

pub(super) fn title(state: &State, redactor: &Redactor) -> String {
    let title = state.run.as_ref().map(|run| run.plan.title.clone()).unwrap_or_default();
    let title = one_line(&redactor.redact(&title));
    match truncate_bytes(&title, TITLE_BYTES).trim() {
        "" => "The result of a rekindle run".to_owned(),
        title => title.to_owned(),
    }
}

pub(super) fn body(state: &State, counted: Counted, redactor: &Redactor) -> String {
    let Some(run) = &state.run else { return String::new() };
    let unproven = state.tasks.iter().filter(|(_, task)| task.unproven && task.state == TaskState::Complete);
    let Counted { commits, files, insertions, deletions, tip, .. } = counted;
    let card = RunResult {
        branch: run.work_branch.clone().unwrap_or_default(),
        commits,
        files,
        insertions,
        deletions,
        tip,
        unproven: unproven.map(|(id, _)| id.to_string()).collect(),
        ..RunResult::default()
    };
    let plan = state.present_plan();
    let mut out = format!(
        "{}\n\nThe result of rekindle's run of the plan {}: ",
        marker(run.id.as_str()),
        code(&run.plan.name, redactor)
    );
    out.push_str(&code(&card.headline(), redactor));
    out.push_str(".\n");
    out.extend(card.doubt().map(|doubt| format!("\n**Not proven by any check**: {}\n", code(&doubt, redactor))));
    out.push_str("\n## Tasks\n\n");
    for planned in plan.iter().flat_map(|plan| &plan.tasks) {
        let Some(task) = state.tasks.get(&planned.id) else { continue };
        let words = standing(task, &planned.accept, redactor);
        let ticked = if task.state == TaskState::Complete { "x" } else { " " };
        let title = code(&planned.title, redactor);
        out.push_str(&format!("- [{ticked}] {} {title}: {words}\n", code(planned.id.as_str(), redactor)));
        let said = task.result.as_deref().map(str::trim).filter(|said| !said.is_empty());
        out.extend(said.map(|said| block(said, redactor)));
    }
    match out.len() <= BODY_BYTES {
        true => out,
        // The marker comes first, and a block that the cut left open cannot close anything of ours.
        false => format!("{}\n\n…", truncate_bytes(&out, BODY_BYTES)),
    }
}

/// How a task ended, and what proves it.
fn standing(task: &Task, accept: &[String], redactor: &Redactor) -> String {
    match task.state {
        TaskState::Complete if task.unproven || accept.is_empty() => "complete, **unproven**".to_owned(),
        TaskState::Complete => {
            let checks: Vec<String> = accept.iter().map(|command| code(command, redactor)).collect();
            format!("proven by {}", checks.join(", "))
        }
        TaskState::Failed => "**failed**".to_owned(),
        TaskState::Skipped => "skipped".to_owned(),
        TaskState::Pending | TaskState::InProgress | TaskState::Blocked => "**open**".to_owned(),
    }
}

/// One line of foreign text as a code span.
fn code(text: &str, redactor: &Redactor) -> String {
    let line = one_line(&redactor.redact(text));
    let line = truncate_bytes(&line, LINE_BYTES);
    if line.is_empty() {
        return "`-`".to_owned();
    }
    let fence = "`".repeat(longest_run(line) + 1);
    format!("{fence} {line} {fence}")
}

/// Foreign text as a code block within a list.
fn block(text: &str, redactor: &Redactor) -> String {
    let clean = text::sanitize(&redactor.redact(text)).into_owned();
    let clean = truncate_bytes(&clean, RESULT_BYTES);
    let fence = "`".repeat(longest_run(clean).max(2) + 1);
    let lines: String = clean.lines().map(|line| format!("  {line}\n")).collect();
    format!("\n  {fence}text\n{lines}  {fence}\n")
}

/// The most backticks in a row.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_leave_its_code() {
        let redactor = Redactor::new([("DEPLOY_TOKEN", "sesame-open-now")]);
        assert_eq!(code("fixes #1 @all", &redactor), "` fixes #1 @all `");
        assert_eq!(code("a `` b", &redactor), "``` a `` b ```");
        assert!(!code("the key is sesame-open-now", &redactor).contains("sesame"));
        let said = block("```\n<!-- rekindle-run: other -->\n```", &redactor);
        assert!(said.starts_with("\n  ````text\n") && said.ends_with("  ````\n"), "{said}");
    }
}
