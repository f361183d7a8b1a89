//! Refusals at the processes that hold and become an agent, enumerated as those of the coordinator: whatever is refused to them before
//! the agent's first instruction costs no attempt, whatever is refused after it changes nothing. The same for a kill.

use std::collections::BTreeSet;

use crate::below::{Below, Deed, Party};
use crate::crash_points::ALL;
use crate::refusal_points::{AGENT, ERRORS, PLAN, every_group, names_of, not_covered};
use crate::rig::Rig;
use crate::tally;

/// Points tried of each kind, without `ALL`: the loader's calls come first. A stub makes few of its own, and has one of the two.
const POINTS: [usize; 2] = [1, 6];

/// Points tried of each kind and with each error, with it.
const ALL_POINTS: usize = 8;

/// How often a run is begun anew whose tracer gave up before the party was met: it then shows nothing.
const TRACERS: u32 = 5;

/// Runs the plan with something done to a party of the first attempt; whoever began once did all the work.
fn holds(party: Party, deed: Deed<'_>, point: &str) -> String {
    let seen = (0..TRACERS).find_map(|_| holds_once(party, deed, point));
    seen.unwrap_or_else(|| panic!("{point}: strace gave up {TRACERS} times"))
}

/// The same with one tracer; nothing where that gave up before the party was met.
fn holds_once(party: Party, deed: Deed<'_>, point: &str) -> Option<String> {
    let rig = Rig::new(PLAN, AGENT);
    let (mut below, mut run) = Below::start(&rig, party, deed);
    // A tracer may give up on a process that is stopped and let go; what it traces goes on by itself.
    rig.until(point, || {
        below.tend();
        (run.has_ended().is_some() && rig.living().is_empty()).then_some(())
    });
    let told = (run.printed(), run.said());
    assert!(told.0.contains("plan complete"), "{point}: {told:?}\n{}", rig.story());
    let seen = below.seen();
    let complaints = format!("{}{}", told.1, below.complaints());
    assert!(seen.is_some() || complaints.contains("strace: "), "{point}: {party:?} was never met: {told:?}");
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "{point}: {told:?}\n{}", rig.story());
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!(
            (&task["state"], &task["attempts"]),
            (&"complete".into(), &1.into()),
            "{point}: {task}\n{}",
            rig.story()
        );
    }
    drop(below);
    rig.assert_nothing_left();
    rig.audit();
    seen
}

fn refuse(party: Party, calls: &str, nth: usize, error: &str) {
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error={error}:when={nth}"));
    holds(party, Deed::Trace(&["-e", &trace, "-e", &inject]), &format!("{party:?} {calls} {nth} {error}"));
    tally::add("refusal", &[("tasks", 2), (error, 1)]);
}

/// Refuses at one point after another of every group that falls to this part of the tests.
fn enumerate(party: Party, part: usize) {
    let all = std::env::var_os(ALL).is_some();
    let groups = every_group().iter().enumerate().filter(|(index, _)| index % PARTS == part);
    for (index, calls) in groups {
        if all {
            for nth in 1..=ALL_POINTS {
                ERRORS.iter().for_each(|error| refuse(party, calls, nth, error));
            }
            continue;
        }
        let points = POINTS.into_iter().enumerate();
        for (at, nth) in points.filter(|(at, _)| party == Party::Shim || at % 2 == (index / PARTS) % 2) {
            refuse(party, calls, nth, ERRORS[(index + at) % ERRORS.len()]);
        }
    }
}

/// Tests of each party, so that they run beside each other.
const PARTS: usize = 4;

macro_rules! parts {
    ($($name:ident: $party:ident $part:expr;)*) => {
        $(#[test] fn $name() { enumerate(Party::$party, $part); })*
    };
}

parts! {
    at_the_shim_first_part: Shim 0;
    at_the_shim_second_part: Shim 1;
    at_the_shim_third_part: Shim 2;
    at_the_shim_fourth_part: Shim 3;
    at_the_stub_first_part: Stub 0;
    at_the_stub_second_part: Stub 1;
    at_the_stub_third_part: Stub 2;
    at_the_stub_fourth_part: Stub 3;
}

/// Killed before its own first instruction, and at steps on the way to the agent's.
#[test]
fn a_supervisor_that_is_killed_before_its_agent_began_costs_no_attempt() {
    for party in [Party::Shim, Party::Stub] {
        holds(party, Deed::Kill, &format!("{party:?} killed at once"));
    }
    for (calls, nth) in [("bind", 1), ("fsync", 1), ("fsync", 3), ("pidfd_open", 1), ("flock", 1)] {
        let inject = format!("inject={calls}:signal=SIGKILL:when={nth}");
        let trace = format!("trace={calls}");
        holds(Party::Shim, Deed::Trace(&["-e", &trace, "-e", &inject]), &format!("shim killed at {calls} {nth}"));
    }
}

/// A kind of call that nobody thought of is a refusal that nobody tried.
#[test]
fn every_kind_of_call_of_a_shim_and_a_stub_is_tried_or_cannot_refuse() {
    for party in [Party::Shim, Party::Stub] {
        let made: BTreeSet<String> = names_of(&holds(party, Deed::Trace(&[]), "traced"));
        assert!(made.contains("openat") && made.len() > 10, "strace is needed: {made:?}");
        let new = not_covered(&made);
        assert!(new.is_empty(), "{party:?}: add to a group of refusal_points, or to NOT_TRIED with a reason: {new:?}");
    }
}
