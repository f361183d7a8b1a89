//! The shim killed at every step of its start, and bundles that are not fresh.

use std::process::Command;

use rekindle_shim::tree::Table;
use rekindle_shim::{EXIT_LOCKED, EXIT_SPEC, EXIT_USED, lock};

use crate::rig::{PROGRAM, Rig, exists, until, wait};

/// More calls of one kind than a short life makes.
const STEPS_MAX: u32 = 100;

/// Steps beyond the barrier that are followed for each kind of call.
const AFTER_MAX: u32 = 5;

/// Kills the shim at the `n`th call of `call`; whether it got that far.
fn killed_at(rig: &Rig, call: &str, n: u32) -> bool {
    let status = Command::new("strace")
        // A long search for libraries would come before everything that matters.
        .env_remove("LD_LIBRARY_PATH")
        .args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:signal=SIGKILL:when={n}"))
        .args([PROGRAM, "__shim"])
        .arg(&rig.dir)
        .status()
        .expect("strace");
    // strace ends as its tracee did.
    !status.success()
}

#[test]
fn an_agent_never_runs_unrecorded_wherever_its_shim_is_killed() {
    let mut recorded = 0;
    for call in ["fsync", "rename,renameat,renameat2", "write", "openat", "flock", "bind", "pipe2", "pidfd_open"] {
        let mut after = 0;
        // Some steps beyond the barrier are enough: later ones are those of the end.
        for n in 1..STEPS_MAX {
            let rig = Rig::sh("echo ran >ran; sleep 1000");
            rig.create();
            if after == AFTER_MAX || !spawn_and_kill(&rig, call, n) {
                break;
            }
            assert!(n + 1 < STEPS_MAX, "{call} was not followed to its last");
            // The stub sees the end of its pipe and leaves, or the agent runs; both settle.
            until("the stub to decide", || (rig.living() == 0 || rig.path("ran").exists()).then_some(()));
            let record = rig.bundle().shim().expect("never half a record");
            if rig.path("ran").exists() {
                assert!(record.is_some(), "an unrecorded agent ran: {call} {n}");
                recorded += 1;
                after += 1;
            }
            // The kernel closes the files of a killed process a moment after it has let go of everything that shows who it was.
            until(&format!("the lock of a dead shim to go: {call} {n}"), || {
                (!lock::is_held(&rig.bundle()).expect("probe")).then_some(())
            });
            rig.bundle().exit().expect("whole or not there, never half a record");
        }
    }
    assert!(recorded > 0, "no crash came after the barrier, so the test has shown nothing");
}

/// As [`killed_at`], but a shim that passes the point holds an agent that sleeps: it is then killed in order.
fn spawn_and_kill(rig: &Rig, call: &str, n: u32) -> bool {
    std::thread::scope(|scope| {
        let tracing = scope.spawn(|| killed_at(rig, call, n));
        until("the shim to be killed or to run", || (tracing.is_finished() || rig.path("ran").exists()).then_some(()));
        // Runs and was not killed: a client ends it.
        let client = rekindle_shim::client::Client::connect(&rig.bundle(), &rig.spec, crate::rig::BOUND);
        if let Ok(mut client) = client {
            let _ = client.kill();
        }
        tracing.join().expect("strace")
    })
}

#[test]
fn a_shim_that_leads_its_group_leaves_its_session_and_works_as_an_orphan_too() {
    use std::os::unix::process::CommandExt;
    let rig = Rig::sh("sleep 1000");
    rig.create();
    let mut shim = rig.command().process_group(0).spawn().expect("spawn");
    let session = |pid| Table::scan().expect("table").row(pid).expect("alive").session;
    assert_eq!(session(rig.record().shim.pid), shim.id(), "it leads a session of its own");
    rig.client().kill().expect("kill");
    rig.finish(&mut shim);
    // Its starter is gone before it looks for it: its parent is then the first process, whose group is 0 here.
    let rig = Rig::sh("echo ran >ran");
    rig.create();
    let script = "import os,sys\nparent = os.getpid()\nif os.fork() == 0:\n  os.setpgid(0, 0)\n  while os.getppid() == parent: pass\n  os.execv(sys.argv[1], sys.argv[1:])\n";
    let status = Command::new("python3").args(["-c", script, PROGRAM, "__shim"]).arg(&rig.dir).status();
    assert!(status.expect("python").success());
    rig.await_file("ran");
    until("the end", || rig.bundle().exit().expect("readable"));
}

#[test]
fn a_second_shim_finds_the_lock_held_and_leaves() {
    let rig = Rig::sh("echo ran >>ran; sleep 1000");
    let mut shim = rig.start();
    rig.await_file("ran");
    assert!(lock::is_held(&rig.bundle()).expect("probe"));
    let mut second = rig.command().spawn().expect("spawn");
    assert_eq!(wait(&mut second).code(), Some(i32::from(EXIT_LOCKED)));
    rig.client().kill().expect("the first is unharmed");
    rig.finish(&mut shim);
    assert_eq!(std::fs::read_to_string(rig.path("ran")).expect("ran"), "ran\n");
    assert!(!lock::is_held(&rig.bundle()).expect("probe"));
}

#[test]
fn many_shims_at_once_start_one_agent() {
    let rig = Rig::sh("echo ran >>ran; sleep 0.5");
    rig.create();
    let mut shims: Vec<_> = (0..12).map(|_| rig.command().spawn().expect("spawn")).collect();
    let won = shims.iter_mut().filter_map(|shim| wait(shim).code()).filter(|code| *code == 0).count();
    assert_eq!(won, 1);
    assert_eq!(std::fs::read_to_string(rig.path("ran")).expect("ran"), "ran\n");
}

#[test]
fn a_finished_or_used_bundle_is_not_run_again() {
    let rig = Rig::sh("echo ran >>ran");
    let first = rig.run();
    let mut again = rig.command().spawn().expect("spawn");
    assert!(wait(&mut again).success());
    assert_eq!(rig.exit(), first);
    std::fs::remove_file(rig.dir.join("exit.json")).expect("as if the shim had died");
    let mut again = rig.command().spawn().expect("spawn");
    assert_eq!(wait(&mut again).code(), Some(i32::from(EXIT_USED)));
    assert_eq!(std::fs::read_to_string(rig.path("ran")).expect("ran"), "ran\n");
}

#[test]
fn a_bundle_without_a_usable_spec_starts_nothing() {
    let rig = Rig::sh("echo ran >ran");
    rig.create();
    std::fs::write(rig.dir.join("spec.json"), "{\"version\":1,").expect("write");
    let mut shim = rig.command().spawn().expect("spawn");
    assert_eq!(wait(&mut shim).code(), Some(i32::from(EXIT_SPEC)));
    assert!(exists(&rig.path("ran")).is_none());
    assert!(rig.bundle().spec().is_err());
}

#[test]
fn a_lock_handed_over_is_never_free_in_between() {
    let rig = Rig::sh("sleep 0.3");
    let bundle = rig.create();
    let held = lock::Lock::take(&bundle).expect("lock").expect("free");
    let mut shim = rig.command().stdin(std::process::Stdio::from(held.into_fd())).spawn().expect("spawn");
    // Our share went with the command; from here on only the shim holds it.
    until("the end", || {
        let held = lock::is_held(&bundle).expect("probe");
        let ended = bundle.exit().expect("readable").is_some();
        assert!(held || ended, "the lock was free before the end");
        ended.then_some(())
    });
    rig.finish(&mut shim);
}
