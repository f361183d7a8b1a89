//! Agents that go round in circles, and agents that only look like it: sessions written by people who had not seen the code, one
//! half of them opened only when the code was finished. No productive session may raise an alarm.

use std::path::PathBuf;

use rekindle_core::activity::{Activity, Call, Fold, StreamEvent};
use serde_json::Value;

/// Tools of the cases that only read.
const READING: [&str; 4] = ["Read", "Grep", "Glob", "LS"];

/// Loops that are noticed late or never, all of them in the half that was not looked at while the code was written: a failing test
/// whose values differ, a wait for an artifact, a web search that is rephrased.
const LATE_MAX: usize = 3;

struct Case {
    name: String,
    events: Vec<Value>,
    /// Where it begins to go round, and where a careful person would have noticed; nothing for a productive session.
    circle: Option<(usize, usize)>,
}

fn cases() -> Vec<Case> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/loops");
    let mut cases = Vec::new();
    for half in ["seen", "unseen"] {
        let files = std::fs::read_dir(dir.join(half)).into_iter().flatten().flatten();
        for path in files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let text = std::fs::read_to_string(&path).expect("a case");
            let case: Value = serde_json::from_str(&text).expect("JSON");
            let at = |key: &str| case[key].as_u64().map(|at| usize::try_from(at).expect("an index"));
            cases.push(Case {
                name: format!("{half}/{}", case["name"].as_str().expect("a name")),
                events: case["events"].as_array().expect("events").clone(),
                circle: at("loop_begins").zip(at("must_notice_by")),
            });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// The events at which a circle was noticed.
fn noticed(case: &Case) -> Vec<usize> {
    let mut fold = Fold::default();
    let mut found = Vec::new();
    for (index, event) in case.events.iter().enumerate() {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let (tool, input, ok) = match event["is"].as_str().expect("a kind") {
            "turn" => {
                fold.take(&Activity::Turn);
                continue;
            }
            "said" => {
                fold.take(&Activity::Said { text: text("text") });
                continue;
            }
            // Agents save a checkpoint by a call of a tool.
            "checkpoint" => ("mcp__rekindle__checkpoint".to_owned(), text("text"), true),
            "call" => (text("tool"), text("input"), event["ok"].as_bool().expect("ok")),
            other => panic!("{other}"),
        };
        let acts = !READING.contains(&tool.as_str());
        let id = index.to_string();
        fold.take(&Activity::CallStarted(Call { id: id.clone(), tool, input, acts }));
        let signs = fold.take(&Activity::CallEnded { id, ok, output: text("output") });
        if signs.iter().any(|sign| matches!(sign, StreamEvent::Stalled { .. })) {
            found.push(index);
        }
    }
    found
}

#[test]
fn loops_are_noticed_and_productive_sessions_are_left_alone() {
    let cases = cases();
    assert!(cases.len() >= 28, "cases are missing");
    let (mut alarms, mut late) = (Vec::new(), Vec::new());
    for case in &cases {
        let found = noticed(case);
        match (case.circle, found.first()) {
            (None, None) => println!("{}: no alarm, rightly", case.name),
            (None, Some(at)) => alarms.push(format!("{}: at event {at}", case.name)),
            (Some((begins, by)), Some(at)) if (begins..=by).contains(at) => {
                println!("{}: noticed {} events after it began, {} before the limit", case.name, at - begins, by - at);
            }
            (Some((begins, _)), Some(at)) if *at < begins => alarms.push(format!("{}: too soon, at {at}", case.name)),
            (Some(limits), at) => late.push(format!("{}: at {at:?}, not within {limits:?}", case.name)),
        }
    }
    println!("{} sessions; false alarms: {alarms:#?}; noticed late or never: {late:#?}", cases.len());
    assert!(alarms.is_empty(), "{alarms:#?}");
    assert!(late.len() <= LATE_MAX, "{late:#?}");
    assert!(late.iter().all(|name| name.starts_with("unseen")), "{late:#?}");
}
