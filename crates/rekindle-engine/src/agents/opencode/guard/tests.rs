//! What the guard's plugin tells, as recorded from the program, means.

use rekindle_core::guard::fact::{Beginning, Fact, Outcome, TaskStatus, Todo};
use serde_json::{Value, json};

use super::super::Opencode;
use crate::agents::guard_adapter::{GuardAdapter, Heard, Moment};

const SESSION: &str = "ses_e1f6a02ffffe3k5E82fOgK1ijO";
const CHILD: &str = "ses_e1f69e545ffe7uGO8JF1yyQT63";

fn asked(event: &str, more: Value) -> Value {
    let mut asked = json!({ "event": event, "session": SESSION, "dir": "/home/dev/work" });
    asked.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asked
}

fn heard(event: &str, more: Value) -> Heard {
    Opencode.read_hook(&asked(event, more), &|_| None).expect("something is heard")
}

fn tool(name: &str, status: &str, input: Value, more: Value) -> Vec<Fact> {
    let mut all = json!({ "tool": name, "call": "call_1", "status": status, "input": input });
    all.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    heard("tool", all).facts
}

#[test]
fn a_session_begins_goes_on_and_ends() {
    let new = heard("session.begins", json!({"how": "new"}));
    assert_eq!(
        (new.session.as_str(), new.dir.to_str(), new.helper.as_deref()),
        (SESSION, Some("/home/dev/work"), None)
    );
    assert_eq!(new.moment, Moment::Begins(Beginning::New));
    assert_eq!(heard("session.begins", json!({"how": "resumed"})).moment, Moment::Begins(Beginning::Resumed));
    let prompt = heard("chat.message", json!({"text": "\"do the work\""}));
    assert_eq!((prompt.moment, prompt.facts), (Moment::Prompt, vec![Fact::Prompt { text: "\"do the work\"".into() }]));
    let idle = heard("session.idle", json!({"words": "That is all."}));
    assert_eq!((idle.moment, idle.facts), (Moment::Batch, vec![Fact::TurnEnded { words: "That is all.".into() }]));
    assert_eq!(heard("session.deleted", json!({})).facts, [Fact::Ended { meant: true, reason: "deleted".into() }]);
    let exit = heard("exit", json!({}));
    assert_eq!((exit.moment, exit.facts), (Moment::Ends, vec![Fact::Ended { meant: false, reason: "exit".into() }]));
}

#[test]
fn a_compaction_is_told_with_its_summary() {
    assert_eq!(heard("session.compacting", json!({})).facts, [Fact::Compacting]);
    let compacted = heard("session.compacted", json!({"summary": "numbat summary"}));
    assert_eq!(compacted.facts, [Fact::Compacted { summary: Some("numbat summary".into()) }]);
    assert_eq!(Opencode.answer(&compacted, "words").as_deref(), Some("words"));
    assert_eq!(heard("session.compacted", json!({})).facts, [Fact::Compacted { summary: None }]);
}

#[test]
fn tools_tell_files_commands_and_tasks() {
    let done = json!({"output": "session=x\n", "exit": 3});
    let facts = tool("bash", "completed", json!({"command": "make", "description": "Builds"}), done);
    let failure = Some("exit code 3: session=x".to_owned());
    let (call, line, printed) = ("call_1".into(), "make".into(), "session=x".into());
    assert_eq!(facts, [Fact::Command { call, line, failure, printed, by: None }]);
    let facts = tool("bash", "completed", json!({"command": "ls"}), json!({"output": "a\n", "exit": 0}));
    assert!(matches!(&facts[0], Fact::Command { failure: None, .. }), "{facts:?}");
    let refused = json!({"error": "The user rejected permission"});
    let facts = tool("bash", "error", json!({"command": "rm -rf /"}), refused.clone());
    assert!(matches!(&facts[0], Fact::Command { failure: Some(why), .. } if why.contains("rejected")), "{facts:?}");

    let changed = |path: &str| Fact::FileChanged { path: path.into(), by: None };
    assert_eq!(tool("write", "completed", json!({"filePath": "a.txt"}), json!({})), [changed("a.txt")]);
    let plan = Fact::PlanFile { path: "PLAN.md".into() };
    assert_eq!(
        tool("edit", "completed", json!({"filePath": "PLAN.md"}), json!({})),
        [changed("PLAN.md"), plan.clone()]
    );
    assert_eq!(tool("read", "completed", json!({"filePath": "PLAN.md"}), json!({})), [plan]);
    assert_eq!(tool("write", "error", json!({"filePath": "a.txt"}), refused), []);
    let patch = json!({"patch": "*** Begin Patch\n*** Add File: a.rs\n*** Update File: b.rs\n*** End Patch"});
    assert_eq!(tool("apply_patch", "completed", patch, json!({})), [changed("a.rs"), changed("b.rs")]);

    let todos = json!({"todos": [{"content": "write parser", "status": "in_progress", "priority": "high"}]});
    let items = vec![Todo { text: "write parser".into(), status: TaskStatus::InProgress }];
    assert_eq!(heard("todo.updated", todos).facts, [Fact::Todos { items }]);
}

#[test]
fn a_subagent_is_called_runs_and_ends() {
    let input = json!({"description": "look around", "prompt": "child work", "subagent_type": "general"});
    let facts = tool("task", "running", input.clone(), json!({ "child": CHILD }));
    let called = Fact::HelperCalled {
        call: "call_1".into(),
        name: "look around".into(),
        kind: "general".into(),
        prompt: "child work".into(),
    };
    let runs = Fact::HelperRuns { call: Some("call_1".into()), helper: CHILD.into(), kind: "general".into() };
    assert_eq!(facts, [called.clone(), runs.clone()]);
    let output = format!(
        "<task id=\"{CHILD}\" state=\"completed\">\n<task_result>\nThe child is done.\n</task_result>\n</task>"
    );
    let facts = tool("task", "completed", input.clone(), json!({ "child": CHILD, "output": output }));
    let ended = |outcome, words: &str| Fact::HelperEnded {
        call: Some("call_1".into()),
        helper: Some(CHILD.into()),
        outcome,
        words: words.into(),
    };
    assert_eq!(facts, [called, runs, ended(Outcome::Finished, "The child is done.")]);
    let facts = tool("task", "error", input, json!({ "child": CHILD, "error": "Tool execution aborted" }));
    assert_eq!(facts.last(), Some(&ended(Outcome::Failed, "Tool execution aborted")));
}

#[test]
fn what_a_subagent_does_is_its_own() {
    let more =
        json!({ "helper": CHILD, "tool": "bash", "call": "c", "status": "completed", "input": {"command": "ls"} });
    let inside = heard("tool", more);
    assert_eq!((inside.session.as_str(), inside.helper.as_deref()), (SESSION, Some(CHILD)));
    assert!(matches!(&inside.facts[0], Fact::Command { by: Some(by), .. } if by == CHILD), "{:?}", inside.facts);
    assert_eq!(Opencode.answer(&inside, "words"), None, "nothing is put into a helper's context");
    let said = heard("text", json!({ "helper": CHILD, "text": "We decided to use tabs instead of spaces." }));
    assert!(matches!(&said.facts[0], Fact::Said { by: Some(by), .. } if by == CHILD), "{:?}", said.facts);
}

#[test]
fn a_question_waits_for_its_answer() {
    let input = json!({"questions": [{"question": "Which one?", "options": [{"label": "A"}, {"label": "B"}]}]});
    let ask = Fact::Asked { call: "call_1".into(), text: "Which one? (A / B)".into() };
    assert_eq!(tool("question", "running", input.clone(), json!({})), std::slice::from_ref(&ask));
    let answer = Fact::Answered { call: "call_1".into(), text: "B".into() };
    assert_eq!(tool("question", "completed", input, json!({"output": "B"})), [ask, answer]);
}

#[test]
fn limits_stop_a_session_and_the_person_does_not() {
    let error = |name: &str, data: Value| asked("session.error", json!({"error": {"name": name, "data": data}}));
    let limited = error("APIError", json!({"message": "Too many", "statusCode": 429, "isRetryable": true}));
    let heard = Opencode.read_hook(&limited, &|_| None).expect("heard");
    assert_eq!(heard.facts, [Fact::Limit { text: "Too many".into() }]);
    for other in [error("MessageAbortedError", json!({"message": "Aborted"})), error("UnknownError", json!({}))] {
        assert_eq!(Opencode.read_hook(&other, &|_| None), None);
    }
}

#[test]
fn nonsense_means_nothing() {
    for asked in [json!({}), json!([]), json!(null), json!({"event": "tool"}), asked("weather", json!({}))] {
        assert_eq!(Opencode.read_hook(&asked, &|_| None), None);
    }
    assert_eq!(heard("tool", json!({"input": 7})).facts, []);
    assert_eq!(heard("todo.updated", json!({"todos": [7, {"content": "x"}]})).facts.len(), 1);
}
