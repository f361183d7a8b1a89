//! What an agent leaves behind: nothing may live after its end, and nothing may delay it.

use rekindle_shim::tree::Table;

use crate::rig::{Rig, until, wait};

/// Leaves one process of every kind behind: a background child, a daemon with a session of its own that holds
/// stdout, one that ignores every polite signal, one orphaned twice over, one with an emptied environment.
const LEAVES: &str = "
    sleep 1000 &
    setsid sh -c 'sleep 1000; echo never' &
    sh -c 'trap \"\" TERM INT HUP QUIT; sleep 1000' &
    (setsid sh -c '(setsid sleep 1000 &) ; sleep 1000' &) &
    env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &
    sleep 0.2";

#[test]
fn nothing_the_agent_left_behind_stays_and_the_end_is_not_delayed() {
    let rig = Rig::sh(&format!(
        "{LEAVES}
env -i sleep 1001.{} & exit 3",
        std::process::id()
    ));
    let exit = rig.run();
    assert_eq!(exit.code, Some(3));
    assert!(exit.swept >= 6, "{exit:?}");
    assert_eq!(exit.survivors, vec![]);
    assert!(exit.ran_ms < 8_000, "the end was delayed: {exit:?}");
    rig.assert_none_left();
}

#[test]
fn a_kill_takes_the_whole_tree() {
    let rig = Rig::sh(&format!(
        "trap '' TERM INT; {LEAVES}
echo up >up; while :; do sleep 1; done"
    ));
    let mut shim = rig.start();
    rig.await_file("up");
    assert!(rig.living() >= 6);
    let sweepable = rig.record().shim.pid;
    let unmarked: Vec<u32> = Table::scan().expect("table").descendants(sweepable).iter().map(|row| row.pid).collect();
    rig.client().kill().expect("kill");
    let exit = rig.finish(&mut shim);
    assert_eq!((exit.signal, exit.stop_requested), (Some(9), true));
    rig.assert_none_left();
    let table = Table::scan().expect("table");
    let names: Vec<_> = unmarked.iter().filter_map(|pid| table.row(*pid)).filter(|row| row.name == "sleep").collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn a_tree_that_keeps_forking_is_ended_too() {
    // Every process starts two successors before it ends, so the tree moves on while it is swept.
    let script = "f() { sh -c 'n=0; while [ $n -lt 400 ]; do (sleep 0.01; setsid sleep 1000 &) & n=$((n+1)); sleep 0.005; done' & }; f; f; f; echo up >up; sleep 1000";
    let rig = Rig::sh(script);
    let mut shim = rig.start();
    rig.await_file("up");
    until("some offspring", || (rig.living() > 30).then_some(()));
    rig.client().kill().expect("kill");
    let exit = rig.finish(&mut shim);
    assert_eq!(exit.survivors, vec![]);
    rig.assert_none_left();
}

#[test]
fn two_thousand_short_grandchildren_leave_no_zombie() {
    let script = "i=0; while [ $i -lt 2000 ]; do (true & ) ; i=$((i+1)); done; echo up >up; sleep 1000";
    let rig = Rig::sh(script);
    let mut shim = rig.start();
    rig.await_file("up");
    let holder = rig.record().shim.pid;
    until("all zombies reaped", || {
        let table = Table::scan().expect("table");
        table.descendants(holder).iter().all(|row| !row.zombie).then_some(())
    });
    rig.client().kill().expect("kill");
    rig.finish(&mut shim);
}

#[test]
fn the_agent_outlives_whoever_started_its_shim() {
    let rig = Rig::sh("echo up >up; read line <go; echo went on");
    let go = rig.path("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().expect("mkfifo").success());
    rig.create();
    let mut starter = std::process::Command::new("sh")
        .args(["-c", "\"$0\" __shim \"$1\" & wait", crate::rig::PROGRAM])
        .arg(&rig.dir)
        .spawn()
        .expect("starter");
    rig.await_file("up");
    starter.kill().expect("kill -9");
    wait(&mut starter);
    assert_eq!(rig.client().status().expect("status").agent, rig.record().agent);
    std::fs::write(&go, "\n").expect("let it go on");
    let exit = until("the exit record", || rig.bundle().exit().expect("readable"));
    assert_eq!(exit.code, Some(0));
    assert_eq!(rig.out(), b"went on\n");
}
