//! A plan that is reloaded while its run goes on in worktrees, and somebody is killed on the way: the command at every kind of call
//! it makes, the coordinator at every kind of call it makes for it, and the coordinator while standing work is proven anew. A reload is
//! there whole or not at all, it can be given again, and what follows is done once.

use std::process::{Child, Command, Stdio};

use crate::crash_points::ALL;
use crate::rig::{Rig, Running, program};

const BEFORE: &str = "---\nisolation: worktree\n---\n# Change\n\n\
    ### T1: first\n- accept: `test -s made-T1`\n\nWork.\n\n\
    ### T2: second\n- accept: `test -s made-T2`\n\nWork.\n\n\
    ### T4: fourth\n- blocked by: T2\n- accept: `test -s made-T4`\n\nWork.\n";

/// T2 works until it is let go.
const AGENT: &str = "echo \"$REKINDLE_TASK\" >> \"$HERE/ran\"\necho \"$REKINDLE_TASK\" > made-$REKINDLE_TASK\n\
    if [ $REKINDLE_TASK = T2 ]; then touch \"$HERE/here\"; $FAKE wait \"$HERE/go\"; fi\nrekindle task done $REKINDLE_TASK\n";

/// A check more for T1, which is complete; other words for T2, which is being worked on; T3 more; T4 gone.
fn after(rig: &Rig) -> String {
    let (here, fake) = (rig.root().display(), env!("CARGO_BIN_EXE_fake-agent"));
    let proof = format!("touch {here}/proving; {fake} wait {here}/prove; test -s made-T1");
    format!(
        "---\nisolation: worktree\n---\n# Change\n\n\
         ### T1: first\n- accept: `{proof}`\n\nWork.\n\n\
         ### T2: second\n- accept: `test -s made-T2`\n\nWork anew.\n\n\
         ### T3: third\n- blocked by: T1\n- accept: `test -s made-T3`\n\nWork.\n"
    )
}

/// A run in the middle: T1 is complete and merged, T2 is being worked on, and the file has changed.
fn middle() -> (Rig, Running) {
    let rig = Rig::new(BEFORE, AGENT);
    rig.write(".gitignore", "ran\nhere\ngo\nproving\nprove\n.rekindle\n");
    rig.commit_first(".");
    rig.set("HERE", rig.root());
    let run = rig.run();
    rig.await_file("here");
    rig.until("T1 is complete", || (rig.task("T1")["state"] == "complete").then_some(()));
    rig.write("plan.md", &after(&rig));
    (rig, run)
}

fn ran(rig: &Rig, task: &str) -> usize {
    rig.lines("ran").iter().filter(|line| *line == task).count()
}

/// Whether the run has the new plan: all of it, or nothing.
fn has_it(rig: &Rig, at: &str) -> bool {
    let status = rig.status();
    let ids: Vec<&str> =
        status["tasks"].as_array().expect("tasks").iter().filter_map(|task| task["id"].as_str()).collect();
    let plan = rig.ok(&["plan", "export"]);
    let signs = [
        ids.contains(&"T3"),
        rig.task("T4")["state"] == "skipped",
        plan.contains("Work anew."),
        plan.contains("proving"),
    ];
    let taken = rig.events_of("plan_reloaded").len() == 1;
    assert_eq!(signs, [taken; 4], "all or nothing, {at}: {}", rig.story());
    taken
}

/// The reload is given again, somebody coordinates, and everything that follows from it is done once.
fn comes_to_its_end(rig: &Rig, run: Option<Running>, at: &str) {
    let before = has_it(rig, at);
    rig.ok(&["plan", "reload", "--yes"]);
    assert!(has_it(rig, at));
    let mut run = run.unwrap_or_else(|| rig.run());
    rig.touch("prove");
    rig.until("T2 is worked on anew", || (ran(rig, "T2") == 2).then_some(()));
    rig.touch("go");
    let status = run.wait();
    assert_eq!(status.code(), Some(0), "{at}, taken before {before}: {}\n{}", run.said(), rig.story());
    let times = ["T1", "T2", "T3", "T4"].map(|task| ran(rig, task));
    assert_eq!(times, [1, 2, 1, 0], "{at}, taken before {before}: {}", rig.story());
    assert_eq!(rig.events_of("plan_reloaded").len(), 1, "once, {at}: {}", rig.story());
    let proven = rig.events_of("checks_finished").into_iter().filter(|event| event["task"] == "T1").count();
    assert!(proven >= 2, "T1 was proven by its new check, {at}: {}", rig.story());
    let branch = rig.await_event("branch_made")["details"]["branch"].as_str().expect("a branch").to_owned();
    for task in ["T1", "T2", "T3"] {
        assert_eq!(rig.task(task)["state"], "complete", "{at}: {}", rig.story());
        assert_eq!(rig.git(&["show", &format!("{branch}:made-{task}")]), task, "{at}");
    }
    rig.audit();
}

/// Points to try: the given ones, or every one up to the last of them.
fn points(few: &[usize]) -> Vec<usize> {
    match std::env::var_os(ALL) {
        Some(_) => (1..=few.last().copied().unwrap_or(1)).collect(),
        None => few.to_vec(),
    }
}

fn killing(calls: &str, nth: usize) -> [String; 4] {
    let inject = format!("inject={calls}:signal=SIGKILL:when={nth}");
    ["-e".to_owned(), format!("trace={calls}"), "-e".to_owned(), inject]
}

/// The file is read, compared and handed over; whoever does that is killed at one call after another.
#[test]
fn the_command_is_killed_at_every_kind_of_call() {
    let mut killed = 0;
    for (calls, few) in
        [("openat", &[2, 9, 24][..]), ("read", &[3, 12]), ("connect", &[1, 2]), ("sendto,write", &[1, 2, 3])]
    {
        for nth in points(few) {
            let (rig, run) = middle();
            let mut strace = Command::new("strace");
            rig.prepare(&mut strace);
            strace.args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"]).args(killing(calls, nth));
            let ended = rig.launch({
                strace.arg(program()).args(["plan", "reload", "--yes"]);
                strace
            });
            let ended = ended.end();
            assert!(!ended.err.contains("strace:"), "strace is needed: {ended:?}");
            killed += usize::from(ended.code != Some(0));
            comes_to_its_end(&rig, Some(run), &format!("the command at {calls} {nth}"));
        }
    }
    assert!(killed >= 6, "only {killed} points were reached");
}

/// A tracer that holds a coordinator and kills it at a call; it ends with it.
fn doom(rig: &Rig, pid: u32, calls: &str, nth: usize) -> Child {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(killing(calls, nth))
        .args(["-p", &pid.to_string()]);
    let mut tracer = strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("strace");
    let held = |thread: &std::path::Path| {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|by| by.trim() != "0"))
    };
    rig.until("every thread is held", || {
        // It may reach the call by itself before it is asked for anything.
        if tracer.try_wait().expect("asked").is_some() {
            assert!(rig.pinned(pid).is_none(), "strace is needed, and may attach");
            return Some(());
        }
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        threads.flatten().all(|thread| held(&thread.path())).then_some(())
    });
    tracer
}

/// The order is taken, put down and acted on: the agent of T2 is stopped, T1 is proven anew, worktrees are made.
fn the_coordinator_is_killed_at(calls: &str, few: &[usize], least: usize) {
    let mut killed = 0;
    for nth in points(few) {
        let (rig, mut run) = middle();
        let mut tracer = doom(&rig, run.pid(), calls, nth);
        // Whether it was answered depends on when the coordinator is killed.
        let told = rig.rekindle(&["plan", "reload", "--yes"]);
        rig.touch("prove");
        // Either it dies of it, or it has done all that follows.
        let gone = rig.until("its death, or all that follows", || match run.has_ended() {
            Some(_) => Some(true),
            None => (ran(&rig, "T2") == 2 && ran(&rig, "T3") == 1).then_some(false),
        });
        assert!(gone || told.code == Some(0), "{told:?}\n{}", rig.story());
        killed += usize::from(gone);
        let _ended = tracer.kill();
        let _reaped = tracer.wait();
        comes_to_its_end(&rig, (!gone).then_some(run), &format!("the coordinator at {calls} {nth}"));
    }
    assert!(killed >= least, "{calls}: only {killed} points were reached");
}

#[test]
fn the_coordinator_is_killed_as_the_order_arrives_and_is_put_down() {
    the_coordinator_is_killed_at("pwrite64,fdatasync", &[1, 2, 4, 7, 11], 4);
    the_coordinator_is_killed_at("recvfrom,sendto", &[1, 2], 1);
}

#[test]
fn the_coordinator_is_killed_as_work_is_proven_anew_and_worktrees_are_made() {
    the_coordinator_is_killed_at("clone,clone3,vfork", &[1, 2, 3, 5, 8], 3);
    the_coordinator_is_killed_at("openat", &[1, 8, 25, 60], 3);
}

/// The workspace of a task that has just been completed is being removed while its work is to be proven anew in it.
#[test]
fn work_that_was_completed_a_moment_ago_is_proven_anew_by_nobody_but_its_checks() {
    for round in 0..4 {
        let (rig, run) = middle();
        rig.touch("prove");
        rig.ok(&["plan", "reload", "--yes"]);
        comes_to_its_end(&rig, Some(run), &format!("nobody is killed, round {round}"));
    }
}

#[test]
fn the_coordinator_is_killed_while_the_new_check_runs() {
    let (rig, run) = middle();
    rig.ok(&["plan", "reload", "--yes"]);
    rig.await_file("proving");
    run.kill();
    assert!(has_it(&rig, "while it proves"));
    assert_eq!(rig.events_of("checks_finished").into_iter().filter(|event| event["task"] == "T1").count(), 1);
    comes_to_its_end(&rig, None, "while it proves");
}
