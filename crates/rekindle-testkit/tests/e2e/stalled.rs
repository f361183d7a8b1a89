//! A coordinator that is stopped and a disk that does not answer: every command comes back with what is wrong and what to type.

use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;

use crate::rig::Rig;

const TWO: &str =
    "# Two\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n\n### T2: more\n- blocked-by: T1\n\nMore.\n";
const WAITS: &str = "touch here\n$FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK\n";

#[test]
fn orders_to_a_stopped_coordinator_come_back_and_say_how_to_let_it_go_on() {
    let rig = Rig::new(TWO, WAITS);
    let mut run = rig.run();
    rig.await_file("here");
    let pid = run.pid();
    run.signal(Signal::STOP);
    for order in [&["pause"][..], &["stop"], &["task", "skip", "T2"]] {
        let ended = rig.rekindle(order);
        assert_eq!(ended.code, Some(1), "{order:?}: {ended:?}");
        assert!(ended.err.contains(&format!("the coordinator (pid {pid}) is stopped")), "{order:?}: {ended:?}");
        assert!(ended.err.contains(&format!("kill -CONT {pid}")), "{order:?}: {ended:?}");
    }
    run.signal(Signal::CONT);
    // What was not confirmed was taken after all: the run pauses.
    assert_eq!(run.wait().code(), Some(4), "{}", run.said());
    rig.touch("go");
    rig.finish();
    rig.audit();
}

#[test]
fn a_state_directory_that_does_not_answer_is_named() {
    let rig = Rig::new(TWO, WAITS);
    rig.touch("go");
    rig.finish();
    let version = rig.state().join("version");
    let kept = std::fs::read(&version).expect("a marker");
    std::fs::remove_file(&version).expect("removed");
    // Whoever opens it waits for somebody to write, as on a file system that is frozen.
    rustix::fs::mknodat(CWD, &version, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    for command in [&["status"][..], &["pause"]] {
        let ended = rig.rekindle(command);
        assert_eq!(ended.code, Some(1), "{command:?}: {ended:?}");
        assert!(ended.err.contains("does not answer within"), "{command:?}: {ended:?}");
        assert!(ended.err.contains("frozen"), "{command:?}: {ended:?}");
    }
    std::fs::remove_file(&version).expect("removed");
    std::io::Write::write_all(
        &mut std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&version).expect("a file"),
        &kept,
    )
    .expect("written");
    rig.audit();
}
