//! What agents with structured output print besides their work, and the ways in which their programs go wrong: limits,
//! compactions, refused credentials, turns that end without a report.

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::limits::Traits;
use rekindle_core::report::Exit;
use rekindle_core::time::Time;

use super::agent::Act;
use super::rng::Rng;
use super::story::{MINUTE, SECOND};
use super::stream;
use super::world::Sim;

/// The ways in which a program with structured output goes wrong, with their weights.
pub const TROUBLES: [(&str, u64); 10] = [
    ("limited", 12),
    ("overloaded", 10),
    ("refused", 6),
    ("forgetful", 14),
    ("compacting", 8),
    ("full", 10),
    ("wordless", 16),
    ("staller", 6),
    ("stormy", 4),
    ("failing", 6),
];

/// Calls with the same result that are certainly too many.
const STALLED_CALLS: u64 = 9;

/// What an agent can do.
pub fn traits_of(sim: &Sim, attempt: AttemptId) -> Traits {
    let limits = &sim.setting.limits;
    sim.bundles.get(&attempt).map(|bundle| limits.traits_of(&bundle.cli).into_owned()).unwrap_or_default()
}

/// The reset after which an attempt was started, as the probe of its account.
fn probed_reset(sim: &Sim, attempt: AttemptId) -> Option<Time> {
    let gate = sim.checkers.replayed.gates.get(&traits_of(sim, attempt).account)?;
    gate.reset.filter(|_| gate.allowed == 1 && attempt.0 > gate.after)
}

/// Whether the account's limit still holds although its reset has passed: half of all probes hit it again.
pub fn meets_its_limit_again(sim: &mut Sim, attempt: AttemptId) -> bool {
    !sim.quiet && probed_reset(sim, attempt).is_some() && sim.rng.chance(50)
}

/// How a program starts: with its session, the one it was told to resume or, now and then, with something else.
pub fn begin(sim: &mut Sim, attempt: AttemptId, script: &mut Vec<Act>) {
    let resume = sim.bundles.get(&attempt).and_then(|bundle| bundle.resume.clone());
    let (quiet, rng) = (sim.quiet, &mut sim.rng);
    if !quiet && rng.chance(3) {
        script.push(Act::Hang);
    }
    if resume.is_some() && !quiet && rng.chance(5) {
        script.push(Act::Tell(stream::failed("gone")));
        script.push(leave(1));
    }
    let other = resume.is_none() || (!quiet && rng.chance(6));
    let id = resume.filter(|_| !other).unwrap_or_else(|| format!("s{attempt}"));
    script.push(Act::Tell(stream::session(&id)));
}

/// Some output of a working agent.
pub fn chatter(rng: &mut Rng, script: &mut Vec<Act>) {
    for _ in 0..rng.below(4) {
        let id = rng.draw();
        script.push(Act::Tell(stream::turn()));
        script.push(Act::Tell(stream::call(id, if rng.chance(50) { "edit" } else { "read" }, "a file")));
        script.push(Act::Pause(rng.between(10, 3 * SECOND)));
        script.push(Act::Tell(stream::called(id, &format!("ok {id}"))));
        if rng.chance(40) {
            script.push(Act::Tell(stream::context(rng.between(1, 80))));
        }
    }
}

/// What an agent has used by its nth task, in stories with budgets.
pub fn spend(sim: &Sim, attempt: AttemptId, nth: usize, script: &mut Vec<Act>) {
    if !sim.setting.limits.budget.is_none() {
        let each = 100 + attempt.0 % 7 * 50;
        script.push(Act::Tell(stream::used(each * (nth as u64 + 1))));
    }
}

/// The end of a turn: an agent that accepts messages waits for another.
pub fn end_turn(rng: &mut Rng, traits: &Traits, script: &mut Vec<Act>) {
    script.push(Act::Tell(stream::result("that is all")));
    if traits.takes_messages && rng.chance(90) {
        script.push(Act::Listen);
    }
    script.push(leave(0));
}

fn leave(code: i32) -> Act {
    Act::Leave(Exit { code: Some(code), ..Exit::default() })
}

/// What goes wrong before the work on a task; some of it is the end of the attempt.
pub fn strike(sim: &mut Sim, attempt: AttemptId, mood: &'static str, task: &TaskId, script: &mut Vec<Act>) {
    let traits = traits_of(sim, attempt);
    // Providers name their resets by the wall clock.
    let now = sim.machine.wall(sim.queue.now_ms());
    let silence_ms = sim.setting.limits.silence_ms;
    let probed = probed_reset(sim, attempt);
    let rng = &mut sim.rng;
    match mood {
        "limited" => {
            let new = rng.chance(60).then(|| now.plus_ms(rng.between(SECOND, 10 * MINUTE)));
            // Some programs name the reset that has just passed, or none at all.
            let reset = if rng.chance(50) { probed.or(new) } else { new.filter(|_| probed.is_none()) };
            give_up(rng, script, stream::limited(reset));
        }
        "overloaded" => give_up(rng, script, stream::failed("overloaded")),
        "refused" => give_up(rng, script, stream::failed("auth")),
        "failing" => give_up(rng, script, stream::failed("other")),
        "forgetful" => {
            turns(rng, script, 8);
            script.push(Act::Tell(stream::compacted()));
            let tool = if rng.chance(50) { "edit" } else { "read" };
            for call in 0..rng.below(14) {
                script.push(Act::Tell(stream::call(call, tool, &format!("file {call}"))));
                script.push(Act::Pause(rng.between(10, SECOND)));
                script.push(Act::Tell(stream::called(call, &format!("content {call}"))));
            }
        }
        "compacting" => {
            for _ in 0..rng.between(2, 6) {
                turns(rng, script, 6);
                script.push(Act::Tell(stream::compacted()));
                script.push(Act::Pause(rng.between(10, 5 * SECOND)));
            }
        }
        "full" => {
            script.push(Act::Tell(stream::context(rng.between(88, 99))));
            script.push(Act::Pause(rng.between(SECOND, MINUTE)));
            if traits.compacts && rng.chance(80) {
                script.push(Act::Tell(stream::compacted()));
                script.push(Act::Tell(stream::context(20)));
            }
        }
        "wordless" => {
            if rng.chance(40) {
                script.push(Act::Make(task.clone(), true));
            }
            end_turn(rng, &traits, script);
        }
        "staller" => {
            for call in 0..STALLED_CALLS {
                script.push(Act::Tell(stream::call(call, "read", "the same")));
                script.push(Act::Tell(stream::called(call, "the same")));
            }
            script.push(Act::Pause(10 * SECOND));
        }
        _ => {
            let every = rng.between(SECOND, 15 * SECOND);
            for _ in 0..silence_ms / every + rng.below(8) {
                script.push(Act::Tell(stream::retrying()));
                script.push(Act::Pause(every));
            }
        }
    }
}

fn turns(rng: &mut Rng, script: &mut Vec<Act>, most: u64) {
    for _ in 0..rng.below(most) {
        script.push(Act::Tell(stream::turn()));
    }
}

/// The program says why and exits; now and then it stays for a while, or does not exit on its own.
fn give_up(rng: &mut Rng, script: &mut Vec<Act>, line: String) {
    script.push(Act::Tell(line));
    script.push(Act::Pause(rng.between(1, 2 * SECOND)));
    if rng.chance(10) {
        script.push(Act::Hang);
    }
    script.push(leave(1));
}
