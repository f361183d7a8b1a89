//! Bad input and bad places: a clear error, the promised exit code, and nothing lost.

use std::process::Command;

use crate::rig::{Ended, Rig};

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";
const WORKS: &str = "touch made\nrekindle task done $REKINDLE_TASK\n";
const WAITS: &str = "touch here\n$FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK\n";

/// A refusal with 2, one lower-case line that holds these words, and nothing started.
fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("error: "), "{ended:?}");
    for word in words {
        assert!(ended.err.contains(word), "{word:?} is not in {ended:?}");
    }
}

#[test]
fn another_plan_is_refused_with_the_owners_name() {
    let rig = Rig::new(ONE, WAITS);
    rig.write("other.md", "# Other\n\n### T1: work\n\nWork.\n");
    let run = rig.run();
    rig.await_file("here");
    let pid = rig.status()["coordinator"]["pid"].to_string();
    refused(&rig.rekindle(&["run", "other.md"]), &["process", &pid, "plan.md"]);
    run.kill();
    // Also while nobody coordinates: one run at a time.
    refused(&rig.rekindle(&["run", "other.md"]), &["unfinished"]);
    rig.touch("go");
    rig.finish();
    rig.audit();
}

#[test]
fn a_plan_that_changes_during_a_run_is_reported_and_not_taken_over() {
    let rig = Rig::new(ONE, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.write("plan.md", &format!("{ONE}\n### T2: more\n\nMore.\n"));
    rig.await_event("plan_changed");
    assert_eq!(rig.status()["run"]["plan_changed"], true);
    run.kill();
    rig.touch("go");
    let ended = rig.finish();
    assert!(ended.err.contains("changed"), "{ended:?}");
    assert_eq!(rig.status()["tasks"].as_array().map(Vec::len), Some(1));
    rig.audit();
}

#[test]
fn another_git_branch_is_refused() {
    let rig = Rig::new(&format!("---\nisolation: shared\n---\n{ONE}"), WAITS);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        rig.prepare(&mut command);
        assert!(command.args(arguments).status().expect("git").success(), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "first"]);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    git(&["switch", "-q", "-c", "side"]);
    refused(&rig.run().end(), &["main", "side"]);
    git(&["switch", "-q", "main"]);
    rig.touch("go");
    rig.finish();
    rig.audit();
}

#[test]
fn a_state_directory_of_a_newer_version_is_refused_untouched() {
    let rig = Rig::new(ONE, WORKS);
    rig.finish();
    let version = rig.state().join("version");
    let before = std::fs::read(rig.state().join("state.db")).expect("database");
    std::fs::write(&version, "99\n").expect("version");
    for arguments in [&["run", "plan.md"][..], &["status"], &["events"], &["task", "retry", "T1"]] {
        let ended = rig.rekindle(arguments);
        assert!(ended.code == Some(2) || ended.code == Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("newer"), "{arguments:?}: {ended:?}");
    }
    assert_eq!(std::fs::read(rig.state().join("state.db")).expect("database"), before);
}

#[test]
fn a_state_directory_of_another_user_is_refused() {
    let rig = Rig::new(ONE, WORKS);
    rig.finish();
    std::os::unix::fs::chown(rig.state(), Some(12345), Some(12345)).expect("this test needs root to change an owner");
    for arguments in [&["run", "plan.md"][..], &["status"], &["pause"]] {
        let ended = rig.rekindle(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("12345"), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_directory_that_is_not_ours_is_not_taken() {
    let rig = Rig::new(ONE, WORKS);
    rig.set("REKINDLE_STATE_DIR", rig.outside("precious"));
    std::fs::create_dir(rig.outside("precious")).expect("directory");
    std::fs::write(rig.outside("precious/thesis.txt"), "years").expect("file");
    refused(&rig.run().end(), &["not a rekindle state directory"]);
    assert_eq!(std::fs::read_dir(rig.outside("precious")).expect("directory").count(), 1);
}

#[test]
fn malformed_plans_and_settings_are_refused_with_their_place() {
    let rig = Rig::new("# P\n\n### T1: a\n- acept: `true`\n- blocked by: T9\n\nWork.\n\n### T1: b\n\nAgain.\n", WORKS);
    let ended = rig.run().end();
    refused(&ended, &["plan.md:4", "accept", "T9", "plan.md:9"]);
    assert!(rig.rekindle(&["status", "--json"]).code != Some(0), "a run was made");
    rig.write("plan.md", ONE);
    rig.write("rekindle.toml", "[run]\nmax_agent = 3\n");
    refused(&rig.run().end(), &["max_agents"]);
    rig.write("rekindle.toml", "[agents.a]\nkind = \"command\"\ncommand = [\"true\"]\n[run]\nagent = \"b\"\n");
    refused(&rig.run().end(), &["`b`"]);
    std::fs::write(rig.path("plan.md"), b"\xff\xfe\x00").expect("written");
    refused(&rig.run().end(), &["plan.md"]);
    refused(&rig.rekindle(&["run", "missing.md"]), &["missing.md"]);
    refused(&rig.rekindle(&["run"]), &["PLAN"]);
}

#[test]
fn a_project_whose_path_is_longer_than_a_socket_address_works() {
    let deep = format!("{}/{}/{}", "a".repeat(80), "b".repeat(80), "c".repeat(80));
    let rig = Rig::new(ONE, WAITS).moved_to(&deep);
    assert!(rig.root().as_os_str().len() > 200);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    let second = rig.run();
    rig.await_event("agent_adopted");
    rig.ok(&["note", "through the socket"]);
    rig.touch("go");
    assert_eq!(second.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
}

#[test]
fn the_promised_json_is_there() {
    let rig = Rig::new(ONE, WAITS);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    let status = rig.status();
    assert_eq!(status["schema_version"], 1);
    for key in ["id", "plan", "state"] {
        assert!(status["run"][key].is_string(), "run.{key}: {status}");
    }
    let task = &status["tasks"][0];
    for key in ["id", "title", "state", "attempts", "agent", "wave", "cause", "unproven", "result"] {
        assert!(task.get(key).is_some(), "tasks.{key}: {status}");
    }
    assert_eq!((&task["id"], &task["title"], &task["state"]), (&"T1".into(), &"work".into(), &"in_progress".into()));
    let agent = &status["agents"][0];
    for key in ["name", "kind", "role", "state", "pid", "shim_pid", "task", "epoch"] {
        assert!(!agent[key].is_null(), "agents.{key}: {status}");
    }
    assert_eq!(
        (&agent["name"], &agent["kind"], &agent["task"]),
        (&"developer-T1".into(), &"command".into(), &"T1".into())
    );
    assert_eq!(status["coordinator"]["pid"], run.pid());
    rig.touch("go");
    assert_eq!(run.end().code, Some(0));
    assert!(rig.status()["coordinator"].is_null());
    for event in rig.events() {
        for key in ["seq", "time", "kind", "agent", "task", "epoch", "details"] {
            assert!(event.get(key).is_some(), "{key}: {event}");
        }
    }
    let ignore = std::fs::read_to_string(rig.state().join(".gitignore")).expect(".gitignore");
    assert_eq!(ignore.trim(), "*");
    for name in ["session-state.md", "build-status--plan.md"] {
        assert!(rig.state().join(name).is_file(), "{name} is missing");
    }
    rig.audit();
}
