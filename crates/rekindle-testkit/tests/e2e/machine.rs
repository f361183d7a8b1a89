//! A machine that says no: no watch, no descriptor, no room for a file. Nothing is begun twice, no task pays for it, the run
//! says what it lacks and goes on by itself.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::disk::SmallDisk;
use crate::rig::{Rig, Running, program};

/// The coordinator of the plan, whose own calls of a kind are refused. Its shims and agents are let go when they become other
/// programs.
fn refused(rig: &Rig, inject: &str) -> Command {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    let calls = inject.split(':').next().expect("a call");
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={inject}")])
        .arg(program())
        .args(["run", "plan.md"]);
    strace
}

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";
const COUNTS: &str = "echo run >> ran\n$FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK > told 2>&1\n";

/// The task was worked on once, by an agent that the coordinator knew of until its end.
fn was_done_once(rig: &Rig) {
    assert_eq!(rig.lines("ran").len(), 1, "a second agent: {}", rig.story());
    let task = rig.task("T1");
    assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}\n{}", rig.story());
    rig.assert_nothing_left();
    rig.audit();
}

#[test]
fn without_a_watch_left_an_agent_is_started_once_and_supervised() {
    for inject in ["inotify_add_watch:error=ENOSPC", "inotify_init1:error=EMFILE", "pidfd_open:error=EMFILE"] {
        let rig = Rig::new(ONE, COUNTS);
        let run = rig.launch(refused(&rig, inject));
        rig.await_event("agent_started");
        if inject.starts_with("inotify") {
            rig.until("word of what to type", || run.said().contains("fs.inotify.max_user_watches=").then_some(()));
            let polling =
                rig.until("the same in a view", || Some(rig.status()["polling"].clone()).filter(|it| it.is_object()));
            assert!(polling["hint"].as_str().expect("a hint").contains("fs.inotify.max_user_watches="), "{polling}");
            assert!(rig.rekindle(&["status"]).err.contains("agents are polled"), "{polling}");
        }
        rig.touch("go");
        let ended = run.end();
        assert!(!ended.err.contains("strace:"), "strace is needed: {ended:?}");
        assert_eq!(ended.code, Some(0), "{inject}: {ended:?}\n{}", rig.story());
        was_done_once(&rig);
    }
}

/// The first calls of every thread are refused, as if editors had taken the last ones and given them back.
#[test]
fn a_watch_that_was_refused_once_is_asked_for_again() {
    let rig = Rig::new(ONE, COUNTS);
    let run = rig.launch(refused(&rig, "inotify_init1:error=EMFILE:when=1..3"));
    rig.await_event("agent_started");
    rig.until("word of the polling", || run.said().contains("agents are polled").then_some(()));
    rig.until("word of its end", || run.said().contains("the system has file watches again").then_some(()));
    assert!(rig.status()["polling"].is_null(), "{}", rig.status());
    let inotify = || {
        let fds =
            std::fs::read_dir(format!("/proc/{}/fd", rig.status()["coordinator"]["pid"])).expect("its descriptors");
        let is = |target: std::path::PathBuf| target.to_string_lossy().contains("inotify");
        fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(is)
    };
    assert!(inotify(), "it says so and has none");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    was_done_once(&rig);
}

#[test]
fn a_living_agent_is_adopted_without_a_watch_and_without_a_busy_loop() {
    let rig = Rig::new(ONE, COUNTS);
    let first = rig.run();
    rig.await_file("ran");
    rig.await_event("agent_started");
    first.kill();
    let second = rig.launch(refused(&rig, "inotify_add_watch:error=ENOSPC"));
    rig.await_event("agent_adopted");
    let pid = rig.until("the coordinator", || rig.status()["coordinator"]["pid"].as_u64());
    let (before, began) = (processor_time(pid), Instant::now());
    await_wakes(&rig, pid, 40);
    // It is still answering those who looked for it, and then it waits. A busy loop had 44 % of a core and kept it.
    let rests = || processor_time(pid).saturating_sub(before) < began.elapsed() / 8;
    rig.until("a coordinator that rests", || rests().then_some(()));
    rig.touch("go");
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    was_done_once(&rig);
}

/// A number that each thread of a process has in one of its files, added up.
fn of_threads(pid: u64, file: &str, number: impl Fn(&str) -> Option<u64>) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    // A thread may end in between.
    let texts = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join(file)).ok());
    texts.map(|text| number(&text).unwrap_or_else(|| panic!("{file}: {text}"))).sum()
}

/// Processor time of the threads of a process so far.
fn processor_time(pid: u64) -> Duration {
    Duration::from_nanos(of_threads(pid, "schedstat", |text| text.split_whitespace().next()?.parse().ok()))
}

/// Awaits that a process went to sleep and woke up so many times: it had every opportunity to do what it does then.
fn await_wakes(rig: &Rig, pid: u64, times: u64) {
    let wakes = || {
        of_threads(pid, "status", |text| {
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse().ok()
        })
    };
    let enough = wakes() + times;
    rig.until("a process that wakes up again and again", || (wakes() >= enough).then_some(()));
}

const TWO: &str = "# Two\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n\n### T2: more\n- blocked by: T1\n\
    - accept: `test -e made`\n\nMore.\n";

/// A state directory on a disk of its own, on which files may run out while space does not.
fn few_files(plan: &str, agent: &str) -> (Rig, SmallDisk) {
    let rig = Rig::new(plan, agent);
    let disk = SmallDisk::of_files(rig.outside("disk"), 24, 400);
    rig.set("REKINDLE_STATE_DIR", rig.outside("disk/state"));
    (rig, disk)
}

/// Whether the run says that it is held, and for what.
fn held(rig: &Rig) -> Option<serde_json::Value> {
    Some(rig.status()["held"].clone()).filter(|held| held.is_object())
}

#[test]
fn a_check_that_finds_no_room_is_run_again_and_costs_no_attempt() {
    let agent = "echo run >> ran\ntouch here-$REKINDLE_TASK\n$FAKE wait go\ntouch made\n\
        rekindle task done $REKINDLE_TASK >> told 2>&1\n";
    let (rig, disk) = few_files(TWO, agent);
    let run = rig.run();
    rig.await_file("here-T1");
    rig.await_event("agent_started");
    disk.use_up_files();
    rig.touch("go");
    let said = rig.until("what it is held for", || held(&rig));
    assert!(said["reason"].as_str().expect("a reason").contains("disk"), "{said}");
    assert!(said["hint"].as_str().expect("a hint").contains("disk"), "the path to free: {said}");
    assert!(said["since"].is_string(), "{said}");
    let shown = rig.ok(&["status"]);
    assert!(shown.contains("nothing new is started"), "{shown}");
    let task = rig.task("T1");
    assert_eq!((&task["verifying"], &task["attempts"]), (&true.into(), &1.into()), "{task}");
    disk.give_files_back();
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}\n{}", rig.story());
    }
    assert_eq!(rig.lines("ran").len(), 2, "{}", rig.story());
    assert!(held(&rig).is_none());
    rig.audit();
    drop(rig);
    drop(disk);
}

#[test]
fn a_launch_that_is_refused_costs_no_attempt_and_comes_again() {
    let rig = Rig::new(ONE, COUNTS);
    rig.touch("go");
    // Only the first bundle cannot be made: the next attempt has another.
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace.arg("-P").arg(rig.state().join("attempts/00000001"));
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", "trace=mkdir,mkdirat", "-e", "inject=mkdir,mkdirat:error=ENOSPC"])
        .arg(program())
        .args(["run", "plan.md"]);
    let ended = rig.launch(strace).end();
    assert!(!ended.err.contains("strace:"), "strace is needed: {ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    let causes: Vec<_> = rig.events_of("attempt_ended").into_iter().map(|e| e["details"]["cause"].clone()).collect();
    assert_eq!(causes, ["machine", "completed"], "{}", rig.story());
    assert_eq!(rig.events_of("starts_held").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("starts_released").len(), 1, "{}", rig.story());
    was_done_once(&rig);
}

/// Sets how many descriptors a process may have.
fn limit_descriptors(pid: u32, current: u64) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    let before = rustix::process::prlimit(Some(pid), Resource::Nofile, Rlimit { current: None, maximum: None });
    let maximum = before.map_or(None, |before| before.maximum);
    let limit = Rlimit { current: Some(current), maximum: maximum.or(Some(4_096)) };
    rustix::process::prlimit(Some(pid), Resource::Nofile, limit).expect("limited");
}

#[test]
fn output_that_could_not_be_read_is_read_later_and_its_last_signal_counts() {
    let agent = "echo run >> ran\ntouch here\n$FAKE wait go\ntouch made\necho 'TASK_COMPLETE: T1'\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    limit_descriptors(run.pid(), 3);
    rig.touch("go");
    rig.until("the end of the agent", || (rig.living() == [run.pid()]).then_some(()));
    // Whatever is wrong to do without descriptors is done by then.
    await_wakes(&rig, run.pid().into(), 20);
    limit_descriptors(run.pid(), 1_024);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["unreported"], false, "its signal was lost: {}", rig.story());
    was_done_once(&rig);
}

/// A user of its own, who has no other process: the kernel holds nobody but plain users to this limit.
const PLAIN: u32 = 61_237;

/// A command of that user.
fn as_plain_user(rig: &Rig, arguments: &[&str]) -> Command {
    let user = PLAIN.to_string();
    let mut command = Command::new("setpriv");
    rig.prepare(&mut command);
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program()).args(arguments);
    command
}

/// Gives a directory and all in it to that user.
fn give(dir: &std::path::Path) {
    let owner = format!("{PLAIN}:{PLAIN}");
    let given = Command::new("chown").args(["-R", &owner]).arg(dir).status().expect("chown");
    assert!(given.success(), "this test needs root to give files away");
}

/// Sets how many processes and threads its user may have, as a process of that user sees it.
fn limit_processes(pid: u32, soft: &str) {
    let user = PLAIN.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "prlimit"]);
    let set = command.args(["--pid", &pid.to_string(), &format!("--nproc={soft}:")]).status().expect("prlimit");
    assert!(set.success(), "prlimit");
}

#[test]
fn without_a_process_left_for_its_user_a_run_is_held_and_costs_nothing() {
    let agent =
        "echo $REKINDLE_TASK >> ran\ntouch here\n$FAKE wait go\ntouch made\necho \"TASK_COMPLETE: $REKINDLE_TASK\"\n";
    let rig = Rig::new(TWO, agent);
    give(rig.root().parent().expect("a parent"));
    let run = rig.launch(as_plain_user(&rig, &["run", "plan.md"]));
    rig.await_file("here");
    let status = || {
        let ended = rig.launch(as_plain_user(&rig, &["status", "--json"])).end();
        serde_json::from_str::<serde_json::Value>(&ended.out).unwrap_or_default()
    };
    rig.until("the agent", || status()["agents"][0]["pid"].is_u64().then_some(()));
    limit_processes(run.pid(), "1");
    rig.touch("go");
    let held = rig.until("word of the hold", || Some(status()["held"].clone()).filter(serde_json::Value::is_object));
    assert!(held["reason"].as_str().expect("a reason").contains("starts no more processes"), "{held}");
    assert!(held["hint"].as_str().expect("a hint").contains("ulimit -u"), "{held}");
    limit_processes(run.pid(), "1024");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "nobody was started twice: {ended:?}");
    for task in status()["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}");
    }
    rig.assert_nothing_left();
}

/// A run on a disk that is full to the last byte, with something to be written down.
fn stuck() -> (Rig, SmallDisk, Running) {
    let agent = "touch here\n$FAKE wait go\ntouch made claiming\nrekindle task done $REKINDLE_TASK > told 2>&1\n";
    let rig = Rig::new(ONE, agent);
    let disk = SmallDisk::new(rig.outside("disk"), 24);
    rig.set("REKINDLE_STATE_DIR", rig.outside("disk/state"));
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    disk.fill();
    rig.touch("go");
    rig.await_file("claiming");
    // Small things may still fit into what files have left of their last pages; this does not.
    let note = rig.start(&["note", &"x".repeat(60_000)]);
    rig.until("word of the full disk", || run.said().contains("cannot be written").then_some(()));
    drop(note);
    (rig, disk, run)
}

/// With room again the run is finished, and the full disk cost no attempt.
fn goes_on_with_room(rig: Rig, disk: SmallDisk) {
    disk.relieve();
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.audit();
    // Nothing may be open on the disk when it goes.
    drop(rig);
    drop(disk);
}

#[test]
fn a_full_disk_is_told_and_ctrl_c_is_heard() {
    let (rig, disk, mut run) = stuck();
    run.signal(Signal::INT);
    rig.until("an answer to Ctrl-C", || run.said().contains("Ctrl-C again").then_some(()));
    assert!(run.has_ended().is_none(), "the first Ctrl-C pauses: {}", run.said());
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.err.contains("rekindle resume"), "{ended:?}");
    goes_on_with_room(rig, disk);
}

#[test]
fn a_full_disk_does_not_keep_a_coordinator_that_is_told_to_leave() {
    let (rig, disk, run) = stuck();
    run.signal(Signal::TERM);
    let ended = run.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    assert!(ended.err.contains("cannot be written"), "{ended:?}");
    goes_on_with_room(rig, disk);
}

#[test]
fn a_claim_that_a_second_coordinator_has_no_room_to_prove_is_answered() {
    let (rig, disk, run) = stuck();
    run.kill();
    let second = rig.run();
    let told = rig.until("word of the claim", || {
        std::fs::read_to_string(rig.path("told")).ok().filter(|told| told.lines().count() > 1)
    });
    assert!(told.contains("task T1 is claimed and not proven yet") && told.contains("df -h"), "{told}");
    // Its terminal said so before that.
    assert!(second.said().contains("nothing new is started: only 0 KiB are free"), "{}", second.said());
    disk.relieve();
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = rig.task("T1");
    assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}");
    rig.audit();
    // Nothing may be open on the disk when it goes.
    drop(rig);
    drop(disk);
}
