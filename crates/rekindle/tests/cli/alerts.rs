//! A person is called: through every channel, with the choices, and without harm when nobody can be reached.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};

use crate::environment::{Environment, PATIENCE, until};

/// A project whose only agent fails at once and for good.
fn doomed(notify: &str) -> Environment {
    let environment = Environment::new();
    let agent = "[agents.w]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n[run]\nattempts = 1\n";
    environment.write("rekindle.toml", &format!("{agent}[notify]\n{notify}"));
    environment.write("plan.md", "# P\n\n### T1: Never\n- accept: `true`\n");
    environment
}

fn stderr(environment: &Environment, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&environment.output(arguments).stderr).into_owned()
}

/// A server that takes one request and says what it was.
fn server() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/T0/secret-token-of-the-team", listener.local_addr().expect("an address"));
    let (heard, requests) = sync_channel(1);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let (mut request, mut buffer) = (String::new(), [0; 4096]);
        while !request.trim_end().ends_with('}') {
            let count = stream.read(&mut buffer).expect("a request");
            request.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        heard.send(request).expect("somebody waits");
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").expect("an answer");
    });
    (url, requests)
}

#[test]
fn a_failed_task_calls_through_the_webhook_before_run_ends() {
    let (url, requests) = server();
    let environment = doomed(&format!("webhook = \"{url}\"\n"));
    let told = stderr(&environment, &["run", "plan.md"]);
    let request = requests.recv_timeout(PATIENCE).expect("an alert");
    let body = request.split("\r\n\r\n").nth(1).expect("a body");
    let posted: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!((&posted["plan"], &posted["task"]), (&"plan".into(), &"T1".into()), "{posted}");
    assert_eq!(posted["choices"][1], "rekindle task retry T1");
    assert!(posted["text"].as_str().is_some_and(|text| text.starts_with("task T1 failed: ")), "{posted}");
    assert!(posted["run"].is_string() && posted["time"].is_i64(), "{posted}");
    for choice in ["choose: rekindle why T1", "choose: rekindle task retry T1", "choose: rekindle task skip T1"] {
        assert!(told.lines().any(|line| line.trim() == choice), "{told}");
    }
    assert!(!told.contains("cannot be sent by") && !told.contains("secret-token"), "{told}");
}

#[test]
fn a_webhook_that_nobody_answers_is_told_once_and_harms_nothing() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let environment = doomed(&format!("webhook = \"http://127.0.0.1:{port}/secret-token\"\n"));
    let output = environment.output(&["run", "plan.md"]);
    assert_eq!(output.status.code(), Some(3), "as without a webhook");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("alerts cannot be sent by webhook").count(), 1, "{told}");
    assert!(!told.contains("secret-token"), "{told}");
    let environment = doomed("webhook = \"ftp://example.com/secret-token\"\ncommand = [\"/nowhere/beep\"]\n");
    let output = environment.output(&["run", "plan.md"]);
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("alerts cannot be sent by webhook").count(), 1, "{told}");
    assert!(!told.contains("secret-token") && !told.contains('\u{7}'), "{told}");
}

#[test]
fn an_alert_is_told_once_and_not_again_after_a_restart() {
    let environment = doomed("command = \"echo \\\"$1\\\" >> heard\"\n");
    environment
        .write("plan.md", "### T1: Never\n- accept: `true`\n\n### T2: Next\n- blocked by: T1\n- accept: `true`\n");
    for arguments in [&["run", "plan.md"][..], &["resume"], &["run", "plan.md"]] {
        environment.output(arguments);
    }
    // The command is not waited for: it may write after `run` has ended.
    let heard = || std::fs::read_to_string(environment.path("heard")).unwrap_or_default();
    until("an alert", || heard().ends_with('\n'));
    let heard = heard();
    assert_eq!(heard.lines().count(), 1, "{heard}");
}

#[test]
fn doctor_looks_at_the_webhooks_shape_and_hides_its_path() {
    for (url, verdict, text) in [
        ("https://hooks.example.com/T0/secret-token", "ok", "hooks.example.com"),
        ("http://hooks.example.com/T0/secret-token", "warning", "hooks.example.com without encryption"),
        ("http://127.0.0.1:9/secret-token", "ok", "127.0.0.1:9"),
        ("hooks.example.com/secret-token", "problem", "it is not a URL: write https://HOST/PATH"),
    ] {
        let environment = doomed(&format!("webhook = \"{url}\"\n"));
        let output = environment.output(&["doctor", "--json"]);
        let shown = String::from_utf8_lossy(&output.stdout);
        let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let findings = json["findings"].as_array().expect("a list");
        let found = findings.iter().find(|finding| finding["name"] == "webhook").expect("a finding");
        assert_eq!((&found["verdict"], &found["text"]), (&verdict.into(), &text.into()));
        assert!(!shown.contains("secret-token"), "{shown}");
        assert_eq!(output.status.code(), Some(i32::from(verdict == "problem")));
    }
}

#[test]
fn the_end_of_a_run_is_told_where_that_was_chosen() {
    let told = |finished: &str| {
        let environment = doomed(&format!(
            "command = \"echo \\\"$REKINDLE_ALERT_KIND $1\\\" >> heard\"\nfinished = \"{finished}\"\n"
        ));
        environment.write(
            "rekindle.toml",
            &std::fs::read_to_string(environment.path("rekindle.toml"))
                .expect("settings")
                .replace("exit 7", "rekindle task done T1"),
        );
        assert!(environment.output(&["run", "plan.md"]).status.success());
        environment
    };
    let environment = told("all");
    let heard = || std::fs::read_to_string(environment.path("heard")).unwrap_or_default();
    until("an alert", || heard().ends_with('\n'));
    assert_eq!(heard(), "finished the run is over, complete: 1 of 1 task complete\n");
    environment.output(&["run", "plan.md"]);
    environment.output(&["status"]);
    assert_eq!(heard().lines().count(), 1, "an end is told once");
    let quiet = told("off");
    assert!(!quiet.path("heard").exists());
}

#[test]
fn doctor_tries_every_channel() {
    let environment = doomed("command = \"echo \\\"$1\\\" > heard\"\ndesktop = false\n");
    let output = environment.output(&["doctor", "--alerts", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |json: &serde_json::Value| {
        let findings = json["findings"].as_array().expect("a list").clone();
        findings.into_iter().find(|finding| finding["name"] == "alerts").expect("a finding")
    };
    assert_eq!((&of(&json)["verdict"], &of(&json)["text"]), (&"ok".into(), &"sent through command".into()));
    until("the alert", || environment.path("heard").exists());
    let environment = doomed("command = [\"/nowhere/beep\"]\n");
    let json: serde_json::Value =
        serde_json::from_slice(&environment.output(&["doctor", "--alerts", "--json"]).stdout).expect("JSON");
    assert_eq!(of(&json)["verdict"], "warning");
    assert!(of(&json)["text"].as_str().is_some_and(|text| text.contains("/nowhere/beep does not start")), "{json}");
}
