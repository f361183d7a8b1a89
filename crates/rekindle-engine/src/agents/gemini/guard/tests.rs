//! What recorded hooks and a recorded transcript of Gemini CLI mean, and what is printed for it.

use rekindle_core::guard::fact::{Beginning, Fact, Outcome, TaskStatus, Todo};
use serde_json::{Value, json};

use super::super::Gemini;
use crate::agents::guard_adapter::{GuardAdapter, Heard, Moment};

const PATH: &str = "/home/dev/.gemini/tmp/work/chats/session-2026-11-15T07-06-122e1388.jsonl";

/// A hook's input as recorded, with what differs.
fn asked(event: &str, more: Value) -> Value {
    let mut asked = json!({
        "session_id": "122e1388-9ef8-488c-b0bd-f1eb90c5bc63", "transcript_path": PATH, "cwd": "/home/dev/work",
        "hook_event_name": event, "timestamp": "2026-11-15T07:06:43.090Z",
    });
    let map = asked.as_object_mut().expect("an object");
    map.extend(more.as_object().expect("an object").clone());
    asked
}

fn heard(event: &str, more: Value) -> Heard {
    Gemini.read_hook(&asked(event, more), &|_| None).expect("something is heard")
}

fn after(tool: &str, input: Value, response: Value) -> Heard {
    heard("AfterTool", json!({ "tool_name": tool, "tool_input": input, "tool_response": response }))
}

#[test]
fn a_session_begins_and_ends() {
    let begun = heard("SessionStart", json!({"source": "startup"}));
    assert_eq!(begun.session, "122e1388-9ef8-488c-b0bd-f1eb90c5bc63");
    assert_eq!(begun.dir.to_str(), Some("/home/dev/work"));
    assert_eq!(begun.transcript.as_deref().and_then(|path| path.to_str()), Some(PATH));
    assert_eq!(begun.moment, Moment::Begins(Beginning::New));
    assert_eq!(heard("SessionStart", json!({"source": "resume"})).moment, Moment::Begins(Beginning::Resumed));
    assert_eq!(heard("SessionStart", json!({"source": "clear"})).moment, Moment::Begins(Beginning::Cleared));
    let ended = |reason| heard("SessionEnd", json!({ "reason": reason })).facts;
    assert_eq!(ended("clear"), [Fact::Ended { meant: true, reason: "clear".into() }]);
    assert_eq!(ended("exit"), [Fact::Ended { meant: false, reason: "exit".into() }], "a closed terminal says the same");
}

#[test]
fn the_project_is_where_the_program_says() {
    let var = |name: &str| (name == "GEMINI_PROJECT_DIR").then(|| "/project".to_owned());
    let heard = Gemini.read_hook(&asked("SessionStart", json!({})), &var).expect("heard");
    assert_eq!(heard.dir.to_str(), Some("/project"));
}

#[test]
fn a_prompt_is_what_the_person_typed() {
    let prompt = |text: &str| heard("BeforeAgent", json!({ "prompt": text }));
    let is = |text: &str| vec![Fact::Prompt { text: text.into() }];
    let first = prompt("<hook_context>told &lt;b&gt;</hook_context>\n\nfirst prompt");
    assert_eq!((first.moment, first.facts), (Moment::Prompt, is("first prompt")));
    let with_file = "look at @a.rs\n--- Content from referenced files ---\nContent from @a.rs:\nfn main() {}";
    assert_eq!(prompt(with_file).facts, is("look at @a.rs"));
    assert_eq!(prompt("<hook_context>cut off").facts, []);
}

#[test]
fn tools_tell_files_commands_tasks_and_plans() {
    let wrote =
        after("write_file", json!({"content": "hi", "file_path": "a.txt"}), json!({"llmContent": "Successfully"}));
    assert_eq!((wrote.moment, wrote.facts), (Moment::Tool, vec![Fact::FileChanged { path: "a.txt".into(), by: None }]));
    let plan = after("read_file", json!({"file_path": "docs/PLAN.md"}), json!({"llmContent": "# Plan"}));
    assert_eq!(plan.facts, [Fact::PlanFile { path: "docs/PLAN.md".into() }]);
    assert_eq!(after("read_file", json!({"file_path": "a.rs"}), json!({"llmContent": "x"})).facts, []);
    let list = json!({"todos": [
        {"description": "write parser", "status": "in_progress"}, {"description": "ship", "status": "pending"},
        {"description": "old", "status": "cancelled"}, {"description": "wait", "status": "blocked"}]});
    let item = |text: &str, status| Todo { text: text.into(), status };
    let items = vec![
        item("write parser", TaskStatus::InProgress),
        item("ship", TaskStatus::Pending),
        item("old", TaskStatus::Deleted),
        item("wait", TaskStatus::Pending),
    ];
    assert_eq!(after("write_todos", list, json!({"llmContent": "Successfully"})).facts, [Fact::Todos { items }]);
    let made = json!({"title": "Importer", "description": "of CSV", "type": "task", "dependencies": ["a1"]});
    let facts = after("tracker_create_task", made, json!({"llmContent": "Created task b2: Importer"})).facts;
    let Fact::Task { id, status, blocked_by, .. } = &facts[0] else { panic!("{facts:?}") };
    assert_eq!(
        (id.as_str(), *status, blocked_by.as_slice()),
        ("b2", Some(TaskStatus::Pending), &["a1".to_owned()][..])
    );
    let closed = json!({"id": "b2", "status": "closed"});
    let facts = after("tracker_update_task", closed, json!({"llmContent": "Updated task b2. Status: closed"})).facts;
    let Fact::Task { subject, status, .. } = &facts[0] else { panic!("{facts:?}") };
    assert_eq!((subject.as_deref(), *status), (None, Some(TaskStatus::Completed)), "what is not said stays");
}

#[test]
fn a_command_tells_how_it_went_by_what_the_program_wrote_below_its_output() {
    let ran = |line: &str, said: &str| {
        let said = format!("<untrusted_context>\n{said}\n</untrusted_context>");
        let facts = after("run_shell_command", json!({ "command": line }), json!({ "llmContent": said })).facts;
        let [Fact::Command { call, line, failure, printed, by: None }] = &facts[..] else { panic!("{facts:?}") };
        assert!(call.contains(line.as_str()), "{call}");
        (failure.clone(), printed.clone())
    };
    assert_eq!(ran("echo after", "Output: after\nProcess Group PGID: 10106"), (None, "after".into()));
    let (failure, printed) = ran("make", "Output: no rule\nExit Code: 2\nProcess Group PGID: 9725");
    assert_eq!((failure.as_deref(), printed.as_str()), (Some("exit code 2: no rule"), "no rule"));
    assert_eq!(ran("true", "Output: (empty)"), (None, String::new()));
    assert_eq!(ran("x", "Output: (empty)\nSignal: 9").0.as_deref(), Some("signal 9"));
    let cut = ran("sleep 9", "Command was cancelled by user before it could complete. There was no output");
    assert_eq!(cut.0.map(|why| why.starts_with("cancelled")), Some(true));
}

#[test]
fn nothing_is_added_to_a_failed_call() {
    let error = json!({"message": "File not found: /home/dev/work/a", "type": "file_not_found"});
    let response = json!({ "llmContent": "Could not read file", "error": error });
    let failed = after("read_file", json!({"file_path": "PLAN.md"}), response.clone());
    assert_eq!((failed.moment.clone(), failed.facts.clone()), (Moment::Other, vec![]));
    assert_eq!(Gemini.answer(&failed, "words"), None);
    assert_eq!(after("write_file", json!({"file_path": "a"}), response).facts, [], "nothing was written");
}

#[test]
fn helpers_and_questions_are_told_before_and_after() {
    let input = json!({"agent_name": "codebase_investigator", "prompt": "find the parser"});
    let before = heard("BeforeTool", json!({ "tool_name": "invoke_agent", "tool_input": input })).facts;
    let facts = after("invoke_agent", input, json!({"llmContent": [{"text": "It is in parse.rs"}]})).facts;
    assert_eq!(before[0], facts[0]);
    let (Fact::HelperCalled { call, kind, .. }, Fact::HelperEnded { call: ended, outcome, words, .. }) =
        (&facts[0], &facts[1])
    else {
        panic!("{facts:?}")
    };
    assert_eq!((Some(call), kind.as_str()), (ended.as_ref(), "codebase_investigator"));
    assert_eq!((*outcome, words.as_str()), (Outcome::Finished, "It is in parse.rs"));

    let input = json!({"questions": [{"question": "Which one?", "options": [{"label": "A"}, {"label": "B"}]}]});
    let facts = after("ask_user", input, json!({"llmContent": "{\"answers\":{\"0\":\"B\"}}"})).facts;
    let (Fact::Asked { call, text }, Fact::Answered { call: answered, text: answer }) = (&facts[0], &facts[1]) else {
        panic!("{facts:?}")
    };
    assert_eq!((call, text.as_str(), answer.as_str()), (answered, "Which one? (A / B)", "B"));
    let other = json!({"tool_name": "run_shell_command", "tool_input": {"command": "ls"}});
    let begins = Gemini.read_hook(&asked("BeforeTool", other), &|_| None).expect("heard").facts;
    let ended = after("run_shell_command", json!({"command": "ls"}), json!({"llmContent": "a"})).facts;
    let (Fact::Called { call, line }, Fact::Command { call: same, .. }) = (&begins[0], &ended[0]) else {
        panic!("{begins:?} {ended:?}")
    };
    assert_eq!((call, line.as_str()), (same, "ls"), "while it runs it is known");
}

#[test]
fn a_turn_ends_with_the_words_of_the_transcript() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("chat.jsonl");
    let lines = concat!(
        r#"{"id":"1","type":"gemini","content":"We decided to use SQLite instead of files."}"#,
        "\n",
        r#"{"id":"2","type":"user","content":[{"text":"more"}]}"#,
        "\n{\"$set\":{\"lastUpdated\":\"x\"}}\n"
    );
    std::fs::write(&path, lines).expect("written");
    let repeated = "We decided to use SQLite instead of files.  instead of files. ";
    let ended = json!({"prompt": "x", "prompt_response": repeated, "transcript_path": path});
    let ended = heard("AfterAgent", ended);
    assert_eq!(ended.moment, Moment::Batch);
    let words = "We decided to use SQLite instead of files.".to_owned();
    assert!(matches!(&ended.facts[0], Fact::Said { text, .. } if *text == words), "{:?}", ended.facts);
    assert_eq!(ended.facts.last(), Some(&Fact::TurnEnded { words }));
    let without = heard("AfterAgent", json!({"prompt_response": "after tools", "transcript_path": "/nowhere"}));
    assert_eq!(without.facts.last(), Some(&Fact::TurnEnded { words: "after tools".into() }));
}

#[test]
fn only_a_request_with_a_summary_can_be_told_something() {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let request = |messages: Value| asked("BeforeModel", json!({"llm_request": {"messages": messages}}));
    let plain = request(json!([message("user", "<session_context>x</session_context>first")]));
    assert_eq!(Gemini.read_hook(&plain, &|_| None), None);
    let summed = request(json!([
        message("user", "<session_context>x</session_context><state_snapshot>sum</state_snapshot>"),
        message("model", "Got it. Thanks for the additional context!"),
        message("user", "second prompt"),
    ]));
    let heard = Gemini.read_hook(&summed, &|_| None).expect("heard");
    assert_eq!(heard.facts, []);
    let printed = Gemini.answer(&heard, "You were <doing> this.").expect("an answer");
    let printed: Value = serde_json::from_str(&printed).expect("JSON and nothing else");
    let messages = printed.pointer("/hookSpecificOutput/llm_request/messages").expect("messages");
    assert_eq!(messages.as_array().map(Vec::len), Some(1), "the rest stays as it is");
    let content = messages[0]["content"].as_str().expect("text");
    assert!(content.ends_with("</state_snapshot>\n\nYou were <doing> this."), "{content}");
}

#[test]
fn words_stand_beside_a_beginning_a_prompt_and_a_result() {
    let moments = [
        heard("SessionStart", json!({"source": "resume"})),
        heard("BeforeAgent", json!({"prompt": "go on"})),
        after("write_file", json!({"file_path": "a"}), json!({"llmContent": "ok"})),
    ];
    for heard in moments {
        let printed: Value = serde_json::from_str(&Gemini.answer(&heard, "words").expect("an answer")).expect("JSON");
        let expected = json!({"hookSpecificOutput": {"hookEventName": heard.event, "additionalContext": "words"}});
        assert_eq!(printed, expected);
    }
    assert_eq!(Gemini.answer(&heard("AfterAgent", json!({"prompt_response": ""})), "words"), None);
    assert_eq!(Gemini.answer(&heard("SessionEnd", json!({"reason": "exit"})), "words"), None);
}

#[test]
fn the_transcript_shows_each_compression_once_and_what_was_said() {
    let lines = [
        r#"{"sessionId":"122e1388","projectHash":"f","startTime":"2026-11-15T07:06:43.087Z","kind":"main"}"#,
        r#"{"$set":{"messages":[{"id":"d0","type":"user","content":[{"text":"<session_context>\nx</session_context>"}]}]}}"#,
        r#"{"id":"81","type":"user","content":[{"text":"<hook_context>C</hook_context>\n\nfirst prompt"}]}"#,
        r#"{"id":"99","type":"user","content":[{"text":"System: Potential loop detected."}],"displayContent":[{"text":"first prompt"}]}"#,
        r#"{"id":"16","type":"gemini","content":"We will use tabs instead of spaces.","toolCalls":[{"id":"c1","name":"write_file","args":{"file_path":"a.txt"},"status":"success","result":[]},{"id":"c2","name":"replace","args":{"file_path":"b.txt"},"status":"error"},{"id":"c3","name":"write_todos","args":{"todos":[]},"status":"success"}]}"#,
        r#"{"id":"28","type":"user","content":[{"functionResponse":{"id":"c1","name":"write_file","response":{"output":"ok"}}}]}"#,
        r#"{"$set":{"messages":[{"id":"d0","type":"user","content":[{"text":"<session_context>x</session_context>"}]},{"id":"f8","type":"user","content":[{"text":"<state_snapshot>SUMMARY verified</state_snapshot>"}]},{"id":"37","type":"gemini","content":[{"text":"Got it. Thanks for the additional context!"}]}]}}"#,
        r#"{"$set":{"messages":[{"id":"f8","type":"user","content":[{"text":"<state_snapshot>SUMMARY verified</state_snapshot>"}]}]}}"#,
        r#"{"$set":{"lastUpdated":"2026-11-15T07:06:46.404Z"}}"#,
        "no JSON",
        "[]",
    ];
    let mut reader = Gemini.transcript_reader().expect("a reader");
    let facts: Vec<Fact> = lines.iter().flat_map(|line| reader.line(line)).collect();
    assert_eq!(facts[0], Fact::Prompt { text: "first prompt".into() });
    assert!(matches!(&facts[1], Fact::Said { text, .. } if text.contains("tabs")), "{facts:?}");
    assert_eq!(facts[2], Fact::FileChanged { path: "a.txt".into(), by: None });
    let ends: Vec<(&str, bool)> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Returned { call, failed } => Some((call.as_str(), *failed)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [("c1", false), ("c2", true), ("c3", false)]);
    let rest: Vec<&Fact> =
        facts[3..].iter().filter(|fact| !matches!(fact, Fact::Called { .. } | Fact::Returned { .. })).collect();
    assert_eq!(rest, [&Fact::Compacted { summary: Some("SUMMARY verified".into()) }]);
}

#[test]
fn everything_that_is_installed_is_heard() {
    let messages = json!([{"role": "user", "content": "<state_snapshot>s</state_snapshot>"}]);
    let more = json!({"llm_request": {"messages": messages}, "tool_name": "ask_user", "tool_input": {}});
    for event in super::super::settings::EVENTS {
        assert!(Gemini.read_hook(&asked(event.name, more.clone()), &|_| None).is_some(), "{}", event.name);
    }
    let names: Vec<&str> = super::super::settings::EVENTS.iter().map(|event| event.name).collect();
    for name in ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeModel", "BeforeTool", "AfterTool"] {
        assert!(names.contains(&name), "{name} is not installed");
    }
}

#[test]
fn nonsense_means_nothing() {
    for asked in [json!({}), json!([]), json!("x"), json!(null), json!({"session_id": "x"})] {
        assert_eq!(Gemini.read_hook(&asked, &|_| None), None);
    }
    for event in ["AfterTool", "AfterAgent", "SessionStart", "SessionEnd", "BeforeAgent"] {
        let bare = json!({"session_id": "x", "cwd": "/", "hook_event_name": event});
        assert!(Gemini.read_hook(&bare, &|_| None).is_some(), "{event} without anything else");
    }
    assert_eq!(
        Gemini.read_hook(&asked("PreCompress", json!({"trigger": "auto"})), &|_| None),
        None,
        "it fires all the time"
    );
}

#[test]
fn a_new_session_is_launched_with_a_prompt_that_reads_no_files() {
    let argv = Gemini.launch("- see @file");
    assert_eq!(argv[0], "gemini");
    assert!(argv[1].starts_with("--prompt-interactive=- see \\@file"), "{argv:?}");
}
