//! The watch: ends, records and growth; bounded, unblocked, and leaving no zombie.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::mpsc::{Receiver, sync_channel};

use rekindle_engine::supervise::{BundleKey, Observation, Probe, Stream, Twice, Watch, kill, probe};
use rekindle_shim::bundle::Bundle;
use rekindle_shim::tree::Table;
use rustix::process::Signal;

use crate::rig::{BOUND, BUDGET, Rig, alive, until};

const KEY: BundleKey = BundleKey(7);

fn next(receiver: &Receiver<Observation>) -> Observation {
    receiver.recv_timeout(BOUND).expect("an observation")
}

fn await_ended(receiver: &Receiver<Observation>) {
    until("the end", || (next(receiver) == Observation::Ended(KEY)).then_some(()));
}

#[test]
fn a_launched_shim_is_recorded_watched_and_reaped() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(8);
    let watch = Watch::start(sender).expect("watch");
    let (dir, _, launched) = rig.launch("b", "echo hello; exit 2");
    let pid = launched.shim.id().pid;
    watch.add_launched(KEY, &dir, launched).expect("add");
    let mut seen = Vec::new();
    while seen.last() != Some(&Observation::Ended(KEY)) {
        seen.push(next(&receiver));
    }
    assert!(seen.contains(&Observation::Recorded(KEY)), "{seen:?}");
    assert!(seen.contains(&Observation::Grew(KEY, Stream::Out)), "{seen:?}");
    assert!(matches!(probe(&dir, BUDGET), Probe::Finished(_)));
    until("the shim to be reaped", || Table::scan().expect("table").row(pid).is_none().then_some(()));
    watch.remove(KEY);
}

#[test]
fn a_killed_shim_is_told() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(8);
    let watch = Watch::start(sender).expect("watch");
    let (dir, _, launched) = rig.launch("b", "sleep 1000");
    let record = alive(&dir);
    watch.add_adopted(KEY, &dir, Some(&record)).expect("add");
    launched.shim.signal(Signal::KILL).expect("kill -9");
    await_ended(&receiver);
    assert!(matches!(probe(&dir, BUDGET), Probe::ShimDied(_)));
}

#[test]
fn a_shim_adopted_before_its_record_or_after_its_end_is_told_too() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(8);
    let watch = Watch::start(sender).expect("watch");
    let spec = rig.spec("sleep 1000");
    let dir = rig.path("b");
    Bundle::create(&dir, &spec, None).expect("create");
    watch.add_adopted(KEY, &dir, None).expect("add");
    let launched = crate::rig::launcher().start(&dir).expect("start");
    assert_eq!(next(&receiver), Observation::Recorded(KEY));
    let record = alive(&dir);
    launched.shim.signal(Signal::KILL).expect("kill -9");
    await_ended(&receiver);
    watch.remove(KEY);
    watch.add_adopted(KEY, &dir, Some(&record)).expect("add");
    await_ended(&receiver);
}

#[test]
fn growth_is_told_once_until_asked_for_again_and_never_missed() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(8);
    let watch = Watch::start(sender).expect("watch");
    let (dir, _, launched) =
        rig.launch("b", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; touch wrote; sleep 1000");
    watch.add_launched(KEY, &dir, launched).expect("add");
    until("all output", || rig.path("wrote").exists().then_some(()));
    let told: Vec<Observation> = receiver.try_iter().collect();
    let grew = |seen: &[Observation]| seen.iter().filter(|one| **one == Observation::Grew(KEY, Stream::Out)).count();
    assert!(grew(&told) <= 1, "{told:?}");
    // Read as a receiver does: ask again first, then read to the end.
    let log = dir.join("out.log");
    watch.rearm(KEY, Stream::Out);
    assert_eq!(std::fs::read_to_string(&log).expect("out").lines().count(), 3000);
    until("silence", || {
        watch.rearm(KEY, Stream::Out);
        (grew(&receiver.try_iter().collect::<Vec<_>>()) == 0).then_some(())
    });
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).expect("open");
    file.write_all(b"one more\n").expect("append");
    until("the growth", || (grew(&[next(&receiver)]) == 1).then_some(()));
    kill(&dir, BUDGET).expect("kill");
    await_ended(&receiver);
}

#[test]
fn a_receiver_that_does_not_receive_blocks_nothing_and_misses_no_end() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(1);
    let watch = Watch::start(sender).expect("watch");
    let mut dirs = Vec::new();
    for index in 0..20 {
        let (dir, _, launched) = rig.launch(&format!("b{index}"), "echo out; echo err >&2");
        watch.add_launched(BundleKey(index), &dir, launched).expect("add");
        dirs.push(dir);
    }
    until("all to end", || dirs.iter().all(|dir| dir.join("exit.json").exists()).then_some(()));
    let mut ended = BTreeSet::new();
    while ended.len() < 20 {
        if let Observation::Ended(BundleKey(key)) = next(&receiver) {
            assert!(ended.insert(key), "told twice");
        }
    }
    drop(receiver);
    watch.rearm(BundleKey(0), Stream::Out);
}

#[test]
fn a_key_is_used_once_at_a_time() {
    let rig = Rig::new();
    let (sender, receiver) = sync_channel(8);
    let watch = Watch::start(sender).expect("watch");
    watch.add_adopted(KEY, rig.root(), None).expect("add");
    assert!(matches!(watch.add_adopted(KEY, rig.root(), None), Err(Twice(KEY))));
    watch.remove(KEY);
    watch.add_adopted(KEY, rig.root(), None).expect("free again");
    watch.add_adopted(BundleKey(8), &rig.path("none"), None).expect("add");
    assert_eq!(next(&receiver), Observation::Ended(BundleKey(8)), "nobody is there");
}

#[test]
fn four_thousand_bundles_are_watched_by_one_thread_with_few_descriptors() {
    let rig = Rig::new();
    let count = 4_000_u64;
    let (sender, receiver) = sync_channel(64);
    let watch = Watch::start(sender).expect("watch");
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("list").count();
    let before = descriptors();
    let dirs: Vec<_> = (0..count).map(|index| rig.path(&index.to_string())).collect();
    for (index, dir) in dirs.iter().enumerate() {
        std::fs::create_dir(dir).expect("mkdir");
        std::fs::write(dir.join("out.log"), "").expect("write");
        watch.add_adopted(BundleKey(index as u64), dir, None).expect("add");
    }
    // Other tests of this process open some meanwhile.
    assert!(descriptors() < before + 500, "a descriptor per directory");
    let writer = std::thread::spawn(move || {
        for _ in 0..5 {
            for dir in &dirs {
                let mut log = std::fs::OpenOptions::new().append(true).open(dir.join("out.log")).expect("open");
                log.write_all(b"x").expect("append");
            }
        }
        dirs
    });
    let mut grew = BTreeSet::new();
    while grew.len() < 4_000 {
        let Observation::Grew(BundleKey(key), Stream::Out) = next(&receiver) else { panic!("only growth here") };
        assert!(grew.insert(key), "told twice without being asked");
    }
    let dirs = writer.join().expect("writer");
    for (index, dir) in dirs.iter().enumerate() {
        std::fs::write(dir.join("new"), "{}").expect("write");
        std::fs::rename(dir.join("new"), dir.join("exit.json")).expect("rename");
        if index % 2 == 0 {
            watch.remove(BundleKey(index as u64));
        }
    }
    let mut ended = BTreeSet::new();
    while ended.iter().filter(|key| **key % 2 == 1).count() < 2_000 {
        if let Observation::Ended(BundleKey(key)) = next(&receiver) {
            assert!(ended.insert(key), "told twice");
        }
    }
}
