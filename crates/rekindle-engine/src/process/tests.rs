//! Real programs that hang, flood, hold their pipes open or cannot be started.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rekindle_shim::clock;
use rustix::process::{Pid, Signal, kill_process};

use super::talk::Talk;
use super::{Error, Finished, Limits, run};

/// Far longer than anything here takes on any machine.
const LONG_MS: u64 = 600_000;

/// For what never ends by itself.
const SHORT_MS: u64 = 300;

/// More than a pipe holds.
const MUCH: usize = 1 << 20;

const LIMITS: Limits = Limits { within_ms: LONG_MS, out_max: 2 * MUCH, err_max: Some(100), ends_leftovers: true };

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn asked(script: &str, input: &[u8], limits: Limits) -> Result<Finished, Error> {
    run(&mut shell(script), input, &limits)
}

fn pid(printed: &[u8]) -> Pid {
    let text = String::from_utf8_lossy(printed);
    text.trim().parse().ok().and_then(Pid::from_raw).unwrap_or_else(|| panic!("{text:?} is no number"))
}

/// Gone, or a zombie that its new parent has not reaped yet.
fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn goes(pid: Pid) -> bool {
    let give_up = clock::monotonic_ms() + LONG_MS;
    while !is_gone(pid) && clock::monotonic_ms() < give_up {
        clock::pause(10);
    }
    is_gone(pid)
}

#[test]
fn all_that_is_said_and_the_exit_code_come_back() {
    let done = asked("cat; echo trouble >&2; exit 3", b"hello", LIMITS).expect("it ends");
    assert_eq!(
        (done.status.code(), done.out.as_slice(), done.err.as_slice()),
        (Some(3), &b"hello"[..], &b"trouble\n"[..])
    );
    // Both directions at once, and more than the pipes hold.
    let input = vec![b'x'; MUCH];
    assert_eq!(asked("cat", &input, LIMITS).expect("it ends").out, input);
    let done = asked("seq 1000 >&2", b"", LIMITS).expect("it ends");
    assert_eq!(done.err.len(), 100);
    assert!(done.err.ends_with(b"1000\n"), "the end is kept");
}

#[test]
fn a_program_that_hangs_is_ended_with_all_that_it_started() {
    let script = "sleep 1000 & echo $!; exec sleep 1000";
    match asked(script, b"", Limits { within_ms: SHORT_MS, ..LIMITS }) {
        Err(Error::TimedOut { out }) => assert!(goes(pid(&out)), "its child lives"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flood_is_cut_and_ended() {
    match asked("echo $$; exec yes", b"", Limits { out_max: 1000, ..LIMITS }) {
        Err(Error::TooMuch { out }) => {
            assert_eq!(out.len(), 1000);
            let first = out.split(|byte| *byte == b'\n').next().expect("a line");
            assert!(goes(pid(first)), "it lives");
        }
        other => panic!("{other:?}"),
    }
    // Errors are kept in bounds without an end: here only the deadline helps.
    let limits = Limits { within_ms: SHORT_MS, ..LIMITS };
    assert!(matches!(asked("exec yes >&2", b"", limits), Err(Error::TimedOut { .. })));
}

#[test]
fn a_child_that_keeps_the_pipes_open_is_not_waited_for() {
    let script = "sleep 1000 <&0 & echo $!; exit 4";
    let input = vec![b'x'; MUCH];
    let done = asked(script, &input, LIMITS).expect("it ends");
    assert_eq!(done.status.code(), Some(4));
    assert!(goes(pid(&done.out)), "its child lives");
    let done = asked(script, &input, Limits { ends_leftovers: false, ..LIMITS }).expect("it ends");
    let left = pid(&done.out);
    assert!(!is_gone(left), "what it leaves behind may stay");
    kill_process(left, Signal::KILL).expect("ended by its id");
}

#[test]
fn input_that_nobody_reads_holds_nobody_up() {
    let done = asked("exec <&-; exit 0", &vec![b'x'; MUCH], LIMITS).expect("it ends");
    assert!(done.status.success());
}

#[test]
fn a_program_that_cannot_be_started_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = run(&mut Command::new(dir.path().join("missing")), b"", &LIMITS);
    assert!(matches!(missing, Err(Error::Start(error)) if error.kind() == std::io::ErrorKind::NotFound));
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("written");
    let plain = run(&mut Command::new(plain), b"", &LIMITS);
    assert!(matches!(plain, Err(Error::Start(error)) if error.kind() == std::io::ErrorKind::PermissionDenied));
}

fn talk(script: &str, line_max: u64) -> (Talk, Receiver<Option<Vec<u8>>>) {
    let (give, lines) = sync_channel(64);
    let talk = Talk::start(shell(script).stderr(Stdio::null()), line_max, move |line| give.send(line).is_ok());
    (talk.expect("it starts"), lines)
}

#[test]
fn a_program_is_spoken_with_until_it_leaves() {
    let (talk, lines) = talk("read name; echo \"hello $name\"; echo a long line; printf end; exit 3", 11);
    talk.send("you").expect("it reads");
    let lines: Vec<_> = lines.iter().collect();
    let lines: Vec<_> = lines.iter().map(|line| line.as_ref().map(|line| String::from_utf8_lossy(line))).collect();
    let told = ["hello you\n", "a line longer than 11 bytes was dropped", "end"];
    assert_eq!(lines, [Some(told[0].into()), Some(told[1].into()), Some(told[2].into()), None]);
    assert_eq!(talk.end(LONG_MS).and_then(|status| status.code()), Some(3));
}

#[test]
fn a_program_that_says_nothing_is_ended_with_all_that_it_started() {
    let (talk, lines) = talk("sleep 1000 & echo $!; exec sleep 1000", 100);
    let child = pid(&lines.recv().expect("a line").expect("a number"));
    assert_eq!(lines.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
    drop(talk);
    assert!(goes(child), "its child lives");
}

#[test]
fn a_program_that_does_not_leave_is_ended() {
    let (talk, lines) = talk("exec >/dev/null; exec sleep 1000", 100);
    assert_eq!(lines.recv(), Ok(None));
    assert_eq!(talk.end(SHORT_MS), None);
}
