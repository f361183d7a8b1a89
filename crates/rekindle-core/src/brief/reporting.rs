//! How an agent is told to report: the verbs of the command line and the signals, in one place so that the words of the
//! brief and the words that are understood can be compared.

use std::fmt::Write;

use super::facts::Doors;
use crate::role::Role;
use crate::text::one_line;

/// The same in a few lines, for an agent that was told it all before.
pub(super) fn in_short(doors: &Doors, role: Role, task: &str) -> String {
    if role.reviews() {
        return verdict_in_short(doors, role, task);
    }
    let mut ways = Vec::new();
    if doors.mcp {
        ways.push(format!(
            "with the tools of the MCP server `rekindle`: `task_done {{task: \"{task}\", result}}` when it is finished, \
             `checkpoint` after every larger step, `ask`, `note`, `task_fail`"
        ));
    }
    if let Some(program) = &doors.program {
        let program = one_line(program, 4096);
        ways.push(format!(
            "with commands: `{program} task done {task} --result \"…\"` when it is finished, `{program} checkpoint \"…\" \
             --task {task} --completed \"…\" --remaining \"…\"` after every larger step"
        ));
    }
    if doors.signals && ways.is_empty() {
        ways.push(format!("with a line `TASK_COMPLETE: {task}` of its own in your final message when it is finished"));
    }
    format!("Report {}. An exit without a report counts as a failed attempt.\n", ways.join(", or "))
}

/// The section on reporting, with a task's id in the examples.
pub(super) fn words(doors: &Doors, role: Role, task: &str) -> String {
    if role.reviews() {
        return verdict_words(doors, role, task);
    }
    let mut out = "\n### How to Report\n\n".to_owned();
    if let Some(program) = &doors.program {
        let program = one_line(program, 4096);
        let _ = write!(
            out,
            "Run these commands; they know who you are from the environment:\n\n\
             - `{program} task done {task} --result \"what you did\"` when a task is finished. It runs the checks: exit 0 \
             means that the task is complete or with its reviewers, 1 shows the check that fails; repair it and report again.\n\
             - `{program} checkpoint \"where you stand\" --task {task} --completed \"…\" --remaining \"…\" --file \"…\" \
             --progress 40` after every larger step. A successor goes on from your last checkpoint.\n\
             - `{program} ask \"question\" --task {task} --wait` when only a person can decide.\n\
             - `{program} task split {task} \"first part\" \"second part\"` when it is too large for one go; the parts are \
             tasks of yours then, {task}.1, {task}.2 and so on: report each of them.\n\
             - `{program} note \"decision\"` for a decision that others should know.\n\
             - `{program} task fail {task} --reason \"why\"` if it cannot be done.\n\n"
        );
    }
    if doors.mcp {
        out.push_str("The MCP server `rekindle` has tools with the same effect: `task_done`, `checkpoint`, `ask`, `task_split`, `note`, \
             `task_fail`, `task_list`. Prefer them where you have them.\n\n");
    }
    if doors.signals {
        let lead = match doors.program.is_some() || doors.mcp {
            true => "If you can do neither, print",
            false => "Print",
        };
        let _ = write!(
            out,
            "{lead} signal lines to standard output. A signal is a line of its own and begins in its first column, outside \
             of quotes and code fences; lines `Key: value` may follow directly:\n\n\
             \x20   TASK_COMPLETE: {task}\n\
             \x20   Result: what you did\n\n\
             \x20   CHECKPOINT: {task}\n\
             \x20   Completed: one; two\n\
             \x20   Remaining: three\n\n\
             \x20   QUESTION: {task}\n\
             \x20   Question: what a person has to decide\n\n\
             \x20   TASK_INCOMPLETE: {task}\n\
             \x20   Reason: why it cannot be done\n\n\
             \x20   INFRA_BLOCKED: {task}\n\
             \x20   Reason: what is broken on this machine, for a person to mend\n\n\
             (They are indented here only so that they are not taken for signals.)\n\n"
        );
    }
    out.push_str("An exit without a report counts as a failed attempt.\n");
    out
}

/// The verb of a role that judges.
fn verb(role: Role) -> &'static str {
    if role == Role::Critic { "review" } else { "audit" }
}

/// How a verdict is given, in a few lines.
fn verdict_in_short(doors: &Doors, role: Role, task: &str) -> String {
    let verb = verb(role);
    let mut ways = Vec::new();
    if doors.mcp {
        ways.push(format!("with the tool `{verb} {{task: \"{task}\", verdict, issues, required, passed}}` of the MCP server `rekindle`"));
    }
    if let Some(program) = &doors.program {
        let program = one_line(program, 4096);
        ways.push(format!(
            "with `{program} {verb} pass {task}` or `{program} {verb} fail {task} --issues \"…\" --required \"…\"`"
        ));
    }
    if ways.is_empty() {
        let (passed, failed) = signals(role, task);
        ways.push(format!("with a line `{passed}` or `{failed}` of its own in your final message"));
    }
    format!("Give your verdict {}. An exit without a verdict counts as a failed attempt.\n", ways.join(", or "))
}

/// The signals of a role that judges.
fn signals(role: Role, task: &str) -> (String, String) {
    match role {
        Role::HealthAuditor => ("HEALTH_AUDIT: HEALTHY".to_owned(), "HEALTH_AUDIT: UNHEALTHY".to_owned()),
        Role::Critic => (format!("REVIEW_PASSED: {task}"), format!("REVIEW_FAILED: {task}")),
        _ => (format!("AUDIT_PASSED: {task}"), format!("AUDIT_FAILED: {task}")),
    }
}

/// How a verdict is given, as a section.
fn verdict_words(doors: &Doors, role: Role, task: &str) -> String {
    let verb = verb(role);
    let mut out = "\n### How to Give Your Verdict\n\n".to_owned();
    if let Some(program) = &doors.program {
        let program = one_line(program, 4096);
        let _ = write!(
            out,
            "Run one of these commands; they know who you are from the environment. Every option may be given several times:\n\n\
             - `{program} {verb} pass {task} --passed \"what is good\"`\n\
             - `{program} {verb} fail {task} --issues \"what is wrong\" --required \"what has to be done\" --passed \"what is good\"`\n"
        );
        if role != Role::Critic {
            let _ = writeln!(out, "- `{program} {verb} blocked {task} --issues \"what a person has to see to\"`");
        }
        let _ = write!(
            out,
            "- `{program} ask \"question\" --task {task} --wait` when only a person can decide.\n\
             - `{program} note \"decision\"` for something that others should know.\n\n"
        );
    }
    if doors.mcp {
        let _ = write!(
            out,
            "The MCP server `rekindle` has the tool `{verb} {{task, verdict, issues, required, passed}}` with the same effect, \
             besides `ask`, `note`, `checkpoint`. Prefer it where you have it.\n\n"
        );
    }
    if doors.signals {
        let lead = if doors.program.is_some() || doors.mcp { "If you can do neither, print" } else { "Print" };
        let (passed, failed) = signals(role, task);
        let _ = write!(
            out,
            "{lead} a signal to standard output: a line of its own that begins in its first column, outside of quotes and code \
             fences, with lines `Key: value` or lists directly after it:\n\n\
             \x20   {passed}\n\
             \x20   Passed: what is good\n\n\
             \x20   {failed}\n\
             \x20   Issues:\n\
             \x20   - what is wrong\n\
             \x20   Required:\n\
             \x20   - what has to be done\n\
             \x20   Passed: what is good\n\n"
        );
        if role == Role::Auditor {
            let _ = write!(out, "\x20   AUDIT_BLOCKED: {task}\n\x20   Reason: what a person has to see to\n\n");
        }
        out.push_str("(They are indented here only so that they are not taken for signals.)\n\n");
    }
    out.push_str("An exit without a verdict counts as a failed attempt.\n");
    out
}
