//! The same programs by way of the Agent Client Protocol: a session is opened, given a prompt, watched, cancelled and loaded
//! again.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Script};
use serde_json::{Value, json};

use crate::bed::{Bed, WORD, assert_gone, bye, done, waiting_tool, work};

#[test]
fn opencode_does_its_task() {
    does_its_task(Cli::Opencode);
}

#[test]
fn gemini_does_its_task() {
    does_its_task(Cli::Gemini);
}

fn does_its_task(cli: Cli) {
    let checkpoint = json!({ "task": "T1", "status": "half way", "completed": ["looked"], "remaining": ["write"] });
    let script = Script::new()
        .then(Answer::report("checkpoint", checkpoint).tokens(5_000, 40))
        .then(done())
        .then(work().tokens(6_000, 30))
        .then(done())
        .then(bye());
    let bed = Bed::over_acp(cli, script, "full");
    bed.finish(bed.rig.run());
    assert_eq!(bed.seen().strategies, ["first"], "{}", bed.story());
    assert_eq!(bed.seen().causes, ["completed"], "{}", bed.story());
    assert!(bed.server.main()[0].mentions(WORD), "the first request has the task");
    assert_eq!(bed.rig.events_of("checkpoint_saved").len(), 1, "{}", bed.story());
    assert_eq!(bed.rig.events_of("task_claimed")[0]["details"]["door"], "mcp");
    let refused = bed.server.main()[2].last_text().to_owned();
    assert!(refused.contains("made.txt"), "a claim without its evidence is answered with what is missing: {refused}");
    let agent = &bed.rig.status()["agents"][0];
    assert_eq!(agent["session_id"].as_str(), bed.sessions().first().map(String::as_str), "{agent:#}");
    assert!(agent["tokens"].as_u64().is_some_and(|tokens| tokens >= 1_000), "{agent:#}\n{}", bed.story());
    let shown = bed.rig.ok(&["logs"]);
    assert!(shown.contains("made.txt") && shown.contains("That is all."), "calls and words are shown: {shown}");
}

#[test]
fn without_full_permissions_only_rekindles_own_tools_are_allowed() {
    // The program that asks for permission by default; it is told no and gives its task up.
    let given_up = Answer::report("task_fail", json!({ "task": "T1", "reason": "not allowed" }));
    let script = Script::new().then(work()).then(given_up).then(bye());
    let bed = Bed::over_acp(Cli::Gemini, script, "default");
    bed.rig.write("plan.md", &bed.rig.lines("plan.md").join("\n").replace("- accept", "- attempts: 1\n- accept"));
    let ended = bed.rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", bed.story());
    assert!(!bed.rig.has("made.txt"), "{}", bed.story());
    assert_eq!(bed.rig.events_of("task_fail_reported")[0]["details"]["reason"], "not allowed", "{}", bed.story());
    assert!(bed.rig.ok(&["logs"]).contains("not allowed without"), "{}", bed.story());
    bed.rig.assert_nothing_left();
}

#[test]
fn opencode_is_killed_in_a_tool_and_its_session_is_loaded() {
    let script = Script::new().then(waiting_tool()).then(work()).then(done()).then(bye());
    let bed = Bed::over_acp(Cli::Opencode, script, "full");
    let run = bed.rig.run();
    let tool = bed.await_tool();
    // The bridge goes, and with it everything that it held.
    bed.pin_agent(1).kill();
    bed.rig.until("a second attempt", || (bed.rig.events_of("developer_dispatched").len() > 1).then_some(()));
    assert_gone(tool);
    bed.finish(run);
    let seen = bed.seen();
    assert_eq!(seen.strategies, ["first", "resume"], "{}", bed.story());
    let sessions = bed.sessions();
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}\n{}", bed.story());
    let resumed = &bed.server.main()[1];
    assert!(resumed.mentions(WORD) && resumed.mentions("Your session continues"), "{}", resumed.last_text());
    let replayed =
        of_type(&bed, 2, "update").iter().any(|line| line["update"]["sessionUpdate"] == "user_message_chunk");
    assert!(!replayed, "what was said before is not taken for new");
}

#[test]
fn opencode_is_cancelled_and_goes_on_later() {
    cancelled(Cli::Opencode);
}

#[test]
fn gemini_is_cancelled_and_goes_on_later() {
    cancelled(Cli::Gemini);
}

fn cancelled(cli: Cli) {
    let script = Script::new().then(waiting_tool()).then(work()).then(done()).then(bye());
    let bed = Bed::over_acp(cli, script, "full");
    let run = bed.rig.run();
    let tool = bed.await_tool();
    bed.rig.ok(&["pause"]);
    assert_eq!(run.end().code, Some(4), "{}", bed.story());
    assert_gone(tool);
    bed.rig.assert_nothing_left();
    let turns = of_type(&bed, 1, "turn");
    assert_eq!(turns.len(), 1, "{}", bed.story());
    assert_eq!(turns[0]["stop"], "cancelled", "{}", bed.story());
    bed.finish(bed.rig.start(&["resume"]));
    let seen = bed.seen();
    // One of them cannot load a session in the minute it was begun in; a fresh agent takes over then.
    assert!(cli == Cli::Gemini || seen.strategies == ["first", "resume"], "{seen:?}\n{}", bed.story());
    assert_eq!(seen.causes.last().map(String::as_str), Some("completed"), "{}", bed.story());
}

/// The bridge's lines of a type in an attempt's output.
fn of_type(bed: &Bed, attempt: u64, name: &str) -> Vec<Value> {
    let path = bed.rig.state().join(format!("attempts/{attempt:08}/out.log"));
    let text = std::fs::read_to_string(path).expect("its output");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of the bridge"));
    lines.filter(|line| line["type"] == name).collect()
}
