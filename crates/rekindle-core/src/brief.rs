//! The prompt an attempt is given: who it is, what stands, what was done before it, and how to report.
//!
//! Built from facts of rekindle's own, inside a budget of bytes. What others wrote goes in only as data behind a fence
//! that it cannot close. Collecting the facts from disk and spool is left to the engine; the state's own part is in
//! `gather`.

mod activity;
mod facts;
pub(crate) mod fence;
mod gather;
mod judge;
mod parts;
mod past;
mod reinject;
mod reporting;
mod resume;
mod resumed;
mod rework;
pub mod template;
mod whole_plan;

pub use facts::{
    Activity, Answered, CheckSeen, Decision, Disk, Doors, Facts, LineKind, NamedTask, PlanLine, ReviewFacts, Standing,
    Stream, TaskFacts,
};
pub use gather::facts_from;
pub use reinject::{REINJECT_BYTES, reinject};
pub use resume::resume_assignment;
pub use resumed::render_resumed;
pub use whole_plan::plan_again;

use crate::text;

/// Default size of a brief: a few percent of the smallest context window in use, so that the work has the rest.
pub const BUDGET_BYTES: usize = 48 * 1024;

/// Lines of recent activity that a brief is made from by default: enough to hold the last calls, decisions and errors.
pub const ACTIVITY_LINES: usize = 200;

/// The prompt, at most `facts.budget_bytes` long: the built-in one of the role, or the user's own.
#[must_use]
pub fn render(facts: &Facts) -> String {
    let draft = match &facts.template {
        Some(template) => template::fill(facts, template),
        None => built_in(facts, facts.budget_bytes, true),
    };
    // Only a budget smaller than the fixed words gets here, and then no data is in the text.
    fence::seal(text::truncate_bytes(&draft, facts.budget_bytes), &facts.nonce)
}

/// The built-in prompt of the role as a draft, at most `budget` long.
///
/// Room is given in order of weight and the text is put together in order of reading: what the agent must do is never
/// crowded out by what its predecessor said.
fn built_in(facts: &Facts, budget: usize, with_report: bool) -> String {
    let mut room = Room(budget);
    let who = room.fill(|_| parts::who(facts));
    let mut about = room.fill(|_| format!("{}\n\n", parts::about_fences()));
    let instructions = room.fill(|_| parts::instructions(facts));
    let report = room.fill(|_| if with_report { parts::report(facts) } else { String::new() });
    let status = room.fill(|room| parts::status(facts, room.min(budget / 4)));
    let current = room.fill(|room| parts::current_task(facts, room));
    let share = budget / 8;
    let rework = room.fill(|room| rework::rework(facts, room.min(share * 3)));
    let goal = room.fill(|room| parts::goal(facts, room));
    let rules = room.fill(|room| parts::dispatch_rules(facts, room));
    let later = room.fill(|room| parts::later_tasks(facts, room));

    // Shares of what may be left for the past; recent activity gets whatever the others do not use.
    let answers = room.fill(|room| past::answers(facts, room.min(share)));
    let result = room.fill(|room| judge::result(facts, room.min(share)));
    let focus = room.fill(|room| judge::focus(facts, room.min(share)));
    let verdicts = room.fill(|room| judge::verdicts(facts, room.min(share * 2)));
    let checkpoint = room.fill(|room| past::checkpoint(facts, room.min(share)));
    let split = room.fill(|room| past::split(facts, room.min(share)));
    let disk = room.fill(|room| past::disk(facts, room.min(share * 2)));
    let redo = room.fill(|room| past::do_not_redo(facts, room.min(share)));
    let decisions = room.fill(|room| past::decisions(facts, room.min(share)));
    let activity = room.fill(|room| activity::section(facts, room));

    let mut order = [
        who,
        String::new(),
        status,
        goal,
        rules,
        current,
        later,
        rework,
        result,
        checkpoint,
        split,
        disk,
        verdicts,
        focus,
        decisions,
        answers,
        redo,
        activity,
        instructions,
        report,
    ];
    if order.iter().any(|part| part.contains(fence::MARK)) {
        std::mem::swap(&mut order[1], &mut about);
    }
    order.concat()
}

/// The bytes that are left.
struct Room(usize);

impl Room {
    fn fill(&mut self, part: impl FnOnce(usize) -> String) -> String {
        let part = part(self.0);
        self.0 = self.0.saturating_sub(part.len());
        part
    }
}

#[cfg(test)]
mod tests;
