//! What a person does in `rekindle top`, in a real terminal: tell, add, edit, complete, undo, answer by number, resume. Each is checked
//! by what the state says afterwards, not by the screen alone.

use crate::rig::Rig;
use crate::terminal::Terminal;

const PLAN: &str = "# Three\n\n### T1: paint the roof\n- accept: `test -e painted`\n\nPaint.\n\n\
    ### T2: mend the gutter\n- accept: `test -e mended`\n\nMend.\n\n\
    ### T3: count the tiles\n- blocked by: T2\n- accept: `test -e counted`\n\nCount.\n";

/// T1 asks, T2 works until it is let go.
const AGENT: &str = "case $REKINDLE_TASK in\n\
    T1) rekindle ask 'which colour?' --option red --option blue --option green --wait > colour && touch painted ;;\n\
    T2) touch here; $FAKE wait go; touch mended ;;\n\
    T3) touch counted ;;\n\
    T4) touch swept ;;\n\
    esac\nrekindle task done $REKINDLE_TASK\n";

fn kinds(rig: &Rig, kind: &str) -> usize {
    rig.events_of(kind).len()
}

fn placed(rig: &Rig) -> usize {
    rig.status()["run"]["placed"].as_array().map_or(0, Vec::len)
}

/// The order is given, and the screen says that it can be undone: first as the answer to the key, then counting down.
fn given(terminal: &Terminal<'_>) {
    terminal
        .awaits("an order to undo", |screen| screen.contains("unless you undo it") || screen.contains("u undoes it"));
}

/// A run in the middle and a screen on it.
fn watched<'a>(rig: &'a Rig, also: &str) -> Terminal<'a> {
    rig.await_event("question_asked");
    rig.await_file("here");
    let terminal = Terminal::open(rig, 120, 40);
    terminal.top(also);
    terminal.shows("T1 asks you");
    terminal
}

#[test]
fn an_agent_is_told_something() {
    let rig = Rig::new(PLAN, AGENT);
    let _running = rig.run();
    let terminal = watched(&rig, "");
    terminal.choose("gutter");
    terminal.keys(&["m"]);
    terminal.shows("tell T2");
    terminal.keys(&["Enter"]);
    terminal.shows("type a message, or leave with Esc");
    assert_eq!(kinds(&rig, "told"), 0);
    terminal.text("mind the gap, 漢字 too");
    terminal.keys(&["Enter"]);
    terminal.shows("message for T2: accepted");
    assert_eq!(rig.task("T2")["told"][0]["text"], "mind the gap, 漢字 too", "{}", rig.story());
    assert_eq!(kinds(&rig, "told"), 1, "once: {}", rig.story());
    // Leaving the box says nothing to anybody.
    terminal.keys(&["m"]);
    terminal.shows("tell T2");
    terminal.text("never mind");
    terminal.keys(&["Escape"]);
    terminal.awaits("no box", |screen| !screen.contains("tell T2"));
    assert_eq!(kinds(&rig, "told"), 1);
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn tasks_are_added_and_changed() {
    let rig = Rig::new(PLAN, AGENT);
    let _running = rig.run();
    let file = rig.lines("plan.md");
    let terminal = watched(&rig, "");
    terminal.keys(&["A"]);
    terminal.shows("add a task");
    terminal.keys(&["Enter"]);
    terminal.shows("type something first");
    for line in ["sweep the yard", "test -e swept"] {
        terminal.text(line);
        terminal.keys(&["Enter"]);
        terminal.shows(&format!(". {line}"));
    }
    terminal.keys(&["Enter"]);
    terminal.shows("A task is added to the run");
    assert_eq!(kinds(&rig, "task_added"), 0, "nothing before yes");
    terminal.keys(&["y"]);
    terminal.shows("task T4 is added");
    assert_eq!(rig.task("T4")["title"], "sweep the yard", "{}", rig.story());

    terminal.choose("tiles");
    let edits = [
        ("e", "edit T3", "Count.", "Count them twice."),
        ("E", "change checks T3", "test -e counted", "test -s counted"),
    ];
    for (key, title, present, line) in edits {
        let before = kinds(&rig, "task_edited");
        terminal.keys(&[key]);
        terminal.shows(title);
        // It starts with what it would replace.
        terminal.shows(&format!("> {present}"));
        terminal.keys(&["C-u"]);
        terminal.text(line);
        terminal.shows(&format!("> {line}"));
        terminal.keys(&["Enter"]);
        terminal.awaits("the next line", |screen| screen.contains(line) && !screen.contains(&format!("> {line}")));
        terminal.keys(&["Enter"]);
        terminal.shows("y: ");
        terminal.keys(&["y"]);
        rig.until("the edit", || (kinds(&rig, "task_edited") == before + 1).then_some(()));
        terminal.awaits("no box", |screen| !screen.contains(title));
    }
    let plan = rig.ok(&["plan", "export"]);
    for words in ["Count them twice.", "`test -s counted`", "### T4: sweep the yard", "`test -e swept`"] {
        assert!(plan.contains(words), "no `{words}` in {plan}");
    }
    assert_eq!(rig.lines("plan.md"), file, "the file is the person's");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn a_completion_a_skip_and_an_answer_are_taken_back_and_given_again() {
    let rig = Rig::new(PLAN, AGENT);
    let _running = rig.run();
    let terminal = watched(&rig, "");
    terminal.keys(&["u"]);
    terminal.shows("there is nothing to undo");
    // Which one is undone is the newest.
    terminal.choose("gutter");
    for (key, asks, undone) in [("D", "T2 is complete on your word", 1), ("s", "T2 is skipped", 2)] {
        terminal.keys(&[key]);
        terminal.shows(asks);
        terminal.keys(&["Enter"]);
        terminal.awaits("no box", |screen| !screen.contains(asks));
        assert_eq!(placed(&rig), 0, "Enter alone does nothing");
        terminal.keys(&[key]);
        terminal.shows(asks);
        terminal.keys(&["y"]);
        given(&terminal);
        // The line on the screen may still be of the order before.
        rig.until("it is placed", || (kinds(&rig, "order_placed") == undone).then_some(()));
        assert_eq!(placed(&rig), 1, "{}", rig.story());
        terminal.keys(&["u"]);
        rig.until("it is taken back", || (kinds(&rig, "order_undone") == undone).then_some(()));
        assert_eq!(placed(&rig), 0, "{}", rig.story());
    }
    assert_eq!(rig.task("T2")["state"], "in_progress", "{}", rig.story());
    // A number stands for its option: the first answer is a slip.
    for (number, placed, undo) in [("1", 3, true), ("2", 4, false)] {
        terminal.keys(&["a"]);
        terminal
            .awaits("numbered options", |screen| ["1. red", "2. blue", "3. green"].iter().all(|o| screen.contains(o)));
        terminal.text(number);
        terminal.keys(&["Enter"]);
        given(&terminal);
        rig.until("it is placed", || (kinds(&rig, "order_placed") == placed).then_some(()));
        if undo {
            terminal.keys(&["u"]);
            rig.until("it is taken back", || (kinds(&rig, "order_undone") == 3).then_some(()));
        }
    }
    rig.until("the answer", || (!rig.lines("colour").is_empty()).then_some(()));
    assert_eq!(rig.lines("colour"), ["blue"]);
    terminal.keys(&["D"]);
    terminal.shows("T2 is complete on your word");
    terminal.keys(&["y"]);
    rig.until("T2 is complete", || (rig.task("T2")["state"] == "complete").then_some(()));
    assert_eq!(kinds(&rig, "operator_completed"), 1, "{}", rig.story());
    assert_eq!(kinds(&rig, "task_skipped"), 0, "{}", rig.story());
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn a_run_without_a_coordinator_is_resumed() {
    let rig = Rig::new(PLAN, AGENT);
    let running = rig.run();
    let terminal = watched(&rig, "");
    running.kill();
    terminal.shows("no coordinator");
    terminal.keys(&["p"]);
    terminal.shows("A coordinator is started in the background");
    assert_eq!(kinds(&rig, "coordinator_recovered"), 0, "nothing before yes");
    terminal.keys(&["y"]);
    rig.await_event("coordinator_recovered");
    terminal.awaits("a run that goes on", |screen| screen.contains("running") && !screen.contains("no coordinator"));
    rig.touch("go");
    rig.ok(&["answer", "1", "green"]);
    rig.until("the end", || (rig.status()["run"]["state"] == "complete").then_some(()));
    assert_eq!(rig.lines("colour"), ["green"]);
    assert_eq!(kinds(&rig, "agent_started"), 3, "its agents lived on: {}", rig.story());
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
    drop(terminal);
    rig.assert_nothing_left();
}

#[test]
fn nothing_is_ordered_where_it_is_only_looked_at() {
    let rig = Rig::new(PLAN, AGENT);
    let _running = rig.run();
    let terminal = watched(&rig, "--read-only");
    terminal.choose("gutter");
    let before = rig.events().len();
    for key in ["m", "A", "e", "E", "D", "s", "a", "u", "p"] {
        terminal.keys(&[key]);
        terminal.shows("top was started with --read-only");
        terminal.keys(&["j"]);
        terminal.awaits("the next key", |screen| !screen.contains("top was started with --read-only"));
    }
    assert_eq!(rig.events().len(), before, "{}", rig.story());
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}
