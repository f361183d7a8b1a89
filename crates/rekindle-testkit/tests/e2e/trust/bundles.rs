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
