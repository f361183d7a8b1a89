//! What `rekindle chaos` prints: the faults, each run in a line, and the verdict on every promise.

use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use super::Summary;
use super::fault::Fault;
use super::round::Outcome;
use super::sandbox::Sandbox;
use super::verdict::Promise;
use crate::commands::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::elapsed;

/// How many pieces of evidence are shown for a promise; the rest is in the JSON.
const SHOWN: usize = 5;

pub(super) fn list(context: &Context) -> Result<Exit> {
    for fault in Fault::value_variants() {
        context.ui.line(&format!("{:<18} {}", fault.name(), fault.what()))?;
    }
    Ok(Exit::Success)
}

/// Says what will be done.
pub(super) fn begin(context: &Context, told: &Summary<'_>, sandbox: &Sandbox, json: bool) {
    if json {
        return;
    }
    let tasks = if told.tasks == 1 { "1 open task".to_owned() } else { format!("{} open tasks", told.tasks) };
    context.ui.say(&format!("Plan {} with {tasks}, seed {}.", told.plan, told.seed));
    let copy = match (sandbox.git, told.real) {
        (true, _) => "a clone of the last commit",
        (false, true) => "a copy of the project",
        (false, false) => "an empty project",
    };
    context.ui.say(&format!("Sandbox: {copy} in {}.", sandbox.base.display()));
    context.ui.say(if told.real {
        "The configured agents do the work in it. Three promises need a stand-in's own notes and are not judged."
    } else {
        "Stand-ins do the work, and the plan's checks are replaced by their own: this judges rekindle, not the work."
    });
    context.ui.say("");
}

/// Prints one run in a line.
pub(super) fn outcome(context: &Context, outcome: &Outcome, json: bool) {
    if json {
        return;
    }
    let said = match &outcome.not_injected {
        Some(why) => format!("not injected: {why}"),
        None if outcome.injected == 1 => format!("injected once in {}", elapsed(outcome.took_ms)),
        None => format!("injected {} times in {}", outcome.injected, elapsed(outcome.took_ms)),
    };
    let verdict = match (outcome.is_broken(), &outcome.not_injected) {
        (true, _) => "BROKEN",
        (false, Some(_)) => "-",
        (false, None) => "held",
    };
    context.ui.say(&format!("  {verdict:<7} {:<18} {said}", outcome.fault.name()));
}

/// A promise over all runs, for programs.
#[derive(Serialize)]
struct PromiseJson<'a> {
    promise: Promise,
    words: &'static str,
    looked_at: usize,
    counted: &'static str,
    held: Option<bool>,
    broken: Vec<BrokenJson<'a>>,
}

#[derive(Serialize)]
struct BrokenJson<'a> {
    fault: Fault,
    round: u32,
    evidence: &'a str,
    dir: &'a Path,
}

#[derive(Serialize)]
struct RunJson<'a> {
    fault: Fault,
    round: u32,
    injected: u32,
    not_injected: Option<&'a str>,
    took_ms: u64,
    broken: bool,
}

#[derive(Serialize)]
struct ChaosJson<'a> {
    schema_version: u32,
    plan: &'a str,
    tasks: usize,
    seed: u64,
    agents: &'static str,
    held: bool,
    kept: Option<&'a Path>,
    runs: Vec<RunJson<'a>>,
    promises: Vec<PromiseJson<'a>>,
}

/// Prints the verdicts. Returns whether every promise held: one that was never checked did not, and a fault that was asked
/// for by name and not injected counts as a failure too.
pub(super) fn verdicts(
    context: &Context,
    told: &Summary<'_>,
    named: &[Fault],
    kept: Option<&Path>,
    json: bool,
) -> Result<bool> {
    let promises: Vec<PromiseJson<'_>> = Promise::ALL.into_iter().map(|promise| over_all(promise, told)).collect();
    let missed = |outcome: &&Outcome| outcome.not_injected.is_some();
    let missing = told.outcomes.iter().filter(missed).count();
    let asked_and_missing = told.outcomes.iter().filter(missed).any(|outcome| named.contains(&outcome.fault));
    let broken = promises.iter().any(|promise| promise.held == Some(false));
    let held = !broken && !asked_and_missing && missing < told.outcomes.len();
    if json {
        context.ui.json(&ChaosJson {
            schema_version: 1,
            plan: told.plan,
            tasks: told.tasks,
            seed: told.seed,
            agents: if told.real { "real" } else { "stand-in" },
            held,
            kept,
            runs: told.outcomes.iter().map(run_json).collect(),
            promises,
        })?;
        return Ok(held);
    }
    context.ui.line("")?;
    for promise in &promises {
        let verdict = match promise.held {
            Some(true) => "held",
            Some(false) => "BROKEN",
            None => "-",
        };
        let counts = format!("{} {}, {} broken", promise.looked_at, promise.counted, promise.broken.len());
        context.ui.line(&format!("  {verdict:<7} {:<48} {counts}", promise.words))?;
        for broken in promise.broken.iter().take(SHOWN) {
            let (fault, round) = (broken.fault.name(), broken.round);
            context.ui.line(&format!("          {fault}, round {round}: {}", broken.evidence))?;
            context.ui.line(&format!("          see {}", broken.dir.display()))?;
        }
    }
    if missing > 0 {
        context.ui.warn(&format!("{missing} of {} runs proved nothing: see `not injected` above", told.outcomes.len()));
    }
    if let Some(kept) = kept {
        context.ui.line(&format!("kept: {}", kept.display()))?;
        context
            .ui
            .hint("in a run's directory: rekindle --state-dir project/.rekindle events; run-1.log; witness/journal");
    }
    Ok(held)
}

fn run_json(outcome: &Outcome) -> RunJson<'_> {
    RunJson {
        fault: outcome.fault,
        round: outcome.round,
        injected: outcome.injected,
        not_injected: outcome.not_injected.as_deref(),
        took_ms: outcome.took_ms,
        broken: outcome.is_broken(),
    }
}

fn over_all<'a>(promise: Promise, told: &'a Summary<'_>) -> PromiseJson<'a> {
    let (words, counted) = promise.words();
    let mut looked_at = 0;
    let mut asked = false;
    let mut broken = Vec::new();
    for outcome in &told.outcomes {
        for finding in outcome.findings.iter().filter(|finding| finding.promise == promise) {
            asked = true;
            looked_at += finding.looked_at;
            broken.extend(finding.broken.iter().map(|evidence| BrokenJson {
                fault: outcome.fault,
                round: outcome.round,
                evidence,
                dir: &outcome.dir,
            }));
        }
    }
    PromiseJson { promise, words, looked_at, counted, held: asked.then_some(broken.is_empty()), broken }
}
