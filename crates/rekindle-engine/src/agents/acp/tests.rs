//! How the bridge is started, and what its lines mean where no recording shows it.

use std::path::Path;

use rekindle_core::activity::{Activity, Problem};
use rekindle_shim::bundle::Stdin;
use serde_json::{Value, json};

use super::super::{Adapter, LineSource, Permissions, Program, Start};
use super::{Acp, Setup};

fn program() -> Program {
    Program {
        kind: crate::agents::Kind(&Acp),
        command: vec!["helper".into(), "acp".into()],
        args: vec!["--quiet".into()],
        model: Some("large".into()),
        permissions: Permissions::Full,
        ..Program::default()
    }
}

fn start<'a>(program: &'a Program, resume: Option<&'a str>) -> Start<'a> {
    Start {
        program,
        prompt: "do it\nnow",
        resume,
        new_session: "unused",
        bundle: Path::new("/state/attempts/00000001"),
        workspace: Path::new("/work"),
        rekindle: Path::new("/bin/rekindle"),
    }
}

fn read(lines: &[Value]) -> Vec<Activity> {
    let mut reader = Acp.reader();
    let lines = lines.iter().flat_map(|line| reader.line(LineSource::Out, &line.to_string(), true));
    lines.filter(|activity| !matches!(activity, Activity::Heartbeat | Activity::Turn)).collect()
}

fn update(update: Value) -> Value {
    json!({ "type": "update", "update": update })
}

fn chunk(text: &str) -> Value {
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
}

#[test]
fn the_bridge_is_told_everything_in_a_file_and_no_argument() {
    let launch = Acp.start(&start(&program(), Some("s-1"))).expect("it can be started");
    assert_eq!(launch.argv, ["/bin/rekindle", "__acp", "/state/attempts/00000001/agent/acp.json"]);
    assert_eq!(launch.stdin, Stdin::Lines);
    assert_eq!(launch.input, r#"{"prompt":"do it\nnow"}"#);
    assert_eq!(Acp.message("more").as_deref(), Some(r#"{"prompt":"more"}"#));
    let setup: Setup = serde_json::from_str(&launch.files["acp.json"]).expect("a setup");
    assert_eq!(setup.command, ["helper", "acp", "--quiet"]);
    assert_eq!(setup.mcp, ["/bin/rekindle", "mcp", "--bundle", "/state/attempts/00000001"]);
    assert_eq!((setup.resume.as_deref(), setup.model.as_deref(), setup.full), (Some("s-1"), Some("large"), true));
    let careful = Program { permissions: Permissions::Default, ..program() };
    let launch = Acp.start(&start(&careful, None)).expect("it can be started");
    let setup: Setup = serde_json::from_str(&launch.files["acp.json"]).expect("a setup");
    assert_eq!((setup.resume, setup.full), (None, false));
    let nothing = Acp.start(&start(&Program::default(), None)).expect_err("no program");
    assert!(nothing.contains("`command`"), "{nothing}");
}

#[test]
fn agents_of_different_programs_have_different_accounts() {
    let of = |command: &str| Acp.traits(&Program { command: vec![command.into()], ..Program::default() }).account;
    assert_eq!((of("/opt/one").as_str(), of("two").as_str()), ("acp:one", "acp:two"));
    let named = Program { account: Some("mine".into()), ..program() };
    assert_eq!(Acp.traits(&named).account, "mine");
}

#[test]
fn a_turn_that_a_queued_prompt_follows_is_no_end_and_its_words_are_kept() {
    let found = read(&[
        chunk("TASK_COMP"),
        chunk("LETE: T1"),
        json!({ "type": "turn", "stop": "end_turn", "more": true }),
        chunk("bye"),
        json!({ "type": "turn", "stop": "end_turn", "more": false, "usage": { "inputTokens": 5 } }),
    ]);
    let said = |text: &str| Activity::Said { text: text.to_owned() };
    let last = Activity::Result { ok: true, text: Some("TASK_COMPLETE: T1\nbye".to_owned()) };
    assert_eq!(found[..2], [said("TASK_COMPLETE: T1"), said("bye")]);
    assert_eq!(found.last(), Some(&last));
    assert_eq!(found.iter().filter(|activity| matches!(activity, Activity::Result { .. })).count(), 1);
}

#[test]
fn a_turn_that_did_not_come_to_its_end_is_not_ok() {
    for stop in ["cancelled", "refusal", "max_tokens", "max_turn_requests", "unknown"] {
        let found = read(&[json!({ "type": "turn", "stop": stop, "more": false })]);
        assert_eq!(found, [Activity::Result { ok: false, text: None }], "{stop}");
    }
}

#[test]
fn errors_are_told_apart_by_their_fields() {
    let problem = |method: &str, code: i64, data: Value| {
        let found = read(&[json!({ "type": "error", "method": method, "code": code, "message": "no", "data": data })]);
        let failed = found.iter().find_map(|activity| match activity {
            Activity::Failed(failure) => Some(failure.problem),
            _ => None,
        });
        assert!(matches!(found.last(), Some(Activity::Result { ok: false, .. })), "{found:?}");
        failed.expect("a failure")
    };
    let cases = [
        (problem("session/prompt", -32_000, Value::Null), Problem::Auth),
        (problem("session/prompt", -32_603, json!({ "statusCode": 401 })), Problem::Auth),
        (problem("session/prompt", 429, Value::Null), Problem::Overloaded),
        (problem("session/prompt", -32_603, json!({ "status": 529 })), Problem::Overloaded),
        (problem("session/prompt", -32_603, json!({ "errorName": "APIError" })), Problem::Other),
        (problem("session/load", -32_603, Value::Null), Problem::SessionGone),
        (problem("session/load", -32_002, Value::Null), Problem::SessionGone),
        (problem("session/resume", -32_002, Value::Null), Problem::SessionGone),
        (problem("initialize", -32_603, Value::Null), Problem::Other),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn what_was_not_allowed_is_shown() {
    let found = read(&[json!({ "type": "allowed", "title": "ls" }), json!({ "type": "refused", "title": "rm -rf /" })]);
    assert_eq!(found, [Activity::Said { text: "not allowed without `permissions = \"full\"`: rm -rf /".to_owned() }]);
}

#[test]
fn the_cost_of_a_session_that_was_loaded_is_not_this_attempts() {
    let usage = update(
        json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": { "amount": 2.5, "currency": "USD" } }),
    );
    let session = |loaded: bool| json!({ "type": "session", "id": "s", "loaded": loaded });
    let costs = |found: &[Activity]| {
        found.iter().any(|activity| matches!(activity, Activity::Used(used) if used.cost_usd == Some(2.5)))
    };
    assert!(costs(&read(&[session(false), usage.clone()])));
    assert!(!costs(&read(&[session(true), usage])));
}

#[test]
fn a_message_that_was_cut_off_is_not_lost() {
    let mut reader = Acp.reader();
    reader.line(LineSource::Out, &chunk("I was about to").to_string(), true);
    assert!(reader.end(None).contains(&Activity::Said { text: "I was about to".to_owned() }));
    assert_eq!(reader.end(None), []);
}
