//! Cleans up after runs that are over: what is left of each, what may be removed according to `core::retention`, and
//! removing it.
//!
//! Nothing of a run in flight is touched, nothing that is not proven to be rekindle's, and no work that exists nowhere else.
//! Every step can be interrupted and repeated. Only what no view reads is removed before it is on record (bundles: their
//! lines are in the store); the rest follows the record, so that a view says that something was removed and not that it
//! never existed.

mod alone;
mod background;
mod bundles;
mod copies;
mod disk;
mod kept_outputs;
mod reserve;
mod survey;
mod tree;

use std::path::{Path, PathBuf};

use rekindle_core::event::Cleaned;
use rekindle_core::ids::RunId;
use rekindle_core::retention::{self, Kept, Part, Rules};
use rekindle_core::time::Time;

use crate::evidence;
use crate::git::Retired;
use crate::store::RemovedLines;

pub use alone::{Alone, OWNER};
pub use background::Background;
pub use copies::Spare;
pub use disk::{used, used_in_all};
pub use reserve::{give_back, take};
pub use survey::{CLEANED, Left, Survey, cleaned, recorded};
pub use tree::{Refused, Use};

/// What will be removed of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub run: String,
    /// What will be removed and still exists.
    pub parts: Vec<Part>,
    /// What that frees in the state directory, not counting log lines.
    pub bytes: u64,
    /// Why the rest stays.
    pub output: Option<Kept>,
    pub work: Option<Kept>,
    pub discarded: bool,
}

/// Everything that will be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every run, oldest first.
    pub items: Vec<Item>,
    pub copies: Vec<Spare>,
}

impl Plan {
    pub fn bytes(&self) -> u64 {
        let items: u64 = self.items.iter().map(|item| item.bytes).sum();
        items + self.copies.iter().map(|copy| copy.bytes).sum::<u64>()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.items.iter().all(|item| item.parts.is_empty())
    }
}

/// Decides what is removed. Copies that belong to no run are removed by age alone.
pub fn plan(survey: &Survey, rules: &Rules, now: Time) -> Plan {
    let found: Vec<retention::Found> = survey.runs.iter().map(|left| left.found.clone()).collect();
    let verdicts = retention::decide(rules, now, &found, survey.bytes);
    let items = survey.runs.iter().zip(verdicts).map(|(left, verdict)| {
        let goes = |part: Part, kept: Option<Kept>, is_left: bool| (kept.is_none() && is_left).then_some(part);
        let output = goes(Part::Output, verdict.output, left.has_output());
        let work = goes(Part::Work, verdict.work, left.has_work());
        let worktrees = if work.is_some() { left.worktree_bytes } else { 0 };
        Item {
            run: verdict.run,
            bytes: if output.is_some() { left.found.bytes } else { 0 } + worktrees,
            parts: output.into_iter().chain(work).collect(),
            output: verdict.output,
            work: verdict.work,
            discarded: left.found.discarded,
        }
    });
    let before = now.minus_ms(rules.older_than_ms);
    Plan { items: items.collect(), copies: copies::find(&survey.state_dir, before, &survey.ended_attempts()) }
}

/// Removes copies that belong to no run, without a store: on a full disk this makes the room to open it. Returns the bytes
/// freed.
pub fn remove_spare_copies(state_dir: &Path, before: Time) -> u64 {
    copies::remove(&copies::find(state_dir, before, &std::collections::BTreeSet::new())).bytes
}

/// Carries out what must go through the store.
pub trait Hand {
    /// Records what is removed; the record is durable when this returns.
    fn record(&mut self, cleaned: Cleaned) -> Result<(), String>;
    /// Removes some log lines of an attempt; none removed means that none is left, or that another process removes them.
    fn remove_lines(&mut self, attempt: u64) -> Result<RemovedLines, String>;
    /// Whether to continue; if the process has to leave, the rest is done next time.
    fn goes_on(&mut self) -> bool;
}

/// What was removed of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub run: String,
    pub parts: Vec<Part>,
    pub bytes: u64,
    pub lines: u64,
    pub retired: Retired,
}

/// What was done, and what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub done: Vec<Done>,
    /// Bytes of copies that belong to no run.
    pub copies: u64,
    pub refused: Vec<Refused>,
}

impl Report {
    pub fn bytes(&self) -> u64 {
        self.copies + self.done.iter().map(|done| done.bytes).sum::<u64>()
    }
}

/// Carries a plan out, oldest run first.
pub fn carry_out(survey: &Survey, plan: &Plan, hand: &mut dyn Hand) -> Report {
    let mut report = Report::default();
    remove_copies(plan, hand, &mut report);
    for item in &plan.items {
        let Some(left) = survey.runs.iter().find(|left| left.found.run == item.run) else { continue };
        if !hand.goes_on() {
            break;
        }
        if !item.parts.is_empty() {
            let done = clean_run(survey, left, item, hand, &mut report.refused);
            report.done.extend(done);
        } else if left.found.complete && left.found.over_at.is_some() {
            // A run that is complete keeps its snapshots for a while; a worktree or a branch of its own is only in the way.
            let retired = left.git.as_ref().filter(|_| left.is_untidy()).map(|git| git.tidy_up()).unwrap_or_default();
            refuse_kept(&retired, &mut report.refused);
            if retired.worktrees + retired.refs > 0 {
                report.done.push(Done { run: item.run.clone(), retired, ..Done::default() });
            }
        }
    }
    report
}

/// Removes copies that belong to no run. They are recorded afterwards: no view reads them, and a full disk cannot take a
/// record before.
fn remove_copies(plan: &Plan, hand: &mut dyn Hand, report: &mut Report) {
    let gone = copies::remove(&plan.copies);
    report.copies = gone.bytes;
    report.refused.extend(gone.refused);
    if gone.bytes > 0 {
        let cleaned = Cleaned { run: None, parts: vec![Part::Copies], bytes: gone.bytes, discarded: false };
        // Before a first run there is no log to put it in.
        let _unrecorded = hand.record(cleaned);
    }
}

fn clean_run(
    survey: &Survey,
    left: &Left,
    item: &Item,
    hand: &mut dyn Hand,
    refused: &mut Vec<Refused>,
) -> Option<Done> {
    let mut done = Done { run: item.run.clone(), parts: item.parts.clone(), ..Done::default() };
    let output = item.parts.contains(&Part::Output);
    let mut gone = tree::Gone::default();
    for (path, _) in survey.bundles.of(&item.run).iter().filter(|_| output) {
        if !hand.goes_on() {
            return None;
        }
        gone.add(bundles::remove(path));
    }
    let names = if output { survey.outputs.only_of(&item.run) } else { Vec::new() };
    let evidence_bytes = evidence::bytes(&survey.state_dir, &names);
    done.bytes = gone.bytes + evidence_bytes;
    refused.append(&mut gone.refused);
    let known = item.parts.iter().all(|part| left.recorded.contains(part));
    if !known || item.discarded && !left.recorded_discarded {
        let run = RunId::new(&item.run).ok();
        let worktrees = if item.parts.contains(&Part::Work) { left.worktree_bytes } else { 0 };
        let bytes = done.bytes + worktrees;
        let cleaned = Cleaned { run, parts: item.parts.clone(), bytes, discarded: item.discarded };
        if let Err(why) = hand.record(cleaned) {
            let why = format!("the rest of run {} stays, because it could not be recorded: {why}", item.run);
            refused.push(Refused::new(&survey.state_dir, why));
            return Some(Done { parts: Vec::new(), bytes: gone.bytes, ..done });
        }
    }
    if output {
        done.lines = remove_lines(left, hand, survey, refused);
        for (path, why) in evidence::remove(&survey.state_dir, &names) {
            refused.push(Refused::new(&path, why.to_string()));
        }
    }
    if let Some(git) = left.git.as_ref().filter(|_| item.parts.contains(&Part::Work)) {
        done.retired = git.retire(item.discarded);
        done.bytes += left.worktree_bytes;
        refuse_kept(&done.retired, refused);
    }
    Some(done)
}

fn remove_lines(left: &Left, hand: &mut dyn Hand, survey: &Survey, refused: &mut Vec<Refused>) -> u64 {
    let mut lines = 0;
    for attempt in &left.attempts {
        loop {
            match hand.remove_lines(*attempt) {
                Ok(step) if step.lines == 0 => break,
                Ok(step) => lines += step.lines,
                Err(why) => {
                    refused.push(Refused::new(&survey.state_dir.join("state.db"), why));
                    return lines;
                }
            }
            if !hand.goes_on() {
                return lines;
            }
        }
    }
    lines
}

fn refuse_kept(retired: &Retired, refused: &mut Vec<Refused>) {
    refused.extend(retired.kept.iter().map(|why| Refused::new(Path::new(""), why.as_str())));
}

/// Where a project's directories are.
#[derive(Clone, Debug)]
pub struct Place {
    pub state_dir: PathBuf,
    /// The project's directory.
    pub root: PathBuf,
}
