//! What an agent is told again after its context was compacted: where everything stands, its task word for word, and what
//! comes next. When that is needed, and by which way it reaches the agent, is decided elsewhere.

use std::fmt::Write;

use super::facts::Facts;
use super::fence::{self, MARK};
use super::{Room, parts, past, reporting, rework, whole_plan};
use crate::text::{one_line, truncate_bytes};

/// The longest it may be: what a hook may add to a context is cut at 10,000 characters by the programs that have hooks.
pub const REINJECT_BYTES: usize = 9_500;

/// The text, at most [`REINJECT_BYTES`] long. It carries the nonce, so that no two of them are the same.
#[must_use]
pub fn reinject(facts: &Facts) -> String {
    let mut room = Room(REINJECT_BYTES);
    let who = room.fill(|_| who(facts));
    let next = room.fill(|_| next_step(facts));
    let status = room.fill(|room| parts::status(facts, room.min(REINJECT_BYTES / 6)));
    // Half of the room stays for what the agent said itself: the task's text can be read in the plan again.
    let task = room.fill(|room| match facts.current() {
        // The plan takes its part of the room where it is put before the agent again.
        Some(task) if facts.whole_plan.is_some() => {
            parts::task_text("## Your Task", task, &facts.plan_path, room.min(REINJECT_BYTES / 4))
        }
        Some(task) => parts::task_text("## Your Task", task, &facts.plan_path, room.min(REINJECT_BYTES / 2)),
        None => String::new(),
    });
    let share = REINJECT_BYTES / 8;
    let rework = room.fill(|room| rework::rework(facts, room.min(share * 2)));
    let plan = room.fill(|room| whole_plan::whole_plan(facts, room.min(share * 3)));
    let checkpoint = room.fill(|room| checkpoint(facts, room.min(share * 2)));
    let split = room.fill(|room| past::split(facts, room.min(share)));
    let answers = room.fill(|room| past::answers(facts, room.min(share)));
    let decisions = room.fill(|room| past::decisions(facts, room.min(share)));
    let draft = [who, status, task, rework, plan, checkpoint, split, answers, decisions, next].concat();
    fence::seal(truncate_bytes(&draft, REINJECT_BYTES), &facts.nonce)
}

fn who(facts: &Facts) -> String {
    let mut out = format!("# Your context was compacted: this is where you stand (notice {MARK})\n\n");
    let _ = writeln!(
        out,
        "You are `{}`, {} in a rekindle run: attempt {} of {}, epoch {}. You are in the middle of your work; nothing was \
         taken from you. Paths: workspace {}, plan {}.\n\n{}\n",
        facts.agent,
        facts.role,
        facts.attempt,
        facts.attempt_limit,
        facts.epoch,
        one_line(&facts.workspace, 1024),
        one_line(&facts.plan_path, 1024),
        parts::about_fences()
    );
    out
}

/// Its own words on where it stood. A resumed task has them with its text in a brief; here they always stand alone.
fn checkpoint(facts: &Facts, room: usize) -> String {
    if facts.role.reviews() {
        return String::new();
    }
    let Some(checkpoint) = &facts.checkpoint else {
        return "## Last Checkpoint\n\nNone was saved.\n\n".to_owned();
    };
    past::section("## Last Checkpoint\n\n", room, |room| {
        fence::data("what was last reported", &past::checkpoint_text(checkpoint), fence::Keep::Ends, room)
    })
}

fn next_step(facts: &Facts) -> String {
    let mut out = "## Next Step\n\n".to_owned();
    let Some(task) = facts.current() else {
        out.push_str("Every task of yours is complete: end your turn.\n");
        return out;
    };
    let id = task.id.as_str();
    let from = match facts.checkpoint.as_ref().is_some_and(|checkpoint| !checkpoint.remaining.is_empty()) {
        true => "with the first point that the last checkpoint lists as remaining",
        false => "where the files show that it is not finished",
    };
    if facts.role.reviews() {
        let _ = writeln!(
            out,
            "Go on judging the work of {id}, with your own eyes, and change no files.\n\n{}",
            reporting::in_short(&facts.doors, facts.role, id)
        );
        return out;
    }
    let _ = writeln!(
        out,
        "Go on with {id}, {from}. Look at the files before you change them: do nothing a second time. Save a checkpoint \
         now, then go on until the checks of {id} pass.\n\n{}",
        reporting::in_short(&facts.doors, facts.role, id)
    );
    out
}
