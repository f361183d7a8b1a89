//! A bundle of another run, or of a state that was lost, is never taken for this attempt's.

use super::duplicate;
use crate::rig::Rig;

const PLAN: &str = "# First\n\n### T1: once\n\nWork.\n";

const OTHER: &str = "# Second\n\n### T1: the same name\n\nOther work.\n";

const AGENT: &str = "echo \"$REKINDLE_TASK $REKINDLE_ATTEMPT\" >> ran\nrekindle task done $REKINDLE_TASK --result ok\n";

/// Removes every copy of the log and leaves the bundles.
fn lose_the_log(rig: &Rig) {
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _not_there = std::fs::remove_file(rig.state().join(name));
    }
    for name in ["shadow", "backups"] {
        let _not_there = std::fs::remove_dir_all(rig.state().join(name));
    }
}

#[test]
fn a_lost_log_is_a_question_and_no_old_bundle_completes_another_plans_task() {
    let rig = Rig::new(PLAN, AGENT);
    rig.finish();
    lose_the_log(&rig);
    rig.write("plan.md", OTHER);
    rig.write("ran", "");
    let asked = rig.run().end();
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.err.contains("its log ends at attempt 0, bundles go up to 1"), "{asked:?}");
    assert!(asked.err.contains("--forget-lost"), "it says what to type: {asked:?}");
    assert!(rig.lines("ran").is_empty(), "nothing was started before it was answered");
    let ended = rig.start(&["run", "plan.md", "--forget-lost"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rig.lines("ran"), ["T1 1"], "its own agent did the work: {}", rig.story());
    assert_eq!(rig.events_of("attempts_lost").len(), 1, "the log says so");
    assert!(rig.state().join("attempts/00000002/exit.json").exists(), "numbers go on above every bundle");
    let again = rig.start(&["run", "plan.md", "--again"]).end();
    assert_eq!(again.code, Some(0), "it is asked once: {again:?}");
}

/// The copies of the log, as they stand.
const COPIES: [&str; 5] = ["state.db", "state.db-wal", "state.db-shm", "shadow", "backups"];

/// Copies the log to another place, or back.
fn copy_log(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a place");
    for name in COPIES.iter().filter(|name| from.join(name).exists()) {
        duplicate(&from.join(name), &to.join(name));
    }
}

/// A log that ends before the newest attempt, because every copy of it is old.
pub fn with_an_old_log() -> Rig {
    let rig = Rig::new(PLAN, AGENT).with("\n[notify]\ncommand = [\"/bin/sh\", \"./tell.sh\"]\n");
    rig.write("tell.sh", "echo \"$1\" >> alerts\n");
    rig.finish();
    copy_log(&rig.state(), &rig.outside("old"));
    assert_eq!(rig.start(&["run", "plan.md", "--again"]).end().code, Some(0), "{}", rig.story());
    copy_log(&rig.state(), &rig.outside("new"));
    lose_the_log(&rig);
    copy_log(&rig.outside("old"), &rig.state());
    rig
}

#[test]
fn lost_events_are_question_0_in_every_view() {
    let rig = with_an_old_log();
    let words = "its log ends at attempt 1, bundles go up to 2";
    assert_eq!(rig.status()["questions"], 1);
    let shown = rig.rekindle(&["status"]);
    assert!(shown.err.contains("question 0 from rekindle") && shown.err.contains("rekindle answer 0"), "{shown:?}");
    let asked = rig.ok(&["questions"]);
    for part in [
        words,
        "1. forget",
        "2. restore",
        "forget: the run continues",
        "restore: nothing is started",
        "rekindle answer 0",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let json: serde_json::Value = serde_json::from_str(&rig.ok(&["questions", "--json"])).expect("JSON");
    assert_eq!((&json[0]["id"], &json[0]["options"]), (&0.into(), &serde_json::json!(["forget", "restore"])), "{json}");
    let served = crate::serve::Served::start(&rig, &[]);
    let page = served.get("/questions").body;
    assert!(page.contains(words) && page.contains("/api/questions/0/answer"), "{page}");
    let refused = rig.start(&["run", "plan.md", "--again"]).end();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("rekindle answer 0 forget"), "{refused:?}");
    // The command that tells outlives the one that started it.
    rig.until("an alert for whoever is at no terminal", || {
        rig.lines("alerts").join("\n").contains(words).then_some(())
    });
    let unknown = rig.rekindle(&["answer", "0", "perhaps"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    // The dashboard's answer is the same one.
    let answered = served.post("/api/questions/0/answer", "{\"answer\": \"forget\"}");
    assert_eq!(answered.status, 200, "{}", answered.body);
    served.end(rustix::process::Signal::TERM);
    assert_eq!(rig.status()["questions"], 0);
    let ended = rig.start(&["run", "plan.md", "--again"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rig.events_of("attempts_lost").len(), 1, "the log says so");
    assert!(rig.state().join("attempts/00000003/exit.json").exists(), "numbers go on above every bundle");
    assert_eq!(rig.status()["questions"], 0);
}

#[test]
fn a_log_that_is_put_back_answers_question_0() {
    let rig = with_an_old_log();
    let waiting = rig.rekindle(&["answer", "0", "restore"]);
    assert_eq!(waiting.code, Some(1), "{waiting:?}");
    assert!(waiting.err.contains("nothing is restored yet") && waiting.err.contains("state.db"), "{waiting:?}");
    lose_the_log(&rig);
    copy_log(&rig.outside("new"), &rig.state());
    assert_eq!(rig.rekindle(&["answer", "0", "restore"]).code, Some(0));
    assert_eq!(rig.status()["questions"], 0);
    assert_eq!(rig.start(&["run", "plan.md", "--again"]).end().code, Some(0), "{}", rig.story());
    assert!(rig.events_of("attempts_lost").is_empty(), "nothing was given up");
    rig.audit();
}

#[test]
fn question_0_is_asked_also_where_no_run_is_left_to_show() {
    let rig = Rig::new(PLAN, AGENT);
    rig.finish();
    lose_the_log(&rig);
    let shown = rig.rekindle(&["status"]);
    assert!(shown.err.contains("question 0 from rekindle"), "{shown:?}");
    assert!(rig.ok(&["questions"]).contains("its log ends at attempt 0, bundles go up to 1"));
    assert_eq!(rig.status()["questions"], 1);
    assert_eq!(rig.rekindle(&["answer", "0", "forget"]).code, Some(0));
    assert_eq!(rig.finish().code, Some(0));
}

#[test]
fn while_an_agent_of_a_lost_attempt_works_nobody_is_started_beside_it() {
    let rig = Rig::new(PLAN, "echo x >> ran\ntouch here\n$FAKE wait go\nrekindle task done $REKINDLE_TASK\n");
    let run = rig.run();
    rig.await_file("here");
    run.kill();
    lose_the_log(&rig);
    let agent = rig.shim_record(1).expect("a record")["agent"]["pid"].to_string();
    let refused = rig.start(&["run", "plan.md", "--forget-lost"]).end();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains(&format!("process {agent}")), "it says who works: {refused:?}");
    let answered = rig.rekindle(&["answer", "0", "forget"]);
    assert!(answered.code == Some(1) && answered.err.contains(&format!("process {agent}")), "{answered:?}");
    assert_eq!(rig.lines("ran").len(), 1, "no second agent");
    rig.touch("go");
    rig.until("the end of the lost attempt", || rig.state().join("attempts/00000001/exit.json").exists().then_some(()));
    assert_eq!(rig.start(&["run", "plan.md", "--forget-lost"]).end().code, Some(0), "{}", rig.story());
}

/// The run was killed with its agent, and the bundle that stands in its place is another project's, which ended well.
#[test]
fn a_bundle_of_another_run_is_set_aside_and_its_words_count_for_nothing() {
    let other = Rig::new(PLAN, AGENT);
    other.finish();
    let rig = Rig::new(PLAN, "echo x >> ran\ntouch here\n$FAKE wait go\nrekindle task done $REKINDLE_TASK\n");
    let run = rig.run();
    rig.await_file("here");
    let shim = rig.shim_record(1).expect("a record");
    for who in ["shim", "agent"] {
        let pid = u32::try_from(shim[who]["pid"].as_u64().expect("a number")).expect("small");
        let process = rig.pin(pid);
        if who == "shim" {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(i32::try_from(run.pid()).expect("small")).expect("a process"),
                rustix::process::Signal::KILL,
            )
            .expect("our own child");
        }
        process.kill();
    }
    run.kill();
    let place = rig.state().join("attempts/00000001");
    std::fs::remove_dir_all(&place).expect("removed");
    duplicate(&other.state().join("attempts/00000001"), &place);
    rig.touch("go");
    assert_eq!(rig.finish().code, Some(0));
    assert_eq!(rig.lines("ran").len(), 2, "an agent of its own did the work: {}", rig.story());
    let aside = rig.state().join("attempts/bad-00000001/spec.json");
    assert!(aside.exists(), "set aside, not deleted: {}", rig.story());
}

/// The first agent plants a bundle that says that the next attempt has ended well.
#[test]
fn a_bundle_that_an_agent_plants_for_the_next_attempt_gains_nothing() {
    let plan =
        "# Planted\n\n### T1: plants\n\nWork.\n\n### T2: is planted\n- blocked by: T1\n- artifacts: made\n\nWork.\n";
    let agent = r#"echo "$REKINDLE_TASK" >> ran
if test $REKINDLE_TASK = T1; then
    next="$REKINDLE_STATE_DIR/attempts/00000002"
    cp -r "$REKINDLE_BUNDLE" "$next"
    rm -f "$next/sock" "$next/shim.json" "$next/lock"
    sed -i 's/"attempt":"1"/"attempt":"2"/' "$next/spec.json"
    nonce=$(sed 's/.*"nonce":"\([0-9a-f]*\)".*/\1/' "$next/spec.json")
    log='{"bytes":0,"digest":null,"discarded":0,"truncated":false,"replaced":false}'
    echo "{\"version\":1,\"attempt\":\"2\",\"epoch\":1,\"nonce\":\"$nonce\",\"code\":0,\"signal\":null,\"start_error\":null,\"ended_at_ms\":1,\"ended_boottime_ms\":1,\"ran_ms\":1,\"user_ms\":0,\"sys_ms\":0,\"max_rss_kb\":0,\"out\":$log,\"err\":$log,\"swept\":0,\"survivors\":[],\"timed_out\":false,\"stop_requested\":false,\"sync_error\":null}" > "$next/exit.json"
fi
echo yes > made
rekindle task done $REKINDLE_TASK
"#;
    let rig = Rig::new(plan, agent);
    rig.finish();
    assert_eq!(rig.lines("ran"), ["T1", "T2"], "the second agent did its own work: {}", rig.story());
    assert!(rig.state().join("attempts/bad-00000002/exit.json").exists(), "set aside, not deleted");
}
