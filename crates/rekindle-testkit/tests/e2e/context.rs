//! What an agent is told again after a compaction: asked of a coordinator, or taken from the bundle, and never in the way.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::rig::{Ended, Rig};

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nThe task's own words.\n";

/// Checkpoints, then stays until it is told to leave.
const STAYS: &str = "rekindle checkpoint 'half way' --remaining 'the rest'\ntouch here\n$FAKE wait leave\ntouch made\nrekindle task done T1\n";

fn bundle(rig: &Rig) -> String {
    rig.state().join("attempts/00000001").to_str().expect("text").to_owned()
}

/// Asks as a hook does: the bundle as an argument, the hook's JSON on standard input.
fn ask(rig: &Rig, format: &str, input: &str) -> Ended {
    let dir = bundle(rig);
    let mut command = rig.command(&["__context", "--format", format, "--bundle", &dir]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("PATH");
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
fn context_of(ended: &Ended, event: &str) -> String {
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(json["hookSpecificOutput"]["hookEventName"], event);
    json["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned()
}

#[track_caller]
fn nothing(ended: &Ended) {
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "", ""), "{ended:?}");
}

#[test]
fn a_coordinator_tells_where_its_agent_stands() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here");
    let plain = ask(&rig, "plain", "");
    assert_eq!(plain.code, Some(0));
    for part in ["The task's own words.", "- accept: `test -e made`", "half way", "the rest", "Continue with T1"] {
        assert!(plain.out.contains(part), "{part} is not in:\n{}", plain.out);
    }
    assert!(plain.out.len() <= 9_500);
    let compact = "{\"hook_event_name\":\"SessionStart\",\"source\":\"compact\"}";
    let one = context_of(&ask(&rig, "claude", compact), "SessionStart");
    let two = context_of(&ask(&rig, "codex", ""), "SessionStart");
    assert!(one.contains("The task's own words.") && two.contains("The task's own words."));
    assert_ne!(one, two, "an identical text would be dropped");
    nothing(&ask(&rig, "claude", "{\"hook_event_name\":\"SessionStart\",\"source\":\"startup\"}"));
    nothing(&rig.rekindle(&["__context"]));
    nothing(&rig.rekindle(&["__context", "--format", "nobody", "--bundle", &bundle(&rig)]));
    nothing(&rig.rekindle(&["__context", "--format", "plain", "--bundle", "/nowhere"]));
    rig.touch("leave");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}

#[test]
fn without_a_coordinator_the_text_of_the_launch_is_told() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    // Launches write it from the same text; here it is planted, to be told apart.
    let own = rig.state().join("attempts/00000001/agent");
    std::fs::create_dir_all(&own).expect("the adapter's directory");
    std::fs::write(own.join("context.md"), "as it stood at the launch\n").expect("written");
    assert_eq!(ask(&rig, "plain", "").out, "as it stood at the launch\n");
    assert_eq!(context_of(&ask(&rig, "claude", ""), "SessionStart"), "as it stood at the launch\n");
    std::fs::remove_file(own.join("context.md")).expect("removed");
    nothing(&ask(&rig, "claude", ""));
    rig.touch("leave");
    rig.finish();
    rig.audit();
}

#[test]
fn a_coordinator_that_hangs_is_not_waited_for() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here");
    run.signal(rustix::process::Signal::STOP);
    let told = context_of(&ask(&rig, "codex", ""), "SessionStart");
    assert!(told.contains("The task's own words.") && !told.contains("half way"), "as it stood at the launch: {told}");
    run.signal(rustix::process::Signal::CONT);
    rig.touch("leave");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}

#[test]
fn a_hook_before_every_request_adds_to_the_summary_of_a_compaction_and_says_the_same_until_something_changes() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here");
    std::fs::create_dir_all(rig.state().join("attempts/00000001/agent")).expect("the adapter's directory");
    let hook = |messages: Value| {
        let input = serde_json::json!({ "hook_event_name": "BeforeModel", "llm_request": { "messages": messages } });
        ask(&rig, "gemini", &input.to_string())
    };
    let (user, model) =
        (|text| serde_json::json!({"role": "user", "content": text}), serde_json::json!({"role": "model"}));
    nothing(&hook(serde_json::json!([user("do it"), model])));
    let compacted = || hook(serde_json::json!([user("<state_snapshot>so far</state_snapshot>"), model, user("go on")]));
    let first = compacted();
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""), "{first:?}");
    let answer: Value = serde_json::from_str(&first.out).expect("JSON");
    let messages = answer["hookSpecificOutput"]["llm_request"]["messages"].as_array().expect("messages");
    assert_eq!((messages.len(), &answer["hookSpecificOutput"]["hookEventName"]), (1, &Value::from("BeforeModel")));
    let text = messages[0]["content"].as_str().expect("a text");
    assert!(text.starts_with("<state_snapshot>so far</state_snapshot>\n\n"), "{text}");
    assert!(text.contains("The task's own words.") && text.contains("Continue with T1"), "{text}");
    assert_eq!(compacted().out, first.out, "what has not changed is not sent anew");
    nothing(&ask(&rig, "gemini", "no JSON"));
    rig.touch("leave");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}
