//! Before the first agent: every check is tried once in a fresh worktree, a check that cannot run there is a question, and a set-up
//! that fails is one too. Neither costs an attempt, whoever is killed meanwhile.

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\nmax_agents: 2\n---\n# Build\n\n### T1: first\n- accept: `test -s one.txt`\n- accept: `test -e README`\n\nMake it.\n\n\
    ### T2: second\n- accept: `no-such-tool --check`\n\nMake it.\n\n### T3: third\n- accept: `./made-by-t3.sh`\n\nMake it.\n";

const AGENT: &str = "case $REKINDLE_TASK in T1) echo one > one.txt;; T2) echo two > two.txt;; T3) printf '#!/bin/sh\\ntrue\\n' > made-by-t3.sh; chmod +x made-by-t3.sh;; esac\n\
    echo $REKINDLE_TASK >> $LOG\nrekindle task done $REKINDLE_TASK\n";

fn project(plan: &str, extra: &str) -> Rig {
    let rig = Rig::new(plan, AGENT);
    rig.set("LOG", rig.outside("log"));
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let settings = settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n");
    rig.write("rekindle.toml", &format!("{settings}\n{extra}\n"));
    rig.write("README", "x\n");
    rig.commit_first("-A");
    rig
}

fn worked(rig: &Rig) -> Vec<String> {
    let text = std::fs::read_to_string(rig.outside("log")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn question(rig: &Rig) -> serde_json::Value {
    rig.until("a question", || {
        let listed = rig.rekindle(&["questions", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed.out).ok()?;
        listed.as_array()?.iter().find(|question| question["answer"].is_null()).cloned()
    })
}

/// A program for checks, in a folder of the PATH that agents and checks have.
fn install(rig: &Rig) {
    let dir = rig.outside("tools");
    std::fs::create_dir_all(&dir).expect("a folder");
    let tool = dir.join("no-such-tool");
    std::fs::write(&tool, "#!/bin/sh\ntest -e two.txt\n").expect("written");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("runnable");
}

fn with_tools(rig: &Rig) {
    let path = format!("{}:{}", rig.outside("tools").display(), std::env::var("PATH").expect("PATH"));
    rig.set("PATH", path);
}

#[test]
fn a_check_that_cannot_run_is_a_question_before_anybody_works_on_it() {
    let rig = project(PLAN, "");
    with_tools(&rig);
    let run = rig.run();
    let asked = question(&rig);
    let text = asked["text"].as_str().expect("a text");
    assert!(text.contains("no-such-tool --check") && text.contains("rekindle task edit T2 --accept"), "{asked}");
    assert!(!text.contains("made-by-t3"), "the work brings it: {asked}");
    assert_eq!(asked["task"], "T2", "{asked}");
    // The others go on meanwhile.
    rig.until("the rest is done", || (worked(&rig) == ["T1", "T3"]).then_some(()));
    assert_eq!(rig.task("T2")["attempts"], 0, "{}", rig.story());
    let seen = &rig.events_of("preflight")[0]["details"];
    let outcomes: Vec<String> = seen["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| check["outcome"].as_str().expect("a word").to_owned())
        .collect();
    assert_eq!(outcomes, ["fails", "passes", "cannot_run", "may_come"], "{seen}");
    install(&rig);
    rig.ok(&["answer", &asked["id"].to_string(), "1"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert!(ended.err.contains("passing before any work is done"), "{ended:?}");
    assert_eq!(rig.events_of("preflight").len(), 2, "tried again when it was asked for: {}", rig.story());
    assert_eq!(rig.task("T2")["attempts"], 1, "{}", rig.story());
    assert_eq!(rig.git(&["worktree", "list"]).lines().count(), 1, "nothing of it is left");
    rig.assert_nothing_left();
    rig.audit();
}

#[test]
fn going_on_anyway_and_switching_it_off_try_nothing_more() {
    let rig = project(PLAN, "");
    let run = rig.run();
    let asked = question(&rig);
    rig.ok(&["answer", &asked["id"].to_string(), "2"]);
    run.end();
    assert_eq!(worked(&rig).iter().filter(|task| *task == "T2").count(), 3, "its attempts are used: {}", rig.story());
    assert_eq!(rig.events_of("preflight").len(), 1);
    for way in ["flag", "setting"] {
        let rig = project(PLAN, "");
        let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
        let mut arguments = vec!["run", "plan.md"];
        match way {
            "flag" => arguments.push("--no-preflight"),
            _ => rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\npreflight = false\n")),
        }
        rig.rekindle(&arguments);
        assert_eq!(rig.events_of("preflight_ordered").len(), 0, "{way}");
    }
}

#[test]
fn a_run_without_anybody_to_ask_ends_with_the_question() {
    let rig = project(PLAN, "");
    with_tools(&rig);
    let ended = rig.rekindle(&["run", "plan.md", "--no-wait"]);
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    install(&rig);
    let asked = question(&rig);
    rig.ok(&["answer", &asked["id"].to_string(), "1"]);
    let ended = rig.rekindle(&["resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    rig.audit();
}

/// Killed while a check of the pre-flight runs, the next coordinator does it again, and nothing of the first is left.
#[test]
fn a_pre_flight_that_is_killed_is_done_again_and_a_finished_one_is_not() {
    let plan = "---\nplan: build\n---\n# Build\n\n### T1: first\n- accept: `touch $BEGUN; until test -e $GO; do sleep 0.1; done; test -s one.txt`\n\nMake it.\n";
    let rig = project(plan, "");
    rig.set("BEGUN", rig.outside("begun"));
    rig.set("GO", rig.outside("go"));
    let run = rig.run();
    rig.until("it is tried", || rig.outside("begun").exists().then_some(()));
    assert_eq!(rig.events_of("dispatched").len(), 0, "{}", rig.story());
    run.kill();
    std::fs::remove_file(rig.outside("begun")).expect("begun");
    let run = rig.run();
    rig.until("it is tried again", || rig.outside("begun").exists().then_some(()));
    // One that leaves ends it.
    rig.ok(&["stop"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    rig.assert_nothing_left();
    std::fs::write(rig.outside("go"), "").expect("go");
    let ended = rig.rekindle(&["resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("preflight_ordered").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("preflight").len(), 1, "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.audit();
}

const PLAIN: &str = "---\nplan: build\nmax_agents: 2\n---\n# Build\n\n### T1: first\n- accept: `test -s one.txt`\n\nMake it.\n\n\
    ### T2: second\n- accept: `test -s two.txt`\n\nMake it.\n";

fn broken_set_up(rig: &Rig) {
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let setup = format!(
        "[worktree]\nsetup = \"test -e {} || {{ echo no registry; exit 7; }}\"\n",
        rig.outside("mended").display()
    );
    rig.write("rekindle.toml", &format!("{}{setup}", settings.replace("[run]\n", "[run]\npreflight = false\n")));
}

#[test]
fn a_set_up_that_fails_asks_one_question_for_all_tasks_and_costs_nothing() {
    let rig = project(PLAIN, "");
    broken_set_up(&rig);
    let run = rig.run();
    let asked = question(&rig);
    assert!(asked["text"].as_str().is_some_and(|text| text.contains("exited with 7: no registry")), "{asked}");
    assert_eq!(asked["options"].as_array().map(Vec::len), Some(3), "{asked}");
    rig.until("both have met it", || (rig.events_of("setup_failed").len() >= 2).then_some(()));
    let listed = rig.status()["questions"].clone();
    assert_eq!(listed, 1, "one question for both: {}", rig.story());
    let status = rig.ok(&["status"]);
    assert_eq!(status.matches("asks you").count(), 2, "{status}");
    assert_eq!((&rig.task("T1")["attempts"], &rig.task("T2")["attempts"]), (&0.into(), &0.into()), "{}", rig.story());
    // Nobody can be asked twice over a crash.
    run.kill();
    let run = rig.run();
    rig.await_event("coordinator_recovered");
    assert_eq!(rig.status()["questions"], 1, "{}", rig.story());
    std::fs::write(rig.outside("mended"), "").expect("mended");
    rig.ok(&["answer", &asked["id"].to_string(), "1"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!((&rig.task("T1")["attempts"], &rig.task("T2")["attempts"]), (&1.into(), &1.into()), "{}", rig.story());
    rig.audit();
}

#[test]
fn a_set_up_can_be_left_out_or_the_run_be_stopped() {
    let rig = project(PLAIN, "");
    broken_set_up(&rig);
    let run = rig.run();
    let asked = question(&rig);
    rig.ok(&["answer", &asked["id"].to_string(), "stop the run"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    let run = rig.start(&["resume"]);
    let again = rig.until("another question", || Some(question(&rig)).filter(|again| again["id"] != asked["id"]));
    rig.ok(&["answer", &again["id"].to_string(), "2"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(worked(&rig), ["T1", "T2"]);
    rig.audit();
}

/// Killed at each stage of a set-up, a coordinator leaves one that the next runs again: nobody works in half a worktree.
#[test]
fn a_coordinator_that_is_killed_in_a_set_up_costs_nothing() {
    let rig = project(PLAIN, "");
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let setup = format!(
        "[worktree]\ncopy = [\"README\"]\nsetup = \"echo begun >> {0}; until test -e {1}; do sleep 0.05; done; touch .ready; echo done >> {0}\"\n",
        rig.outside("setups").display(),
        rig.outside("go").display()
    );
    rig.write(
        "rekindle.toml",
        &format!("{}{setup}", settings.replace("[run]\n", "[run]\npreflight = false\nmax_agents = 1\n")),
    );
    rig.write("agent.sh", &format!("test -e .ready || exit 9\n{AGENT}"));
    rig.git(&["commit", "-q", "-a", "-m", "an agent that needs it"]);
    let begun = |many: usize| {
        rig.until("a set-up", || {
            let text = std::fs::read_to_string(rig.outside("setups")).unwrap_or_default();
            (text.lines().filter(|line| *line == "begun").count() >= many).then_some(())
        });
    };
    for round in 1..=3 {
        let run = rig.run();
        begun(round);
        run.kill();
    }
    std::fs::write(rig.outside("go"), "").expect("go");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!((&rig.task("T1")["attempts"], &rig.task("T2")["attempts"]), (&1.into(), &1.into()), "{}", rig.story());
    rig.assert_nothing_left();
    rig.audit();
}

#[test]
fn a_set_up_that_changes_files_of_gits_is_warned_of() {
    let rig = project(PLAIN, "[worktree]\nsetup = \"echo more >> README\"\n");
    rig.finish();
    let noted = rig.events_of("state_reconciled");
    let noted = noted.iter().find(|event| event["details"]["event_type"] == "setup_changed_files");
    assert!(
        noted.is_some_and(|event| event["details"]["detail"].as_str().is_some_and(|text| text.contains("README"))),
        "{noted:?}"
    );
    let tried = rig.rekindle(&["plan", "check", "--try"]);
    assert!(tried.err.contains("the set-up changed files that git has (README)"), "{tried:?}");
}
