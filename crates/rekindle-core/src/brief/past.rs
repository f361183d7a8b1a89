//! What was done before, in words: checkpoint, subtasks, checks, git, the last lines of output. How important each is and
//! where it goes is decided in `sources`.

use std::fmt::Write;

use super::facts::{Activity, CheckSeen, Facts, LineKind, Stream};
use crate::report::{Checkpoint, Evidence};
use crate::review;
use crate::text::{self, one_line};

/// Longest check command on its summary line; the task has the whole command.
const COMMAND_MAX_BYTES: usize = 240;

/// Longest list of artifacts.
const ARTIFACTS_MAX_BYTES: usize = 1024;

/// Longest line of output: enough for a call with its arguments; a result of megabytes is folded to this.
const LINE_MAX_BYTES: usize = 800;

pub(crate) fn checkpoint_text(checkpoint: &Checkpoint) -> String {
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
pub(crate) fn subtasks(facts: &Facts) -> String {
    let mut out = "Work through them in this order, then report the task itself:\n".to_owned();
    for (index, part) in facts.split.iter().enumerate() {
        let _ = writeln!(out, "{}. {}", index + 1, part.trim());
    }
    out
}

/// What rekindle has seen of artifacts and checks.
pub(crate) fn checks(facts: &Facts) -> String {
    let disk = &facts.disk;
    let mut out = String::new();
    let artifacts = [("present", &disk.artifacts_present), ("missing", &disk.artifacts_missing)];
    for (name, files) in artifacts.iter().filter(|(_, files)| !files.is_empty()) {
        let _ = writeln!(out, "- artifacts {name}: {}", one_line(&files.join(", "), ARTIFACTS_MAX_BYTES));
    }
    for check in &disk.checks {
        let _ = writeln!(out, "- {}", check_line(check));
    }
    if differ_by_environment(&disk.checks) {
        let _ = writeln!(out, "\n{}", review::COMMON_CAUSES);
    }
    out
}

fn check_line(check: &CheckSeen) -> String {
    let result = &check.result;
    let command = one_line(&result.command, COMMAND_MAX_BYTES);
    let when = if check.just_now { "now" } else { "on the last claim" };
    let how = if result.passed && check.just_now {
        "passes already; this alone completes nothing, so confirm that the work is done and report it".to_owned()
    } else {
        result.outcome()
    };
    let place = result.environment.as_ref().map(|name| format!(" in environment `{name}`")).unwrap_or_default();
    format!("{} check `{command}`{place}, {when}: {how}", check.task)
}

/// Whether the same checks passed in one environment and failed in another.
fn differ_by_environment(checks: &[CheckSeen]) -> bool {
    let checks = checks.iter().filter(|check| !check.just_now).map(|check| check.result.clone()).collect();
    review::environments(&Evidence { checks, ..Evidence::default() }).is_some()
}

pub(crate) fn git(facts: &Facts) -> String {
    let mut out = String::new();
    if !facts.disk.commits.is_empty() {
        let _ = writeln!(out, "Commits since the work began:\n{}", facts.disk.commits.join("\n"));
    }
    if !facts.disk.diff_stat.trim().is_empty() {
        let _ = writeln!(out, "Diff stat since the work began:\n{}", facts.disk.diff_stat);
    }
    out
}

/// The last lines of the previous agent, and whether each is a call or an error.
pub(crate) fn activity(facts: &Facts) -> Vec<(bool, String)> {
    let line = |line: &Activity| {
        let label = match (line.kind, line.stream) {
            (LineKind::Tool, _) => "[tool] ",
            (LineKind::Error, _) => "[error] ",
            (LineKind::Plain, Stream::Err) => "[stderr] ",
            (LineKind::Plain, Stream::Out) => "",
        };
        let clean = text::sanitize(&line.text);
        (line.kind != LineKind::Plain, format!("{label}{}", text::fold(clean.trim_end(), LINE_MAX_BYTES)))
    };
    facts.activity.iter().map(line).collect()
}
