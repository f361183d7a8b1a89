//! Agents that speak the Agent Client Protocol, played by scripts: what the bridge asks them, and what it makes of one that
//! dies, refuses, talks nonsense or does not let go.

use serde_json::{Value, json};

use crate::rig::{Rig, objects};

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nThe task's own words.\n";

/// Answers the first two requests, whatever they are, and writes down all it is asked.
const OPENS: &str = r#"
hear() { IFS= read -r line && printf '%s\n' "$line" >> heard-$REKINDLE_EPOCH; }
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
result() { say '{"jsonrpc":"2.0","id":'$1',"result":'"$2"'}'; }
hear; result 1 '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
hear; result 2 '{"sessionId":"s1"}'
"#;

fn rig(agent: &str) -> Rig {
    let settings = "[agents.script]\nkind = \"acp\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
        [run]\nagent = \"script\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"300ms\"\n";
    Rig::new(ONE, &format!("{OPENS}{agent}")).with_settings(settings)
}

/// What the agent of an epoch was asked.
fn heard(rig: &Rig, epoch: u64) -> Vec<Value> {
    objects(&rig.lines(&format!("heard-{epoch}")).join("\n"))
}

fn strategies(rig: &Rig) -> Vec<String> {
    let started = rig.events_of("developer_dispatched");
    started.iter().map(|event| event["details"]["strategy"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn a_session_is_opened_prompted_and_left() {
    let rig = rig(r#"
hear
update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I will "}}'
update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"think first."}}'
result 3 '{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":5}}'
hear
update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"touch made","kind":"execute","status":"in_progress"}'
touch made
update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}'
update '{"sessionUpdate":"usage_update","used":4000,"size":8000}'
rekindle task done T1 > told 2>&1
result 4 '{"stopReason":"end_turn","usage":{"inputTokens":200,"outputTokens":5}}'
hear || exit 0
"#);
    rig.finish();
    let heard = heard(&rig, 1);
    let methods: Vec<&str> = heard.iter().map(|asked| asked["method"].as_str().expect("a method")).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt", "session/prompt"], "reminded once");
    assert_eq!(heard[0]["params"]["protocolVersion"], 1);
    assert!(heard[0]["params"]["clientCapabilities"]["fs"].is_null());
    let server = &heard[1]["params"]["mcpServers"][0];
    assert_eq!(server["name"], "rekindle");
    assert_eq!((&server["args"][0], &server["args"][1]), (&json!("mcp"), &json!("--bundle")));
    assert!(!heard[1].to_string().contains("rk1."), "the token is in no argument");
    assert!(
        heard[2]["params"]["prompt"][0]["text"].as_str().is_some_and(|text| text.contains("The task's own words."))
    );
    assert_eq!(heard[3]["params"]["sessionId"], "s1");
    let agent = &rig.status()["agents"][0];
    assert_eq!((&agent["kind"], &agent["session_id"]), (&json!("acp"), &json!("s1")), "{agent:#}");
    assert_eq!((&agent["context_used"], &agent["context_window"]), (&json!(4_000), &json!(8_000)), "{agent:#}");
    assert_eq!(agent["tokens"], 310, "{agent:#}");
    let logs = rig.ok(&["logs"]);
    assert!(logs.contains("I will think first.") && logs.contains("touch made"), "{logs}");
    rig.assert_nothing_left();
}

#[test]
fn one_that_dies_in_its_work_is_resumed_and_one_that_lost_its_session_is_replaced() {
    // The first dies, the second is asked to load and refuses, the third begins anew.
    let agent = r#"
[ $REKINDLE_EPOCH = 1 ] && { hear; exit 5; }
hear; touch made; rekindle task done T1 > told 2>&1
result 3 '{"stopReason":"end_turn"}'
hear || exit 0
"#;
    let rig = rig(agent);
    let refuses = r#"[ $REKINDLE_EPOCH = 2 ] && { hear; say '{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no such session"}}'; hear; exit 0; }
hear; result 2"#;
    let script = rig.lines("agent.sh").join("\n").replacen("hear; result 2", refuses, 1);
    rig.write("agent.sh", &script);
    rig.finish();
    assert_eq!(strategies(&rig), ["first", "resume", "fresh"], "{}", rig.story());
    let loaded = &heard(&rig, 2)[1];
    assert_eq!((&loaded["method"], &loaded["params"]["sessionId"]), (&json!("session/load"), &json!("s1")));
    assert_eq!(heard(&rig, 3)[1]["method"], "session/new");
    rig.assert_nothing_left();
}

/// What an agent says that can take up a session without its history, and close it.
const ABLE: &str = r#"{"loadSession":true,"sessionCapabilities":{"resume":{},"close":{}}}"#;

#[test]
fn a_session_is_taken_up_without_its_history_where_that_is_offered_and_closed_at_the_end() {
    let rig = rig(r#"
[ $REKINDLE_EPOCH = 1 ] && { hear; exit 5; }
hear; touch made; rekindle task done T1 > told 2>&1
result 3 '{"stopReason":"end_turn"}'
hear; result 4 '{}'
hear || exit 0
"#);
    let script = rig.lines("agent.sh").join("\n").replacen(r#"{"loadSession":true}"#, ABLE, 1);
    rig.write("agent.sh", &script);
    rig.finish();
    assert_eq!(strategies(&rig), ["first", "resume"], "{}", rig.story());
    let heard = heard(&rig, 2);
    let methods: Vec<&str> = heard.iter().map(|asked| asked["method"].as_str().expect("a method")).collect();
    assert_eq!(methods, ["initialize", "session/resume", "session/prompt", "session/close"]);
    assert_eq!(heard[1]["params"]["sessionId"], "s1");
    assert_eq!(heard[3]["params"]["sessionId"], "s1");
    rig.assert_nothing_left();
}

#[test]
fn a_resumption_that_fails_is_tried_as_a_load() {
    let rig = rig(r#"
[ $REKINDLE_EPOCH = 1 ] && { hear; exit 5; }
hear; result 3 '{}'
hear; touch made; rekindle task done T1 > told 2>&1
result 4 '{"stopReason":"end_turn"}'
hear; hear || exit 0
"#);
    let refuses = r#"[ $REKINDLE_EPOCH = 2 ] && { hear; say '{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"not known"}}'; }
[ $REKINDLE_EPOCH = 2 ] || { hear; result 2 '{"sessionId":"s1"}'; }
"#;
    let script = rig.lines("agent.sh").join("\n").replacen(r#"{"loadSession":true}"#, ABLE, 1);
    rig.write("agent.sh", &script.replacen("hear; result 2 '{\"sessionId\":\"s1\"}'", refuses, 1));
    rig.finish();
    let heard = heard(&rig, 2);
    let methods: Vec<&str> = heard.iter().map(|asked| asked["method"].as_str().expect("a method")).collect();
    assert_eq!(methods[..4], ["initialize", "session/resume", "session/load", "session/prompt"]);
    assert_eq!(strategies(&rig), ["first", "resume"], "{}", rig.story());
    rig.assert_nothing_left();
}

#[test]
fn nonsense_and_requests_are_answered_and_do_no_harm() {
    let agent = r#"
hear
echo 'warning: this is no protocol'
printf '\000\377 nor this\n'
say '[]'
say '{"jsonrpc":"2.0","id":"x1","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}'; hear
say '{"jsonrpc":"2.0","id":"x2","method":"session/request_permission","params":{"toolCall":{"title":"rm -rf /","kind":"execute"},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'; hear
say '{"jsonrpc":"2.0","id":"x3","method":"session/request_permission","params":{"toolCall":{"title":"rekindle_task_done"},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'; hear
touch made; rekindle task done T1 > told 2>&1
result 3 '{"stopReason":"end_turn"}'
hear || exit 0
"#;
    let rig = rig(agent);
    rig.finish();
    let answers = heard(&rig, 1).split_off(3);
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!("x1"), &json!(-32_601)));
    assert_eq!(answers[1]["result"]["outcome"]["optionId"], "no");
    assert_eq!(answers[2]["result"]["outcome"]["optionId"], "yes");
    assert!(rig.ok(&["logs"]).contains("not allowed without"), "{}", rig.ok(&["logs"]));
    let raw = std::fs::read_to_string(rig.state().join("attempts/00000001/out.log")).expect("its lines");
    assert!(raw.contains("this is no protocol"), "nothing is lost: {raw}");
    assert!(objects(&raw).iter().all(|line| line["type"].is_string()), "{raw}");
    rig.assert_nothing_left();
}

#[test]
fn a_stop_cancels_the_turn_and_ends_one_that_does_not_let_go() {
    let agent = r#"
[ $REKINDLE_EPOCH = 1 ] || { hear; touch made; rekindle task done T1 > told 2>&1; result 3 '{"stopReason":"end_turn"}'; hear; exit 0; }
trap '' INT TERM HUP
hear; touch here; hear
touch cancelled
$FAKE wait never
"#;
    let rig = rig(agent);
    let run = rig.run();
    rig.await_file("here");
    rig.ok(&["pause"]);
    assert_eq!(run.end().code, Some(4), "{}", rig.story());
    rig.assert_nothing_left();
    assert!(rig.has("cancelled"), "{}", rig.story());
    assert_eq!(heard(&rig, 1)[3]["method"], "session/cancel");
    let ended = rig.start(&["resume"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    rig.assert_nothing_left();
}

/// The same with a model that is asked for.
fn with_model(rig: Rig) -> Rig {
    let settings = rig.lines("rekindle.toml").join("\n").replacen("kind", "model = \"large\"\nkind", 1);
    rig.with_settings(&settings)
}

#[test]
fn a_model_is_asked_for_where_the_agent_offers_it() {
    let rig = with_model(rig(
        "hear; result 3 '{}'\nhear; touch made; rekindle task done T1 > told 2>&1\nresult 4 '{\"stopReason\":\"end_turn\"}'\nhear\n",
    ));
    let offers = r#"{"sessionId":"s1","configOptions":[{"id":"m","category":"model","currentValue":"small"}]}"#;
    let script = rig.lines("agent.sh").join("\n").replacen("{\"sessionId\":\"s1\"}", offers, 1);
    rig.write("agent.sh", &script);
    rig.finish();
    let asked = &heard(&rig, 1)[2];
    assert_eq!(asked["method"], "session/set_config_option");
    assert_eq!((&asked["params"]["configId"], &asked["params"]["value"]), (&json!("m"), &json!("large")));
    assert_eq!(rig.status()["agents"][0]["model"], "large");
    rig.assert_nothing_left();
}

#[test]
fn a_model_that_cannot_be_asked_for_is_said_and_not_passed_over() {
    let rig = with_model(rig("hear\n"));
    rig.write("plan.md", &ONE.replace("- accept", "- attempts: 1\n- accept"));
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", rig.story());
    assert!(rig.story().contains("set the model `large`"), "{}", rig.story());
    rig.assert_nothing_left();
}
