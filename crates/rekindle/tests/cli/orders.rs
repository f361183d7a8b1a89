//! An operator's orders while no coordinator runs.

use rekindle_core::ids::TaskId;
use rekindle_core::report::Report;

use crate::environment::Environment;
use crate::history::{History, eventful};

#[test]
fn a_failed_task_is_opened_again_or_left_out() {
    let environment = Environment::new();
    eventful(&environment);
    assert_eq!(environment.run(&["task", "retry", "T2"]), "err| task T2 is reopened\nexit 0\n");
    let json = environment.json(&["status", "--json"]);
    assert_eq!(json["tasks"][1]["state"], "pending");
    assert_eq!(json["tasks"][1]["attempts"], 0);
    let shown = environment.run(&["task", "skip", "T2", "--reason", "not needed"]);
    assert_eq!(shown, "err| task T2 is skipped\nexit 0\n");
    assert_eq!(environment.run(&["task", "skip", "T2"]), "err| already done\nexit 0\n");
    let json = environment.json(&["status", "--json"]);
    assert_eq!(json["tasks"][1]["state"], "skipped");
    assert_eq!(json["tasks"][1]["reason"], "not needed");
}

#[test]
fn a_task_can_be_completed_on_the_operators_word() {
    let environment = Environment::new();
    eventful(&environment);
    let shown = environment.run(&["task", "done", "T2", "--result", "by hand"]);
    assert_eq!(shown, "err| task T2 is complete on your word\nexit 0\n");
    let json = environment.json(&["status", "--json"]);
    assert_eq!(json["tasks"][1]["state"], "complete");
    assert_eq!(json["tasks"][1]["unproven"], true);
    assert_eq!(json["tasks"][1]["result"], "by hand");
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["task", "skip", "T9"]), @r"
    err| error: there is no task T9 in this run
    exit 1
    ");
    insta::assert_snapshot!(environment.run(&["task", "skip", "no task"]), @r"
    err| error: `no task` is not a task id: a name holds only letters, digits, `.`, `_` and `-`, not ' '
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["answer", "9", "x"]), @r"
    err| error: there is no question 9
    exit 1
    ");
    insta::assert_snapshot!(environment.run(&["recover", "developer-T9"]), @r"
    err| error: no agent `developer-T9` has been started in this run
    err| hint: did you mean `developer-T1`?
    exit 2
    ");
}

#[test]
fn a_question_is_answered_with_any_text() {
    for text in ["use PostgreSQL", "-5", "--force", "two\nlines", "ünïcödé 🙂"] {
        let environment = Environment::new();
        let mut history = History::of("# P\n\n### T1: one\n- accept: `true`\n");
        history.started("T1");
        let task = TaskId::new("T1").expect("a name");
        let ask = Report::Ask { task, text: "?".to_owned(), options: Vec::new(), context: String::new() };
        history.reported("T1", ask);
        history.save(&environment);
        let shown = environment.run(&["answer", "1", text, "--color", "never"]);
        assert_eq!(shown, "err| question 1 is answered\nexit 0\n", "{text:?}");
        let questions = environment.json(&["questions", "--json"]);
        assert_eq!(questions[0]["answer"], text);
        let empty = environment.run(&["answer", "1", " ", "--color", "never"]);
        assert_eq!(empty, "err| error: the answer is empty\nexit 2\n");
    }
}

#[test]
fn a_note_is_kept() {
    let environment = Environment::new();
    eventful(&environment);
    assert_eq!(environment.run(&["note", "tabs, not spaces"]), "err| noted\nexit 0\n");
    let notes = environment.json_lines(&["events", "--json", "--kind", "note_recorded"]);
    assert_eq!(notes[0]["details"]["text"], "tabs, not spaces");
}
