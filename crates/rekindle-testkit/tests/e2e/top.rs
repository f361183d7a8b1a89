//! `rekindle top` in a real terminal over a live run: tmux is the terminal, keys are sent and the screen is read as a person does.

use rustix::process::Signal;

use crate::rig::{Rig, program, until};
use crate::terminal::Terminal;

/// One task asks, one fails until it is mended, one talks on and on.
const PLAN: &str = "# Three\n\n### T1: paint the roof\n- accept: `test -e painted`\n\nPaint.\n\n\
    ### T2: mend the gutter\n- accept: `test -e mended`\n- attempts: 1\n\nMend.\n\n\
    ### T3: count the tiles\n- accept: `test -e counted`\n\nCount.\n";

const AGENT: &str = "case $REKINDLE_TASK in\n\
    T1) rekindle ask 'which colour?' --option red --option blue --context 'it rains' --wait > colour && touch painted ;;\n\
    T2) test -e ladder && touch mended ;;\n\
    T3) printf 'tile 1 \\033[2J\\033]0;evil\\007\\n'; $FAKE wait more; echo 'tile 2'; $FAKE wait stop; touch counted ;;\n\
    esac\nrekindle task done $REKINDLE_TASK\n";

/// The terminal itself says whether it is light, whatever the environment says; its answer reaches nobody else.
#[test]
fn a_light_terminal_is_recognised_and_its_answer_goes_nowhere() {
    let rig = Rig::new(PLAN, AGENT);
    let _running = rig.run();
    rig.await_event("question_asked");
    let terminal = Terminal::open(&rig, 100, 30);
    for (ground, wrong, colour) in [("#ffffff", "15;0", 5), ("#fdf6e3", "15;0", 5), ("#002b36", "0;15", 3)] {
        terminal.tmux(&["set-option", "-g", "window-style", &format!("bg={ground}")]);
        terminal.line(&format!("export COLORFGBG='{wrong}'"));
        terminal.top("");
        // The word about the question: magenta can be read on white, yellow on black.
        let warned = || {
            let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
            let before = screen.split_once("? 1 asks you")?.0.to_owned();
            let codes = before.rsplit_once("\u{1b}[")?.1.trim_end_matches('m').to_owned();
            (codes.ends_with(&format!("38;5;{colour}")) || codes.ends_with(&format!("3{colour}"))).then_some(())
        };
        until(warned).unwrap_or_else(|| panic!("{ground}: {}", terminal.tmux(&["capture-pane", "-p", "-e"])));
        let screen = terminal.screen();
        assert!(!screen.contains("rgb") && !screen.contains("11;"), "the answer is on the screen: {screen}");
        terminal.keys(&["q"]);
        terminal.assert_given_back();
        terminal.line("clear");
        terminal.awaits("nothing but the prompt", |screen| screen.trim() == "ready>");
    }
}

#[test]
fn lost_events_are_asked_and_answered_here_too() {
    let rig = crate::trust::bundles::with_an_old_log();
    let terminal = Terminal::open(&rig, 160, 50);
    terminal.top("");
    terminal.shows("state asks you: the state has lost events");
    terminal.keys(&["a"]);
    terminal.shows("restore: nothing is started");
    terminal.keys(&["Enter"]);
    terminal.awaits("an answered question", |screen| !screen.contains("state asks you"));
    assert_eq!(rig.status()["questions"], 0);
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn a_person_watches_answers_retries_and_leaves_and_the_run_goes_on() {
    let rig = Rig::new(PLAN, AGENT);
    let mut running = rig.run();
    rig.await_event("question_asked");
    rig.await_event("workflow_failed");
    let terminal = Terminal::open(&rig, 120, 40);
    terminal.top("");

    // What needs a person comes first, in words.
    let screen = terminal.shows("T1 asks you: which colour?");
    assert!(screen.contains("T2 failed") && screen.contains("T3"), "{screen}");

    // The question is answered in place; the run sees it and the screen shows what follows.
    terminal.keys(&["a"]);
    terminal.shows("it rains");
    terminal.keys(&["Down", "Enter"]);
    terminal.shows("question 1 is answered");
    rig.until("the answer", || (!rig.lines("colour").is_empty()).then_some(()));
    assert_eq!(rig.lines("colour"), ["blue"]);
    terminal
        .awaits("T1 done", |screen| screen.lines().any(|line| line.contains("T1 paint") && line.contains("complete")));

    // The failed task is retried, and only after yes.
    rig.touch("ladder");
    terminal.keys(&["/"]);
    terminal.text("gutter");
    terminal.keys(&["Enter"]);
    terminal.awaits("the filter", |screen| screen.contains("Tasks /gutter") && !screen.contains("T3 count"));
    terminal.keys(&["G", "r"]);
    terminal.shows("T2 is reopened");
    assert_eq!(rig.task("T2")["state"], "failed", "nothing is done before yes");
    terminal.keys(&["y"]);
    terminal.shows("task T2 is reopened");
    terminal.keys(&["Escape"]);
    terminal
        .awaits("T2 done", |screen| screen.lines().any(|line| line.contains("T2 mend") && line.contains("complete")));

    // The log is live, and what agents print is obeyed by nobody.
    terminal.keys(&["G"]);
    let screen = terminal.awaits("tiles", |screen| screen.contains("following") && screen.contains("tile 1"));
    assert!(screen.contains("Tasks") && !screen.contains("tile 2"), "{screen}");
    rig.touch("more");
    terminal.shows("tile 2");

    look_around(&terminal);
    resize_there_and_back(&terminal);
    terminal.keys(&["?"]);
    terminal.shows("keys (/ filters)");
    // To the shell and back.
    terminal.keys(&["C-z"]);
    terminal.assert_given_back();
    terminal.line("fg; echo \"left with $?\"");
    terminal.shows("keys (/ filters)");
    terminal.keys(&["Escape", "q"]);

    let screen = terminal.shows("left with 0");
    assert!(screen.contains("the run continues"), "{screen}");
    terminal.assert_given_back();
    assert!(running.has_ended().is_none(), "leaving does not stop the run");
    rig.touch("stop");
    assert_eq!(running.wait().code(), Some(0), "{}", rig.story());
    // What is over can be looked at in the same way.
    terminal.top("--read-only --ascii");
    terminal.awaits("complete", |screen| screen.contains("complete") && screen.is_ascii());
    terminal.keys(&["q"]);
    drop(terminal);
    rig.assert_nothing_left();
}

/// Any size, there and back.
fn resize_there_and_back(terminal: &Terminal<'_>) {
    for (columns, rows) in [("60", "18"), ("20", "5"), ("1", "1"), ("200", "50"), ("80", "24")] {
        terminal.tmux(&["resize-window", "-x", columns, "-y", rows]);
    }
    terminal.awaits("two columns", |screen| screen.contains("[log]") && screen.contains("Tasks"));
}

/// A word is looked for in the logs of all agents, and the line it stands in is gone to.
fn find_in_all_logs(terminal: &Terminal<'_>) {
    terminal.keys(&["L"]);
    terminal.text("tile 2");
    terminal.keys(&["Enter"]);
    let screen = terminal.shows("1 found: ");
    assert!(screen.contains("all logs /tile 2"), "{screen}");
    terminal.keys(&["Enter"]);
    terminal.awaits("the line", |screen| screen.contains("/tile 2 · line") && screen.contains("[log]"));
    // Each is awaited: two of them in one breath look like one to whoever reads the terminal.
    terminal.keys(&["Escape"]);
    terminal.awaits("no search", |screen| !screen.contains("/tile 2 · line"));
    terminal.keys(&["Escape"]);
    terminal.awaits("the tree", |screen| screen.contains("Enter open"));
}

/// The log is searched, and the other tabs tell about the task.
fn look_around(terminal: &Terminal<'_>) {
    find_in_all_logs(terminal);
    terminal.keys(&["Enter", "/"]);
    terminal.text("TILE 9");
    terminal.keys(&["Enter"]);
    terminal.shows("`TILE 9` is not in this log");
    terminal.keys(&["/"]);
    terminal.text("tile 1");
    terminal.keys(&["Enter"]);
    terminal.awaits("the place found", |screen| screen.contains("/tile 1 · line 1 of"));
    for (key, shown) in [("2", "nothing to compare"), ("3", "attempts    1 of 3"), ("4", "STARTED"), ("5", "BEGUN")] {
        terminal.keys(&[key]);
        terminal.shows(shown);
    }
    terminal.keys(&["1", "G", "Escape", "Escape"]);
}

#[test]
fn a_signal_gives_the_terminal_back_and_a_pipe_is_refused() {
    let rig = Rig::new(PLAN, AGENT);
    rig.touch("more");
    rig.touch("stop");
    let refused = rig.rekindle(&["top"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("top needs a terminal"), "{refused:?}");

    // Before the first run it says so and waits for one.
    let terminal = Terminal::open(&rig, 80, 24);
    terminal.line(&format!("{} top; echo \"left with $?\"", program().display()));
    terminal.shows("there is no run here yet");
    let running = rig.run();
    rig.await_event("question_asked");
    terminal.shows("T1 asks you");
    running.kill();
    terminal.shows("no coordinator");

    for signal in [Signal::TERM, Signal::HUP] {
        // The shell is the pane's process, the view the only child it has.
        let shell = terminal.knows("pane_pid");
        let child = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("children");
        let child: u32 = child.trim().parse().expect("one child");
        rig.pin(child).send(signal);
        terminal.shows("left with 143");
        terminal.assert_given_back();
        terminal.line("clear");
        terminal.top("");
    }
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}
