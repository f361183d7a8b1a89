//! Refusals, enumerated: the Nth call of a kind that the coordinator makes, and only it, is refused by the machine, for one N and
//! one error after another. The run ends right, at the latest after a restart: nobody works twice, no task pays for it.

use std::collections::BTreeSet;
use std::process::Command;

use rustix::process::Signal;

use crate::crash_points::ALL;
use crate::processes;
use crate::rig::{Rig, Running, objects, program};
use crate::tally;

/// What a machine without room says.
pub const ERRORS: [&str; 5] = ["EMFILE", "ENOSPC", "EIO", "EAGAIN", "ENOMEM"];

/// Becoming another program.
pub const EXECVE: &str = "execve";

/// Points tried of each kind, without `ALL`: with each of them another error.
const POINTS: usize = 2;

/// Holds in a row after which the refusal is taken for one that stays.
const HELD: usize = 2;

/// Points tried of each kind and with each error, with it.
const ALL_POINTS: usize = 12;

pub const PLAN: &str = "# Points\n\n### T1: first\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s made`\n\nWork.\n";

/// Its claim is a line of its output: a channel that is refused answers nobody, and that is another test.
pub const AGENT: &str = "echo \"$REKINDLE_TASK\" >> ran\necho yes > made\necho \"TASK_COMPLETE: $REKINDLE_TASK\"\n";

/// The coordinator of the plan. Calls are counted by kind and thread, and its children are let go when they become other programs.
fn refused(rig: &Rig, calls: &str, nth: usize, error: &str) -> Command {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    if calls == EXECVE {
        // The coordinator's own start is the tracer's doing: only its supervisors are meant.
        strace.args(["-P", "/proc/self/exe"]);
    }
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={nth}")])
        .arg(program())
        .args(["run", "plan.md"]);
    strace
}

fn one(calls: &str, nth: usize, error: &str) {
    let rig = Rig::new(PLAN, AGENT);
    let mut first = rig.launch(refused(&rig, calls, nth, error));
    let point = format!("{calls} {nth} {error}");
    // Every new thread meets the same refusal, so that it may never get through: then it says what it is held for, or that its
    // store refuses. A refused unlock leaves SQLite's locks wrong in that process for good, and a restart right again.
    let over = rig.until(&point, || match first.has_ended() {
        Some(status) => Some(status.code()),
        None => (says_it_cannot_write(&first) || held_often(&rig) >= HELD).then_some(None),
    });
    let told = (first.printed(), first.said());
    let complaint = told.1.lines().find(|line| line.starts_with("strace:") && !line.contains("Requested path"));
    assert_eq!(complaint, None, "strace is needed: {told:?}");
    let stuck = says_it_cannot_write(&first);
    // Without its tracer it goes on by itself; where its locks are wrong for good it leaves when it is told to.
    first.kill();
    if stuck {
        leave(&rig);
    }
    if over != Some(0) {
        rig.until("its end", || rig.living().is_empty().then_some(()));
    }
    let status = rig.rekindle(&["status", "--json"]).out;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    if status["run"]["state"] != "complete" {
        // It could not go on, and left: what it left is whole.
        let ended = rig.run().end();
        assert_eq!(ended.code, Some(0), "{point}: {ended:?}\n{told:?}\n{}", rig.story());
    }
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "{point}: {told:?}\n{}", rig.story());
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{point}: {task}");
    }
    rig.assert_nothing_left();
    rig.audit();
    tally::add("refusal", &[("tasks", 2), (error, 1)]);
}

/// Tells the coordinator to leave.
fn leave(rig: &Rig) {
    let mark = rig.root().parent().expect("a parent").to_string_lossy().into_owned();
    for pid in rig.living().into_iter().filter(|pid| processes::describe(*pid).contains("run plan.md")) {
        processes::signal(pid, &mark, Signal::TERM);
    }
}

/// Whether it says that nothing can be stored, and so nothing decided.
fn says_it_cannot_write(run: &Running) -> bool {
    run.said().contains("the state cannot be written, nothing is decided until it can be")
}

/// How often it was held with a reason and a hint so far.
fn held_often(rig: &Rig) -> usize {
    let ended = rig.rekindle(&["events", "--json", "--kind", "starts_held"]);
    let said = |event: &&serde_json::Value| {
        let details = &event["details"];
        [&details["reason"], &details["hint"]].iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()))
    };
    if ended.code == Some(0) { objects(&ended.out).iter().filter(said).count() } else { 0 }
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

        /// Every call at which a group refuses.
        const TRIED: &[&str] = &[$($calls),*];
    };
}

kinds! {
    at_files_that_are_opened: "openat,open";
    at_new_directories: "mkdir,mkdirat";
    at_writes: "write,pwrite64,fallocate";
    at_reads: "read,pread64";
    at_syncs: "fsync,fdatasync";
    at_renames: "rename,renameat,renameat2";
    at_new_processes_and_threads: "clone,clone3,vfork,fork";
    at_locks: "flock,fcntl";
    at_sockets: "socket,bind,listen,accept4,connect,setsockopt,getsockopt";
    at_pins: "pidfd_open";
    at_watches: "inotify_init1,inotify_add_watch,epoll_create1,epoll_ctl,eventfd2";
    at_looks: "statx,newfstatat,fstat,getdents64";
    at_memory: "mmap";
    at_more_memory: "brk";
    at_waits: "poll,ppoll,epoll_pwait,epoll_wait";
    at_messages: "sendto,recvfrom,sendmsg,recvmsg";
    at_places_and_copies: "lseek,ioctl,dup2,dup3";
    at_settings_of_processes: "prctl";
    at_new_programs: EXECVE;
    at_removals: "unlink,unlinkat,rmdir,ftruncate,linkat";
    at_pipes: "pipe2,socketpair";
    at_file_systems: "syncfs,statfs,fstatfs";
    at_names_and_owners: "readlink,access,fchown,fchmod,fchmodat,getcwd";
}

/// Every group of calls, for the tests of other processes.
pub fn every_group() -> &'static [&'static str] {
    TRIED
}

/// Calls of a run at which nothing is refused here, and why.
const NOT_TRIED: &[(&str, &str)] = &[
    (
        "arch_prctl,set_robust_list,set_tid_address,rseq,sigaltstack,mprotect,munmap,madvise,mremap",
        "made by the loader and the allocator on memory that the program has already: memory is refused at mmap and brk",
    ),
    ("rt_sigaction,rt_sigprocmask,rt_sigreturn,restart_syscall", "take no resource of the machine"),
    (
        "getpid,getppid,gettid,geteuid,getuid,getgid,getegid,uname,sched_getaffinity,sched_yield,getrusage,clock_nanosleep,\
         sysinfo,times,getpgid,getsid,umask",
        "read or set numbers of the process that are always there",
    ),
    ("close,close_range,exit,exit_group,inotify_rm_watch", "give something back: what they answer changes nothing"),
    ("futex", "a lock in the program's own memory: its errors are wrong arguments"),
    ("wait4,waitid", "ask after a child of our own: their errors are wrong arguments"),
    ("getrandom", "never refuses once the machine is up"),
    (
        "chdir,setpgid,setsid,prlimit64,setpriority",
        "change the process itself: what they refuse is a right, not a resource",
    ),
    ("pidfd_send_signal,kill,tgkill", "signal a process that is held: what they refuse is a right"),
];

/// The names of the calls in a tracer's log.
pub fn names_of(log: &str) -> BTreeSet<String> {
    let name = |line: &str| Some(line.split_once(' ')?.1.trim_start().split_once('(')?.0.to_owned());
    let is_name =
        |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    log.lines().filter_map(name).filter(is_name).collect()
}

/// Calls that no group and no exception names.
pub fn not_covered(made: &BTreeSet<String>) -> Vec<&String> {
    let tried = TRIED.iter().copied().chain(NOT_TRIED.iter().map(|(calls, _)| *calls));
    let known: Vec<&str> = tried.flat_map(|calls| calls.split(',')).collect();
    made.iter().filter(|call| !known.contains(&call.as_str())).collect()
}

/// The calls that the coordinator of a run makes, by their names.
fn made() -> BTreeSet<String> {
    let rig = Rig::new(PLAN, AGENT);
    let log = rig.outside("calls");
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace.args(["-f", "-b", "execve", "-qq", "-o"]).arg(&log).arg(program()).args(["run", "plan.md"]);
    let ended = rig.launch(strace).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    names_of(&String::from_utf8_lossy(&std::fs::read(&log).expect("what strace wrote")))
}

/// A kind of call that nobody thought of is a refusal that nobody tried.
#[test]
fn every_kind_of_call_of_a_run_is_tried_or_cannot_refuse() {
    let made = made();
    assert!(made.contains("openat") && made.len() > 40, "strace is needed: {made:?}");
    let new = not_covered(&made);
    assert!(new.is_empty(), "add to a group, or to NOT_TRIED with a reason: {new:?}");
}

/// The campaign runs a turn for every group.
#[test]
fn the_campaign_names_every_group() {
    let campaign = include_str!("../../../../xtask/src/campaign.rs");
    let own = include_str!("refusal_points.rs");
    let groups = own.lines().filter_map(|line| line.trim().strip_suffix(';')?.split_once(": ")).map(|(name, _)| name);
    let groups = groups.filter(|name| name.starts_with("at_"));
    let missing: Vec<&str> = groups.filter(|name| !campaign.contains(&format!("\"{name}\""))).collect();
    assert!(missing.is_empty(), "add to REFUSALS in xtask/src/campaign.rs: {missing:?}");
}
