//! `run` with real agents, as a person would try it: what is shown, what is refused, what an agent may not do.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::environment::{Environment, until};

/// A project whose agent is this shell script.
fn project(script: &str, plan: &str) -> Environment {
    let environment = Environment::new();
    environment
        .write(
            "rekindle.toml",
            "[agents.w]\nkind = \"command\"\ncommand = [\"./agent.sh\"]\n[run]\nbackoff = \"10ms\"\n",
        )
        .write("agent.sh", &format!("#!/bin/sh\n{script}\n"))
        .write("plan.md", plan);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(environment.path("agent.sh"), executable).expect("chmod");
    environment
}

/// A coordinator that is killed with the test, whatever becomes of it.
struct Coordinator(Child);

impl Coordinator {
    fn start(environment: &Environment) -> Self {
        let child = environment.command(&["run", "plan.md"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("a coordinator"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("gone");
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _reaped_already = self.0.wait();
    }
}

#[test]
fn an_agent_that_hides_its_token_gives_no_orders_while_nobody_coordinates() {
    let script = "while [ ! -e alone ]; do sleep 0.05; done\n\
        unset REKINDLE_TOKEN\n\
        rekindle task done T1 2>>said; echo $? >>said\n\
        rekindle task skip T1 2>>said; echo $? >>said\n\
        rekindle stop 2>>said; echo $? >>said\n\
        touch tried; sleep 300";
    let environment = project(script, "### T1: a\n- accept: `false`\n");
    let mut coordinator = Coordinator::start(&environment);
    let status = || serde_json::from_slice(&environment.output(&["status", "--json"]).stdout).unwrap_or(Value::Null);
    let running = || status()["agents"][0]["state"] == "running";
    until("a running agent", running);
    coordinator.kill();
    environment.write("alone", "");
    until("the agent's try", || environment.path("tried").exists());
    let said = std::fs::read_to_string(environment.path("said")).expect("what it was told");
    let codes: Vec<&str> = said.lines().filter(|line| line.len() == 1).collect();
    assert_eq!(codes, ["1"; 3], "{said}");
    assert!(said.contains("for the operator, not for an agent") && said.contains("with its own token"), "{said}");
    let status = environment.json(&["status", "--json"]);
    assert_eq!(status["tasks"][0]["state"], "in_progress");
    assert!(environment.output(&["stop"]).status.success(), "the operator may");
}

#[test]
fn a_view_says_when_its_coordinator_is_gone() {
    let environment = project("sleep 300", "### T1: a\n- accept: `false`\n");
    let mut coordinator = Coordinator::start(&environment);
    let running = || environment.output(&["logs"]).status.success() && environment.path(".rekindle/sock").exists();
    until("a coordinator", running);
    let view = environment.command(&["run", "plan.md"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut view = view.expect("a view");
    let mut stderr = BufReader::new(view.stderr.take().expect("piped"));
    // One that comes after the coordinator's end would take the run over instead.
    let mut told = String::new();
    while !told.contains("attached as a view") {
        assert!(stderr.read_line(&mut told).expect("a line") > 0, "{told}");
    }
    let shown = environment.output(&["run", "plan.md", "--again"]);
    assert_eq!(shown.status.code(), Some(2), "a run that is under way is not begun again");
    coordinator.kill();
    stderr.read_to_string(&mut told).expect("the rest");
    assert_eq!(view.wait().expect("the view's end").code(), Some(1), "{told}");
    assert!(told.contains("the coordinator ended before the run did"), "{told}");
    assert!(environment.output(&["stop"]).status.success(), "nothing is left of it");
}

#[test]
fn an_agent_that_asks_and_leaves_has_not_failed() {
    let script = "grep -q 'go ahead' \"$REKINDLE_PROMPT_FILE\" || { rekindle ask 'May I?'; exit 0; }\n\
        rekindle task done --result yes";
    let environment = project(script, "### T1: a\n- accept: `true`\n");
    let mut coordinator = Coordinator::start(&environment);
    let status = || serde_json::from_slice(&environment.output(&["status", "--json"]).stdout).unwrap_or(Value::Null);
    until("the agent's end", || status()["agents"][0]["state"] == "ended");
    assert_eq!(status()["agents"][0]["cause"], "waiting_for_input");
    assert_eq!((&status()["tasks"][0]["state"], &status()["tasks"][0]["attempts"]), (&json!("blocked"), &json!(0)));
    coordinator.kill();
    let shown = environment.output(&["run", "plan.md", "--no-wait"]);
    assert_eq!(shown.status.code(), Some(4));
    let told = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(told.contains("every open task waits for a person or a reset"), "{told}");
    assert!(environment.output(&["answer", "1", "go ahead"]).status.success());
    assert_eq!(environment.output(&["run", "plan.md", "--no-wait"]).status.code(), Some(0));
    let status = environment.json(&["status", "--json"]);
    assert!(status["tasks"][0]["started_at"].is_string(), "how long it took can be told: {status}");
    assert_eq!(environment.json(&["questions", "--json"])[0]["answer"], "go ahead");
}

#[test]
fn a_finished_run_tells_that_its_plan_has_changed() {
    let environment = project("rekindle task done", "### T1: a\nOn its word.\n");
    let first = environment.output(&["run", "plan.md"]);
    assert_eq!(first.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&first.stderr).contains("its agent's word is enough"));
    let again = environment.output(&["run", "plan.md"]);
    assert_eq!((again.status.code(), String::from_utf8_lossy(&again.stderr).as_ref()), (Some(0), ""));
    environment.write("plan.md", "### T1: b\nOn its word.\n");
    let changed = environment.output(&["run", "plan.md"]);
    assert_eq!(changed.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&changed.stderr).contains("--again"));
}
