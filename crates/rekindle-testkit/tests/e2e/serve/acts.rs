//! What can be done over the port changes the run as the commands do, and what cannot is refused with its reason.

use rustix::process::Signal;
use serde_json::json;

use super::Served;
use crate::rig::{Rig, objects};

const TWO: &str = "# Two\n\n### A: first\n- accept: `test -e made-A`\n\nWork.\n\n### B: second\n- blocked by: A\n\
    - accept: `test -e made-B`\n\nWork.\n";

#[test]
fn a_question_is_answered_and_a_failed_task_retried_over_the_port() {
    let agent = "case $REKINDLE_TASK in\n\
        A) rekindle ask 'which colour?' --wait > answer ;;\n\
        B) [ -e mended ] || exit 1 ;;\n\
        esac\ntouch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(TWO, agent);
    let run = rig.run();
    let served = Served::start(&rig, &[]);
    let id = rig.until("a question", || {
        let asked = rig.rekindle(&["questions", "--json"]);
        let questions: serde_json::Value = serde_json::from_str(&asked.out).ok()?;
        questions[0]["id"].as_u64()
    });
    let answer = format!("/api/questions/{id}/answer");
    for empty in ["{}", "{\"answer\":\" \"}", "{\"answer\":null}"] {
        assert_eq!(served.post(&answer, empty).status, 400, "{empty}");
    }
    assert_eq!(served.post("/api/questions/99/answer", "{\"answer\":\"x\"}").status, 404);
    assert_eq!(served.post("/api/questions/x/answer", "{\"answer\":\"x\"}").status, 404);
    let green = json!({ "answer": "green\n<b>&\u{1b}[31m" }).to_string();
    let reply = served.post(&answer, &green);
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json()["done"], format!("question {id} is answered in 10 seconds, unless you undo it"));
    // It was a slip: nothing has happened yet, and the same answer follows.
    let placed = rig.status()["run"]["placed"][0]["number"].as_u64().expect("an order that waits");
    assert_eq!(served.post(&format!("/api/orders/{placed}/undo"), "{}").json()["done"], "undone");
    assert_eq!(served.post(&format!("/api/orders/{placed}/undo"), "{}").status, 409, "once");
    assert!(rig.lines("answer").is_empty(), "{:?}", rig.lines("answer"));
    assert_eq!(served.post(&answer, &green).status, 200);
    rig.await_event("question_answered");
    let again = served.post(&answer, "{\"text\":\"red\"}");
    assert_eq!(again.status, 409, "an answer cannot be changed: {}", again.body);
    assert!(again.json()["error"].as_str().is_some_and(|why| !why.is_empty()));
    rig.until("B to fail", || (rig.task("B")["state"] == "failed").then_some(()));
    let acts = served.json("/api/tasks/B/acts");
    let act = |verb: &str| acts["acts"].as_array().expect("acts").iter().find(|act| act["act"] == verb).cloned();
    let retry = act("retry").expect("retry");
    assert!(retry["possible"] == true && retry["path"] == "/api/tasks/B/retry", "{retry}");
    assert!(retry["consequence"].as_str().is_some_and(|text| text.contains("reopened")), "{retry}");
    assert_eq!(act("stop").expect("stop")["possible"], false, "it has ended");
    let ended = run.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    // Nobody is at it now: the order is written all the same.
    rig.touch("mended");
    assert_eq!(served.post("/api/tasks/B/retry", "{\"run\":\"another\"}").status, 404, "not the run that was seen");
    let reply = served.post("/api/tasks/B/retry", "{}");
    assert_eq!((reply.status, &reply.json()["done"]), (200, &"task B is reopened".into()));
    assert_eq!(served.post("/api/tasks/B/retry", "{}").status, 409, "it has not ended");
    rig.finish();
    assert!(rig.lines("answer")[0].starts_with("green"), "{:?}", rig.lines("answer"));
    served.end(Signal::INT);
    rig.audit();
}

#[test]
fn tasks_are_skipped_stopped_and_split_and_the_run_is_paused_over_the_port() {
    let agent = "touch here-$REKINDLE_TASK\n$FAKE wait go-$REKINDLE_TASK\ntouch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(TWO, agent);
    let run = rig.run();
    let served = Served::start(&rig, &[]);
    rig.await_file("here-A");
    for path in ["/api/tasks/C/skip", "/api/tasks/C/acts", "/api/agents/nobody/recover"] {
        let reply = if path.ends_with("acts") { served.get(path) } else { served.post(path, "{}") };
        assert_eq!(reply.status, 404, "{path}: {}", reply.body);
    }
    assert_eq!(served.post("/api/retry-failed", "{}").status, 409, "none has failed");
    assert_eq!(served.post("/api/tasks/A/split", "{\"parts\":[]}").status, 400);
    let reply = served.post("/api/agents/developer-A/recover", "{}");
    assert_eq!(reply.status, 200, "{}", reply.body);
    rig.until("a replacement", || (rig.events_of("agent_started").len() > 1).then_some(()));
    let reply = served.post("/api/tasks/A/stop", "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    rig.until("A to be given up", || (rig.task("A")["state"] == "failed").then_some(()));
    let reply = served.post("/api/tasks/A/skip", "{\"reason\":\"not <needed>\"}");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(rig.task("A")["state"], "failed", "not before it can no longer be undone");
    rig.until("A to be skipped", || (rig.task("A")["state"] == "skipped").then_some(()));
    let told = served.post("/api/tasks/B/tell", "{\"text\":\"mind the gap\"}");
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(served.post("/api/tasks/B/tell", "{\"text\":\" \"}").status, 400);
    assert_eq!(served.post("/api/tasks/A/tell", "{\"text\":\"too late\"}").status, 409);
    assert_eq!(rig.task("B")["told"][0]["text"], "mind the gap", "{}", rig.story());
    assert_eq!(rig.task("A")["reason"], "not <needed>", "{}", rig.task("A"));
    assert_eq!(served.post("/api/tasks/A/skip", "{}").status, 409);
    rig.await_file("here-B");
    let reply = served.post("/api/pause", "{}");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(run.end().code, Some(4));
    assert_eq!(served.post("/api/pause", "{}").status, 409, "nobody is at it");
    let reply = served.post("/api/tasks/B/split", "{\"parts\":[\"one half\",\"the other\"]}");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(rig.task("B")["parts"].as_array().map(Vec::len), Some(2), "{}", rig.story());
    let page = served.get("/tasks/B").body;
    assert!(page.contains("mind the gap") && page.contains("/api/resume"), "{page}");
    // A coordinator is started in the background and goes on.
    let reply = served.post("/api/resume", "{}");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(served.post("/api/resume", "{}").status, 409, "somebody is at it");
    rig.await_event("session_resume");
    rig.ok(&["stop"]);
    served.end(Signal::INT);
}

#[test]
fn nothing_is_changed_in_a_run_that_is_not_the_newest() {
    let rig = Rig::new("# One\n\n### T1: work\n\nWork.\n", "[ -e good ] || exit 1\nrekindle task done T1\n");
    assert_eq!(rig.run().end().code, Some(3));
    let first = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    rig.write("other.md", "# Other\n\n### T1: other\n\nWork.\n");
    assert_eq!(rig.rekindle(&["run", "other.md"]).code, Some(3));
    let second = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    assert_ne!(first, second);
    let past = Served::start(&rig, &["--run", &first]);
    let newest = Served::start(&rig, &[]);
    assert_eq!(past.json("/api/status")["run"]["id"], first.as_str());
    assert_eq!(newest.json(&format!("/api/status?run={first}"))["run"]["id"], first.as_str());
    assert_eq!(newest.json("/api/status")["run"]["id"], second.as_str());
    assert_eq!(newest.get("/api/status?run=nope").status, 404);
    let before = rig.events().len();
    let refused = [
        past.post("/api/tasks/T1/retry", "{}"),
        newest.post(&format!("/api/tasks/T1/retry?run={first}"), "{}"),
        newest.post("/api/tasks/T1/retry", &json!({ "run": first }).to_string()),
    ];
    for reply in refused {
        assert_eq!(reply.status, 409, "{}", reply.body);
    }
    assert_eq!(rig.events().len(), before, "{}", rig.story());
    for act in past.json("/api/tasks/T1/acts")["acts"].as_array().expect("acts") {
        assert_eq!(act["possible"], false, "{act}");
    }
    // Of a past run the stream tells its own events and no others.
    let mut open = super::http::Open::new(&past.asked("GET", "/api/events?after=0"));
    let (_, data) = open.message();
    assert_eq!(objects(&data)[0]["run"], first.as_str());
    assert_eq!(newest.post("/api/tasks/T1/retry", &json!({ "run": second }).to_string()).status, 200);
    past.end(Signal::INT);
    newest.end(Signal::INT);
}
