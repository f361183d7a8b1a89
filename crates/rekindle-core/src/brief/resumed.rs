//! The prompt for an agent whose own session is resumed: it remembers, so it is told only what it cannot know.
//!
//! Programs drop a call that was cut off, or answer it for the agent, without saying that a command may have run. They know
//! nothing of what happened since, and nothing of the tasks that others finished.

use super::facts::Facts;
use super::reinject::{REINJECT_BYTES, remembered};
use super::sources::{self, Form};
use super::{reporting, under_way};
use crate::cause::Cause;
use crate::fence;
use crate::text::{self, one_line};

/// Longest call that is quoted.
const CALL_MAX_BYTES: usize = 600;

/// Longest cause.
const CAUSE_MAX_BYTES: usize = 400;

/// The prompt, at most `facts.budget_bytes` long. A session that was compacted has forgotten what it was told, so it is told
/// all of it; any other session gets only the news.
pub fn render_resumed(facts: &Facts) -> String {
    let (why, reporting) = (why(facts) + &under_way::intro(facts), reporting(facts));
    let room = facts.budget_bytes.saturating_sub(why.len() + reporting.len());
    let memory = match facts.forgot {
        true => remembered(facts, Form::HandedBack, room.min(REINJECT_BYTES)),
        false => sources::draft(&sources::news(facts, Form::Known, room), room),
    };
    let draft = format!("{why}{memory}{reporting}");
    fence::seal(text::truncate_bytes(&draft, facts.budget_bytes), &facts.nonce)
}

fn why(facts: &Facts) -> String {
    let mut out = "# Your session continues\n\n".to_owned();
    let cause = facts.cause.as_ref().map(|cause| one_line(&cause.words(), CAUSE_MAX_BYTES));
    out += &match cause {
        Some(cause) if facts.asks_for_report => format!(
            "You ended your turn without a report ({cause}). {}\n",
            match facts.role.reviews() {
                true => "Give your verdict now.",
                false =>
                    "Report on your task now: report it done, save a checkpoint with what is left and continue, or report that it \
                     cannot be done.",
            }
        ),
        Some(cause) => {
            let lesson = facts.cause.as_ref().and_then(Cause::lesson).map(|lesson| format!(" {lesson}"));
            format!(
                "You were interrupted: {cause}.{} You are `{}` as before, epoch {}.\n",
                lesson.unwrap_or_default(),
                facts.agent,
                facts.epoch
            )
        }
        None if facts.review.rework.is_some() => format!(
            "Your work was sent back: fix it, do not start over. You are `{}` as before, epoch {}.\n",
            facts.agent, facts.epoch
        ),
        None if facts.next_task => format!(
            "What you did so far is with its reviewers or complete. This is your next task. You are `{}` as before, epoch {}.\n",
            facts.agent, facts.epoch
        ),
        None => format!("You are `{}` as before, epoch {}.\n", facts.agent, facts.epoch),
    };
    // Logs of older versions know the newest call only.
    if let Some(call) = facts.cut_off.as_ref().filter(|_| facts.under_way.calls.is_empty()) {
        let data = fence::data("the call that was cut off", call, fence::Keep::Ends, CALL_MAX_BYTES);
        out += &format!(
            "\nA tool call was interrupted. Your session may not show it, or may show it as aborted; it may have run in part, \
             and everything it started has been stopped. Look at its effects before you do it again:\n\n{data}\n"
        );
    }
    out += "\nLook at the workspace before you continue: it may have changed.\n\n";
    out
}

/// The agent was told how to report when it started.
fn reporting(facts: &Facts) -> String {
    let task = facts.current().map_or("ID", |task| task.id.as_str());
    reporting::in_short(&facts.channels, facts.role, task)
}
