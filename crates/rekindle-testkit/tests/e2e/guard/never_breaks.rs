//! Whatever is wrong, a hook ends with 0, prints nothing that is not meant for the session, and says why in its own log.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{GuardedSession, KEPT, feed, files};
use crate::disk::SmallDisk;

#[test]
fn input_of_any_kind() {
    let lead = GuardedSession::new();
    let deep = "[".repeat(200_000);
    let huge = format!("{{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"x\":\"{}\"}}", "y".repeat(3 << 20));
    let inputs: [&[u8]; 12] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b"\"text\"",
        b"{}",
        b"\xff\xfe\x00",
        b"{\"session_id\":7,\"hook_event_name\":[],\"cwd\":{}}",
        b"{\"session_id\":\"../../x\",\"hook_event_name\":\"Stop\",\"cwd\":\"/\"}",
        deep.as_bytes(),
        huge.as_bytes(),
    ];
    for cli in ["claude", "codex", "gemini", "opencode"] {
        for input in inputs {
            assert_eq!(lead.raw(&["hook", cli], input), "", "{cli}");
        }
    }
    assert!(lead.log().contains("is not JSON"), "{}", lead.log());
    assert!(!lead.project().join("x").exists() && !lead.home().join("x").exists(), "an id is no path");
}

#[test]
fn words_of_another_version() {
    let lead = GuardedSession::new();
    for arguments in [&["hook"][..], &["hook", "grok"], &["hook", "claude", "--new-flag", "x"], &["hook", ""]] {
        assert_eq!(lead.raw(arguments, b"{}"), "", "{arguments:?}");
    }
    assert!(lead.log().contains("\"grok\""), "{}", lead.log());
}

#[test]
fn an_agent_that_rekindle_runs_is_left_alone() {
    let lead = GuardedSession::new();
    let event =
        json!({ "session_id": "s", "cwd": lead.project(), "hook_event_name": "UserPromptSubmit", "prompt": "go" });
    let mut command = lead.command(&["hook", "claude"]);
    command.env("REKINDLE_TOKEN", "any");
    let ended = feed(command, event.to_string().as_bytes());
    assert!(ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(files(&lead.project().join(".rekindle")), [], "nothing is kept");
}

#[test]
fn a_place_that_cannot_be_written() {
    let lead = GuardedSession::new();
    // A file where a directory has to be stops everybody, root as well.
    std::fs::write(lead.project().join(".rekindle/guard"), "in the way").expect("written");
    assert_eq!(lead.prompt("s", "go"), None);
    lead.tool("s", "c", "Write", json!({ "file_path": "a", "content": "" }));
    let mut command = lead.command(&["hook", "claude"]);
    command.env_remove("HOME");
    let ended = feed(command, b"{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"cwd\":\"/nowhere\"}");
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn a_journal_that_others_hold_or_have_damaged() {
    let lead = GuardedSession::new();
    lead.works("s");
    let journal = lead.kept("s").join("journal.jsonl");
    let held = File::open(&journal).expect("a journal");
    held.lock().expect("locked");
    let told = lead.begins("s", "compact").expect("told although somebody holds the journal");
    assert!(told.contains(KEPT[0]), "{told}");
    held.unlock().expect("free");
    std::fs::write(lead.kept("s").join("sum.json"), "{\"version\":1,\"offset\":9").expect("damaged");
    let mut torn = std::fs::read(&journal).expect("read");
    torn.extend(b"\n{\"at\":1,\"facts\":[{\"is\":\"noted\",\"text\":\"half a rec");
    std::fs::write(&journal, torn).expect("torn");
    assert_eq!(lead.prompt("s", "and now something else"), None);
    let told = lead.compact("s").expect("told");
    for words in [KEPT[0], "and now something else"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn a_full_disk_loses_no_thread() {
    let lead = GuardedSession::new();
    std::fs::remove_dir(lead.project().join(".rekindle")).expect("removed");
    let disk = SmallDisk::new(lead.project().join(".rekindle"), 1);
    lead.works("s");
    disk.fill();
    lead.tool("s", "c2", "Write", json!({ "file_path": "while-full.rs", "content": "" }));
    let told = lead.compact("s").expect("told from what was kept before");
    for words in KEPT {
        assert!(told.contains(words), "{words}: {told}");
    }
    disk.relieve();
    lead.tool("s", "c3", "Write", json!({ "file_path": "after.rs", "content": "" }));
    let told = lead.compact("s").expect("told");
    assert!(told.contains("after.rs") && told.contains(KEPT[3]), "{told}");
}

#[test]
fn what_is_kept_is_for_the_owner_alone() {
    let lead = GuardedSession::new();
    lead.works("s");
    for (path, _) in files(&lead.kept("s")) {
        let mode = path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
}
