//! A plan that changes while its run goes on, with real processes: with a living coordinator and without one, with worktrees, at a
//! terminal, and killed at every stage.

use std::process::Command;

use crate::rig::{Rig, program};
use crate::terminal::Terminal;

const PLAN: &str = "# Change\n\n### T1: first\n- accept: `test -s made`\n\nWork.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s made`\n\nWork.\n";

const AGENT: &str = "echo \"$REKINDLE_TASK\" >> ran\necho yes > made\nrekindle task done $REKINDLE_TASK\n";

/// Its last task waits for a file.
const WAITS: &str = "echo \"$REKINDLE_TASK\" >> ran\necho yes > made\n\
    if [ $REKINDLE_TASK = T2 ]; then touch here; $FAKE wait go; fi\nrekindle task done $REKINDLE_TASK\n";

fn more(plan: &str) -> String {
    format!("{plan}\n### T3: third\n- blocked by: T2\n- accept: `test -s made`\n\nWork.\n")
}

fn states(rig: &Rig) -> Vec<String> {
    let status = rig.status();
    let tasks = status["tasks"].as_array().expect("tasks");
    tasks.iter().map(|task| format!("{} {}", task["id"], task["state"]).replace('"', "")).collect()
}

#[test]
fn a_living_coordinator_takes_a_changed_plan_over() {
    let rig = Rig::new(PLAN, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.write(
        "plan.md",
        &more(PLAN).replace("### T1: first\n- accept: `test -s made`", "### T1: first\n- accept: `test -e made`"),
    );
    rig.ok(&["plan", "reload", "--yes"]);
    rig.until("T1 is proven by its new check", || {
        let proven = rig.events_of("checks_finished").into_iter().filter(|event| event["task"] == "T1").count();
        (proven == 2).then_some(())
    });
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.lines("ran"), ["T1", "T2", "T3"], "nobody worked on T1 again");
    assert_eq!(states(&rig), ["T1 complete", "T2 complete", "T3 complete"]);
    rig.audit();
}

#[test]
fn a_removed_task_stops_its_agent_and_keeps_its_work() {
    let rig = Rig::new(PLAN, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.write("plan.md", "# Change\n\n### T1: first\n- accept: `test -s made`\n\nWork.\n");
    rig.ok(&["plan", "reload", "--yes"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(states(&rig), ["T1 complete", "T2 skipped"]);
    assert!(rig.has("made"));
    rig.assert_nothing_left();
    rig.audit();
}

#[test]
fn a_finished_run_that_is_extended_goes_on_in_its_branch() {
    let plan = format!("---\nisolation: worktree\n---\n{PLAN}");
    let rig = Rig::new(&plan, AGENT);
    rig.commit_first("-A");
    rig.finish();
    let branch = rig.await_event("branch_made")["details"]["branch"].as_str().expect("a branch").to_owned();
    let before = rig.git(&["rev-parse", &branch]);
    rig.write("plan.md", &more(&plan));
    rig.ok(&["plan", "reload", "--yes"]);
    rig.ok(&["task", "add", "fourth", "--after", "T3", "--accept", "test -s made"]);
    rig.finish();
    assert_eq!(rig.events_of("branch_made").len(), 1, "no other branch");
    rig.git(&["merge-base", "--is-ancestor", before.trim(), &branch]);
    let merged = rig.task("T3")["merged"].as_str().expect("merged").to_owned();
    rig.git(&["merge-base", "--is-ancestor", &merged, &branch]);
    assert_eq!(states(&rig), ["T1 complete", "T2 complete", "T3 complete", "T4 complete"]);
    assert_eq!(rig.events_of("run_started").len(), 1, "the same run");
    rig.audit();
}

#[test]
fn the_operators_word_outlives_a_crash() {
    let rig = Rig::new(PLAN, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.ok(&["task", "done", "T2"]);
    // What its check would say against it.
    std::fs::remove_file(rig.path("made")).expect("removed");
    run.kill();
    let ended = rig.run().end();
    assert_eq!(rig.task("T2")["state"], "complete", "{ended:?}\n{}", rig.story());
    let reopened = rig.events_of("task_reopened");
    assert!(reopened.iter().all(|event| event["task"] != "T2"), "{reopened:?}");
}

/// The reload is killed as it enters the Nth call of a kind; after that either nothing or all of it is there, and it can be
/// given again.
fn killed_at(calls: &str, nth: usize) -> bool {
    let rig = Rig::new(PLAN, AGENT);
    rig.finish();
    rig.write("plan.md", &more(PLAN));
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:signal=SIGKILL:when={nth}")])
        .arg(program())
        .args(["plan", "reload", "--yes"]);
    let first = rig.launch(strace).end();
    assert!(!first.err.contains("strace:"), "strace is needed: {first:?}");
    let taken = rig.events_of("plan_reloaded").len();
    let tasks = states(&rig).len();
    assert_eq!(tasks, 2 + taken, "all or nothing at {calls} {nth}: {}", rig.story());
    rig.ok(&["plan", "reload", "--yes"]);
    rig.finish();
    assert_eq!(rig.events_of("plan_reloaded").len(), 1, "once, at {calls} {nth}");
    assert_eq!(rig.lines("ran"), ["T1", "T2", "T3"], "at {calls} {nth}: {}", rig.story());
    rig.audit();
    first.code != Some(0)
}

#[test]
fn a_reload_that_is_killed_at_any_stage_is_all_or_nothing() {
    let mut killed = 0;
    for calls in ["fdatasync", "pwrite64", "openat", "flock,fcntl"] {
        for nth in [1, 2, 3, 5, 8, 13] {
            killed += usize::from(killed_at(calls, nth));
        }
    }
    assert!(killed >= 8, "only {killed} points were reached");
}

#[test]
fn a_coordinator_that_is_killed_behind_a_reload_carries_it_out_when_it_is_back() {
    let rig = Rig::new(PLAN, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.write("plan.md", &more(PLAN).replace("second\n- blocked by: T1", "second, anew\n- blocked by: T1"));
    rig.ok(&["plan", "reload", "--yes"]);
    run.kill();
    rig.touch("go");
    rig.finish();
    assert_eq!(states(&rig), ["T1 complete", "T2 complete", "T3 complete"]);
    assert_eq!(rig.lines("ran"), ["T1", "T2", "T2", "T3"], "T2 was done anew by its new title: {}", rig.story());
    rig.audit();
}

#[test]
fn run_asks_at_a_terminal() {
    let rig = Rig::new(PLAN, AGENT);
    rig.finish();
    rig.write("plan.md", &more(PLAN));
    let terminal = Terminal::open(&rig, 120, 40);
    terminal.line(&format!("{} run plan.md", program().display()));
    terminal.shows("+ T3 third");
    terminal.shows("[y/N]");
    terminal.keys(&["y", "Enter"]);
    rig.until("T3 is complete", || {
        let all = states(&rig) == ["T1 complete", "T2 complete", "T3 complete"];
        (all && rig.status()["run"]["state"] == "complete").then_some(())
    });
}
