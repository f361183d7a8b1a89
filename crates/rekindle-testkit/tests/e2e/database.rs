//! A run whose log is in PostgreSQL: kills of the coordinator and of the server, and another machine that looks.

use std::fmt::Write;
use std::process::Command;

use rekindle_testkit::database::Server;

use crate::rig::Rig;

const AGENT: &str = "echo \"$REKINDLE_TASK $$\" >> ran\n$FAKE count go\nrekindle task done $REKINDLE_TASK\n";

/// Agents at once.
const FLEET: usize = 4;

/// A project whose log is in a server's database.
fn fleet(server: &Server) -> Rig {
    let mut plan = String::from("# Fleet\n");
    for n in 1..=FLEET {
        write!(plan, "\n### T{n}: work {n}\n\nCount.\n").expect("text");
    }
    let rig = Rig::new(&plan, AGENT);
    rig.set("REKINDLE_STORE", server.url());
    rig
}

fn ran(rig: &Rig) -> Option<()> {
    (rig.lines("ran").len() >= FLEET).then_some(())
}

fn assert_all_done_once(rig: &Rig) {
    assert_eq!(rig.lines("ran").len(), FLEET, "an agent was started twice\n{}", rig.story());
    for task in rig.status()["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}");
    }
    assert!(!rig.state().join("state.db").exists(), "the log is in the database alone");
}

/// The program as on another machine: another directory, another home, nothing of the project.
fn elsewhere(rig: &Rig, server: &Server, arguments: &[&str]) -> Command {
    let home = rig.outside("elsewhere");
    std::fs::create_dir_all(&home).expect("a home");
    let mut command = rig.command(arguments);
    command.current_dir(&home).env("HOME", &home).env_remove("REKINDLE_STATE_DIR");
    command.env("REKINDLE_STORE", server.url()).env("REKINDLE_SPACE", "project");
    command
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn agents_outlive_their_coordinator_and_the_database() {
    let mut server = Server::start();
    let rig = fleet(&server);
    let first = rig.run();
    rig.until("the whole fleet", || ran(&rig));
    rig.until("all recorded", || (rig.events_of("agent_started").len() == FLEET).then_some(()));
    first.kill();
    server.kill();
    let refused = output(rig.command(&["status"]));
    assert_eq!(refused.0, Some(2), "{refused:?}");
    assert!(refused.2.contains("cannot be reached"), "an old state is not shown as truth: {refused:?}");
    server.up();
    let second = rig.run();
    rig.await_event("coordinator_recovered");
    assert_eq!(rig.events_of("agent_adopted").len(), FLEET, "{}", rig.story());
    // The database goes away under a living coordinator, and comes back.
    for _ in 0..3 {
        server.kill();
        server.up();
    }
    rig.touch("go");
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_all_done_once(&rig);
}

#[test]
fn another_machine_looks_and_does_not_disturb() {
    let server = Server::start();
    let rig = fleet(&server);
    let run = rig.run();
    rig.until("the whole fleet", || ran(&rig));
    let json = |arguments: &[&str]| -> serde_json::Value {
        let (code, out, err) = output(elsewhere(&rig, &server, arguments));
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    let seen = json(&["status", "--json"]);
    assert_eq!(seen["run"]["state"], rig.status()["run"]["state"], "one run, one state: {seen}");
    assert_eq!(seen["tasks"].as_array().map(Vec::len), Some(FLEET));
    let logs = output(elsewhere(&rig, &server, &["logs", "--tail", "5"]));
    assert_eq!((logs.0, logs.1.lines().count()), (Some(0), 5), "{logs:?}");
    // Orders are refused with the name of the machine that drives the run.
    for order in [vec!["pause"], vec!["task", "skip", "T1"]] {
        let (code, _, err) = output(elsewhere(&rig, &server, &order));
        assert_eq!(code, Some(2), "{order:?}: {err}");
        assert!(err.contains("another coordinator drives this run") && err.contains(".rekindle"), "{order:?}: {err}");
    }
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_all_done_once(&rig);
    assert_eq!(json(&["status", "--json"])["tasks"], rig.status()["tasks"], "the same tasks from anywhere");
}

/// The coordinator is gone and its lease is over, but its agents live where it was: nobody else may start them a second time.
#[test]
fn a_run_whose_agents_live_elsewhere_is_not_taken_over() {
    let server = Server::start();
    let rig = fleet(&server);
    let run = rig.run();
    rig.until("the whole fleet", || ran(&rig));
    rig.until("all recorded", || (rig.events_of("agent_started").len() == FLEET).then_some(()));
    run.kill();
    server.sql("UPDATE rekindle.space SET leader_until = '-infinity'");
    let plan = rig.path("plan.md").display().to_string();
    std::fs::create_dir_all(rig.outside("elsewhere")).expect("a home");
    std::fs::copy(rig.path("rekindle.toml"), rig.outside("elsewhere/rekindle.toml")).expect("settings");
    for order in [vec!["run", plan.as_str()], vec!["pause"], vec!["task", "skip", "T1"]] {
        let (code, _, err) = output(elsewhere(&rig, &server, &order));
        assert_eq!(code, Some(2), "{order:?}: {err}");
        assert!(err.contains("4 agents of this run are at") && err.contains(".rekindle"), "{order:?}: {err}");
    }
    rig.touch("go");
    rig.finish();
    assert_all_done_once(&rig);
}

#[test]
fn bad_input_for_a_store_changes_nothing() {
    let server = Server::start();
    let rig = fleet(&server);
    rig.touch("go");
    let refuse = |arguments: &[&str], words: &str| {
        let (code, _, err) = output(rig.command(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(words) && err.contains("hint:"), "{arguments:?}: {err}");
        assert!(!rig.has("ran"), "{arguments:?} started an agent");
    };
    refuse(&["run", "plan.md", "--store", "mysql://x/y"], "postgres://");
    refuse(&["run", "plan.md", "--store", "postgres://127.0.0.1:1"], "no database");
    refuse(&["run", "plan.md", "--space", "a b"], "cannot name a space");
    refuse(&["run", "plan.md", "--store", "postgres://me:s3cr3t@127.0.0.1:1/x"], "cannot be reached");
    let (_, _, err) = output(rig.command(&["run", "plan.md", "--store", "postgres://me:s3cr3t@127.0.0.1:1/x"]));
    assert!(err.contains(".pgpass") && !err.contains("s3cr3t"), "{err}");
    assert!(!rig.state().exists(), "a wrong address is not written down");
    let state = rig.outside("state");
    let state = state.to_str().expect("text");
    let (code, ..) = output({
        let mut command = rig.command(&["run", "plan.md", "--state-dir", state]);
        command.env_remove("REKINDLE_STORE");
        command
    });
    assert_eq!(code, Some(0));
    let (code, _, err) = output(rig.command(&["run", "plan.md", "--state-dir", state]));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("its own files"), "a log in files is not left behind: {err}");
    let (code, _, err) = output(rig.command(&["run", "plan.md"]));
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = output(rig.command(&["run", "plan.md", "--space", "another"]));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("belongs to space project"), "a directory stays with its space: {err}");
}
