//! What Claude Code's tools, prompts and files mean where no recording has them.

use std::collections::BTreeMap;

use rekindle_core::guard::fact::{Outcome, TaskStatus, Todo};
use serde_json::json;

use super::super::super::KINDS;
use super::super::super::hook_events::{CallStage, Use};
use super::*;

fn used(tool: &str, input: &Value, stage: CallStage<'_>) -> Vec<Fact> {
    tools::facts(&Use { call: "c1", tool, input, stage, by: None, dir: Path::new("/proj") })
}

fn lines(lines: &[Value]) -> Vec<Fact> {
    let mut reader = Claude.transcript_reader().expect("it has one");
    let facts = lines.iter().flat_map(|line| reader.line(&line.to_string()));
    // That calls begin and end is told of all of them.
    facts.filter(|fact| !matches!(fact, Fact::Called { .. } | Fact::Returned { .. })).collect()
}

#[test]
fn a_call_is_told_when_it_begins_and_when_it_ends() {
    let called = json!({"type": "assistant", "message": {"content": [
        {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make all"}},
        {"type": "tool_use", "id": "c2", "name": "Read", "input": {"file_path": "/p/a.rs"}},
    ]}});
    let ended = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "c2", "content": "gone", "is_error": true},
    ]}});
    let mut reader = Claude.transcript_reader().expect("it has one");
    let line = |call: &str, line: &str| Fact::Called { call: call.into(), line: line.into() };
    assert_eq!(reader.line(&called.to_string()), [line("c1", "Bash make all"), line("c2", "Read /p/a.rs")]);
    // By a reader that has not seen its beginning, too.
    for mut reader in [reader, Claude.transcript_reader().expect("it has one")] {
        assert_eq!(reader.line(&ended.to_string()), [Fact::Returned { call: "c2".into(), failed: true }]);
    }
}

fn prompt(text: &str) -> Fact {
    Fact::Prompt { text: text.to_owned() }
}

/// A home with these files, and its environment.
fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, BTreeMap<String, String>) {
    let home = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let at = home.path().to_str().expect("text").to_owned();
    (home, BTreeMap::from([("HOME".to_owned(), at)]))
}

fn hear(event: &str, env: &BTreeMap<String, String>) -> Heard {
    let asked = json!({"session_id": "s1", "cwd": "/proj/sub", "hook_event_name": event, "source": "startup"});
    Claude.read_hook(&asked, &|name| env.get(name).cloned()).expect("heard")
}

#[test]
fn it_is_found_by_its_kind_and_started_by_its_name() {
    let program = KINDS.of("claude").and_then(|kind| kind.about().guard_adapter).expect("known");
    assert_eq!(program.launch("go on"), ["claude", "go on"]);
    assert_eq!(program.session_variable(), Some("CLAUDE_CODE_SESSION_ID"));
}

#[test]
fn the_project_is_where_the_program_says() {
    let mut env = BTreeMap::new();
    assert_eq!(hear("Stop", &env).dir, Path::new("/proj/sub"));
    env.insert("CLAUDE_PROJECT_DIR".to_owned(), "/proj".to_owned());
    assert_eq!(hear("Stop", &env).dir, Path::new("/proj"));
}

#[test]
fn tasks_are_read_from_disk_when_the_state_is_written() {
    let one = r#"{"id":"1","subject":"Parser","description":"d","status":"completed","blocks":["2"],"blockedBy":[]}"#;
    let two = r#"{"id":"10","subject":"Printer","owner":"w1","status":"pending","blocks":[],"blockedBy":["1"]}"#;
    let own = r#"{"id":"3","subject":"own","status":"pending","metadata":{"_internal":true}}"#;
    let long = format!(r#"{{"id":"4","subject":"{}"}}"#, "x".repeat(70_000));
    let dir = ".claude/tasks/s1";
    let at = |name: &str| format!("{dir}/{name}");
    let names = ["1.json", "10.json", "3.json", "4.json", "5.json", ".lock"].map(at);
    let texts = [one, two, own, &long, "{torn", ""];
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts).collect();
    let (_home, env) = home(&files);
    let task = |id: &str, subject: &str, description: Option<&str>, status, owner: Option<&str>, blocked: &[&str]| {
        Fact::Task {
            id: id.to_owned(),
            subject: Some(subject.to_owned()),
            description: description.map(str::to_owned),
            status: Some(status),
            owner: owner.map(str::to_owned),
            blocked_by: blocked.iter().map(ToString::to_string).collect(),
        }
    };
    let expected = [
        task("1", "Parser", Some("d"), TaskStatus::Completed, None, &[]),
        task("10", "Printer", None, TaskStatus::Pending, Some("w1"), &["1"]),
    ];
    for event in ["Stop", "PreCompact", "SessionStart"] {
        assert!(hear(event, &env).facts.ends_with(&expected), "{event}: {:?}", hear(event, &env).facts);
    }
    assert_eq!(hear("PostToolUse", &env).facts, []);
    // Another place, and another list.
    let (other, mut env) = home(&[("conf/tasks/team-1/1.json", one)]);
    env.insert("CLAUDE_CONFIG_DIR".to_owned(), other.path().join("conf").to_str().expect("text").to_owned());
    assert_eq!(hear("Stop", &env).facts.len(), 1);
    env.insert("CLAUDE_CODE_TASK_LIST_ID".to_owned(), "team-1".to_owned());
    assert!(hear("Stop", &env).facts.ends_with(&expected[..1]));
    env.insert("CLAUDE_CODE_TASK_LIST_ID".to_owned(), "../team-1".to_owned());
    assert_eq!(hear("Stop", &env).facts.len(), 1);
}

#[test]
fn a_team_s_files_lie_in_the_program_s_own_folder() {
    let home = |name: &str| (name == "HOME").then(|| "/home/dev".to_owned());
    assert_eq!(Claude.team_files("exec-x", &home), Some(PathBuf::from("/home/dev/.claude/teams/exec-x")));
    let own = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| "/conf".to_owned());
    assert_eq!(Claude.team_files("exec-x", &own), Some(PathBuf::from("/conf/teams/exec-x")));
    assert_eq!(Claude.team_files("../x", &home), None);
    assert_eq!(Claude.team_files("x", &|_| None), None);
}

#[test]
fn edges_go_both_ways() {
    let input = json!({"taskId": 2, "addBlockedBy": ["1"], "addBlocks": ["3", 4], "status": "deleted"});
    let facts = used("TaskUpdate", &input, CallStage::Answered(&json!({"success": true})));
    let edges: Vec<(&str, &[String])> = facts
        .iter()
        .map(|fact| match fact {
            Fact::Task { id, blocked_by, .. } => (id.as_str(), blocked_by.as_slice()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(edges, [("2", &["1".to_owned()][..]), ("3", &["2".to_owned()]), ("4", &["2".to_owned()])]);
    assert_eq!(used("TaskUpdate", &input, CallStage::Answered(&json!({"success": false}))), []);
    assert_eq!(used("TaskUpdate", &input, CallStage::Failed("no")), []);
}

#[test]
fn a_list_of_todos_is_told_whole() {
    let input = json!({"todos": [
        {"content": "a", "status": "completed", "activeForm": "A"}, {"content": "b", "status": "in_progress"},
        {"content": "c", "status": "strange"}, {"status": "pending"},
    ]});
    let todo = |text: &str, status| Todo { text: text.to_owned(), status };
    let items = vec![todo("a", TaskStatus::Completed), todo("b", TaskStatus::InProgress)];
    assert_eq!(used("TodoWrite", &input, CallStage::Answered(&json!({}))), [Fact::Todos { items }]);
    assert_eq!(used("TodoWrite", &input, CallStage::Called), []);
}

#[test]
fn questions_are_asked_with_their_choices_and_answered() {
    let question = |text: &str| json!({"question": text, "options": [{"label": "sqlite"}, {"label": "pg"}]});
    let input = json!({"questions": [question("Which db?"), {"question": "Why?"}]});
    let call = "c1".to_owned();
    let asked = Fact::Asked { call: call.clone(), text: "Which db? (sqlite | pg)\nWhy?".to_owned() };
    assert_eq!(used("AskUserQuestion", &input, CallStage::Called), [asked]);
    let answered = |answer: Value| used("AskUserQuestion", &input, CallStage::Answered(&answer));
    let text = |text: &str| [Fact::Answered { call: call.clone(), text: text.to_owned() }];
    assert_eq!(answered(json!({"answers": {"Which db?": "pg"}})), text("pg"));
    let both = json!({"answers": {"Which db?": "pg", "Why?": "it scales"}});
    assert_eq!(answered(both), text("Which db?: pg; Why?: it scales"));
    assert_eq!(answered(json!({"answers": {}, "response": "neither"})), text("neither"));
    assert_eq!(used("AskUserQuestion", &input, CallStage::Failed("declined")), text("not answered: declined"));
}

#[test]
fn a_plan_that_is_agreed_on_is_the_plan() {
    let answer = json!({"plan": "do it", "isAgent": false, "filePath": "/home/dev/.claude/plans/a-b.md"});
    let path = "/home/dev/.claude/plans/a-b.md".to_owned();
    assert_eq!(used("ExitPlanMode", &json!({}), CallStage::Answered(&answer)), [Fact::PlanFile { path }]);
    assert_eq!(used("ExitPlanMode", &json!({"plan": "p"}), CallStage::Answered(&json!({"plan": "p"}))), []);
    let read = used("Read", &json!({"file_path": "docs/plan.md"}), CallStage::Answered(&json!({})));
    assert_eq!(read, [Fact::PlanFile { path: "/proj/docs/plan.md".to_owned() }]);
    assert_eq!(used("Read", &json!({"file_path": "src/main.rs"}), CallStage::Answered(&json!({}))), []);
}

#[test]
fn a_helper_reads_no_plan_for_the_lead() {
    let input = json!({"file_path": "/proj/plan.md"});
    let stage = CallStage::Answered(&Value::Null);
    let facts =
        tools::facts(&Use { call: "c1", tool: "Write", input: &input, stage, by: Some("a1"), dir: Path::new("") });
    assert_eq!(facts, [Fact::FileChanged { path: "/proj/plan.md".to_owned(), by: Some("a1".to_owned()) }]);
}

#[test]
fn teammates_are_helpers_that_go_on() {
    let input = json!({"name": "w1", "description": "mate", "prompt": "p", "subagent_type": "dev", "team_name": "t"});
    let spawned = json!({"status": "teammate_spawned", "teammate_id": "w1@t", "agent_id": "w1@t"});
    let runs = |call: Option<&str>, helper: &str, kind: &str| Fact::HelperRuns {
        call: call.map(str::to_owned),
        helper: helper.to_owned(),
        kind: kind.to_owned(),
    };
    assert_eq!(used("Agent", &input, CallStage::Answered(&spawned)), [runs(Some("c1"), "w1@t", "dev")]);
    let sent = |to: &str, success: bool| {
        let input = json!({"to": to, "message": "more"});
        used("SendMessage", &input, CallStage::Answered(&json!({"success": success})))
    };
    assert_eq!(sent("w1@t", true), [runs(None, "w1@t", "")]);
    assert_eq!(sent("a9ead83eed496aa62", true), [runs(None, "a9ead83eed496aa62", "")]);
    assert_eq!(sent("w1@t", false), []);
    assert_eq!(sent("all", true), []);
}

#[test]
fn a_helper_that_could_not_go_on_is_told_so() {
    let ended = |outcome, words: &str| {
        [Fact::HelperEnded { call: Some("c1".to_owned()), helper: None, outcome, words: words.to_owned() }]
    };
    assert_eq!(used("Task", &json!({}), CallStage::Failed("no such kind")), ended(Outcome::Failed, "no such kind"));
    let refused = "The user doesn't want to proceed with this tool use.";
    assert_eq!(used("Task", &json!({}), CallStage::Failed(refused)), ended(Outcome::Stopped, refused));
    let words = json!([{"type": "text", "text": "3 files"}, {"type": "text", "text": "agentId: a1 (use …)"}]);
    assert_eq!(used("Task", &json!({}), CallStage::Answered(&words)), ended(Outcome::Finished, "3 files"));
    let stopped =
        used("TaskStop", &json!({"task_id": "x1"}), CallStage::Answered(&json!({"task_type": "local_agent"})));
    assert!(matches!(&stopped[..], [Fact::HelperEnded { outcome: Outcome::Stopped, .. }]), "{stopped:?}");
    let shell = json!({"task_type": "local_bash"});
    assert_eq!(used("TaskStop", &json!({"task_id": "b1"}), CallStage::Answered(&shell)), []);
}

#[test]
fn only_the_person_s_words_are_a_prompt() {
    assert_eq!(prompt::facts(" keep <b>it</b> simple \n"), [prompt("keep <b>it</b> simple")]);
    assert_eq!(
        prompt::facts("<command-name>/review</command-name><command-args>the parser</command-args>"),
        [prompt("/review the parser")]
    );
    for own in [
        "",
        "<system-reminder>x</system-reminder>",
        "<command-name>/clear</command-name><command-args></command-args>",
        "<local-command-stdout>x</local-command-stdout>",
        "<task-notification>\n<task-id>b1</task-id><status>failed</status><summary>Background command \"x\" failed</summary>",
        "<teammate-message teammate_id=\"w1\">{\"type\":\"idle_notification\"}</teammate-message>",
        "[Request interrupted by user for tool use]",
    ] {
        assert_eq!(prompt::facts(own), [], "{own}");
    }
}

#[test]
fn a_notice_tells_how_a_helper_in_the_background_ended() {
    let notice = |status: &str| {
        let text = format!(
            "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>c9</tool-use-id>\n<status>{status}</status>\n\
             <summary>Agent \"x\" ended</summary>\n</task-notification>"
        );
        match prompt::facts(&text).as_slice() {
            [Fact::HelperEnded { call, helper, outcome, words }] => {
                assert_eq!((call.as_deref(), helper.as_deref()), (Some("c9"), Some("a1")));
                assert_eq!(words, "Agent \"x\" ended");
                *outcome
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(notice("completed"), Outcome::Finished);
    assert_eq!(notice("killed"), Outcome::Stopped);
    assert_eq!(notice("failed"), Outcome::Failed);
}

#[test]
fn the_transcript_tells_what_the_person_typed_and_nothing_of_the_program_s_own() {
    let user = |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut meta = user(json!("hidden"));
    meta["isMeta"] = json!(true);
    let mut side = user(json!("of a helper"));
    side["isSidechain"] = json!(true);
    let found = lines(&[
        user(json!("one")),
        meta,
        side,
        user(json!([text("two"), text("<system-reminder>x</system-reminder>"), {"type": "image"}])),
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "three"}}),
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": [text("four")]}}),
        json!({"type": "attachment", "attachment": {"type": "skill_listing", "content": "five"}}),
        user(json!("<local-command-stdout>six</local-command-stdout>")),
    ]);
    assert_eq!(found, ["one", "two", "three", "four"].map(prompt));
}

#[test]
fn a_command_that_fails_in_the_background_is_told_with_its_line() {
    let call = json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make deploy"}});
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "running"});
    let notice = "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>c1</tool-use-id>\n<status>failed</status>\n\
                  <summary>Background command failed with exit code 2</summary>\n</task-notification>";
    let found = lines(&[
        json!({"type": "assistant", "message": {"content": [call]}}),
        json!({"type": "user", "message": {"content": [result]}, "toolUseResult": {"backgroundTaskId": "b1"}}),
        json!({"type": "user", "message": {"content": notice}}),
    ]);
    let failures: Vec<Option<&str>> = found
        .iter()
        .map(|fact| match fact {
            Fact::Command { line, failure, .. } if line == "make deploy" => failure.as_deref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(failures, [None, Some("Background command failed with exit code 2")]);
}

#[test]
fn a_reader_that_never_sees_answers_keeps_little() {
    let mut reader = transcript::Lines::default();
    for at in 0..2_000 {
        let call = json!({"type": "tool_use", "id": format!("c{at}"), "name": "Bash", "input": {"command": "x"}});
        reader.line(&json!({"type": "assistant", "message": {"content": [call]}}).to_string());
        assert!(reader.open() <= 256);
    }
}
