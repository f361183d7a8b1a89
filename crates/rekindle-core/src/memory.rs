//! What an agent that forgot has to know again, ranked and fitted into the available room. One composer for all uses: a
//! brief, a resumed session, the notice after a compaction, a hand-over to another program, and guard's text.
//!
//! Sources (events, stream, transcript, disk, git) make [`Item`]s and give the worth of each; [`compose`] keeps the most
//! valuable ones that fit. What an item says and what it is worth is decided by the code that makes it.

pub(crate) mod calls;
#[cfg(test)]
mod tests;

pub use calls::{Calls, PastCall};

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{fence, text};

/// Longest line of a record: a call or a finding fits, a file's content does not.
const LINE_MAX_BYTES: usize = 1024;

/// Room for the line that counts what was left out.
const LEFT_OUT_BYTES: usize = 120;

/// What an item is about, in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Which tasks are complete, in progress and pending.
    Status,
    /// What the whole plan is for.
    Goal,
    /// Rules that apply to every task.
    Rules,
    /// Every task of the plan; its items have their own headings.
    Plan,
    /// The current task, word for word, with its checks.
    Task,
    /// The same for an agent of a run; its items have their own headings.
    Assignment,
    /// The tasks after it; its items have their own headings.
    Later,
    /// That the work was sent back, and by whom; its items have their own headings.
    Rework,
    /// What has to be fixed.
    Issues,
    /// What the developer says about the work that is judged.
    Claim,
    /// What a guarded session is in the middle of.
    Now,
    /// Calls that were under way, or finished and forgotten.
    UnderWay,
    PersonsWords,
    Decisions,
    Answers,
    /// The words of the questions that a person answered.
    Asked,
    Questions,
    /// The agent's last report of its progress.
    Checkpoint,
    /// The parts that the task was broken into.
    Subtasks,
    /// What is done and must not be done a second time.
    Done,
    Checks,
    /// What failed and how: commands, dead ends.
    Failures,
    /// Files that were changed, commits, the diff.
    Files,
    Commands,
    Verdicts,
    Focus,
    Results,
    /// Subagents and teammates.
    Helpers,
    /// What the agent found out and said.
    Findings,
    /// The last lines of an agent's output.
    Activity,
    Next,
    /// What rekindle has looked up just now.
    LookedUp,
    Unknown,
}

impl Section {
    pub fn heading(self) -> &'static str {
        match self {
            Self::Status => "Task Status",
            Self::Goal => "Goal",
            Self::Rules => "Dispatch Rules",
            Self::Plan => "The Whole Plan",
            Self::Task | Self::Assignment => "Your Task",
            Self::Later => "Next Task",
            Self::Rework => "Sent Back",
            Self::Issues => "Why It Was Sent Back",
            Self::Claim => "What the Developer Says (a claim, not a proof)",
            Self::Now => "Now",
            Self::UnderWay => "Calls You May Not Remember",
            Self::PersonsWords => "The Person's Words",
            Self::Decisions => "Decisions",
            Self::Answers => "Questions Answered by a Person",
            Self::Asked => "The Questions That Were Answered",
            Self::Questions => "Open Questions",
            Self::Checkpoint => "Last Checkpoint",
            Self::Subtasks => "Subtasks, in the Order to Work In",
            Self::Done => "Done Already, Do Not Redo",
            Self::Checks => "Checks",
            Self::Failures => "What Failed",
            Self::Files => "Files and Commits",
            Self::Commands => "Commands Run",
            Self::Verdicts => "Earlier Verdicts (oldest first; judge for yourself)",
            Self::Focus => "ADDITIONAL FOCUS AREAS (from historical patterns)",
            Self::Results => "Results of Other Tasks",
            Self::Helpers => "Helpers",
            Self::Findings => "Findings",
            Self::Activity => "Recent Activity from Previous Agent",
            Self::Next => "Next Step",
            Self::LookedUp => "Looked Up Just Now, by rekindle",
            Self::Unknown => "Not Known",
        }
    }

    /// Whether its items have their own headings.
    fn heads_itself(self) -> bool {
        matches!(self, Self::Plan | Self::Assignment | Self::Later | Self::Rework)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub section: Section,
    /// How much is lost without it: higher is kept first. Of two that are worth the same, the later one is kept.
    pub worth: u16,
    /// What it says, in whole lines.
    pub text: String,
    /// The same in fewer words, if the whole does not fit.
    pub short: Option<String>,
}

impl Item {
    /// An item without a shorter form.
    pub fn new(section: Section, worth: u16, text: impl Into<String>) -> Self {
        Self { section, worth, text: text.into(), short: None }
    }

    /// The same with a shorter form.
    pub fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }
}

#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// Which sections contain what others wrote: all of them go behind one fence.
    pub fenced: &'a dyn Fn(Section) -> bool,
    /// The fence's description of its content.
    pub label: &'a str,
}

/// The items that fit into the room, by section, in the order they were given. A draft: the caller seals it with a nonce.
///
/// Never longer than `room`. The same items give the same text. An item that is kept stays kept when it is worth more.
pub fn compose(items: &[Item], room: usize, layout: Layout<'_>) -> String {
    let chosen = choose(items, room, layout);
    let mut sections: BTreeMap<Section, (String, usize)> = BTreeMap::new();
    for (item, chosen) in items.iter().zip(&chosen) {
        let (text, left_out) = sections.entry(item.section).or_default();
        match chosen {
            Some(form) => text.push_str(form),
            None => *left_out += usize::from(!item.text.trim().is_empty()),
        }
    }
    let mut outside = String::new();
    let mut inside = String::new();
    let mut left_out: Vec<String> = Vec::new();
    for (section, (text, missing)) in &sections {
        if *missing > 0 {
            left_out.push(format!("{missing} of \"{}\"", section.heading()));
        }
        if !text.is_empty() {
            let out = if (layout.fenced)(*section) { &mut inside } else { &mut outside };
            out.push_str(&heading(*section, layout));
            out.push_str(text);
        }
    }
    let around = |inside: String| fence::wrap(layout.label, usize::MAX, |_| inside);
    if !left_out.is_empty() {
        let used = outside.len() + around(inside.clone()).len();
        let line = format!("(left out to save space: {})", left_out.join(", "));
        // The line's mark and line end take three bytes.
        let line = text::fold(&line, LEFT_OUT_BYTES.min(room.saturating_sub(used)).saturating_sub(3));
        // How much was left out depends on what others wrote: if there are words of others, the line goes with them.
        match (line.is_empty(), inside.is_empty()) {
            (true, _) => {}
            (false, true) => outside += &format!("{line}\n"),
            (false, false) => inside += &format!("| {line}\n"),
        }
    }
    outside + &around(inside)
}

/// The form in which each item is kept, as it will be written; `None` for one that is left out.
fn choose(items: &[Item], room: usize, layout: Layout<'_>) -> Vec<Option<String>> {
    // Whether room is reserved for the line that counts depends on sizes alone: if it depended on what is kept, an item that
    // is worth more could lose its place.
    let room = if whole(items, layout) <= room { room } else { room.saturating_sub(LEFT_OUT_BYTES) };
    fit(items, room, layout)
}

/// Bytes of all items in their whole form.
fn whole(items: &[Item], layout: Layout<'_>) -> usize {
    let mut sections: BTreeMap<Section, usize> = BTreeMap::new();
    for item in items {
        let bytes = written(&item.text, item.section, layout).len();
        if bytes > 0 {
            *sections.entry(item.section).or_insert_with(|| heading(item.section, layout).len()) += bytes;
        }
    }
    let fence = if sections.keys().any(|section| (layout.fenced)(*section)) { fence_bytes(layout) } else { 0 };
    sections.values().sum::<usize>() + fence
}

fn fence_bytes(layout: Layout<'_>) -> usize {
    fence::wrap(layout.label, usize::MAX, |_| "x".to_owned()).len() - 1
}

/// Takes items by worth, the newest first, as long as they fit; a smaller one may fit where a larger did not.
fn fit(items: &[Item], room: usize, layout: Layout<'_>) -> Vec<Option<String>> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(items[*index].worth), std::cmp::Reverse(*index)));
    let mut left = room;
    let mut headed: Vec<Section> = Vec::new();
    let mut kept = vec![None; items.len()];
    for index in order {
        let item = &items[index];
        let fenced = (layout.fenced)(item.section);
        let mut around = 0;
        if !headed.contains(&item.section) {
            around += heading(item.section, layout).len();
        }
        if fenced && !headed.iter().any(|section| (layout.fenced)(*section)) {
            around += fence_bytes(layout);
        }
        let forms = std::iter::once(&item.text).chain(&item.short).map(|form| written(form, item.section, layout));
        for form in forms.filter(|form| !form.is_empty()) {
            if let Some(after) = left.checked_sub(around + form.len()) {
                left = after;
                headed.push(item.section);
                kept[index] = Some(form);
                break;
            }
        }
    }
    kept
}

fn heading(section: Section, layout: Layout<'_>) -> String {
    match (layout.fenced)(section) {
        _ if section.heads_itself() => String::new(),
        true => format!("| ## {}\n", section.heading()),
        false => format!("## {}\n\n", section.heading()),
    }
}

/// Text as it will be written: harmless, every line bounded, with its mark if behind the fence.
fn written(words: &str, section: Section, layout: Layout<'_>) -> String {
    let clean = text::sanitize(words);
    let mut out = String::new();
    if !(layout.fenced)(section) {
        let trimmed = clean.trim();
        if !trimmed.is_empty() {
            let _ = write!(out, "{trimmed}\n\n");
        }
        return out;
    }
    for line in clean.trim().lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(out, "| {}", text::fold(line, LINE_MAX_BYTES));
    }
    out
}
