//! The prompt of an attempt: who the agent is, how things are, what was done before, and how to report.
//!
//! Built from rekindle's own facts, within a budget of bytes. What others wrote goes in only as data behind a fence that it
//! cannot close. Collecting the facts from disk and spool is left to the engine; the state's own part is in `collect`.

mod collect;
mod facts;
mod judge;
mod own;
mod parts;
mod past;
mod persons;
mod reinject;
mod reporting;
mod resume;
mod resumed;
mod rework;
pub(crate) mod sources;
pub mod template;
pub mod under_way;
mod whole_plan;

pub use collect::{facts_after, facts_from, reloads};
pub use facts::{
    Activity, Answered, Asked, CheckSeen, Decision, Disk, Facts, LineKind, NamedTask, PersonTold, PlanLine,
    ReportChannels, ReviewFacts, Standing, Stream, TaskFacts, TaskResult,
};
pub use own::own_bytes;
pub use reinject::{REINJECT_BYTES, reinject};
pub use resumed::render_resumed;

use sources::Form;

use crate::{fence, text};

/// Default size of a brief: a few percent of the smallest context window in use, so that the work has the rest.
pub const BUDGET_BYTES: usize = 48 * 1024;

/// The prompt, at most `facts.budget_bytes` long: the role's built-in prompt, or the user's own.
pub fn render(facts: &Facts) -> String {
    let draft = match &facts.template {
        Some(template) => template::fill(facts, template),
        None => built_in(facts, facts.budget_bytes, true),
    };
    // The text is cut only if the budget is smaller than the fixed words, and then it contains no data.
    fence::seal(text::truncate_bytes(&draft, facts.budget_bytes), &facts.nonce)
}

/// The built-in prompt of the role as a draft, at most `budget` long.
///
/// What an agent must do is worth more than what its predecessor said, and is never crowded out by it.
fn built_in(facts: &Facts, budget: usize, with_report: bool) -> String {
    let (who, instructions) = (parts::who(facts) + &under_way::intro(facts), parts::instructions(facts));
    let report = if with_report { parts::report(facts) } else { String::new() };
    let about = format!("{}\n\n", parts::about_fences());
    let room = budget.saturating_sub(who.len() + about.len() + instructions.len() + report.len() + 1);
    let handed_back = facts.cause.as_ref().is_some_and(resume::hands_back);
    let form = if handed_back { Form::HandedBack } else { Form::Plan };
    let memory = sources::draft(&sources::items(facts, form, room), room);
    // A fence is explained only if there is one.
    let about = if memory.contains(fence::MARK) { about.as_str() } else { "" };
    // A fence ends with its own line; everything else ends with an empty line.
    let gap = if memory.ends_with("\n\n") { "" } else { "\n" };
    format!("{who}{about}{memory}{gap}{instructions}{report}")
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
