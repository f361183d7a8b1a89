//! An agent's words: through the control socket, and kept when there is none.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use rekindle_core::ids::{QuestionId, TaskId};
use rekindle_core::report::{CheckResult, Evidence, Report};
use rekindle_engine::control::wire::{Envelope, Request, Response};

use crate::environment::Environment;

fn agent() -> Environment {
    let mut environment = Environment::new();
    let (socket, bundle) = (environment.path("sock"), environment.path("bundle"));
    std::fs::create_dir(&bundle).expect("a bundle");
    environment.variable("REKINDLE_TOKEN", "rk1.1.1.secret").variable("REKINDLE_TASK", "T1");
    environment.variable("REKINDLE_SOCKET", socket).variable("REKINDLE_BUNDLE", bundle);
    environment
}

/// A coordinator that gives these answers, one a caller; `None` hangs up. What it was asked comes back.
fn coordinator(environment: &Environment, answers: Vec<Option<Response>>) -> JoinHandle<Vec<Request>> {
    let path = environment.path("sock");
    let _left_by_the_last = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || {
        let answers = answers.into_iter().map(|answer| {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a request");
            let request: Envelope = serde_json::from_str(&line).expect("a request");
            assert_eq!(request.token.as_deref(), Some("rk1.1.1.secret"));
            if let Some(answer) = answer {
                let mut text = serde_json::to_string(&answer).expect("JSON");
                text.push('\n');
                stream.write_all(text.as_bytes()).expect("answered");
            }
            request.call
        });
        answers.collect()
    })
}

fn task() -> TaskId {
    TaskId::new("T1").expect("a name")
}

#[test]
fn a_claim_that_is_proven_ends_with_0() {
    let environment = agent();
    let server = coordinator(&environment, vec![Some(Response::Complete { task: task() })]);
    let shown = environment.run(&["task", "done", "--result", "-all- of it"]);
    assert_eq!(shown, "out| task T1 is complete\nexit 0\n");
    let report = Report::Done { task: task(), result: Some("-all- of it".to_owned()) };
    assert_eq!(server.join().expect("server"), [Request::report(report)]);
}

#[test]
fn a_claim_that_is_not_proven_ends_with_1_and_the_checks_output() {
    let environment = agent();
    let check = CheckResult {
        command: "make test".to_owned(),
        passed: false,
        code: Some(2),
        timed_out: false,
        output: "1 failed\n\x1b[31mred\x1b[0m\n".to_owned(),
        kept: None,
        took_ms: 1_200,
        environment: None,
    };
    let evidence = Evidence { checks: vec![check], missing_artifacts: vec!["out.txt".to_owned()], health: Vec::new() };
    let server = coordinator(&environment, vec![Some(Response::NotProven { task: task(), evidence })]);
    insta::assert_snapshot!(environment.run(&["task", "done", "T1"]), @r"
    out| `make test` exited with 2 after 1s
    out|   1 failed
    out|   red
    out| out.txt is not there
    err| error: task T1 is not complete: check `make test` exited with 2
    err| hint: fix it and report it again: rekindle task done T1
    exit 1
    ");
    server.join().expect("server");
}

#[test]
fn a_refusal_is_told() {
    let environment = agent();
    let reason = "epoch 1 of task T1 is over; stop working and exit".to_owned();
    let server = coordinator(&environment, vec![Some(Response::Refused { reason })]);
    insta::assert_snapshot!(environment.run(&["checkpoint", "half way"]), @r"
    err| error: epoch 1 of task T1 is over; stop working and exit
    exit 1
    ");
    server.join().expect("server");
}

#[test]
fn without_a_coordinator_reports_are_kept_in_order() {
    let environment = agent();
    let shown = environment.run(&["checkpoint", "half way", "--completed", "a", "--remaining", "b"]);
    assert!(shown.starts_with("err| no coordinator is running: the report is kept"), "{shown}");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    for arguments in [
        &["task", "done"][..],
        &["note", "use tabs"],
        &["task", "fail", "--reason", "no"],
        &["ask", "why?"],
        &["task", "split", "T1", "read", "write"],
    ] {
        assert!(environment.run(arguments).ends_with("exit 0\n"), "{arguments:?}");
    }
    let mut names: Vec<_> = std::fs::read_dir(environment.path("bundle/reports"))
        .expect("kept")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    let verbs: Vec<String> = names
        .iter()
        .map(|path| {
            let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(path).expect("read")).expect("JSON");
            assert_eq!(kept["token"], "rk1.1.1.secret");
            let report: Report = serde_json::from_value(kept["report"].clone()).expect("a report");
            serde_json::to_value(&report).expect("JSON")["verb"].as_str().expect("a verb").to_owned()
        })
        .collect();
    assert_eq!(verbs, ["checkpoint", "done", "note", "fail", "ask", "split"]);
}

#[test]
fn a_coordinator_that_dies_while_it_proves_is_waited_for() {
    let environment = agent();
    let server = coordinator(&environment, vec![None, Some(Response::Complete { task: task() })]);
    assert_eq!(environment.run(&["task", "done"]), "out| task T1 is complete\nexit 0\n");
    assert_eq!(server.join().expect("server").len(), 2);
}

#[test]
fn asking_and_waiting_outlives_a_coordinator() {
    let environment = agent();
    let asked = || Some(Response::Asked { question: QuestionId(3) });
    let answered = Some(Response::Answered { question: QuestionId(3), text: "use tabs".to_owned() });
    let server = coordinator(&environment, vec![asked(), None, answered]);
    let shown = environment.run(&["ask", "tabs or spaces?", "--option", "tabs", "--option", "spaces", "--wait"]);
    assert_eq!(shown, "out| use tabs\nexit 0\n");
    let calls = server.join().expect("server");
    let wait = Request::WaitForAnswer { question: QuestionId(3) };
    assert_eq!(calls[1..], [wait.clone(), wait]);
    let server = coordinator(&environment, vec![asked()]);
    assert_eq!(environment.run(&["ask", "again?"]), "out| 3\nexit 0\n");
    server.join().expect("server");
}

#[test]
fn an_agent_gives_no_orders() {
    let environment = agent();
    crate::history::eventful(&environment);
    for arguments in
        [&["pause"][..], &["stop"], &["task", "skip", "T1"], &["task", "retry", "T1"], &["answer", "1", "x"]]
    {
        let shown = environment.run(arguments);
        assert!(shown.contains("that is for the operator, not for an agent"), "{shown}");
        assert!(shown.ends_with("exit 1\n"), "{shown}");
    }
}

#[test]
fn words_of_an_agent_need_an_agent() {
    let environment = Environment::new();
    for arguments in [&["checkpoint", "x"][..], &["heartbeat"], &["ask", "x"], &["task", "start", "T1"]] {
        let shown = environment.run(arguments);
        assert!(shown.contains("REKINDLE_TOKEN is not set") && shown.ends_with("exit 2\n"), "{shown}");
    }
}
