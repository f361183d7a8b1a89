//! The pre-flight: every check of the plan is run once, before the first agent starts, in a checkout of the run's branch
//! that is set up like a worktree and removed afterwards. The core decides what the results mean.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rekindle_core::input::PreflightTried;
use rekindle_core::preflight::TryCheck;
use rekindle_core::report::CheckResult;
use rekindle_shim::clock;

use super::{Shared, checks};
use crate::git::Trial;
use crate::refusal::{self, Trouble};
use crate::world::{Admission, Message};

/// Longest time for all checks together: agents wait for it.
const ALL_MS: u64 = 60_000;

/// Longest time for one check: a check that runs so long can run.
const EACH_MS: u64 = 20_000;

/// Longest time for the set-up of its checkout.
const SETUP_MS: u64 = 10 * 60_000;

/// How long an exiting coordinator waits for the pre-flight to end, and how often it polls.
const LEAVE_MS: u64 = 10_000;
const LOOK_MS: u64 = 50;

/// The reason given for a pre-flight that was interrupted.
const LEFT: &str = "the coordinator left meanwhile";

/// The key of its checkout, for ports and for the folders of its output. No task has such a name.
const KEY: &str = "_preflight";

/// Runs the checks in the background, unless that is already in progress.
pub(super) fn in_background(shared: &Arc<Shared>, tries: Vec<TryCheck>) -> Admission {
    if shared.flying.swap(true, Ordering::SeqCst) {
        return Admission::Yes;
    }
    let worker = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("preflight".to_owned()).spawn(move || {
        let began_ms = clock::boottime_ms();
        let mut results = Vec::new();
        let problem = fly(&worker, &tries, &mut results).err();
        let took_ms = clock::boottime_ms().saturating_sub(began_ms);
        worker.flying.store(false, Ordering::SeqCst);
        // The next coordinator repeats a pre-flight that was interrupted.
        if !worker.grounded.load(Ordering::SeqCst) {
            let tried = PreflightTried { results, problem, took_ms };
            let _leaving = worker.messages.send(Message::Preflight(tried));
        }
    });
    let Err(error) = spawned else { return Admission::Yes };
    shared.flying.store(false, Ordering::SeqCst);
    Admission::Refused(refusal::words(refusal::errno_of(&error), &shared.state_dir))
}

/// The coordinator is exiting: ends the pre-flight. A checkout that stays is removed by the next coordinator.
pub(super) fn ground(shared: &Shared) {
    shared.grounded.store(true, Ordering::SeqCst);
    let give_up = clock::monotonic_ms() + LEAVE_MS;
    while shared.flying.load(Ordering::SeqCst) && clock::monotonic_ms() < give_up {
        checks::end_leftovers(&shared.state_dir.join("checks").join(KEY));
        checks::end_leftovers(&shared.setup_place(KEY));
        clock::pause(LOOK_MS);
    }
}

/// Fails with the reason why not all checks were run.
fn fly(shared: &Shared, tries: &[TryCheck], results: &mut Vec<CheckResult>) -> Result<(), String> {
    let Some(work) = &shared.work else { return Err("all agents share one directory".to_owned()) };
    let fresh = work.fresh().map_err(|error| error.to_string())?;
    let prepared = match shared.grounded.load(Ordering::SeqCst) {
        true => Err(LEFT.to_owned()),
        false => prepare(shared, tries, &fresh),
    };
    let tried = prepared.and_then(|()| try_all(shared, tries, &fresh.project, results));
    shared.clear_away(KEY, &fresh.project);
    // The output of the checks is in the record; a bundle that stays keeps its directory.
    let _not_empty = std::fs::remove_dir(shared.state_dir.join("checks").join(KEY));
    tried
}

fn prepare(shared: &Shared, tries: &[TryCheck], fresh: &Trial<'_>) -> Result<(), String> {
    let Some(first) = tries.first() else { return Ok(()) };
    let done = shared.bring_all(KEY, &fresh.project, &first.task, Some(SETUP_MS));
    done.map(|_| ()).map_err(|trouble| match trouble {
        Trouble::Refused(refusal) => refusal.reason,
        Trouble::Wrong(reason) => format!("the set-up failed: {reason}"),
    })
}

fn try_all(shared: &Shared, tries: &[TryCheck], dir: &Path, results: &mut Vec<CheckResult>) -> Result<(), String> {
    let mut left_ms = ALL_MS;
    for (at, check) in tries.iter().enumerate() {
        if left_ms == 0 {
            return Err(format!("there was no time to try {} of {} checks", tries.len() - at, tries.len()));
        }
        if shared.grounded.load(Ordering::SeqCst) {
            return Err(LEFT.to_owned());
        }
        let result =
            checks::run_try(shared, KEY, check, dir, left_ms.min(EACH_MS)).map_err(|refusal| refusal.reason)?;
        left_ms = left_ms.saturating_sub(result.took_ms);
        results.push(result);
    }
    Ok(())
}
