//! The prompt that goes to an agent whose own session is resumed: it remembers, so it is told only what it cannot know.
//!
//! Programs drop a call that was cut off, or answer it for the agent, without saying that a command may have run. They know
//! nothing of what happened since, and nothing of the tasks that others finished.

use super::facts::Facts;
use super::{Room, fence, parts, past, reporting, resume, rework};
use crate::text::{self, one_line};

/// Longest call that is quoted.
const CALL_MAX_BYTES: usize = 600;

/// Longest cause.
const CAUSE_MAX_BYTES: usize = 400;

/// The prompt, at most `facts.budget_bytes` long.
#[must_use]
pub fn render_resumed(facts: &Facts) -> String {
    let mut room = Room(facts.budget_bytes);
    let why = room.fill(|_| why(facts));
    let reporting = room.fill(|_| reporting(facts));
    let status = room.fill(|room| parts::status(facts, room.min(facts.budget_bytes / 4)));
    let current = room.fill(|room| match facts.current() {
        // It knows nothing of a task that it is given now.
        Some(task) if facts.next_task => parts::task_text("## Your Task", task, &facts.plan_path, room),
        Some(task) if facts.role.reviews() => parts::task_text("## The Task to Judge", task, &facts.plan_path, room),
        Some(task) => resume::section(facts, task, room),
        None => String::new(),
    });
    let share = facts.budget_bytes / 8;
    let rework = room.fill(|room| rework::rework(facts, room.min(share * 3)));
    let answers = room.fill(|room| past::answers(facts, room.min(share)));
    let disk = room.fill(|room| past::disk(facts, room.min(share * 2)));
    let draft = [why, status, current, rework, disk, answers, reporting].concat();
    let draft = text::truncate_bytes(&draft, facts.budget_bytes);
    fence::seal(draft, &facts.nonce)
}

fn why(facts: &Facts) -> String {
    let mut out = "# Your session goes on\n\n".to_owned();
    let cause = facts.cause.as_ref().map(|cause| one_line(&cause.words(), CAUSE_MAX_BYTES));
    out += &match cause {
        Some(cause) if facts.asks_for_report => format!(
            "You ended your turn without a report ({cause}). {}\n",
            match facts.role.reviews() {
                true => "Give your verdict now.",
                false =>
                    "Say now how your task stands: report it done, save a checkpoint with what is left and go on, or report that it \
                     cannot be done.",
            }
        ),
        Some(cause) => {
            format!("You were interrupted: {cause}. You are `{}` as before, epoch {}.\n", facts.agent, facts.epoch)
        }
        None if facts.review.rework.is_some() => format!(
            "Your work was sent back: mend it, do not begin anew. You are `{}` as before, epoch {}.\n",
            facts.agent, facts.epoch
        ),
        None if facts.next_task => format!(
            "What you did so far is with its reviewers or complete. This is your next task. You are `{}` as before, epoch {}.\n",
            facts.agent, facts.epoch
        ),
        None => format!("You are `{}` as before, epoch {}.\n", facts.agent, facts.epoch),
    };
    if let Some(call) = &facts.cut_off {
        let data = fence::data("the call that was cut off", call, fence::Keep::Ends, CALL_MAX_BYTES);
        out += &format!(
            "\nA tool call was under way and was cut off. Your session may not show it, or show it as aborted; it may have run \
             in part, and everything it started has been ended. Look at its effects before you do it again:\n\n{data}\n"
        );
    }
    out += "\nLook at the workspace before you go on: it may have changed since.\n\n";
    out
}

/// It was told how to report when it began.
fn reporting(facts: &Facts) -> String {
    let task = facts.current().map_or("ID", |task| task.id.as_str());
    reporting::in_short(&facts.doors, facts.role, task)
}
