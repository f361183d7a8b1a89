//! What Codex's tools and prompts mean where no recording has them.

use std::path::Path;

use rekindle_core::guard::fact::{Fact, Outcome};
use serde_json::json;

use super::super::super::KINDS;
use super::super::super::hook_events::{CallStage, Use};
use super::*;

fn used(tool: &str, input: &Value, stage: CallStage<'_>) -> Vec<Fact> {
    tools::facts(&Use { call: "c1", tool, input, stage, by: None, dir: Path::new("/proj") })
}

fn lines(lines: &[Value]) -> Vec<Fact> {
    let mut reader = Codex.transcript_reader().expect("it has one");
    let facts = lines.iter().flat_map(|line| reader.line(&line.to_string()));
    // That calls begin and end is told of all of them.
    facts.filter(|fact| !matches!(fact, Fact::Called { .. } | Fact::Returned { .. })).collect()
}

fn ended(helper: &str, outcome: Outcome, words: &str) -> Fact {
    Fact::HelperEnded { call: None, helper: Some(helper.to_owned()), outcome, words: words.to_owned() }
}

#[test]
fn it_is_found_by_its_kind_and_started_by_its_name() {
    let program = KINDS.of("codex").and_then(|kind| kind.about().guard_adapter).expect("known");
    assert_eq!(program.launch("go on"), ["codex", "go on"]);
    assert_eq!(program.session_variable(), Some("CODEX_SESSION_ID"));
    let asked = json!({"session_id": "s1", "cwd": "/proj", "hook_event_name": "Stop", "transcript_path": null});
    let heard = program.read_hook(&asked, &|_| None).expect("heard");
    assert_eq!((heard.dir.as_path(), heard.transcript), (Path::new("/proj"), None));
}

#[test]
fn the_files_of_a_patch_are_all_that_it_touches() {
    let patch = "*** Begin Patch\n*** Add File: a b.txt\n+*** Add File: no.txt\n*** Update File: old.rs\n\
                 *** Move to: new.rs\n@@\n-x\n+y\n*** Delete File: /abs/gone.md\n*** End Patch\n";
    let changed = |input: &Value, answer: &str| {
        let facts = used("apply_patch", input, CallStage::Answered(&json!(answer)));
        let path = |fact: Fact| match fact {
            Fact::FileChanged { path, .. } => path,
            other => panic!("{other:?}"),
        };
        facts.into_iter().map(path).collect::<Vec<_>>()
    };
    let all = ["/proj/a b.txt", "/proj/old.rs", "/proj/new.rs", "/abs/gone.md"];
    assert_eq!(changed(&json!({"command": patch}), "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."), all);
    assert_eq!(changed(&json!(patch), "Success."), all);
    assert!(changed(&json!(patch), "Exit code: 1\nWall time: 0 seconds\nOutput:\nno match").is_empty());
}

#[test]
fn helpers_are_known_by_every_tool_about_them() {
    let input = json!({"message": "Count the files\nand report", "agent_type": "explorer"});
    let called = used("multi_agent_v1spawn_agent", &input, CallStage::Called);
    let Fact::HelperCalled { name, kind, prompt, .. } = &called[0] else {
        panic!("{called:?}");
    };
    assert_eq!((name.as_str(), kind.as_str()), ("Count the files", "explorer"));
    assert_eq!(prompt, "Count the files\nand report");
    let refused = used("spawn_agent", &input, CallStage::Answered(&json!("collab spawn failed: too many agents")));
    assert!(matches!(&refused[..], [Fact::HelperEnded { outcome: Outcome::Failed, .. }]), "{refused:?}");

    let status = json!({"status": {
        "h1": {"completed": "done"}, "h2": {"errored": "broke"}, "h3": "running", "h4": "shutdown",
    }, "timed_out": true});
    let waited = used("wait_agent", &json!({"targets": []}), CallStage::Answered(&json!(status.to_string())));
    let expected = [
        ended("h1", Outcome::Finished, "done"),
        ended("h2", Outcome::Failed, "broke"),
        ended("h4", Outcome::Stopped, ""),
    ];
    assert_eq!(waited, expected);
    let close = json!({"target": "h3"});
    let closed = used("close_agent", &close, CallStage::Answered(&json!("{\"previous_status\":\"running\"}")));
    assert_eq!(closed, [ended("h3", Outcome::Stopped, "")]);
    let runs = Fact::HelperRuns { call: None, helper: "h3".to_owned(), kind: String::new() };
    assert_eq!(used("send_input", &close, CallStage::Answered(&json!("{\"submission_id\":\"x\"}"))), [runs]);
    assert_eq!(used("send_input", &close, CallStage::Answered(&json!("agent with id h3 not found"))), []);
}

#[test]
fn a_command_s_end_is_told_where_it_is_known() {
    let failure = |answer: &str| {
        let facts = used("exec_command", &json!({"cmd": "make"}), CallStage::Answered(&json!(answer)));
        match &facts[..] {
            [Fact::Command { line, failure, printed, .. }] if line == "make" => (failure.clone(), printed.clone()),
            other => panic!("{other:?}"),
        }
    };
    let told =
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 1\nOutput:\nbad\n";
    assert_eq!(failure(told), (Some("exit code 2\nbad".to_owned()), "bad".to_owned()));
    let well = told.replace("code 2", "code 0");
    assert_eq!(failure(&well), (None, "bad".to_owned()));
    assert_eq!(failure("just output"), (None, "just output".to_owned()));
    let listed = used("shell", &json!({"command": ["bash", "-lc", "ls"]}), CallStage::Answered(&json!("x")));
    assert!(matches!(&listed[..], [Fact::Command { line, .. }] if line == "ls"), "{listed:?}");
}

#[test]
fn questions_are_answered_by_their_ids() {
    let input = json!({"questions": [{"id": "db", "question": "Which db?", "options": [{"label": "pg"}]}]});
    let call = "c1".to_owned();
    let asked = Fact::Asked { call: call.clone(), text: "Which db? (pg)".to_owned() };
    assert_eq!(used("request_user_input", &input, CallStage::Called), [asked]);
    let answer = json!("{\"answers\":{\"db\":{\"answers\":[\"pg\",\"later\"]}}}");
    let answered = |text: &str| [Fact::Answered { call: call.clone(), text: text.to_owned() }];
    assert_eq!(used("request_user_input", &input, CallStage::Answered(&answer)), answered("pg, later"));
    let refused = json!("request_user_input is unavailable in Default mode");
    let words = "not answered: request_user_input is unavailable in Default mode";
    assert_eq!(used("request_user_input", &input, CallStage::Answered(&refused)), answered(words));
}

#[test]
fn only_the_person_s_words_are_a_prompt() {
    let message = |role: &str, text: &str| {
        let item = json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
        json!({"type": "response_item", "payload": item})
    };
    let notice = "<subagent_notification>\n{\"agent_path\":\"h1\",\"status\":{\"completed\":\"done\"}}\n\
                  </subagent_notification>";
    let found = lines(&[
        message("developer", "rules"),
        message("user", "# AGENTS.md instructions for /proj\n\n<INSTRUCTIONS>x"),
        message("user", "<environment_context>x</environment_context>"),
        message("user", "keep it simple"),
        message("user", notice),
        message("user", "<subagent_notification>torn"),
    ]);
    let prompt = Fact::Prompt { text: "keep it simple".to_owned() };
    assert_eq!(found, [prompt, ended("h1", Outcome::Finished, "done")]);
}

#[test]
fn files_that_were_moved_are_known_by_both_names() {
    let changes = json!({"/proj/a.txt": {"type": "update", "move_path": "/proj/b.txt"}});
    let line = |status: &str| {
        let item = json!({"type": "FileChange", "id": "c1", "status": status, "changes": changes});
        json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}})
    };
    let changed = |path: &str| Fact::FileChanged { path: path.to_owned(), by: None };
    assert_eq!(lines(&[line("completed")]), ["/proj/a.txt", "/proj/b.txt"].map(changed));
    assert_eq!(lines(&[line("failed")]), []);
}

#[test]
fn only_failures_that_stop_everything_are_limits() {
    let line = |class: Value| {
        let error = json!({"message": "why", "codex_error_info": class});
        json!({"type": "event_msg", "payload": {"type": "task_complete", "error": error}})
    };
    let limit = [Fact::Limit { text: "why".to_owned() }];
    assert_eq!(lines(&[line(json!("usage_limit_exceeded"))]), limit);
    assert_eq!(lines(&[line(json!({"http_connection_failed": {"http_status_code": 401}}))]), limit);
    assert_eq!(lines(&[line(json!("context_window_exceeded"))]), []);
    assert_eq!(lines(&[json!({"type": "event_msg", "payload": {"type": "task_complete"}})]), []);
}
