//! What an agent is told again after its context was compacted: the state of everything, its task word for word, and what
//! comes next. When that is needed, and how it reaches the agent, is decided elsewhere.

use std::fmt::Write;

use super::facts::Facts;
use super::sources::{self, Form};
use super::{parts, reporting};
use crate::fence::{self, MARK};
use crate::memory::Section;
use crate::text::{one_line, truncate_bytes};

/// Maximum length: programs with hooks cut what a hook adds to a context at 10,000 characters.
pub const REINJECT_BYTES: usize = 9_500;

/// The text, at most [`REINJECT_BYTES`] long. It carries the nonce, so that no two of these texts are the same.
pub fn reinject(facts: &Facts) -> String {
    let (who, next) = (who(facts), next_step(facts));
    let room = REINJECT_BYTES.saturating_sub(who.len() + next.len());
    let memory = remembered(facts, Form::Plan, room);
    fence::seal(truncate_bytes(&format!("{who}{memory}\n{next}"), REINJECT_BYTES), &facts.nonce)
}

/// Everything that an agent needs after it lost its context, without what only a replacement needs.
pub(super) fn remembered(facts: &Facts, form: Form, room: usize) -> String {
    let room = room.saturating_sub(1);
    let mut items = sources::items(facts, form, room);
    items.retain(|item| !matches!(item.section, Section::Later | Section::Activity));
    if form == Form::HandedBack && facts.cut_off.is_some() && facts.under_way.calls.is_empty() {
        // A resumed session of an older log is told about the one call at the top, with what to do about it.
        items.retain(|item| item.section != Section::UnderWay);
    }
    sources::draft(&items, room)
}

fn who(facts: &Facts) -> String {
    let mut out = format!("# Your context was compacted: this is where you stand (notice {MARK})\n\n");
    let workspace = match facts.workspace.is_empty() {
        true => String::new(),
        false => format!("Your workspace is {}. ", one_line(&facts.workspace, 1024)),
    };
    let _ = writeln!(
        out,
        "You are `{}`, {} in a rekindle run: attempt {} of {}, epoch {}. You are in the middle of your work; your \
         tasks are still yours. {}The plan is {}.\n\n{}\n",
        facts.agent,
        facts.role,
        facts.attempt,
        facts.attempt_limit,
        facts.epoch,
        workspace,
        one_line(&facts.plan_path, 1024),
        parts::about_fences()
    );
    out
}

fn next_step(facts: &Facts) -> String {
    let mut out = "## Next Step\n\n".to_owned();
    let Some(task) = facts.current() else {
        out.push_str("All your tasks are complete: end your turn.\n");
        return out;
    };
    let id = task.id.as_str();
    let remains = facts.checkpoint.as_ref().is_some_and(|checkpoint| !checkpoint.remaining.is_empty());
    let from = match (remains, facts.calls.known.is_empty()) {
        (true, true) => "with the first point that the last checkpoint lists as remaining",
        (true, false) => "with what the last checkpoint lists as remaining and the calls above have not done since",
        (false, false) => "after the last of the calls above",
        (false, true) => "where the files show that it is not finished",
    };
    if facts.role.reviews() {
        let _ = writeln!(
            out,
            "Continue to judge the work of {id} for yourself, and change no files.\n\n{}",
            reporting::in_short(&facts.channels, facts.role, id)
        );
        return out;
    }
    let _ = writeln!(
        out,
        "Continue with {id}, {from}. Look at the files before you change them: repeat nothing. Save a checkpoint now, \
         then work on until the checks of {id} pass.\n\n{}",
        reporting::in_short(&facts.channels, facts.role, id)
    );
    out
}
