//! The demonstration, as a new user sees it; its event log is read afterwards with the same binary.

use crate::environment::Environment;

#[test]
fn the_demonstration_keeps_its_promises_in_its_log() {
    let mut place = Environment::new();
    let root = place.root().to_owned();
    place.variable("TMPDIR", &root);
    let output = place.output(&["demo", "--keep"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let kept = out.lines().find_map(|line| line.strip_prefix("kept: ")).expect("where it was kept");
    let state = format!("{kept}/.rekindle");

    let events = place.json_lines(&["--state-dir", &state, "events", "--json"]);
    let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    for kind in
        ["agent_crashed", "developer_timeout", "developer_redispatched", "coordinator_recovered", "agent_adopted"]
    {
        assert!(count(kind) > 0, "no {kind} in the log");
    }
    let refused =
        |event: &&serde_json::Value| event["kind"] == "checks_finished" && event["details"]["passed"] == false;
    assert!(events.iter().any(|event| refused(&event)), "the lie was believed");
    let coordinators: Vec<&serde_json::Value> = events
        .iter()
        .filter(|event| event["kind"] == "coordinator_started")
        .map(|event| &event["details"]["pid"])
        .collect();
    assert_eq!(coordinators.len(), 2, "one was killed, one went on: {coordinators:?}");

    let status = place.json(&["--state-dir", &state, "status", "--json"]);
    assert_eq!(status["run"]["state"], "complete");
    let tasks = status["tasks"].as_array().expect("tasks");
    assert!(tasks.iter().all(|task| task["state"] == "complete"), "{tasks:?}");
    let slow = tasks.iter().find(|task| task["id"] == "long").expect("the slow task");
    assert_eq!(slow["attempts"], 1, "its agent lived through the coordinator's death");
    assert!(status["coordinator"].is_null());
}
