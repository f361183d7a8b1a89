//! What an agent's calls say about its work: what is done and must not be repeated, which files were touched, what failed,
//! and what was never seen to end. Made from the ledgers of this attempt and of earlier ones on the same task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Item, Section};
use crate::activity::{Entry, Ledger};
use crate::text::{self, one_line};

/// Newest calls that are considered: more than any text has room for.
const CALLS_MAX: usize = 200;

/// Longest input and output that are kept of a past call.
const PAST_BYTES: usize = 600;

/// Longest command that is shown.
const COMMAND_BYTES: usize = 360;

/// Longest output of a call that worked.
const OUTPUT_BYTES: usize = 160;

/// Longest output of a call that failed: the end of it says why.
const FAILURE_BYTES: usize = 480;

/// Maximum length of the short form.
const SHORT_BYTES: usize = 100;

/// This many of the newest are worth the most; older ones fade.
const NEWEST: usize = 24;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// The calls in the order in which they started.
    pub known: Vec<PastCall>,
    /// How many older ones are not kept.
    pub dropped: u64,
    /// Earlier attempts whose calls cannot be read.
    pub unread: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCall {
    pub tool: String,
    pub input: String,
    /// Whether it can change something.
    pub acts: bool,
    /// Whether it succeeded; `None` if its end was not seen.
    pub ok: Option<bool>,
    pub output: String,
    /// Whether an earlier attempt made it.
    pub earlier: bool,
}

impl Calls {
    /// Adds the calls of one attempt, after those of earlier attempts. `clean` removes secrets.
    pub fn add(&mut self, ledger: &Ledger, earlier: bool, clean: &dyn Fn(&str) -> String) {
        let entries: Vec<&Entry> = ledger.entries().collect();
        let over = entries.len().saturating_sub(CALLS_MAX);
        self.dropped += ledger.dropped() + over as u64;
        let short = |words: &str| text::fold(words, PAST_BYTES).into_owned();
        for entry in &entries[over..] {
            self.known.push(PastCall {
                tool: clean(&entry.call.tool),
                input: short(&clean(&entry.call.input)),
                acts: entry.call.acts,
                ok: entry.outcome.as_ref().map(|outcome| outcome.ok),
                output: entry.outcome.as_ref().map(|outcome| short(&clean(&outcome.output))).unwrap_or_default(),
                earlier,
            });
        }
        let over = self.known.len().saturating_sub(CALLS_MAX);
        self.known.drain(..over);
        self.dropped += over as u64;
    }
}

impl PastCall {
    /// Whether it is a report to rekindle: what it said is in the log.
    fn reports(&self) -> bool {
        self.tool.contains("rekindle") || self.input.trim_start().starts_with("rekindle ")
    }

    fn saves_checkpoint(&self) -> bool {
        let command = self.input.trim_start().starts_with("rekindle checkpoint");
        self.reports() && (command || self.tool.ends_with("checkpoint"))
    }

    /// The file that it changes, for a tool that is given one.
    fn file(&self) -> Option<String> {
        let input: Value = serde_json::from_str(&self.input).ok()?;
        let names = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
        names.iter().find_map(|name| input[name].as_str()).map(str::to_owned)
    }
}

/// The items, in order. `exact`: what earlier attempts were in the middle of is listed elsewhere, with its outcome. Calls
/// after the last checkpoint are worth more than those that the checkpoint may cover.
pub(crate) fn items(calls: &Calls, exact: bool) -> Vec<Item> {
    let saved = calls.known.iter().rposition(PastCall::saves_checkpoint);
    let worked = |call: &PastCall| call.ok == Some(true);
    let mut last: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (index, call) in calls.known.iter().enumerate().filter(|(_, call)| worked(call)) {
        last.insert((&call.tool, &call.input), index);
    }
    let told: Vec<(usize, &PastCall)> =
        calls.known.iter().enumerate().filter(|(_, call)| call.acts && !call.reports()).collect();
    let told_elsewhere = |call: &PastCall| exact && call.earlier && call.ok.is_none();
    let mut items: Vec<Item> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (age, (index, call)) in told.iter().rev().enumerate().filter(|(_, (_, call))| !told_elsewhere(call)) {
        let (section, best, line, short) = match call.ok {
            Some(true) => match call.file() {
                Some(file) => {
                    (Section::Files, 860, format!("- {}: {}", call.tool, one_line(&file, COMMAND_BYTES)), None)
                }
                None => (Section::Done, 870, with_output(call, OUTPUT_BYTES), Some(with_output(call, 0))),
            },
            // It worked later, so the earlier failure says little.
            Some(false) if last.get(&(&call.tool, &call.input)).is_some_and(|later| later > index) => {
                (Section::Failures, 240, with_output(call, SHORT_BYTES), None)
            }
            Some(false) => {
                (Section::Failures, 880, with_output(call, FAILURE_BYTES), Some(with_output(call, SHORT_BYTES)))
            }
            None => (Section::UnderWay, 910, under_way(call), None),
        };
        // The same line again says nothing new.
        if let Some(times) = lines.get_mut(&line) {
            *times += 1;
            continue;
        }
        lines.insert(line.clone(), 1);
        let before_checkpoint = saved.is_some_and(|saved| *index < saved);
        let worth = match (age < NEWEST, before_checkpoint || call.earlier) {
            (true, false) => best,
            (true, true) => best - 200,
            (false, _) => best / 2,
        };
        items.push(Item { section, worth, text: line, short });
    }
    for item in &mut items {
        if let Some(times) = lines.get(&item.text).filter(|times| **times > 1) {
            item.text.push_str(&format!(" (×{times})"));
        }
    }
    items.reverse();
    items
}

/// Says in words if the calls of a run are known only in part.
pub(crate) fn unknown(calls: &Calls) -> Vec<String> {
    let mut out = Vec::new();
    if calls.dropped > 0 {
        out.push(format!("- {} older calls are not listed.", calls.dropped));
    }
    if calls.unread > 0 {
        out.push(format!("- The calls of {} earlier attempts are not known, or not all of them.", calls.unread));
    }
    out
}

fn with_output(call: &PastCall, room: usize) -> String {
    let (failed, shell) = (call.ok == Some(false), call.file().is_none() && !call.input.starts_with('{'));
    let command = one_line(&call.input, if room == 0 { SHORT_BYTES } else { COMMAND_BYTES });
    let mut out = if shell { format!("- `{command}`") } else { format!("- {} {command}", call.tool) };
    if failed {
        out.push_str(" FAILED");
    }
    let printed = one_line(&call.output, usize::MAX);
    if !printed.is_empty() && room > 0 {
        let kept = if failed { end_of(&printed, room) } else { text::fold(&printed, room).into_owned() };
        out.push_str(&format!(" → {kept}"));
    }
    out
}

fn under_way(call: &PastCall) -> String {
    let when = if call.earlier { "was running when it was killed" } else { "its end was not seen" };
    format!("- {}: {} ({when}: look before you repeat it)", call.tool, one_line(&call.input, COMMAND_BYTES))
}

fn end_of(text: &str, room: usize) -> String {
    let end = text::tail_bytes(text, room);
    if end.len() == text.len() { end.to_owned() } else { format!("…{end}") }
}
