//! The parts that tell of what was done before: checkpoint, disk, decisions, answers, what not to redo. All that agents
//! or their tools wrote goes behind the fence.

use std::fmt::Write;

use super::facts::{CheckSeen, Facts};
use super::fence::{self, Keep};
use super::resume;
use crate::report::{Checkpoint, Evidence};
use crate::review;
use crate::text::{one_line, sanitize, truncate_bytes};

/// Longest output shown of one check: a failing test's last screen or two.
const OUTPUT_MAX_BYTES: usize = 4 * 1024;

/// Longest check command on its summary line; it stands whole with its task.
const COMMAND_MAX_BYTES: usize = 240;

/// Longest answer: a person's decision, which is part of the instructions.
const ANSWER_MAX_BYTES: usize = 2 * 1024;

/// Where the previous agent said it stood. Handed-back work has it with its task.
pub(super) fn checkpoint(facts: &Facts, room: usize) -> String {
    let handed_back = facts.current().is_some() && facts.cause.as_ref().is_some_and(resume::hands_back);
    let Some(checkpoint) = facts.checkpoint.as_ref().filter(|_| !handed_back) else {
        return String::new();
    };
    section("## Last Checkpoint\n\n", room, |room| {
        fence::data("what the previous agent reported", &checkpoint_text(checkpoint), Keep::Ends, room)
    })
}

/// A checkpoint in words.
pub(super) fn checkpoint_text(checkpoint: &Checkpoint) -> String {
    let mut out = String::new();
    if !checkpoint.status.is_empty() {
        let _ = writeln!(out, "Status: {}", checkpoint.status);
    }
    if let Some(percent) = checkpoint.progress {
        let _ = writeln!(out, "Progress: {percent} %");
    }
    let lists =
        [("Completed", &checkpoint.completed), ("Remaining", &checkpoint.remaining), ("Files", &checkpoint.files)];
    for (name, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        let _ = writeln!(out, "{name}:");
        for item in *items {
            let _ = writeln!(out, "- {item}");
        }
    }
    if out.is_empty() { "(empty)".to_owned() } else { out }
}

/// The parts of the current task, in the order to work in.
pub(super) fn split(facts: &Facts, room: usize) -> String {
    let mut out = String::new();
    for (index, part) in facts.split.iter().enumerate() {
        let _ = writeln!(out, "{}. {}", index + 1, part.trim());
    }
    let heading = "## Subtasks\n\nThe current task was broken into these parts. Work through them in this order, then report the \
                   task itself:\n\n";
    section(heading, room, |room| fence::data("subtasks, as an agent named them", &out, Keep::Ends, room))
}

/// What rekindle has seen on disk.
pub(super) fn disk(facts: &Facts, room: usize) -> String {
    let disk = &facts.disk;
    section("## What Is on Disk\n\n", room, |room| {
        let mut out = String::new();
        let artifacts = [("present", &disk.artifacts_present), ("missing", &disk.artifacts_missing)];
        for (name, files) in artifacts.iter().filter(|(_, files)| !files.is_empty()) {
            let _ = writeln!(out, "- artifacts {name}: {}", one_line(&files.join(", "), 1024));
        }
        for check in &disk.checks {
            let _ = writeln!(out, "- {}", check_line(check));
        }
        if !out.is_empty() {
            out.push('\n');
        }
        if differ_by_environment(&disk.checks) {
            let _ = writeln!(out, "{}\n", review::COMMON_CAUSES);
        }
        out = truncate_bytes(&out, room).to_owned();
        for check in disk.checks.iter().filter(|check| !check.result.passed) {
            let left = room.saturating_sub(out.len()).min(OUTPUT_MAX_BYTES);
            out += &fence::data("end of a failing check's output", &check.result.output, Keep::Tail, left);
        }
        let git = git_text(facts);
        out += &fence::data("git", &git, Keep::Ends, room.saturating_sub(out.len()));
        out
    })
}

fn check_line(check: &CheckSeen) -> String {
    let result = &check.result;
    let command = one_line(&result.command, COMMAND_MAX_BYTES);
    let when = if check.just_now { "now" } else { "on the last claim" };
    let how = match (result.passed, result.timed_out, result.code) {
        (true, ..) if check.just_now => {
            "passes already; this alone completes nothing, so confirm that the work is done and report it".to_owned()
        }
        (true, ..) => "passed".to_owned(),
        (false, true, _) => "timed out".to_owned(),
        (false, false, Some(code)) => format!("exited with {code}"),
        (false, false, None) => "was killed".to_owned(),
    };
    let place = result.environment.as_ref().map(|name| format!(" in environment `{name}`")).unwrap_or_default();
    format!("{} check `{command}`{place}, {when}: {how}", check.task)
}

/// Whether the same checks passed in one environment and failed in another.
fn differ_by_environment(checks: &[CheckSeen]) -> bool {
    let checks = checks.iter().filter(|check| !check.just_now).map(|check| check.result.clone()).collect();
    review::environments(&Evidence { checks, ..Evidence::default() }).is_some()
}

fn git_text(facts: &Facts) -> String {
    let mut out = String::new();
    if !facts.disk.commits.is_empty() {
        let _ = writeln!(out, "Commits since the work began:\n{}", facts.disk.commits.join("\n"));
    }
    if !facts.disk.diff_stat.trim().is_empty() {
        let _ = writeln!(out, "Diff stat since the work began:\n{}", facts.disk.diff_stat);
    }
    out
}

/// Decisions noted during the run; the newest are kept longest.
pub(super) fn decisions(facts: &Facts, room: usize) -> String {
    let mut out = String::new();
    for decision in &facts.decisions {
        let by = decision.by.as_ref().map_or("operator", |name| name.as_str());
        let _ = writeln!(out, "- {by}: {}", decision.text);
    }
    section("## Decisions Noted\n\n", room, |room| {
        fence::data("decisions noted during the run", &out, Keep::Tail, room)
    })
}

/// Questions with their answers. The question is an agent's and is data; the answer is a person's and counts.
pub(super) fn answers(facts: &Facts, room: usize) -> String {
    section("## Questions Answered by a Person\n\n", room, |room| {
        let mut out = String::new();
        // The newest first: an answer that does not fit must be the oldest.
        for answered in facts.answers.iter().rev() {
            let answer = sanitize(&answered.answer);
            let answer = truncate_bytes(answer.trim(), ANSWER_MAX_BYTES);
            let answer = format!("Answer for {}, to be followed:\n{answer}\n\n", answered.task);
            let Some(left) = room.checked_sub(out.len() + answer.len()) else {
                break;
            };
            out += &fence::data("the question", &answered.question, Keep::Ends, left.min(OUTPUT_MAX_BYTES));
            out += &answer;
        }
        out
    })
}

/// What must not be done again.
pub(super) fn do_not_redo(facts: &Facts, room: usize) -> String {
    let mut out = String::new();
    for item in &facts.do_not_redo {
        let _ = writeln!(out, "- {item}");
    }
    let heading = "## Do Not Redo\n\nReported as already done; verify, but do not do it a second time:\n\n";
    section(heading, room, |room| fence::data("effects already done", &out, Keep::Tail, room))
}

/// A section with its heading, or nothing if nothing is in it.
pub(super) fn section(heading: &str, room: usize, body: impl FnOnce(usize) -> String) -> String {
    let body = body(room.saturating_sub(heading.len() + 1));
    if body.is_empty() || room < heading.len() + 1 {
        return String::new();
    }
    format!("{heading}{body}\n")
}
