//! Many hooks at once: nothing of what they told is lost.

use std::collections::BTreeSet;

use serde_json::json;

use super::GuardedSession;

/// Sessions that work at the same time, and hooks of each.
const SESSIONS: usize = 8;
const HOOKS: usize = 1_250;

#[test]
fn ten_thousand_hooks_of_eight_sessions_lose_nothing() {
    let lead = &GuardedSession::new();
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            scope.spawn(move || {
                let name = format!("s{session}");
                for n in 0..HOOKS {
                    let file = format!("src/{session}-{n}.rs");
                    lead.tool(&name, &format!("c{n}"), "Write", json!({ "file_path": file, "content": "x" }));
                }
            });
        }
    });
    for session in 0..SESSIONS {
        let name = format!("s{session}");
        let records = lead.records(&name);
        let told = records.iter().flat_map(|record| record["facts"].as_array().expect("facts").clone());
        let files: BTreeSet<String> = told.filter_map(|fact| Some(fact["path"].as_str()?.to_owned())).collect();
        let wanted: BTreeSet<String> = (0..HOOKS).map(|n| format!("src/{session}-{n}.rs")).collect();
        assert_eq!(records.len(), HOOKS, "a record each");
        assert_eq!(&wanted - &files, BTreeSet::new(), "lost");
    }
    assert_eq!(lead.log(), "");
}

#[test]
fn hooks_of_one_session_at_the_same_time_lose_nothing() {
    let lead = &GuardedSession::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..40 {
                    let file = format!("src/{thread}-{n}.rs");
                    lead.tool("s", &format!("{thread}-{n}"), "Write", json!({ "file_path": file, "content": "x" }));
                }
            });
        }
        scope.spawn(move || {
            for n in 0..20 {
                lead.hook("s", "Stop", json!({ "last_assistant_message": format!("We decided on number {n}.") }));
            }
        });
    });
    lead.compact("s").expect("told");
    let state = std::fs::read_to_string(lead.kept("s").join("session-state.md")).expect("a state");
    let records = lead.records("s");
    assert_eq!(records.len(), 4 * 40 + 20 + 3, "{state}");
    let sum = std::fs::read_to_string(lead.kept("s").join("sum.json")).expect("a sum");
    for thread in 0..4 {
        for n in 0..40 {
            assert!(sum.contains(&format!("src/{thread}-{n}.rs")), "{thread}-{n} is lost");
        }
    }
}

#[test]
fn one_compaction_in_the_transcript_is_counted_once_by_many_hooks_at_a_time() {
    let lead = &GuardedSession::new();
    lead.works("s");
    let boundary = json!({ "type": "system", "subtype": "compact_boundary", "uuid": "u", "compactMetadata": {} });
    std::fs::write(lead.transcript("s"), format!("{boundary}\n")).expect("a transcript");
    std::thread::scope(|scope| {
        for n in 0..6 {
            let stop = json!({ "agent_id": format!("a{n}"), "agent_type": "worker", "last_assistant_message": "done" });
            scope.spawn(move || lead.hook("s", "SubagentStop", stop));
        }
    });
    let state = std::fs::read_to_string(lead.kept("s").join("session-state.md")).expect("a state");
    assert!(state.contains("Compactions: 1"), "{state}");
}
