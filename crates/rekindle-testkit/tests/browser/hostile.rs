//! Two hundred strings that want to be more than text, in every field that a page shows — also in those where the program would
//! refuse them on their way in. None becomes an element, a script, a link or a control character.

use std::process::Command;

use rekindle_core::event::{Body, PersonEvent, TaskEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::text::is_harmful;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, LogLine, NewEvent, Options, Read, Row, SqliteStore, Store, Stream, Table};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::scene::{Scene, shoot};

/// Every page, with each tab of a task and each form of the events.
const PAGES: [&str; 16] = [
    "/",
    "/tasks/T1",
    "/tasks/T1?tab=why",
    "/tasks/T1?tab=checks",
    "/tasks/T1?tab=diff",
    "/tasks/T1?tab=brief",
    "/tasks/T1?tab=log",
    "/logs/1",
    "/logs/1#L100",
    "/events",
    "/events?view=full",
    "/events?view=json&order=old",
    "/questions",
    "/cost",
    "/search?q=hacked",
    "/runs",
];

/// What may not be on any page; the body of a function.
const FOUND: &str = "const all = [...document.querySelectorAll('*')]; \
    const wrong = all.filter((element) => element.hasAttribute('data-hacked') \
        || ['img', 'iframe', 'object', 'embed', 'video', 'audio', 'math', 'base', 'b', 'style', 'foreignobject', 'marquee'].includes(element.localName.toLowerCase()) \
        || element.getAttributeNames().some((name) => name.startsWith('on')) \
        || (element.localName === 'script' && element.getAttribute('src') !== '/assets/app.js') \
        || (element.localName === 'a' && !/^[/#]/.test(element.getAttribute('href') ?? '/')) \
        || (element.localName === 'a' && element.href.startsWith && new URL(element.href, location.href).origin !== location.origin)); \
    const told = wrong.map((element) => element.outerHTML.slice(0, 200)); \
    if (window.hacked !== undefined) told.push('window.hacked'); \
    if (document.cookie.includes('hacked')) told.push('cookie'); \
    return told;";

fn strings() -> Vec<String> {
    let all: Vec<String> = serde_json::from_str(include_str!("hostile.json")).expect("the corpus");
    assert!(all.len() >= 200, "the corpus has {}", all.len());
    all
}

/// A row with other values.
fn with(row: &Row, key: &str, order: u64, values: &Value) -> Row {
    let mut json: Value = serde_json::from_str(&row.json).expect("a row");
    for (name, value) in values.as_object().expect("values") {
        json[name] = value.clone();
    }
    Row { key: key.to_owned(), order, json: json.to_string(), ..row.clone() }
}

fn rows_of(text: &str, n: u64, task: &Row, attempt: &Row, merged: &str) -> Vec<Row> {
    let (id, order) = (format!("T{n}"), n);
    let check = json!({"command": text, "passed": n.is_multiple_of(2), "code": 1, "timed_out": false, "output": text, "took_ms": 1, "environment": text});
    let state = ["failed", "complete", "skipped", "pending"][usize::try_from(n % 4).expect("small")];
    let findings = json!({"issues": [text], "required": [text], "passed": [text]});
    let rework = json!({"source": "critic", "context": text, "issues": [text], "required": [text], "passed": [text]});
    let mut verdict = json!({"attempt": n, "role": "critic", "verdict": "fail"});
    verdict.as_object_mut().expect("a verdict").extend(findings.as_object().expect("findings").clone());
    let values = json!({
        "id": id, "title": text, "state": if n == 1 { "failed" } else { state }, "reason": text, "result": text, "cause": text,
        "evidence": {"checks": [check], "missing_artifacts": [text], "health": [{"command": text, "passed": false, "code": 1, "timed_out": false, "output": text, "took_ms": 1, "origin": "before"}]},
        "checkpoint": {"status": text, "completed": [text], "remaining": [text], "files": [text]},
        "rework": rework, "verdicts": [verdict], "environments": [text], "workspace": "T1", "merged": merged,
    });
    let tried = json!({
        "attempt": n, "cli": text, "kind": text, "model": text, "session_id": text, "cause": text, "task": id, "tasks": [id, "T1"], "state": text,
    });
    let question = json!({
        "id": n, "task": id, "agent": "developer-T1", "text": text, "options": [text, "yes"], "context": text,
        "answer": if n.is_multiple_of(2) { Value::from(text) } else { Value::Null }, "asked_at": 1,
    });
    let (task, attempt) = (with(task, &id, order, &values), with(attempt, &format!("{n:020}"), order, &tried));
    let question = Row {
        table: Table::Question,
        run: task.run.clone(),
        key: format!("{n:020}"),
        order,
        json: question.to_string(),
    };
    vec![task, attempt, question]
}

fn events_of(text: &str, n: u64, run: &str) -> Vec<NewEvent> {
    let (text, attempt) = (text.to_owned(), AttemptId(1));
    let bodies = [
        Body::Person(PersonEvent::NoteRecorded { text: text.clone() }),
        Body::Person(PersonEvent::QuestionAsked {
            id: QuestionId(n),
            attempt,
            text: text.clone(),
            options: vec![text.clone()],
            context: text.clone(),
            takes_work: false,
        }),
        Body::Person(PersonEvent::QuestionAnswered { id: QuestionId(n), answer: text.clone(), via: None }),
        Body::Task(TaskEvent::TaskSkipped { reason: text.clone() }),
        Body::Task(TaskEvent::WorkflowFailed { reason: text.clone(), detail: text.clone() }),
    ];
    let event = |kind: String, details: String, task: &str, agent: &str| NewEvent {
        time_ms: 1_790_000_000_000,
        run: run.to_owned(),
        kind,
        agent: Some(agent.to_owned()),
        task: Some(task.to_owned()),
        epoch: None,
        details,
    };
    let known = bodies.iter().map(|body| event(body.name(), body.details(), "T1", &text));
    let unknown = event(text.clone(), json!({ text.as_str(): text }).to_string(), &text, &text);
    known.chain([unknown]).collect()
}

/// A commit with hostile names and contents; its id.
fn committed(rig: &Rig, strings: &[String]) -> String {
    let names = [
        "<img data-hacked src=x onerror=window.hacked=1>.txt",
        "\" data-hacked onclick=\"window.hacked=1",
        "\u{1b}[31m\u{202e}.rs",
    ];
    for name in names {
        rig.write(name, &strings.join("\n"));
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        rig.prepare(&mut git);
        let done =
            git.args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(arguments).output().expect("git");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    for name in names {
        git(&["add", "--", name]);
    }
    git(&["commit", "-q", "-m", "second"]);
    git(&["rev-parse", "HEAD"])
}

fn poisoned(strings: &[String]) -> Rig {
    let rig = Rig::new("# One\n\n### T1: work\n- accept: `true`\n\nWork.\n", "rekindle task done T1\n");
    rig.finish();
    let merged = committed(&rig, strings);
    let dir = StateDir::open(&rig.state()).expect("the state");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("the store");
    let of = |table: Table| store.rows(table, None).expect("rows").remove(0);
    let (run, task, attempt) = (of(Table::Run), of(Table::Task), of(Table::Attempt));
    let mut rows = vec![with(
        &run,
        &run.key,
        run.order,
        &json!({"title": strings.join(" "), "plan": strings[0], "work_branch": "work"}),
    )];
    let (mut events, mut lines) = (Vec::new(), Vec::new());
    for (n, text) in (1..).zip(strings) {
        rows.extend(rows_of(text, n, &task, &attempt, &merged));
        events.extend(events_of(text, n, &run.run));
        let stream = if n.is_multiple_of(2) { Stream::Err } else { Stream::Out };
        let (agent, text) = (text.clone(), text.clone());
        lines.push(LogLine {
            attempt: 1,
            agent,
            epoch: 1,
            stream,
            time_ms: 1_790_000_000_000,
            offset: n,
            len: 1,
            text,
            torn: true,
        });
    }
    store.append(Batch { rows, events, lines, ..Batch::default() }).expect("appended");
    std::fs::write(rig.state().join("attempts/00000001/prompt"), strings.join("\n")).expect("a brief");
    rig
}

#[test]
fn two_hundred_hostile_strings_in_every_field_stay_text() {
    let strings = strings();
    let scene = Scene::of(poisoned(&strings), None);
    let browser = &scene.browser;
    for page in PAGES {
        scene.open(page);
        if page.starts_with("/logs/") {
            browser.until("document.querySelectorAll('.view .row').length > 20 && [...document.querySelectorAll('.view .row .text')].every((text) => text.textContent !== '…')");
        }
        // The same once more through the script: fetched, parsed, and put in place of what is there.
        browser.run(
            "document.getElementById('main').replaceChildren(); window.refreshed = 0; \
            document.addEventListener('rekindle:changed', () => { window.refreshed = 1; }); \
            import('/assets/live.js').then((live) => live.refresh());",
            &json!([]),
        );
        browser.until("window.refreshed && document.querySelector('#main h1')");
        assert_eq!(browser.run(FOUND, &json!([])), json!([]), "on {page}");
        let shown = browser.value("document.documentElement.outerHTML + document.body.innerText");
        let harmful: Vec<char> = shown.as_str().expect("text").chars().filter(|letter| is_harmful(*letter)).collect();
        assert!(harmful.is_empty(), "control characters on {page}: {harmful:?}");
        let own = |selector: &str| browser.value(&format!("document.querySelectorAll('{selector}').length"));
        assert_eq!(
            (own("main"), own("title:not(svg title)"), own("script")),
            (1.into(), 1.into(), 1.into()),
            "on {page}"
        );
        shoot(browser, &format!("hostile{}", page.replace(['/', '?', '='], "-")));
        scene.assert_quiet();
    }
    assert!(!scene.rig.has("hacked"));
    // The palette is made from the API.
    scene.open("/");
    browser.press(&[rekindle_testkit::browser::keys::CONTROL, "k"]);
    browser.until("document.querySelectorAll('#palette-list li').length > 40");
    assert_eq!(browser.run(FOUND, &json!([])), json!([]));
    let shown = browser.value("document.getElementById('palette').innerText");
    assert!(!shown.as_str().expect("text").chars().any(is_harmful));
    scene.assert_quiet();
}
