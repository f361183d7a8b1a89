//! The MCP server against a real coordinator: every tool, its refusals, and what it does when nobody or nonsense answers.

use serde_json::{Value, json};

use crate::client::{Called, Client};
use crate::rig::Rig;

const ONE: &str =
    "# One\n\n### T1: work\n- accept: `test -e made || { echo it is not made; exit 7; }`\n\nThe task's own words.\n";

/// Says that it is there and stays until it is told to leave.
const STAYS: &str = "touch here-$REKINDLE_EPOCH\n$FAKE wait leave\n";

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn every_tool_does_what_its_verb_does() {
    let plan = "# Three\n\n### T1: first\n- agent: backend\n- accept: `test -e made || { echo it is not made; exit 7; }`\n\n\
        ### T2: second\n- agent: backend\n- blocked by: T1\n- accept: `true`\n\n\
        ### T3: third\n- agent: backend\n- blocked by: T2\n- attempts: 1\n- accept: `true`\n";
    let rig = Rig::new(plan, STAYS);
    let run = rig.run();
    rig.await_file("here-1");
    let mut client = Client::unintroduced(&rig, 1);
    let about = client.introduce();
    assert_eq!(about["serverInfo"]["name"], "rekindle");

    let listed = client.request("tools/list", json!({}));
    let tools = &listed["result"]["tools"];
    // The rest is taken too, and not offered: what is offered stands in every request to a model.
    assert_eq!(names(tools), ["ask", "checkpoint", "note", "task_done", "task_fail"]);
    for tool in tools.as_array().expect("a list") {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["outputSchema"]["required"], json!(["ok", "message"]), "{tool}");
        assert_eq!(tool["annotations"]["idempotentHint"], true, "{tool}");
    }

    let own = client.call("task_list", json!({})).good();
    assert_eq!(own.fields["tasks"][0]["id"], "T1");
    assert_eq!(own.fields["tasks"].as_array().map(Vec::len), Some(3));
    client.call("task_start", json!({ "task": "T1" })).good();
    let checkpoint = json!({
        "task": "T1", "status": "half", "completed": ["a"], "remaining": ["b"], "files": ["c"], "progress": 40,
    });
    client.call("checkpoint", checkpoint).good();
    client.call("note", json!({ "decision": "use tabs" })).good();
    client.call("heartbeat", json!({})).good();
    proves_and_goes_on(&rig, &mut client);
    asks_and_gives_up(&rig, &mut client);

    assert!(client.close().success());
    rig.touch("leave");
    assert_eq!(run.end().code, Some(3), "{}", rig.story());
    assert_eq!(rig.events_of("checkpoint_saved")[0]["details"]["checkpoint"]["progress"], 40);
    assert_eq!(rig.events_of("note_recorded")[0]["details"]["text"], "use tabs");
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains("by MCP"), "{why}");
    rig.audit();
}

#[test]
fn a_split_makes_tasks_of_its_parts() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here-1");
    let mut client = Client::of_attempt(&rig, 1);
    let split = json!({ "task": "T1", "subtasks": ["read", "write"] });
    let recorded = client.call("task_split", split.clone()).good();
    assert!(recorded.text.contains("the subtasks are now your tasks: T1.1, T1.2."), "{}", recorded.text);
    assert_eq!(client.call("task_split", split).good().text, recorded.text, "said twice, recorded once");
    let whole = client.call("task_done", json!({ "task": "T1", "result": "all" })).wrong();
    assert!(whole.text.contains("report its parts instead, in order: T1.1, T1.2"), "{}", whole.text);
    let first = client.call("task_done", json!({ "task": "T1.1", "result": "read" })).good();
    assert!(first.text.contains("Continue with T1.2: write"), "{}", first.text);
    rig.touch("made");
    let last = client.call("task_done", json!({ "task": "T1.2", "result": "written" })).good();
    assert!(last.text.contains("end your turn"), "{}", last.text);
    assert!(client.close().success());
    rig.touch("leave");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.task("T1")["state"], "complete");
    assert_eq!(rig.events_of("split_proposed").len(), 1);
    rig.audit();
}

#[test]
fn a_reviewer_has_the_tools_of_its_role_and_no_others() {
    let plan = "---\nreview: [critic, auditor]\n---\n# Two\n\n### T1: work\n- accept: `true`\n\nWork.\n";
    let agent = "[ $REKINDLE_ROLE = developer ] && { rekindle task done T1; exit; }\ntouch here-$REKINDLE_ROLE\n\
        $FAKE wait leave-$REKINDLE_ROLE\n";
    let rig = Rig::new(plan, agent);
    let run = rig.run();
    for (role, attempt, tool, other) in [("critic", 2, "review", "audit"), ("auditor", 3, "audit", "review")] {
        rig.await_file(&format!("here-{role}"));
        let mut client = Client::of_attempt(&rig, attempt);
        let listed = client.request("tools/list", json!({}));
        let found = names(&listed["result"]["tools"]);
        assert!(found.contains(&tool) && found.is_sorted(), "{found:?}");
        for missing in [other, "task_done", "task_split"] {
            assert!(!found.contains(&missing), "{missing} in {found:?}");
            let refused = client.request("tools/call", json!({ "name": missing, "arguments": { "task": "T1" } }));
            let message = refused["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(message, format!("a {role} has no tool `{missing}`"), "{refused}");
        }
        let wrong = client.call(tool, json!({ "task": "T1", "verdict": "maybe", "issues": [] })).wrong();
        assert!(wrong.text.contains("`pass`"), "{}", wrong.text);
        let wrong = client.call(tool, json!({ "task": "T1", "verdict": "fail", "issues": [] })).wrong();
        assert!(wrong.text.contains("needs `issues`"), "{}", wrong.text);
        let verdict = json!({ "task": "T1", "verdict": "pass", "issues": [], "passed": "all of it" });
        let taken = client.call(tool, verdict.clone()).good();
        assert!(taken.text.contains("end your turn"), "{}", taken.text);
        assert_eq!(client.call(tool, verdict).good().text, taken.text, "said twice, given once");
        assert!(client.close().success());
        rig.touch(&format!("leave-{role}"));
    }
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    let given = rig.events_of("verdict_given");
    assert_eq!(given.len(), 2, "{}", rig.story());
    assert_eq!(given[1]["details"]["passed"], json!(["all of it"]));
    rig.audit();
}

fn proves_and_goes_on(rig: &Rig, client: &mut Client) {
    let done = json!({ "task": "T1", "result": "made it" });
    let refused = client.call("task_done", done.clone()).wrong();
    assert_eq!(refused.fields["state"], "not_proven");
    assert_eq!(refused.fields["checks"][0]["passed"], false);
    for part in ["is not complete", "exited with 7", "it is not made", "call `task_done` for T1 again"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    rig.touch("made");
    let complete = client.call("task_done", done.clone()).good();
    assert_eq!(complete.fields["state"], "complete");
    assert!(complete.text.contains("Continue with T2: second"), "{}", complete.text);
    let again = client.call("task_done", done).good();
    assert!(again.text.contains("already complete"), "{}", again.text);
    let claims = rig.events_of("task_claimed");
    assert_eq!(claims.len(), 2, "{}", rig.story());
    assert_eq!(claims[0]["details"]["door"], "mcp");
}

fn asks_and_gives_up(rig: &Rig, client: &mut Client) {
    let ask = json!({ "task": "T2", "question": "which colour?", "options": ["red"], "context": "the roof" });
    let asked = client.call("ask", ask.clone()).good();
    assert_eq!(asked.fields["question"], 1);
    assert!(asked.text.contains("end your turn"), "{}", asked.text);
    assert_eq!(client.call("ask", ask.clone()).good().fields["question"], 1, "the same question");
    rig.ok(&["answer", "1", "green"]);
    assert_eq!(client.call("ask", ask).good().fields["answer"], "green");
    client.call("task_done", json!({ "task": "T2", "result": "painted" })).good();
    let left = client.call("task_fail", json!({ "task": "T3", "reason": "no ladder" })).good();
    assert!(left.text.contains("end your turn"), "{}", left.text);
    let over = client.call("checkpoint", json!({ "task": "T3", "status": "still here" })).wrong();
    assert_eq!(over.fields["over"], true, "{over:?}");
}

#[test]
fn an_agent_whose_epoch_is_over_is_told_to_stop() {
    let agent = "touch here-$REKINDLE_EPOCH\n[ $REKINDLE_EPOCH = 1 ] || { $FAKE wait go; touch made; rekindle task done T1; exit; }\n\
        trap 'exit 0' INT TERM\n$FAKE wait never\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.await_file("here-1");
    rig.await_event("agent_started");
    let mut client = Client::of_attempt(&rig, 1);
    client.call("task_start", json!({ "task": "T1" })).good();
    rig.ok(&["recover", "developer-T1"]);
    rig.await_file("here-2");
    let calls = [
        ("checkpoint", json!({ "task": "T1", "status": "still here" })),
        ("task_done", json!({ "task": "T1", "result": "mine" })),
        ("task_split", json!({ "task": "T1", "subtasks": ["mine"] })),
        ("note", json!({ "decision": "mine" })),
        ("heartbeat", json!({})),
        ("task_list", json!({})),
    ];
    for (tool, arguments) in calls {
        let over = client.call(tool, arguments).wrong();
        assert_eq!(over.fields["over"], true, "{tool}: {over:?}");
        assert!(over.text.contains("end your turn now"), "{tool}: {}", over.text);
    }
    // Only now: a run that is over has no coordinator left to ask.
    rig.touch("go");
    assert!(client.close().success());
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}

#[test]
fn without_a_coordinator_what_is_said_is_kept() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here-1");
    rig.await_event("agent_started");
    let mut client = Client::of_attempt(&rig, 1);
    client.call("heartbeat", json!({})).good();
    run.kill();
    let own = client.call("task_list", json!({})).good();
    assert_eq!(own.fields["tasks"], json!([{ "id": "T1" }]));
    assert!(own.text.contains("no coordinator is running"), "{}", own.text);
    client.call("heartbeat", json!({})).good();
    rig.touch("made");
    let calls = [
        ("checkpoint", json!({ "task": "T1", "status": "nobody hears it" })),
        ("task_done", json!({ "task": "T1", "result": "kept" })),
    ];
    for (tool, arguments) in calls {
        let kept = client.call(tool, arguments).good();
        assert_eq!(kept.fields["kept"], true, "{kept:?}");
        assert!(kept.text.contains("is kept and counts when one starts"), "{}", kept.text);
    }
    let second = rig.run();
    rig.await_event("task_completed");
    // The one connection serves under both coordinators.
    let again = client.call("task_done", json!({ "task": "T1", "result": "kept" })).good();
    assert!(again.text.contains("already complete"), "{}", again.text);
    assert!(client.close().success());
    rig.touch("leave");
    assert_eq!(second.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.events_of("task_claimed")[0]["details"]["door"], "kept");
    assert_eq!(rig.events_of("checkpoint_saved").len(), 1);
    rig.audit();
}

#[test]
fn nonsense_is_answered_or_passed_over_and_never_fatal() {
    let rig = Rig::new(ONE, STAYS);
    let run = rig.run();
    rig.await_file("here-1");
    let mut client = Client::unintroduced(&rig, 1);
    client.say("this is no JSON");
    client.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    client.say("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}");
    client.introduce();
    client.say("[1,2");
    client.say("");
    client.say("null");
    client.say("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":5}");
    client.say_bytes(b"\x00\xff\xfe\x1b[31m\n");
    let long = "x".repeat(5 << 20);
    client.say(&long);
    client.say(&json!({ "jsonrpc": "2.0", "id": 78, "method": "tools/call", "params": long }).to_string());
    assert_eq!(client.request("no/such/method", json!({}))["error"]["code"], -32601);
    assert_eq!(client.request("tools/call", json!({ "name": "no_such_tool" }))["error"]["code"], -32602);
    let wrong = [
        ("task_done", json!({}), "needs `task`"),
        ("task_done", json!({ "task": "T9", "result": "x" }), "task T9 is not yours"),
        ("task_done", json!({ "task": "no task", "result": "x" }), "is not a task id"),
        ("task_fail", json!({ "task": "T1" }), "needs `reason`"),
        ("task_split", json!({ "task": "T1", "subtasks": [] }), "needs `subtasks`"),
        ("checkpoint", json!({ "task": "T1" }), "is empty"),
        ("checkpoint", json!({ "task": "T1", "status": "x", "progress": 900 }), "from 0 to 100"),
        ("ask", json!({ "task": "T1", "question": " " }), "needs `question`"),
        ("note", json!({ "decision": { "a": 1 } }), "must be a text"),
    ];
    for (tool, arguments, says) in wrong {
        let told = client.call(tool, arguments).wrong();
        assert!(told.text.contains(says), "{tool}: {}", told.text);
    }
    client.call("heartbeat", json!({})).good();
    assert!(client.close().success());
    rig.touch("made");
    rig.touch("leave");
    drop(run);
}

#[test]
fn progress_is_shown_while_long_checks_run_and_the_end_of_input_ends_it() {
    let plan = "# One\n\n### T1: work\n- accept: `$FAKE wait go`\n\nWork.\n";
    let rig = Rig::new(plan, STAYS);
    let run = rig.run();
    rig.await_file("here-1");
    let mut client = Client::of_attempt(&rig, 1);
    let params = json!({
        "name": "task_done", "arguments": { "task": "T1", "result": "x" }, "_meta": { "progressToken": "p1" },
    });
    let claim = client.ask("tools/call", params);
    let (one, two) = (client.notification(), client.notification());
    for told in [&one, &two] {
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"]["progressToken"], "p1");
    }
    assert!(one["params"]["progress"].as_f64() < two["params"]["progress"].as_f64(), "{one} {two}");
    // Somebody else who asks meanwhile, and leaves before the answer.
    let mut other = Client::of_attempt(&rig, 1);
    other.ask("tools/call", json!({ "name": "task_done", "arguments": { "task": "T1", "result": "x" } }));
    assert!(other.close().success());
    rig.touch("go");
    Called::of(&client.answer(claim)).good();
    assert_eq!(rig.events_of("task_claimed").len(), 1, "asked twice, claimed once");
    assert!(client.close().success());
    rig.touch("leave");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    rig.audit();
}

#[test]
fn an_agents_own_environment_is_enough_and_a_stranger_has_no_tools() {
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "sh", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "task_done", "arguments": { "task": "T1", "result": "by a pipe" } } }),
    ];
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let rig = Rig::new(ONE, "touch made\nrekindle mcp < requests > answers\n");
    rig.write("requests", &lines);
    rig.finish();
    let answers = rig.lines("answers");
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[1].contains("task T1 is complete"), "{answers:?}");
    assert_eq!(rig.task("T1")["result"], "by a pipe");
    let stranger = rig.rekindle(&["mcp"]);
    assert_eq!((stranger.code, stranger.out.as_str()), (Some(2), ""), "{stranger:?}");
    rig.audit();
}
