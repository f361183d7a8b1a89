//! The rows of the adoption table.

use std::time::Duration;

use rekindle_engine::supervise::{LaunchError, Probe, kill, probe, probe_all, send_line, stop};
use rekindle_shim::bundle::{Bundle, Stdin};
use rekindle_shim::client::Delivered;
use rekindle_shim::ladder::{Rung, StopSignal};
use rustix::process::Signal;

use crate::rig::{BUDGET, Rig, alive, bundle, launcher, living, until};

const SLEEPER: &str = "echo up >up; sleep 1000";

fn finished(dir: &std::path::Path) -> rekindle_shim::bundle::ExitRecord {
    until("the end", || match probe(dir, BUDGET) {
        Probe::Finished(exit) => Some(*exit),
        Probe::Alive(_) => None,
        other => panic!("neither alive nor finished: {other:?}"),
    })
}

#[test]
fn an_exit_record_is_the_end_whatever_the_lock_says() {
    let rig = Rig::new();
    let (dir, spec, launched) = rig.launch("b", "echo said; exit 5");
    let exit = finished(&dir);
    assert_eq!((exit.code, exit.nonce), (Some(5), spec.nonce));
    until("the shim's end", || launched.shim.exited().then_some(()));
    assert_eq!(finished(&dir).out.bytes, 5);
    assert!(launched.shim.reap_child().expect("ours"));
    let _lock = rekindle_shim::lock::Lock::take(&bundle(&dir)).expect("lock").expect("free");
    assert!(matches!(probe(&dir, BUDGET), Probe::Finished(_)));
}

#[test]
fn a_living_shim_is_alive_from_the_instant_of_its_launch() {
    let rig = Rig::new();
    let (dir, _, launched) = rig.launch("b", SLEEPER);
    let record = alive(&dir);
    assert_eq!(&record.shim, launched.shim.id());
    assert!(matches!(launcher().start(&dir), Err(LaunchError::Held(_))));
    let spec = rig.spec("true");
    assert!(matches!(launcher().launch(&dir, &spec, None), Err(LaunchError::Exists(_))));
    kill(&dir, BUDGET).expect("kill");
    assert_eq!(finished(&dir).signal, Some(9));
    assert!(std::fs::read(dir.join("shim.log")).expect("shim.log").is_empty());
}

#[test]
fn a_stopped_shim_is_unresponsive_within_the_budget_and_its_agent_goes_on() {
    let rig = Rig::new();
    let (dir, spec, launched) = rig.launch("b", "echo up >up; while :; do echo x; sleep 0.01; done");
    rig.await_file("up");
    let record = alive(&dir);
    launched.shim.signal(Signal::STOP).expect("stop the shim");
    let Probe::Unresponsive { record: found, .. } = probe(&dir, Duration::from_millis(300)) else {
        panic!("not unresponsive")
    };
    assert_eq!(found.as_deref(), Some(&record));
    let before = std::fs::metadata(dir.join("out.log")).expect("log").len();
    until("more output", || (std::fs::metadata(dir.join("out.log")).expect("log").len() > before).then_some(()));
    launched.shim.signal(Signal::CONT).expect("continue");
    assert_eq!(alive(&dir), record);
    kill(&dir, BUDGET).expect("kill");
    finished(&dir);
    assert_eq!(living(&spec.nonce), 0);
}

#[test]
fn a_removed_socket_leaves_the_shim_unresponsive_and_unharmed() {
    let rig = Rig::new();
    let (dir, _, launched) = rig.launch("b", SLEEPER);
    alive(&dir);
    std::fs::remove_file(dir.join("sock")).expect("remove");
    assert!(matches!(probe(&dir, Duration::from_millis(200)), Probe::Unresponsive { record: Some(_), .. }));
    assert!(!launched.shim.exited());
    // Its own signal still reaches it, through its verified identity.
    launched.shim.signal(Signal::TERM).expect("terminate");
    until("the end", || matches!(probe(&dir, BUDGET), Probe::Finished(_)).then_some(()));
}

#[test]
fn a_killed_shim_has_died_and_after_another_boot_the_host_is_lost() {
    let rig = Rig::new();
    let (dir, _, launched) = rig.launch("b", SLEEPER);
    rig.await_file("up");
    let record = alive(&dir);
    launched.shim.signal(Signal::KILL).expect("kill -9");
    until("the shim's end", || launched.shim.exited().then_some(()));
    match probe(&dir, BUDGET) {
        Probe::ShimDied(found) => assert_eq!(*found, record),
        other => panic!("not dead: {other:?}"),
    }
    let text = std::fs::read_to_string(dir.join("shim.json")).expect("read");
    let other = text.replace(&record.shim.boot_id, "00000000-0000-0000-0000-000000000000");
    std::fs::write(dir.join("shim.json"), other).expect("write");
    assert!(matches!(probe(&dir, BUDGET), Probe::HostLost(_)));
}

#[test]
fn a_bundle_with_only_a_spec_was_never_started_and_can_be() {
    let rig = Rig::new();
    let spec = rig.spec("exit 3");
    let dir = rig.path("b");
    Bundle::create(&dir, &spec, None).expect("create");
    match probe(&dir, BUDGET) {
        Probe::NeverStarted(found) => assert_eq!(*found, spec),
        other => panic!("{other:?}"),
    }
    launcher().start(&dir).expect("start");
    assert_eq!(finished(&dir).code, Some(3));
}

#[test]
fn nothing_is_absent_and_half_a_creation_is_too() {
    let rig = Rig::new();
    assert!(matches!(probe(&rig.path("none"), BUDGET), Probe::Absent));
    std::fs::create_dir(rig.path("empty")).expect("mkdir");
    assert!(matches!(probe(&rig.path("empty"), BUDGET), Probe::Absent));
    assert!(matches!(launcher().start(&rig.path("none")), Err(LaunchError::Absent(_))));
}

#[test]
fn whatever_cannot_be_read_is_unreadable_and_stays() {
    let rig = Rig::new();
    let spec = rig.spec("true");
    let cases: [(&str, &[u8]); 4] =
        [("exit.json", b"{\"version\":1"), ("exit.json", b""), ("shim.json", b"\xff"), ("spec.json", b"[]")];
    for (index, (name, content)) in cases.into_iter().enumerate() {
        let dir = rig.path(&index.to_string());
        Bundle::create(&dir, &spec, None).expect("create");
        std::fs::write(dir.join(name), content).expect("write");
        assert!(matches!(probe(&dir, BUDGET), Probe::Unreadable(_)), "{name}");
        assert_eq!(std::fs::read(dir.join(name)).expect("still there"), content);
    }
    std::fs::write(rig.path("file"), "x").expect("write");
    assert!(matches!(probe(&rig.path("file"), BUDGET), Probe::Unreadable(_)));
}

#[test]
fn an_exit_record_of_another_attempt_is_not_believed() {
    let rig = Rig::new();
    let (dir, _, _launched) = rig.launch("b", "exit 0");
    finished(&dir);
    let other = rig.path("other");
    Bundle::create(&other, &rig.spec("true"), None).expect("create");
    std::fs::copy(dir.join("exit.json"), other.join("exit.json")).expect("copy");
    assert!(matches!(probe(&other, BUDGET), Probe::Unreadable(_)));
}

#[test]
fn many_are_probed_at_once_and_a_stopped_one_does_not_hold_up_the_rest() {
    let rig = Rig::new();
    let mut dirs = Vec::new();
    let mut stopped = Vec::new();
    for index in 0..12 {
        let (dir, _, launched) = rig.launch(&format!("b{index}"), "sleep 1000");
        alive(&dir);
        if index % 3 == 0 {
            launched.shim.signal(Signal::STOP).expect("stop");
            stopped.push(launched);
        }
        dirs.push(dir);
    }
    dirs.push(rig.path("none"));
    // On a busy machine a living shim may need more than one budget; a stopped one never answers.
    let is_right = |(index, answer): (usize, &Probe)| match answer {
        Probe::Unresponsive { .. } => index % 3 == 0 && index < 12,
        Probe::Alive(_) => {
            assert!(index % 3 != 0, "{index} is stopped");
            true
        }
        Probe::Absent => index == 12,
        other => panic!("{index}: {other:?}"),
    };
    let answers = until("an answer of every living shim", || {
        let answers = probe_all(&dirs, Duration::from_millis(500));
        answers.iter().enumerate().all(is_right).then_some(answers)
    });
    assert_eq!(answers.len(), 13);
    for launched in stopped {
        launched.shim.signal(Signal::CONT).expect("continue");
    }
    for dir in &dirs[..12] {
        kill(dir, BUDGET).expect("kill");
        finished(dir);
    }
}

#[test]
fn orders_reach_the_shim_and_lines_the_agent() {
    let rig = Rig::new();
    let mut spec = rig.spec(
        "trap 'exit 9' TERM; echo up >up; while read line; do echo \"got $line\"; done; while :; do sleep 0.01; done",
    );
    spec.stdin = Stdin::Lines;
    let dir = rig.path("b");
    launcher().launch(&dir, &spec, None).expect("launch");
    rig.await_file("up");
    assert_eq!(send_line(&dir, "1", "one", BUDGET).expect("sent"), Delivered::Written);
    assert_eq!(send_line(&dir, "1", "one", BUDGET).expect("sent"), Delivered::Duplicate);
    // Acknowledged is "in the pipe"; the agent reads when it likes.
    until("the agent to read", || (std::fs::read(dir.join("out.log")).expect("out") == b"got one\n").then_some(()));
    rekindle_engine::supervise::close_stdin(&dir, BUDGET).expect("close");
    stop(&dir, Some(vec![Rung { signal: StopSignal::Term, grace_ms: 30_000 }]), BUDGET).expect("stop");
    let exit = finished(&dir);
    assert_eq!((exit.code, exit.stop_requested), (Some(9), true));
    assert_eq!(std::fs::read(dir.join("out.log")).expect("out"), b"got one\n");
    assert!(stop(&dir, None, BUDGET).is_err());
    assert!(stop(&rig.path("none"), None, BUDGET).is_err());
}
