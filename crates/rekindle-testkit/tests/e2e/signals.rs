//! How `run` ends and is ended: exit codes, keys, signals, a terminal that closes, the background.

use std::process::Stdio;

use rustix::process::Signal;

use crate::rig::Rig;

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";

/// Works until it is told; leaves when it is asked to.
const WAITS: &str = "echo \"$REKINDLE_TASK $REKINDLE_ATTEMPT $$\" >> ran\n$FAKE wait go || exit 5\ntouch made\n\
    rekindle task done $REKINDLE_TASK\n";

/// The same, deaf to whoever asks it to leave.
const DEAF: &str = "trap '' INT TERM\necho \"$REKINDLE_TASK $REKINDLE_ATTEMPT $$\" >> ran\n$FAKE wait go\ntouch made\n\
    rekindle task done $REKINDLE_TASK\n";

fn working(rig: &Rig) {
    rig.until("an agent at work", || (!rig.lines("ran").is_empty()).then_some(()));
    rig.await_event("agent_started");
}

/// The same command goes on after a pause, and the pause cost no attempt.
fn goes_on(rig: &Rig) {
    assert_eq!(rig.status()["run"]["state"], "paused", "{}", rig.story());
    assert!(rig.status()["coordinator"].is_null());
    rig.assert_nothing_left();
    rig.touch("go");
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    assert_eq!(rig.events_of("session_resume").len(), 1, "{}", rig.story());
    rig.audit();
}

#[test]
fn ctrl_c_pauses_with_130_and_the_same_command_goes_on() {
    let rig = Rig::new(ONE, WAITS);
    let run = rig.run();
    working(&rig);
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("session_pause").len(), 1);
    goes_on(&rig);
}

#[test]
fn sigterm_pauses_with_143() {
    let rig = Rig::new(ONE, WAITS);
    let run = rig.run();
    working(&rig);
    run.signal(Signal::TERM);
    let ended = run.end();
    assert_eq!(ended.code, Some(143), "{ended:?}\n{}", rig.story());
    goes_on(&rig);
}

#[test]
fn a_second_ctrl_c_stops_at_once() {
    // With this grace the first alone would take two minutes, longer than the test waits.
    let rig = Rig::new(ONE, DEAF);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let rig = rig.with_settings(&settings.replace("300ms", "1m"));
    let run = rig.run();
    working(&rig);
    run.signal(Signal::INT);
    rig.await_event("session_pause");
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}\n{}", rig.story());
    goes_on(&rig);
}

#[test]
fn rekindle_pause_ends_run_with_4_and_stop_too() {
    for order in ["pause", "stop"] {
        let rig = Rig::new(ONE, DEAF);
        let run = rig.run();
        working(&rig);
        rig.ok(&[order]);
        let ended = run.end();
        assert_eq!(ended.code, Some(4), "{order}: {ended:?}\n{}", rig.story());
        goes_on(&rig);
    }
}

#[test]
fn a_hang_up_leaves_the_coordinator_at_work() {
    let rig = Rig::new(ONE, WAITS);
    let mut run = rig.run();
    working(&rig);
    run.signal(Signal::HUP);
    rig.touch("go");
    rig.await_event("run_finished");
    assert_eq!(run.wait().code(), Some(0));
    assert_eq!(rig.status()["run"]["state"], "complete");
    rig.audit();
}

/// A real terminal that is closed: its hang-up reaches the foreground, its writes fail, the run goes on.
#[test]
fn a_closed_terminal_stops_nothing() {
    let rig = Rig::new(ONE, WAITS);
    rig.write(
        "terminal.py",
        "import os, pty, sys, time\n\
         pid, terminal = pty.fork()\n\
         if pid == 0:\n\
        \x20   os.execv(sys.argv[1], [sys.argv[1], 'run', 'plan.md'])\n\
         seen = b''\n\
         while not os.path.exists('ran') or b'T1' not in seen:\n\
        \x20   seen += os.read(terminal, 65536)\n\
         os.close(terminal)\n\
         print(pid)\n",
    );
    let mut python = std::process::Command::new("python3");
    rig.prepare(&mut python);
    python.args(["terminal.py"]).arg(crate::rig::program()).env("TERM", "xterm");
    let ended = rig.launch(python).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let pid: u64 = ended.out.trim().parse().expect("the coordinator's process");
    working(&rig);
    assert_eq!(rig.status()["coordinator"]["pid"], pid, "{}", rig.story());
    rig.touch("go");
    rig.await_event("run_finished");
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
}

#[test]
fn a_detached_run_is_watched_followed_and_joined() {
    let rig =
        Rig::new(ONE, "echo hello\n$FAKE wait go\ntouch made\necho farewell\nrekindle task done $REKINDLE_TASK\n");
    let said = rig.rekindle(&["run", "plan.md", "--detach"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let status = rig.status();
    let pid = status["coordinator"]["pid"].as_u64().expect("pid");
    assert!(said.err.contains(&pid.to_string()), "{said:?}");
    assert!(status["coordinator"]["since"].is_string());
    rig.await_event("agent_started");
    let mut follow = rig.start(&["logs", "developer-T1", "--follow"]);
    let mut view = rig.run();
    rig.until("a line that is followed", || follow.printed().contains("hello").then_some(()));
    rig.until("a view", || view.said().contains("attached").then_some(()));
    assert!(follow.has_ended().is_none() && view.has_ended().is_none());
    assert_eq!(rig.status()["coordinator"]["pid"], pid, "the view is no coordinator");
    rig.touch("go");
    let (follow, view) = (follow.end(), view.end());
    assert_eq!((follow.code, view.code), (Some(0), Some(0)), "{follow:?} {view:?}");
    assert!(follow.out.contains("farewell"), "{follow:?}");
    assert!(view.out.contains("1 of 1 task complete"), "{view:?}");
    // Once finished, the same command tells how it ended.
    let again = rig.run().end();
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(rig.events_of("run_started").len(), 1);
    rig.audit();
}

#[test]
fn leaving_a_view_changes_nothing() {
    let rig = Rig::new(ONE, WAITS);
    let run = rig.run();
    working(&rig);
    let view = rig.run();
    rig.until("a view", || view.said().contains("attached").then_some(()));
    view.signal(Signal::INT);
    view.end();
    assert_eq!(rig.status()["run"]["state"], "running");
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}

#[test]
fn nobody_reading_the_output_does_not_matter() {
    let rig = Rig::new(ONE, WAITS);
    rig.touch("go");
    let mut command = rig.command(&["run", "plan.md"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    drop(child.stdout.take());
    drop(child.stderr.take());
    rig.await_event("run_finished");
    child.wait().expect("ended");
    assert_eq!(rig.task("T1")["state"], "complete");
    rig.audit();
}
