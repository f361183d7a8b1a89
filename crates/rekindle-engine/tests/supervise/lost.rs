//! What a dead shim leaves: all of it is ended, and nobody else is touched.

use rekindle_engine::supervise::{Ended, LostError, Probe, activity, end_lost_tree, kill, probe};
use rekindle_shim::identity::Process;
use rekindle_shim::tree::Table;
use rustix::process::Signal;

use crate::rig::{BUDGET, Rig, alive, living, until};

/// Children of every kind; the last two are found only by their parent, or only by their session.
const FAMILY: &str = "
    sleep 1000 &
    setsid sh -c 'sleep 1000; true' &
    (setsid sh -c '(setsid sleep 1000 &) ; sleep 1000' &) &
    sh -c 'trap \"\" TERM INT HUP; sleep 1000; true' &
    env -i setsid sleep 1000 &
    (env -i sleep 1000 &) &
    sleep 0.2; echo up >up; while :; do sleep 1; done";

#[test]
fn the_whole_family_of_a_dead_shim_is_ended() {
    let rig = Rig::new();
    let (dir, spec, launched) = rig.launch("b", FAMILY);
    rig.await_file("up");
    let record = alive(&dir);
    let family: Vec<Process> = Table::scan().expect("table").pin_descendants(Some(&launched.shim));
    assert!(family.len() >= 9, "{}", family.len());
    assert!(matches!(end_lost_tree(&record, &spec.nonce), Err(LostError::ShimAlive)));
    launched.shim.signal(Signal::KILL).expect("kill -9");
    until("the shim's end", || launched.shim.exited().then_some(()));
    assert!(matches!(probe(&dir, BUDGET), Probe::ShimDied(_)));
    assert!(living(&spec.nonce) >= 7, "the agent outlives its shim");
    let ended = end_lost_tree(&record, &spec.nonce).expect("ended");
    assert_eq!(ended.survivors, vec![]);
    assert!(ended.killed >= 9, "{ended:?}");
    assert!(family.iter().all(Process::exited));
    assert_eq!(living(&spec.nonce), 0);
    assert_eq!(end_lost_tree(&record, &spec.nonce).expect("again"), Ended::default());
}

#[test]
fn daemons_of_a_dead_agent_are_found_by_their_marker() {
    let rig = Rig::new();
    let (dir, spec, launched) = rig
        .launch("b", "(setsid sh -c '(setsid sleep 1000 &); sleep 1000; true' &) & sleep 0.2; echo up >up; sleep 1000");
    rig.await_file("up");
    let record = alive(&dir);
    let agent = match record.agent.open().expect("open") {
        rekindle_shim::identity::Opened::Ours(agent) | rekindle_shim::identity::Opened::Likely(agent) => agent,
        other => panic!("{other:?}"),
    };
    launched.shim.signal(Signal::KILL).expect("kill -9");
    agent.signal(Signal::KILL).expect("kill -9");
    until("both ends", || (launched.shim.exited() && agent.exited()).then_some(()));
    assert!(living(&spec.nonce) >= 3);
    let ended = end_lost_tree(&record, &spec.nonce).expect("ended");
    assert!(ended.killed >= 3 && ended.survivors.is_empty(), "{ended:?}");
    assert_eq!(living(&spec.nonce), 0);
}

#[test]
fn a_stranger_under_a_recorded_number_is_not_touched() {
    let rig = Rig::new();
    let (dir, spec, launched) = rig.launch("b", "echo up >up; sleep 1000");
    rig.await_file("up");
    let mut record = alive(&dir);
    launched.shim.signal(Signal::KILL).expect("kill -9");
    until("the shim's end", || launched.shim.exited().then_some(()));
    end_lost_tree(&record, &spec.nonce).expect("ended");
    // As if the agent's number had been given to another program, with a session and a child of its own.
    let mut stranger =
        std::process::Command::new("setsid").args(["sh", "-c", "sleep 1000 & wait"]).spawn().expect("stranger");
    let pinned = Process::of_child(stranger.id()).expect("pin");
    record.agent.pid = stranger.id();
    assert_eq!(end_lost_tree(&record, &spec.nonce).expect("nothing to end"), Ended::default());
    assert!(!pinned.exited());
    // Even with the start time of the old one: on a kernel without unique inodes the marker is still owed.
    record.agent.pidfd_inode = None;
    record.agent.start_ticks = pinned.id().start_ticks;
    assert_eq!(end_lost_tree(&record, &spec.nonce).expect("nothing to end"), Ended::default());
    assert!(!pinned.exited());
    let family = Table::scan().expect("table").pin_descendants(Some(&pinned));
    rekindle_shim::tree::kill_all(&family);
    stranger.kill().expect("kill");
    stranger.wait().expect("wait");
}

#[test]
fn after_another_boot_nothing_is_even_looked_for() {
    let rig = Rig::new();
    let (dir, spec, _launched) = rig.launch("b", "echo up >up; sleep 1000");
    rig.await_file("up");
    let mut record = alive(&dir);
    record.shim.boot_id = "another".to_owned();
    let ended = end_lost_tree(&record, &spec.nonce).expect("nothing to end");
    assert_eq!(ended, Ended { elsewhere: true, ..Ended::default() });
    assert!(living(&spec.nonce) > 0);
    kill(&dir, BUDGET).expect("kill");
}

#[test]
fn activity_tells_a_busy_tree_from_a_silent_one() {
    let rig = Rig::new();
    let (busy, _, _b) = rig.launch("busy", "sh -c 'while :; do :; done'; true");
    let (silent, _, _s) = rig.launch("silent", "sleep 1000; true");
    let (busy_record, silent_record) = (alive(&busy), alive(&silent));
    let at = |record| activity(record).expect("table").expect("the shim lives");
    until("the silent one to settle", || (at(&silent_record).processes == 2).then_some(()));
    let (busy_before, silent_before) = (at(&busy_record), at(&silent_record));
    until("processor time", || (at(&busy_record).cpu_ticks > busy_before.cpu_ticks + 5).then_some(()));
    let silent_after = at(&silent_record);
    assert!(silent_after.cpu_ticks <= silent_before.cpu_ticks + 1, "{silent_before:?} {silent_after:?}");
    assert_eq!(silent_after.io_bytes, silent_before.io_bytes);
    for dir in [&busy, &silent] {
        kill(dir, BUDGET).expect("kill");
    }
    until("the shim's end", || activity(&busy_record).expect("table").is_none().then_some(()));
}
