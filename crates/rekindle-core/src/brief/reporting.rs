//! How an agent is told to report: the verbs of the command line and the signals, in one place so that the words of the
//! brief and the words that are understood can be compared.

use std::fmt::Write;

use super::facts::Doors;
use crate::text::one_line;

/// The same in a few lines, for an agent that was told it all before.
pub(super) fn in_short(doors: &Doors, task: &str) -> String {
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
pub(super) fn words(doors: &Doors, task: &str) -> String {
    let mut out = "\n### How to Report\n\n".to_owned();
    if let Some(program) = &doors.program {
        let program = one_line(program, 4096);
        let _ = write!(
            out,
            "Run these commands; they know who you are from the environment:\n\n\
             - `{program} task done {task} --result \"what you did\"` when a task is finished. It runs the checks: exit 0 \
             means that the task is complete, 1 shows the check that fails; repair it and report again.\n\
             - `{program} checkpoint \"where you stand\" --task {task} --completed \"…\" --remaining \"…\" --file \"…\" \
             --progress 40` after every larger step. A successor goes on from your last checkpoint.\n\
             - `{program} ask \"question\" --task {task} --wait` when only a person can decide.\n\
             - `{program} task split {task} \"first part\" \"second part\"` when it is too large for one go; the parts are \
             your order of work.\n\
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
             (They are indented here only so that they are not taken for signals.)\n\n"
        );
    }
    out.push_str("An exit without a report counts as a failed attempt.\n");
    out
}
