//! Crash points, enumerated: the coordinator, and only it, is killed as it enters the Nth call of a kind that changes
//! something outside, for one N after another. Started again, it always finishes, and nothing was done twice.

use std::path::PathBuf;
use std::process::Command;

use crate::rig::{Rig, program};

/// Set to try every point instead of the usual few.
pub const ALL: &str = "REKINDLE_E2E_ALL";

/// Points tried of each kind, without that.
const POINTS: usize = 10;

const PLAN: &str = "# Points\n\n### T1: first\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s made`\n\nWork.\n";

const AGENT: &str = "echo \"$REKINDLE_TASK\" >> ran\necho \"$REKINDLE_TASK speaks\"\necho yes > made\n\
    rekindle task done $REKINDLE_TASK > told-$REKINDLE_TASK 2>&1\n";

/// The coordinator of the plan, to be killed at the Nth call. Its children are let go when they become other programs.
///
/// Calls are counted by kind and thread, so the threads that do little are reached through the paths they touch.
fn doomed(rig: &Rig, calls: &str, nth: usize, paths: &[PathBuf]) -> Command {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    for path in paths {
        strace.arg("-P").arg(path);
    }
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:signal=SIGKILL:when={nth}")])
        .arg(program())
        .args(["run", "plan.md"]);
    strace
}

/// The points to try: all of them, or the first few and then ever fewer.
fn points() -> Box<dyn Iterator<Item = usize>> {
    if std::env::var_os(ALL).is_some() {
        return Box::new(1..);
    }
    Box::new(std::iter::successors(Some(1_usize), |n| Some(n + 1 + n / 3)).take(POINTS))
}

/// Kills at one point after another until the run gets through unharmed.
fn enumerate(calls: &str) {
    let mut killed = 0;
    for nth in points() {
        if !one(calls, nth, &[]) {
            break;
        }
        killed += 1;
    }
    assert!(killed > 0, "the run makes no call of {calls}");
}

/// One point: says whether the coordinator came as far as that and was killed.
fn one(calls: &str, nth: usize, touching: &[&str]) -> bool {
    let rig = Rig::new(PLAN, AGENT);
    let paths: Vec<PathBuf> = touching.iter().map(|path| rig.state().join(path)).collect();
    let first = rig.launch(doomed(&rig, calls, nth, &paths)).end();
    assert!(!first.err.contains("strace:"), "strace is needed: {first:?}");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(0), "killed at {calls} {nth}: {ended:?}\n{first:?}\n{}", rig.story());
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "killed at {calls} {nth}: {}", rig.story());
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{calls} {nth}: {task}");
    }
    rig.audit();
    first.code != Some(0)
}

/// The launch of the first agent: its directory, its spec, its lock, and the instants after its process was made.
#[test]
fn at_every_step_of_a_launch() {
    let bundle = "attempts/00000001";
    let files = ["", "/spec.json", "/prompt", "/lock", "/shim.log"].map(|file| format!("{bundle}{file}"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut killed = 0;
    for calls in ["mkdirat", "openat", "renameat", "fsync", "flock", "close"] {
        for nth in 1..=4 {
            killed += usize::from(one(calls, nth, &files));
        }
    }
    assert!(killed >= 10, "only {killed} points were reached");
}

macro_rules! kinds {
    ($($name:ident: $calls:expr;)*) => {
        $(#[test] fn $name() { enumerate($calls); })*
    };
}

kinds! {
    at_every_sync_of_data: "fdatasync";
    at_every_sync: "fsync";
    at_every_write_at_a_place: "pwrite64";
    at_every_write: "write";
    at_every_rename: "rename,renameat,renameat2";
    at_every_new_file_or_directory: "openat,mkdir,mkdirat";
    at_every_removal: "unlink,unlinkat,ftruncate";
    at_every_new_process_or_thread: "clone,clone3,vfork,fork";
    at_every_lock: "flock,fcntl";
    at_every_socket_call: "bind,listen,accept4,connect,sendto,recvfrom";
}

/// Recovery that is killed at ever later points, over living agents, until it gets through.
#[test]
fn recovery_that_is_killed_again_and_again_restarts_no_healthy_agent() {
    let plan =
        "# Loop\n\n### T1: one\n- accept: `test -e go`\n\nWork.\n\n### T2: two\n- accept: `test -e go`\n\nWork.\n";
    let agent = "echo $REKINDLE_TASK >> ran\n$FAKE count go\nrekindle task done $REKINDLE_TASK > told-$REKINDLE_TASK\n";
    let rig = Rig::new(plan, agent);
    let run = rig.run();
    rig.until("both at work", || (rig.lines("ran").len() == 2).then_some(()));
    rig.until("both recorded", || (rig.events_of("agent_started").len() == 2).then_some(()));
    run.kill();
    for (round, calls) in ["pwrite64", "write", "openat", "fcntl"].iter().cycle().take(10).enumerate() {
        let killed = rig.launch(doomed(&rig, calls, 1 + round, &[])).end();
        assert_ne!(killed.code, Some(0), "round {round}: {killed:?}");
    }
    rig.touch("go");
    rig.finish();
    let mut ran = rig.lines("ran");
    ran.sort();
    assert_eq!(ran, ["T1", "T2"], "a healthy agent was started again: {}", rig.story());
    for id in ["T1", "T2"] {
        assert_eq!(rig.task(id)["attempts"], 1, "{}", rig.story());
    }
    rig.audit();
}
