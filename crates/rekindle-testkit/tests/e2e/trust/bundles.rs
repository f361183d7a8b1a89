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
