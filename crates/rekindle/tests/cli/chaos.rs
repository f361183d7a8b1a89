//! `rekindle chaos` on a small plan: faults are injected, promises judged, a planted break is seen, and nothing of the project changes.

use serde_json::Value;

use crate::environment::Environment;

const PLAN: &str = "# Small\n\n### T1: one\n- artifacts: out/one.txt\n- accept: `false`\n\nWork.\n\n### T2: two\n\nWork.\n\n\
    ### T3: three\n- blocked by: T1\n\nWork.\n";

fn place() -> Environment {
    let mut place = Environment::new();
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).expect("a directory");
    place.variable("TMPDIR", &temporary);
    place.write("plan.md", PLAN);
    place
}

/// Runs it and returns its exit code and its JSON.
fn chaos(place: &Environment, time: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = place.output(&[&["chaos", "--json", "--seed", "1", "--for", time], arguments].concat());
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), told)
}

/// The verdicts and the events of each run that broke one.
fn story(place: &Environment, told: &Value) -> String {
    let mut story = format!("{told:#}\n");
    let promises = told["promises"].as_array().into_iter().flatten();
    for broken in promises.flat_map(|promise| promise["broken"].as_array().into_iter().flatten()) {
        let dir = broken["dir"].as_str().unwrap_or_default();
        for state in ["project/.rekindle", "disk-kept/state"].map(|state| format!("{dir}/{state}")) {
            if std::path::Path::new(&state).is_dir() {
                story += &place.run(&["--state-dir", &state, "events"]);
            }
        }
    }
    story
}

fn promise<'a>(told: &'a Value, name: &str) -> &'a Value {
    let promises = told["promises"].as_array().expect("promises");
    promises.iter().find(|promise| promise["promise"] == name).unwrap_or_else(|| panic!("{name}: {told}"))
}

fn left_in(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_party_is_killed_and_every_promise_holds() {
    let place = place();
    let (code, told) =
        chaos(&place, "4m", &["--fault", "kill-coordinator", "--fault", "kill-all", "--fault", "agent-lie"]);
    assert_eq!((code, &told["held"]), (Some(0), &true.into()), "{}", story(&place, &told));
    for run in told["runs"].as_array().expect("runs") {
        assert!(run["injected"].as_u64().expect("a number") >= 1, "{run}");
    }
    let promises = told["promises"].as_array().expect("promises");
    assert_eq!(promises.len(), 8);
    for promise in promises {
        let looked_at = promise["looked_at"].as_u64().expect("a number");
        assert!(promise["held"] == true && looked_at > 0, "{promise:#}");
    }
    assert_eq!(left_in(place.root()), ["plan.md", "tmp"], "the project is as it was");
    assert_eq!(left_in(&place.path("tmp")), [""; 0], "nothing is kept");
}

/// In a repository, where agents work apart. What the machine refuses is refused to this run alone: it has a namespace of its own.
#[test]
fn what_the_machine_refuses_costs_nothing_and_the_repository_stays_as_it_is() {
    let place = place();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).current_dir(place.root());
        let output = command.output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    place.write(".gitignore", "tmp\n*.txt\n");
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let (code, told) = chaos(&place, "4m", &["--fault", "no-inotify", "--fault", "full-disk"]);
    assert_eq!((code, &told["held"]), (Some(0), &true.into()), "{}", story(&place, &told));
    assert!(told["runs"].as_array().expect("runs").iter().all(|run| run["not_injected"].is_null()), "{told:#}");
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["for-each-ref"]).lines().count(), 1, "no branch and no ref of a run");
}

#[test]
fn a_planted_break_is_seen_and_its_evidence_is_kept() {
    let place = place();
    let (code, told) = chaos(&place, "4m", &["--fault", "kill-coordinator", "--plant"]);
    assert_eq!((code, &told["held"]), (Some(1), &false.into()), "{told:#}");
    let healthy = promise(&told, "healthy");
    assert_eq!(healthy["held"], false, "{told:#}");
    let dir = std::path::PathBuf::from(healthy["broken"][0]["dir"].as_str().expect("a directory"));
    assert!(dir.join("witness/journal").is_file() && dir.join("run-1.log").is_file(), "{}", dir.display());
}

#[test]
fn a_fault_that_was_asked_for_and_not_injected_does_not_pass() {
    let place = place();
    let (code, told) = chaos(&place, "900ms", &["--fault", "agent-hang"]);
    assert_eq!(code, Some(1), "{told:#}");
    assert_eq!(told["runs"][0]["not_injected"], "the time limit was reached", "{told:#}");
}

#[test]
fn the_faults_are_listed_by_name() {
    insta::assert_snapshot!(Environment::new().run(&["chaos", "--list"]), @"
    out| kill-coordinator   kill -9 of the coordinator while agents work
    out| kill-shim          kill -9 of the process that supervises an agent
    out| kill-agent         kill -9 of an agent
    out| kill-all           kill -9 of coordinator, supervisor and agent at once
    out| freeze             the coordinator is frozen for seconds, then continues (SIGSTOP, SIGCONT)
    out| no-descriptors     the coordinator gets no file descriptor for a while
    out| no-inotify         the machine has no inotify watch left
    out| full-disk          the disk of the state directory is full for a while
    out| usage-limit        the provider's allowance is used up until a reset
    out| connection-lost    the provider closes the connection: the agent gives up with an error
    out| agent-crash        an agent crashes by itself
    out| agent-hang         an agent falls silent
    out| agent-lie          an agent says done and has done nothing
    exit 0
    ");
}
