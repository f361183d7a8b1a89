//! Refusals, enumerated: the Nth call of a kind that the coordinator makes, and only it, is refused by the machine, for one N and
//! one error after another. The run ends right, at the latest after a restart: nobody works twice, no task pays for it.

use std::process::Command;

use crate::crash_points::ALL;
use crate::rig::{Rig, program};

/// What a machine without room says.
const ERRORS: [&str; 5] = ["EMFILE", "ENOSPC", "EIO", "EAGAIN", "ENOMEM"];

/// Points tried of each kind, without `ALL`: with each of them another error.
const POINTS: usize = 2;

/// Points tried of each kind and with each error, with it.
const ALL_POINTS: usize = 12;

const PLAN: &str = "# Points\n\n### T1: first\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s made`\n\nWork.\n";

/// Its claim is a line of its output: a door that is refused answers nobody, and that is another test.
const AGENT: &str = "echo \"$REKINDLE_TASK\" >> ran\necho yes > made\necho \"TASK_COMPLETE: $REKINDLE_TASK\"\n";

/// The coordinator of the plan. Calls are counted by kind and thread, and its children are let go when they become other programs.
fn refused(rig: &Rig, calls: &str, nth: usize, error: &str) -> Command {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={nth}")])
        .arg(program())
        .args(["run", "plan.md"]);
    strace
}

fn one(calls: &str, nth: usize, error: &str) {
    let rig = Rig::new(PLAN, AGENT);
    let first = rig.launch(refused(&rig, calls, nth, error)).end();
    assert!(!first.err.contains("strace:"), "strace is needed: {first:?}");
    let point = format!("{calls} {nth} {error}");
    if first.code != Some(0) {
        // It could not go on, and said so: what it left is whole.
        let ended = rig.run().end();
        assert_eq!(ended.code, Some(0), "{point}: {ended:?}\n{first:?}\n{}", rig.story());
    }
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "{point}: {first:?}\n{}", rig.story());
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{point}: {task}");
    }
    rig.assert_nothing_left();
    rig.audit();
}

/// Refuses at one point after another.
fn enumerate(calls: &str) {
    let offset: usize = calls.bytes().map(usize::from).sum();
    if std::env::var_os(ALL).is_none() {
        for (index, nth) in [1, 3].into_iter().take(POINTS).enumerate() {
            one(calls, nth, ERRORS[(offset + index) % ERRORS.len()]);
        }
        return;
    }
    for nth in 1..=ALL_POINTS {
        ERRORS.iter().for_each(|error| one(calls, nth, error));
    }
}

macro_rules! kinds {
    ($($name:ident: $calls:expr;)*) => {
        $(#[test] fn $name() { enumerate($calls); })*
    };
}

kinds! {
    at_files_that_are_opened: "openat";
    at_new_directories: "mkdir,mkdirat";
    at_writes: "write,pwrite64";
    at_reads: "read,pread64";
    at_syncs: "fsync,fdatasync";
    at_renames: "rename,renameat,renameat2";
    at_new_processes_and_threads: "clone,clone3,vfork,fork";
    at_locks: "flock,fcntl";
    at_sockets: "socket,bind,listen,accept4,connect";
    at_pins: "pidfd_open";
    at_watches: "inotify_init1,inotify_add_watch,epoll_create1,epoll_ctl,eventfd2";
    at_looks: "statx,newfstatat,fstat,getdents64";
    at_memory: "mmap";
}
