//! How an agent is told to report: the verbs of the command line and the signals, in one place so that the words in the
//! brief can be compared with the words that are parsed.

use std::fmt::Write;

use super::facts::ReportChannels;
use crate::role::Role;
use crate::text::one_line;

/// The last line for every agent.
const LAST: &str = "An exit without a report counts as a failed attempt.\n";

/// The same for a reviewer.
const LAST_VERDICT: &str = "An exit without a verdict counts as a failed attempt.\n";

/// How to report in a line or two, for an agent that was told all of it before.
pub(super) fn in_short(channels: &ReportChannels, role: Role, task: &str) -> String {
    if role.reviews() {
        return verdict_in_short(channels, role, task);
    }
    let way = match &channels.program {
        _ if channels.mcp => format!(
            "with the tools of the MCP server `rekindle`: `task_done {{task: \"{task}\", result}}` when it is finished, \
             `checkpoint` after every larger step"
        ),
        Some(program) => {
            let program = one_line(program, 4096);
            format!(
                "with `{program} task done {task} --result \"…\"` when it is finished, `{program} checkpoint \"…\" --task {task}` \
                 after every larger step"
            )
        }
        None => format!("with a line `TASK_COMPLETE: {task}` of its own in your final message when it is finished"),
    };
    format!("Report {way}. {LAST}")
}

/// The section on reporting, with a task's id in the examples; `again` if this is a later attempt at the task. One way is
/// explained in full, the next in a line.
pub(super) fn words(channels: &ReportChannels, role: Role, task: &str, again: bool) -> String {
    if role.reviews() {
        return verdict_words(channels, role, task);
    }
    let program = channels.program.as_ref().map(|program| one_line(program, 4096));
    let mut out = "\n### How to Report\n\n".to_owned();
    match &program {
        _ if channels.mcp => {
            let split = if again { "`task_split` when it is too large to do at once, " } else { "" };
            let _ = write!(
                out,
                "With the tools of the MCP server `rekindle`: `task_done` when a task is finished, `checkpoint` after every larger \
                 step, `ask` for what only a person can decide, `note` for decisions, {split}`task_fail` if it cannot be done."
            );
        }
        Some(program) => commands(&mut out, program, task),
        None => {}
    }
    match &program {
        Some(program) if channels.mcp => {
            let _ = write!(out, " Without them: `{program} task done {task} --result \"…\"`. ");
        }
        _ if channels.mcp => out.push(' '),
        Some(_) if channels.signals => {
            let _ = write!(
                out,
                "If you cannot run commands, print the line `TASK_COMPLETE: {task}` by itself, outside of code fences; or \
                 `TASK_INCOMPLETE: {task}`, or `INFRA_BLOCKED: {task}` when this machine is broken, with `Reason: why` under it.\n\n"
            );
        }
        None if channels.signals => signal_lines(&mut out, task),
        _ => {}
    }
    out.push_str(LAST);
    out
}

fn commands(out: &mut String, program: &str, task: &str) {
    let _ = write!(
        out,
        "Run these commands; they know who you are from the environment:\n\n\
         - `{program} task done {task} --result \"what you did\"` when a task is finished. It runs the checks: exit 0 means that \
         it is complete or with its reviewers, 1 shows what fails; repair it and report again.\n\
         - `{program} checkpoint \"your progress\" --task {task} --completed \"…\" --remaining \"…\" --file \"…\"` after every \
         larger step: a replacement continues from it.\n\
         - `{program} ask \"question\" --task {task} --wait` when only a person can decide.\n\
         - `{program} task split {task} \"first part\" \"second part\"` when it is too large to do at once; then report {task}.1, {task}.2 \
         and so on.\n\
         - `{program} note \"decision\"` for a decision that others should know.\n\
         - `{program} task fail {task} --reason \"why\"` if it cannot be done.\n\n"
    );
}

fn signal_lines(out: &mut String, task: &str) {
    let _ = write!(
        out,
        "Print signal lines to standard output. A signal is a line of its own and begins in its first column, outside \
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

/// The verb of a role that judges.
fn verb(role: Role) -> &'static str {
    if role == Role::Critic { "review" } else { "audit" }
}

/// How a verdict is given, in a line or two.
fn verdict_in_short(channels: &ReportChannels, role: Role, task: &str) -> String {
    let verb = verb(role);
    let way = match &channels.program {
        _ if channels.mcp => {
            format!("with the tool `{verb} {{task: \"{task}\", verdict, issues}}` of the MCP server `rekindle`")
        }
        Some(program) => {
            let program = one_line(program, 4096);
            format!(
                "with `{program} {verb} pass {task}` or `{program} {verb} fail {task} --issues \"…\" --required \"…\"`"
            )
        }
        None => {
            let (passed, failed) = signals(role, task);
            format!("with a line `{passed}` or `{failed}` of its own in your final message")
        }
    };
    format!("Give your verdict {way}. {LAST_VERDICT}")
}

/// The signals of a role that judges.
fn signals(role: Role, task: &str) -> (String, String) {
    match role {
        Role::HealthAuditor => ("HEALTH_AUDIT: HEALTHY".to_owned(), "HEALTH_AUDIT: UNHEALTHY".to_owned()),
        Role::Critic => (format!("REVIEW_PASSED: {task}"), format!("REVIEW_FAILED: {task}")),
        Role::Auditor | Role::Developer | Role::Remediation => {
            (format!("AUDIT_PASSED: {task}"), format!("AUDIT_FAILED: {task}"))
        }
    }
}

/// How a verdict is given, as a section.
fn verdict_words(channels: &ReportChannels, role: Role, task: &str) -> String {
    let verb = verb(role);
    let program = channels.program.as_ref().map(|program| one_line(program, 4096));
    let (passed, failed) = signals(role, task);
    let mut out = "\n### How to Give Your Verdict\n\n".to_owned();
    match &program {
        _ if channels.mcp => {
            let _ = write!(
                out,
                "With the tool `{verb} {{task, verdict, issues, required, passed}}` of the MCP server `rekindle`; `ask` when only a \
                 person can decide, `note` for something that others should know."
            );
        }
        Some(program) => verdict_commands(&mut out, program, role, task),
        None => {}
    }
    match &program {
        Some(program) if channels.mcp => {
            let _ = write!(
                out,
                " Without it: `{program} {verb} pass {task}` or `{program} {verb} fail {task} --issues \"…\"`.\n\n"
            );
        }
        _ if channels.mcp => out.push_str("\n\n"),
        Some(_) if channels.signals => {
            let blocked = if role == Role::Auditor {
                format!(", or `AUDIT_BLOCKED: {task}` and `Reason: …`")
            } else {
                String::new()
            };
            let _ = write!(
                out,
                "If you cannot run commands, print the line `{passed}`, or `{failed}` with `Issues: …` under it{blocked}, by itself, \
                 outside of code fences.\n\n"
            );
        }
        None if channels.signals => verdict_signals(&mut out, role, task),
        _ => {}
    }
    out.push_str(LAST_VERDICT);
    out
}

fn verdict_commands(out: &mut String, program: &str, role: Role, task: &str) {
    let verb = verb(role);
    let _ = write!(
        out,
        "Run one of these commands; they know who you are from the environment. Every option may be given several times:\n\n\
         - `{program} {verb} pass {task} --passed \"what is good\"`\n\
         - `{program} {verb} fail {task} --issues \"what is wrong\" --required \"what has to be done\" --passed \"what is good\"`\n"
    );
    if role != Role::Critic {
        let _ = writeln!(out, "- `{program} {verb} blocked {task} --issues \"what a person must fix\"`");
    }
    let _ = write!(
        out,
        "- `{program} ask \"question\" --task {task} --wait` when only a person can decide.\n\
         - `{program} note \"decision\"` for something that others should know.\n\n"
    );
}

fn verdict_signals(out: &mut String, role: Role, task: &str) {
    let (passed, failed) = signals(role, task);
    let _ = write!(
        out,
        "Print a signal to standard output: a line of its own that begins in its first column, outside of quotes and code \
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
        let _ = write!(out, "\x20   AUDIT_BLOCKED: {task}\n\x20   Reason: what a person must fix\n\n");
    }
    out.push_str("(They are indented here only so that they are not taken for signals.)\n\n");
}
