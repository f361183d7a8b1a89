//! A database that is older than its log is never shown as the truth.

use std::path::Path;

use super::duplicate;
use crate::rig::Rig;

const PLAN: &str = "# Old\n\n### T1: one\n\nWork.\n\n### T2: two\n- blocked by: T1\n\nWork.\n";

const AGENT: &str = "touch here-$REKINDLE_TASK\n$FAKE wait go-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n";

/// A run that was killed, so that its newest events stand in the write-ahead log only.
fn killed() -> Rig {
    let rig = Rig::new(PLAN, AGENT);
    let run = rig.run();
    rig.await_file("here-T1");
    rig.touch("go-T1");
    rig.await_file("here-T2");
    run.kill();
    assert!(rig.state().join("state.db-wal").metadata().is_ok_and(|found| found.len() > 0), "events in the log");
    rig
}

fn remove(state: &Path, names: &[&str]) {
    for name in names {
        let _not_there = std::fs::remove_file(state.join(name));
    }
}

#[test]
fn views_say_when_the_database_is_behind_its_log_and_a_run_repairs_it() {
    let rig = killed();
    assert!(rig.status().get("damage").is_none(), "a whole one has nothing to say");
    let copy = rig.outside("copy");
    duplicate(&rig.state(), &copy);
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 4] = [
        ("log removed", |state| remove(state, &["state.db-wal", "state.db-shm"])),
        ("log cut", |state| {
            let file = std::fs::OpenOptions::new().write(true).open(state.join("state.db-wal")).expect("a log");
            file.set_len(file.metadata().expect("size").len() / 2).expect("cut");
            remove(state, &["state.db-shm"]);
        }),
        ("all removed", |state| remove(state, &["state.db", "state.db-wal", "state.db-shm"])),
        ("emptied", |state| {
            std::fs::write(state.join("state.db"), "").expect("emptied");
            remove(state, &["state.db-wal", "state.db-shm"]);
        }),
    ];
    for (what, damage) in cases {
        std::fs::remove_dir_all(rig.state()).expect("removed");
        duplicate(&copy, &rig.state());
        damage(&rig.state());
        for arguments in [&["status"][..], &["status", "--json"], &["events"], &["why", "T1"], &["report"]] {
            let told = rig.rekindle(arguments);
            assert!(
                told.err.contains("repair it by continuing the run: rekindle r"),
                "{what}: {arguments:?}: {told:?}"
            );
        }
        let json = rig.rekindle(&["status", "--json"]);
        let shown: Option<serde_json::Value> = serde_json::from_str(&json.out).ok();
        let says =
            shown.is_some_and(|shown| shown["damage"]["reason"].as_str().is_some_and(|why| why.contains("behind")));
        assert!(says || json.code != Some(0), "{what}: {json:?}");
    }
    std::fs::remove_dir_all(rig.state()).expect("removed");
    duplicate(&copy, &rig.state());
    remove(&rig.state(), &["state.db-wal", "state.db-shm"]);
    rig.touch("go-T2");
    rig.finish();
    assert!(rig.status().get("damage").is_none(), "repaired");
}

#[test]
fn a_run_right_after_a_kill_takes_over_instead_of_attaching_to_the_dead() {
    let rig =
        Rig::new("# P\n\n### T1: one\n\nWork.\n", "touch here\n$FAKE wait go\nrekindle task done $REKINDLE_TASK\n");
    let mut coordinator = rig.run();
    rig.await_file("here");
    for _ in 0..5 {
        let pid = rustix::process::Pid::from_raw(i32::try_from(coordinator.pid()).expect("small")).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("our own child");
        // At once: the killed one is not waited for.
        let next = rig.run();
        rig.until("another coordinator", || {
            let status: serde_json::Value = serde_json::from_str(&rig.rekindle(&["status", "--json"]).out).ok()?;
            (status["coordinator"]["pid"] == next.pid()).then_some(())
        });
        drop(coordinator);
        coordinator = next;
    }
    rig.touch("go");
    let ended = coordinator.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
