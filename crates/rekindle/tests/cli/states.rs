//! What is shown of a run, and of state directories that cannot be used.

use std::os::unix::fs::PermissionsExt;

use rekindle_core::ids::TaskId;
use rekindle_core::report::{Checkpoint, Report};

use crate::environment::Environment;
use crate::history::{History, eventful};

#[test]
fn status_shows_the_run_and_what_to_do() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["status"]), @r"
    out| plan: failed, 1/2 complete, 1 failed, 22s
    out| 
    out| TASK  STATE     ATTEMPTS  WAVE  TIME  AGENT         TITLE
    out| T1    complete       2/3     1    5s  developer-T1  Parse (parser with 3 tests)
    out| T2    failed         1/1     1   21s  developer-T2  Print (it ended by itself before its work was complete; check `make…
    out| 
    out| AGENT         STATE  ATTEMPT  PID  TIME  ROLE       TASK
    out| developer-T1  ended        2         6s  developer  T1 (completed)
    out| developer-T2  ended        1        21s  developer  T2 (exited incomplete)
    err| hint: rekindle why T2; then rekindle task retry T2 or rekindle task skip T2
    err| the state takes $SIZE of disk
    exit 0
    ");
}

#[test]
fn status_for_programs_keeps_its_promise() {
    let environment = Environment::new();
    eventful(&environment);
    let json = environment.json(&["status", "--json"]);
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["coordinator"], serde_json::Value::Null);
    assert_eq!(json["run"]["id"], "r-1");
    assert_eq!(json["run"]["plan"], "plan");
    assert_eq!(json["run"]["state"], "failed");
    let task = &json["tasks"][0];
    for (key, value) in [("id", "T1"), ("title", "Parse"), ("state", "complete"), ("result", "parser with 3 tests")] {
        assert_eq!(task[key], value, "{task}");
    }
    assert_eq!(task["attempts"], 2);
    assert_eq!(task["agent"], "developer-T1");
    assert_eq!(task["wave"], 1);
    assert_eq!(task["unproven"], false);
    assert_eq!(json["tasks"][1]["state"], "failed");
    assert_eq!(json["tasks"][1]["cause"], "exited_incomplete");
    let agents = json["agents"].as_array().expect("a list");
    assert_eq!(agents.len(), 2, "the newest attempt of every agent");
    let agent = &agents[0];
    assert_eq!(agent["name"], "developer-T1");
    assert_eq!(agent["kind"], "command");
    assert_eq!(agent["role"], "developer");
    assert_eq!(agent["state"], "ended");
    assert_eq!(agent["task"], "T1");
    assert!(agent["epoch"].is_u64(), "{agent}");
    assert!(
        agent["pid"].is_null() && agent["shim_pid"].is_null(),
        "an ended process's number may be a stranger's: {agent}"
    );
    let all = environment.json(&["status", "--json", "--all"]);
    assert_eq!(all["agents"].as_array().expect("a list").len(), 3);
}

#[test]
fn events_are_told_in_words_and_whole_for_programs() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["events"]), @r#"
    out|     1 03:04:06         RUN                          plan with 2 tasks from plan.md
    out|     2 03:04:07 COORDINATOR                          process 100
    out|     3 03:04:07     STARTED T1 developer-T1          default, first attempt
    out|     4 03:04:07       BEGUN T1 developer-T1          attempt 1 starts
    out|     5 03:04:07     STARTED T2 developer-T2          default, first attempt
    out|     6 03:04:07       BEGUN T2 developer-T2          attempt 1 starts
    out|     7 03:04:08        RUNS T1 developer-T1          process 1001, held by 2001
    out|     8 03:04:09      EXITED T1 developer-T1          ended with code 7
    out|     9 03:04:09     CRASHED T1 developer-T1          ended with code 7
    out|    10 03:04:09       ENDED T1 developer-T1          crashed: it crashed with exit code 7
    out|    11 03:04:09    REQUEUED T1 developer-T1          it crashed with exit code 7; 1 of 3 attempts used, next after 337ms
    out|    12 03:04:20     STARTED T1 developer-T1          default, fresh: it crashed with exit code 7
    out|    13 03:04:20    REKINDLE T1 developer-T1          a replacement
    out|    14 03:04:20       BEGUN T1 developer-T1          attempt 2 starts
    out|    15 03:04:21        RUNS T1 developer-T1          process 1003, held by 2003
    out|    16 03:04:22     CLAIMED T1 developer-T1          its agent says it is done (by command): parser
    out|    17 03:04:23  NOT PROVEN T1 developer-T1          check `make test` exited with 1
    out|    18 03:04:24     CLAIMED T1 developer-T1          its agent says it is done (by command): parser with 3 tests
    out|    19 03:04:25      PROVEN T1 developer-T1          its check passed
    out|    20 03:04:25        DONE T1 developer-T1          complete: parser with 3 tests
    out|    21 03:04:26      EXITED T1 developer-T1          ended with code 0
    out|    22 03:04:26       ENDED T1 developer-T1          completed: it had nothing left to do
    out|    23 03:04:27        RUNS T2 developer-T2          process 1002, held by 2002
    out|    24 03:04:27        SAID T2 developer-T2          The printer is done.
    out|    25 03:04:28      EXITED T2 developer-T2          ended with code 0
    out|    26 03:04:28   LOOKED AT T2 developer-T2          its agent ended without a report: rekindle runs its checks
    out|    27 03:04:28  NOT PROVEN T2 developer-T2          check `make test` exited with 1
    out|    28 03:04:28       ENDED T2 developer-T2          exited_incomplete: it ended by itself before its work was complete; its last words: "The printer is done."
    out|    29 03:04:28      FAILED T2 developer-T2          it ended by itself before its work was complete; check `make test` exited with 1; 1 of 1 attempt used; its last words: "The printer is done."
    out|    30 03:04:28       ALERT T2                       task T2 failed: it ended by itself before its work was complete; check `make test` exited with 1; 1 of 1 attempt used; its last words: "The printer is done."
    out|    31 03:04:28    FINISHED                          1 complete, 1 failed, 0 skipped, 0 out of reach
    err| times are in UTC
    exit 0
    "#);
    let events = environment.json_lines(&["events", "--json"]);
    let keys = ["seq", "time", "kind", "agent", "task", "epoch", "details"];
    for event in &events {
        assert!(keys.iter().all(|key| event.get(key).is_some()), "{event}");
    }
    assert_eq!(events[0]["kind"], "run_started");
    assert_eq!(events[0]["time"], "2026-01-02T03:04:06.000Z");
    let crashed = environment.json_lines(&["events", "--json", "--kind", "agent_crashed"]);
    assert_eq!(crashed.len(), 1);
    assert_eq!(crashed[0]["details"]["code"], 7);
    let second = environment.json_lines(&["events", "--json", "--task", "T2"]);
    assert!(!second.is_empty() && second.iter().all(|event| event["task"] == "T2"));
    insta::assert_snapshot!(environment.run(&["events", "--task", "T3"]), @r"
    err| error: there is no task `T3` in this run
    err| hint: did you mean `T1`?
    exit 2
    ");
}

#[test]
fn following_a_run_that_rests_ends() {
    let environment = Environment::new();
    eventful(&environment);
    let once = environment.run(&["events"]);
    assert_eq!(environment.run(&["events", "--follow"]), once);
    let once = environment.run(&["logs"]);
    assert_eq!(environment.run(&["logs", "--follow"]), once);
}

#[test]
fn logs_show_all_epochs_in_order_and_obey_no_escape() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["logs", "developer-T1"]), @r"
    out| 03:04:08 T1 #1 | reading the grammar
    out| 03:04:21 T1 #2 ! warning: red text
    out| 03:04:21 T1 #2 | parser written
    err| times are in UTC
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["logs", "--tail", "1"]), @r"
    out| 03:04:21 T1 #2 | parser written
    err| times are in UTC
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["logs", "--grep", "written PARSER"]), @r"
    out| 03:04:21 T1 #2 | parser written
    err| times are in UTC
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["logs", "developer-T3"]), @r"
    err| error: no agent `developer-T3` has been started in this run
    err| hint: did you mean `developer-T1`?
    exit 2
    ");
    let lines = environment.json_lines(&["logs", "--json"]);
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["text"], "reading the grammar");
    assert_eq!(lines[0]["stream"], "stdout");
    assert_eq!(lines[1]["stream"], "stderr");
    assert!(lines[1]["epoch"].as_u64() > lines[0]["epoch"].as_u64());
    let raw = environment.output(&["logs", "--raw"]).stdout;
    assert!(raw.contains(&b'\x1b'), "as it was written");
}

#[test]
fn why_tells_every_decision_with_its_evidence() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["why", "T1"]), @r"
    out| T1 Parse: complete, 2 of 3 attempts used
    out| 03:04:07   ATTEMPT 1  developer-T1 (default, first attempt): crashed after 2s: it crashed with exit code 7; 1 of 3 attempts used, next after 337ms
    out|                       | reading the grammar
    out| 03:04:20   ATTEMPT 2  developer-T1 (default, fresh: it crashed with exit code 7): completed after 6s
    out| 03:04:22     CLAIMED  developer-T1 (epoch 2): its agent says it is done (by command): parser
    out| 03:04:23  NOT PROVEN  developer-T1 (epoch 2): check `make test` exited with 1
    out|                       `make test` exited with 1 after 250ms
    out|                         1 test failed
    out| 03:04:24     CLAIMED  developer-T1 (epoch 2): its agent says it is done (by command): parser with 3 tests
    out| 03:04:25      PROVEN  developer-T1 (epoch 2): its check passed
    out|                       `make test` passed after 250ms
    out| 03:04:25        DONE  developer-T1 (epoch 2): complete: parser with 3 tests
    err| times are in UTC
    exit 0
    ");
    let json = environment.json(&["why", "T2", "--json"]);
    assert_eq!(json["state"], "failed");
    let decisions = json["decisions"].as_array().expect("a list");
    let strategies: Vec<&str> = decisions.iter().filter_map(|decision| decision["strategy"].as_str()).collect();
    assert_eq!(strategies, ["first"]);
    let causes: Vec<&str> = decisions.iter().filter_map(|decision| decision["cause"].as_str()).collect();
    assert!(causes.contains(&"exited_incomplete"), "{causes:?}");
    insta::assert_snapshot!(environment.run(&["why", "T3"]), @r"
    err| error: there is no task `T3` in this run
    err| hint: did you mean `T1`?
    exit 2
    ");
}

#[test]
fn a_task_is_shown_with_all_that_is_known() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["task", "list"]), @r"
    out| TASK  STATE     TITLE
    out| T1    complete  Parse
    out| T2    failed    Print
    out| 1/2 complete, 1 failed
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["task", "show", "T1"]), @r"
    out|         task  T1 Parse
    out|        state  complete
    out|       result  parser with 3 tests
    out|     attempts  2 of 3
    out|   last cause  crashed
    out|        agent  developer-T1
    out|         wave  1
    out|        epoch  2
    out|      started  2026-01-02T03:04:20.000Z
    out|        ended  2026-01-02T03:04:25.000Z
    out|               `make test` passed after 250ms
    exit 0
    ");
}

#[test]
fn questions_wait_for_their_answers() {
    let environment = Environment::new();
    let mut history = History::of("# P\n\n### T1: one\n- accept: `true`\n");
    history.started("T1");
    let task = TaskId::new("T1").expect("a name");
    history.reported("T1", Report::Checkpoint { task: task.clone(), checkpoint: Checkpoint::default() });
    history.reported(
        "T1",
        Report::Ask {
            task,
            text: "which one?\x1b[2J".to_owned(),
            options: vec!["this".to_owned(), "that".to_owned()],
            context: "both are possible".to_owned(),
        },
    );
    history.save(&environment);
    insta::assert_snapshot!(environment.run(&["questions"]), @r"
    out| 1  developer-T1 asks about T1:
    out|    which one?
    out|    both are possible
    out|    1. this
    out|    2. that
    out|    answer it: rekindle answer 1 NUMBER, or rekindle answer 1 TEXT
    exit 0
    ");
    let json = environment.json(&["questions", "--json"]);
    assert_eq!(json[0]["id"], 1);
    assert_eq!(json[0]["task"], "T1");
    assert_eq!(json[0]["agent"], "developer-T1");
    assert_eq!(json[0]["options"][1], "that");
    assert_eq!(json[0]["answer"], serde_json::Value::Null);
}

#[test]
fn without_a_run_there_is_a_hint() {
    let environment = Environment::new();
    for arguments in [&["status"][..], &["logs"], &["events"], &["why", "T1"], &["pause"], &["questions"]] {
        let shown = environment.run(arguments);
        assert_eq!(
            shown,
            "err| error: there is no run here: $ROOT/.rekindle does not exist\nerr| hint: start one: rekindle run plan.md\nexit 2\n",
            "{arguments:?}"
        );
    }
}

#[test]
fn a_state_directory_that_is_not_ours_is_left_alone() {
    let environment = Environment::new();
    std::fs::create_dir(environment.path("elsewhere")).expect("a directory");
    environment.write("elsewhere/letter.txt", "dear");
    insta::assert_snapshot!(environment.run(&["status", "--state-dir", "elsewhere"]), @r"
    err| error: $ROOT/elsewhere is not empty and is not a rekindle state directory
    err| hint: name another one: --state-dir DIR
    exit 2
    ");
    environment.write("file", "");
    insta::assert_snapshot!(environment.run(&["status", "--state-dir", "file"]), @r"
    err| error: $ROOT/file is not a directory of its own (a symbolic link or another kind of file)
    err| hint: name another one: --state-dir DIR
    exit 2
    ");
    assert_eq!(std::fs::read_dir(environment.path("elsewhere")).expect("listed").count(), 1);
}

#[test]
fn a_newer_state_directory_is_refused() {
    let mut environment = Environment::new();
    eventful(&environment);
    environment.write(".rekindle/version", "999\n");
    insta::assert_snapshot!(environment.run(&["status"]), @r"
    err| error: $ROOT/.rekindle has state version 999, this rekindle knows up to 1; use a newer rekindle
    err| hint: install the rekindle that wrote it, or name another one: --state-dir DIR
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["pause"]), @r"
    err| error: $ROOT/.rekindle has state version 999, this rekindle knows up to 1; use a newer rekindle
    err| hint: install the rekindle that wrote it, or name another one: --state-dir DIR
    exit 2
    ");
    environment.write(".rekindle/version", "1\n");
    let elsewhere = environment.path(".rekindle");
    environment.variable("REKINDLE_STATE_DIR", elsewhere);
    assert!(environment.run(&["status"]).ends_with("exit 0\n"));
}

#[test]
fn a_state_directory_that_others_may_write_is_refused() {
    let environment = Environment::new();
    eventful(&environment);
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(environment.path(".rekindle"), open).expect("chmod");
    insta::assert_snapshot!(environment.run(&["status"]), @r"
    err| error: $ROOT/.rekindle has mode 0777: others may write or read what only its owner may
    err| hint: if its content is yours: chmod go-rwx '$ROOT/.rekindle'
    exit 2
    ");
}

#[test]
fn a_database_of_somebody_else_is_refused() {
    let environment = Environment::new();
    eventful(&environment);
    environment
        .write(".rekindle/state.db", "this is no database, but long enough to be looked at by anybody who opens it\n");
    for extra in ["state.db-wal", "state.db-shm"] {
        let _may_not_be_there = std::fs::remove_file(environment.path(".rekindle").join(extra));
    }
    let shown = environment.run(&["status"]);
    assert!(shown.starts_with("err| error: ") && !shown.ends_with("exit 0\n"), "{shown}");
}
