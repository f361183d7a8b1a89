//! Refusals at the commands of a person: a command does what it says or says that it did not, one that may have been taken is never
//! told as not taken, and the run beside it does not notice.

use std::process::Command;

use crate::refusal_points::{ERRORS, EXECVE, every_group, names_of, not_covered};
use crate::rig::{Ended, Rig, program};

const PLAN: &str = "# Commands\n\n### T1: first\n- accept: `test -e made`\n\nWork.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -e made`\n\nWork.\n";

/// Asks, waits for the answer, and for the test.
const AGENT: &str = "echo $REKINDLE_TASK >> ran\n\
    test $REKINDLE_TASK = T1 && ! test -s way && rekindle ask 'which way?' --wait > way\n\
    $FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK\n";

/// Points tried of each kind: the first is the loader's where it makes such calls.
const POINTS: [usize; 2] = [1, 4];

/// A command of which the Nth call of a kind is refused, in each of its threads.
fn refused(rig: &Rig, calls: &str, nth: usize, error: &str, arguments: &[&str]) -> Ended {
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace
        .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={nth}")])
        .arg(program())
        .args(arguments);
    rig.launch(strace).end()
}

/// It ended by itself, and said what is wrong where something is. The loader speaks for itself.
fn spoke(point: &str, ended: &Ended) -> bool {
    assert!(!ended.err.contains("panicked"), "{point}: {ended:?}");
    // Without memory the loader dies of a signal, before the program's own first instruction.
    let loading = ["mmap", "brk"].iter().any(|call| point.contains(call));
    assert!(matches!(ended.code, Some(0..=2 | 127)) || loading, "{point}: {ended:?}");
    let told = ended.code == Some(0) || !ended.err.trim().is_empty();
    // A standard error that is refused tells nobody anything.
    assert!(told || point.contains("write") || loading, "{point}: {ended:?}");
    ended.code == Some(0)
}

/// Every group with its points and an error each.
fn points() -> impl Iterator<Item = (&'static str, usize, &'static str)> {
    every_group().iter().enumerate().filter(|(_, calls)| **calls != EXECVE).flat_map(|(index, calls)| {
        let of = move |(at, nth)| (*calls, nth, ERRORS[(index + at) % ERRORS.len()]);
        POINTS.into_iter().enumerate().map(of)
    })
}

/// A run whose first agent waits for an answer and for the test.
fn waiting() -> (Rig, crate::rig::Running) {
    let rig = Rig::new(PLAN, AGENT);
    let run = rig.run();
    rig.await_event("question_asked");
    (rig, run)
}

/// Nobody was started twice, and the rest of the plan is done.
fn ends_well(rig: &Rig, run: crate::rig::Running, ran: &[&str]) {
    rig.ok(&["answer", "1", "left"]);
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.lines("ran"), ran, "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.assert_nothing_left();
    rig.audit();
}

#[test]
fn views_show_the_truth_or_say_that_they_cannot() {
    let (rig, run) = waiting();
    for (calls, nth, error) in points() {
        for arguments in [&["status", "--json"][..], &["questions", "--json"], &["why", "T1"]] {
            let point = format!("{arguments:?} {calls} {nth} {error}");
            let ended = refused(&rig, calls, nth, error, arguments);
            if spoke(&point, &ended) && arguments[0] == "status" {
                let status: serde_json::Value = serde_json::from_str(&ended.out).expect("whole JSON");
                assert_eq!(status["tasks"][0]["state"], "blocked", "it waits for an answer: {point}: {status}");
                assert_eq!(status["questions"], 1, "{point}: {status}");
            }
        }
    }
    ends_well(&rig, run, &["T1", "T2"]);
}

/// Leaves a task out and opens it again, refused at one point after another.
fn order_about(rig: &Rig) {
    for (calls, nth, error) in points() {
        for (act, state) in [("skip", "skipped"), ("retry", "blocked")] {
            let point = format!("{act} {calls} {nth} {error}");
            let ended = refused(rig, calls, nth, error, &["task", act, "T2"]);
            let taken = spoke(&point, &ended);
            let found = rig.task("T2")["state"].clone();
            if taken {
                assert_eq!(found, state, "{point}: told as done: {ended:?}");
            } else if found == state {
                let unsure = ["may have been accepted", "not confirmed", "is not known"];
                assert!(
                    unsure.iter().any(|words| ended.err.contains(words)),
                    "{point}: was done, and told as not done: {ended:?}"
                );
            }
            // Given again it is done, whatever became of the first.
            if found != state {
                rig.ok(&["task", act, "T2"]);
            }
            assert_eq!(rig.task("T2")["state"], state, "{point}");
        }
    }
}

#[test]
fn orders_are_taken_or_told_as_not_taken() {
    let (rig, run) = waiting();
    order_about(&rig);
    ends_well(&rig, run, &["T1", "T2"]);
}

#[test]
fn orders_without_a_coordinator_are_written_or_told_as_not_written() {
    let (rig, run) = waiting();
    run.kill();
    order_about(&rig);
    let run = rig.run();
    rig.await_event("agent_adopted");
    ends_well(&rig, run, &["T1", "T2"]);
}

#[test]
fn whoever_wants_to_attach_starts_nobody_beside_the_run() {
    let (rig, run) = waiting();
    for (calls, nth, error) in points() {
        let mut strace = Command::new("strace");
        rig.prepare(&mut strace);
        strace
            .args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"])
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={nth}")])
            .arg(program())
            .args(["run", "plan.md"]);
        let mut second = rig.launch(strace);
        // It shows the run, or has said why it cannot; where its words are refused it does so in silence.
        let point = format!("a view or an error at {calls} {nth} {error}");
        rig.until(&point, || {
            // A strace that is killed before its child has become the program leaves a child that waits for it for ever.
            let silent = calls.contains("write") && has_begun(second.pid());
            let attached = second.said().contains("attached as a view") || silent;
            (attached || second.has_ended().is_some()).then_some(())
        });
        assert!(!second.said().contains("panicked"), "{calls} {nth} {error}: {}", second.said());
        second.kill();
        assert_eq!(rig.status()["coordinator"]["pid"], run.pid(), "{calls} {nth} {error}");
    }
    ends_well(&rig, run, &["T1", "T2"]);
}

/// Whether a child of this process has become the program.
fn has_begun(strace: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap_or_default();
    let own = program().canonicalize().expect("the program");
    children.split_whitespace().any(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == own))
}

/// A pause and an answer that nobody took are given again; what was paused goes on with the same agents' work.
#[test]
fn a_pause_and_an_answer_hold_too() {
    for (calls, nth, error) in points().step_by(5) {
        let (rig, run) = waiting();
        let point = format!("{calls} {nth} {error}");
        let ended = refused(&rig, calls, nth, error, &["answer", "1", "left"]);
        let taken = spoke(&format!("answer {point}"), &ended);
        let open = rig.status()["questions"] == 1;
        assert!(!taken || !open, "{point}: {ended:?}");
        if open {
            rig.ok(&["answer", "1", "left"]);
        }
        rig.until("the answer", || (!rig.lines("way").is_empty()).then_some(()));
        assert_eq!(rig.lines("way"), ["left"], "{point}");
        let ended = refused(&rig, calls, nth, error, &["pause"]);
        if !spoke(&format!("pause {point}"), &ended) {
            let again = rig.rekindle(&["pause"]);
            assert!(matches!(again.code, Some(0 | 1)), "{point}: {again:?}");
        }
        let paused = run.end();
        assert_eq!(paused.code, Some(4), "{point}: {paused:?}\n{}", rig.story());
        rig.touch("go");
        assert_eq!(rig.start(&["resume"]).end().code, Some(0), "{point}: {}", rig.story());
        let task = rig.task("T1");
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{point}: {task}");
        rig.assert_nothing_left();
        rig.audit();
    }
}

/// A kind of call that nobody thought of is a refusal that nobody tried.
#[test]
fn every_kind_of_call_of_a_command_is_tried_or_cannot_refuse() {
    let (rig, run) = waiting();
    for arguments in [&["status"][..], &["questions"], &["task", "skip", "T2"], &["task", "retry", "T2"], &["pause"]] {
        let log = rig.outside("calls");
        let mut strace = Command::new("strace");
        rig.prepare(&mut strace);
        strace.args(["-f", "-b", "execve", "-qq", "-o"]).arg(&log).arg(program()).args(arguments);
        let ended = rig.launch(strace).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let made = names_of(&String::from_utf8_lossy(&std::fs::read(&log).expect("what strace wrote")));
        assert!(made.contains("openat") && made.len() > 10, "strace is needed: {made:?}");
        let new = not_covered(&made);
        assert!(
            new.is_empty(),
            "{arguments:?}: add to a group of refusal_points, or to NOT_TRIED with a reason: {new:?}"
        );
    }
    let _paused = run.end();
}
