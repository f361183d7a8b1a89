//! A plan that is changed while its run goes on: `plan diff`, `reload`, `export`, `task add`, `edit`, `fail`, and the operator's word.

use crate::environment::Environment;
use crate::history::eventful;

/// A configuration that knows an agent: a plan that nobody could work on is not taken over.
const SETTINGS: &str = "[agents.script]\nkind = \"command\"\ncommand = [\"/bin/true\"]\n\n[run]\nagent = \"script\"\n";

/// The plan of the run, with everything that belongs to it.
fn exported(environment: &Environment) -> String {
    let shown = environment.run(&["plan", "export", "--out", "now.md", "--force"]);
    assert!(shown.contains("wrote now.md"), "{shown}");
    environment.read("now.md")
}

#[test]
fn an_exported_plan_is_accepted_and_says_the_same() {
    let environment = Environment::new();
    eventful(&environment);
    let text = exported(&environment);
    assert!(environment.run(&["plan", "check", "now.md"]).contains("can be run"));
    let json = environment.json(&["plan", "diff", "now.md", "--json"]);
    for list in ["added", "changed", "removed", "about_plan"] {
        assert_eq!(json[list].as_array().map(Vec::len), Some(0), "{list}: {json}\n{text}");
    }
    assert!(
        environment.run(&["plan", "export", "--out", "now.md"]).contains("already exists"),
        "never rewritten unasked"
    );
}

#[test]
fn a_changed_file_is_shown_and_taken_over() {
    let environment = Environment::new();
    eventful(&environment);
    environment.write("rekindle.toml", SETTINGS);
    let text = exported(&environment);
    environment.write("now.md", &format!("{text}\n### T9: nine\n- accept: `true`\n\nDo nine.\n"));
    let json = environment.json(&["plan", "diff", "now.md", "--json"]);
    assert_eq!((&json["added"][0]["id"], &json["added"][0]["then"]), (&"T9".into(), &"starts".into()), "{json}");
    let shown = environment.run(&["plan", "reload", "now.md"]);
    assert!(shown.contains("--yes") && shown.ends_with("exit 2\n"), "a pipe gets the command: {shown}");
    let shown = environment.run(&["plan", "reload", "now.md", "--yes"]);
    assert!(shown.contains("+ T9 nine") && shown.contains("the plan is reloaded"), "{shown}");
    let events = environment.json_lines(&["events", "--json", "--kind", "plan_reloaded"]);
    assert_eq!(events.len(), 1, "one event");
    assert_eq!(events[0]["details"]["added"][0]["id"], "T9");
    assert!(environment.run(&["plan", "reload", "now.md", "--yes"]).contains("no task differs"));
}

#[test]
fn a_file_with_an_error_changes_nothing() {
    let environment = Environment::new();
    eventful(&environment);
    environment.write("rekindle.toml", SETTINGS);
    let text = exported(&environment);
    let broken = [
        format!("{text}\n### T8: a\n- blocked by: T9\n\nx\n\n### T9: b\n- blocked by: T8\n\nx\n"),
        format!("{text}\n### T9: b\n- acept: `true`\n"),
        text.replace("plan: ", "plan: other-"),
    ];
    for text in broken {
        environment.write("now.md", &text);
        let shown = environment.run(&["plan", "reload", "now.md", "--yes"]);
        assert!(shown.contains("error"), "{shown}");
    }
    assert!(environment.json_lines(&["events", "--json", "--kind", "plan_reloaded"]).is_empty());
}

#[test]
fn a_task_is_added_and_edited() {
    let environment = Environment::new();
    eventful(&environment);
    let shown = environment.run(&["task", "add", "Say thanks", "--after", "T1", "--accept", "true", "--id", "T9"]);
    assert_eq!(shown, "err| task T9 is added\nexit 0\n");
    let same = environment.run(&["task", "add", "Say thanks", "--after", "T1", "--accept", "true", "--id", "T9"]);
    assert_eq!(same, "err| already done\nexit 0\n", "the same task twice is one task");
    let shown = environment.run(&["task", "edit", "T9", "--timeout", "90s", "--text", "With a card."]);
    assert_eq!(shown, "err| task T9 is changed\nexit 0\n");
    assert!(exported(&environment).contains("- timeout: 1m30s"), "{}", environment.read("now.md"));
    assert!(environment.run(&["task", "edit", "T9"]).contains("there is nothing to change"));
    assert!(environment.run(&["task", "edit", "T9", "--after", "T9"]).contains("cannot wait for itself"));
    assert!(environment.run(&["task", "add", "x", "--after", "T77"]).contains("there is no task T77"));
    let kinds: Vec<_> = ["task_added", "task_edited"]
        .map(|kind| environment.json_lines(&["events", "--json", "--kind", kind]).len())
        .into();
    assert_eq!(kinds, [1, 1]);
}

#[test]
fn it_is_said_that_a_person_decided() {
    let environment = Environment::new();
    eventful(&environment);
    environment.run(&["task", "done", "T2", "--result", "by hand"]);
    let why = environment.run(&["why", "T2"]);
    assert!(why.contains("the operator decided that it is complete"), "{why}");
    assert!(!why.contains("its agent's word"), "no words are put into the agent's mouth: {why}");
    assert_eq!(environment.json(&["why", "T2", "--json"])["by_operator"], true);
    assert_eq!(environment.json(&["status", "--json"])["tasks"][1]["by_operator"], true);
    let report = environment.run(&["report", "--markdown", "-"]);
    assert!(report.contains("the operator's word"), "{report}");
    let shown = environment.run(&["task", "fail", "T2", "--reason", "it is wrong"]);
    assert!(shown.contains("task T2 has failed on your word"), "{shown}");
    let why = environment.run(&["why", "T2"]);
    assert!(why.contains("the operator gave it up") && why.contains("it is wrong"), "{why}");
    assert_eq!(environment.json_lines(&["events", "--json", "--kind", "operator_completed"]).len(), 1);
}
