//! Agents that crash, lie, hang, dawdle or never start; waves, artifacts, and how a run that cannot go on ends.

use crate::rig::Rig;

const CHAIN: &str = "# Chain\n\n### T1: first\n- accept: `test -e made-T1`\n\nOne.\n\n\
    ### T2: behind it\n- blocked by: T1\n- accept: `test -e made-T2`\n\nTwo.\n\n\
    ### T3: beside it\n- accept: `test -e made-T3`\n\nThree.\n";

#[test]
fn a_task_that_uses_up_its_attempts_fails_and_blocks_what_waits_for_it() {
    let agent = "echo \"$REKINDLE_TASK $REKINDLE_ATTEMPT\" >> ran\n[ $REKINDLE_TASK = T1 ] && exit 3\n\
        touch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(CHAIN, agent);
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", rig.story());
    let ran = rig.lines("ran");
    let tries: Vec<&str> = ran.iter().filter_map(|line| line.strip_prefix("T1 ")).collect();
    assert_eq!(tries, ["1", "2", "3"]);
    let states: Vec<String> = ["T1", "T2", "T3"].iter().map(|id| rig.task(id)["state"].to_string()).collect();
    assert_eq!(states, ["\"failed\"", "\"blocked\"", "\"complete\""]);
    assert_eq!(rig.task("T1")["cause"], "crashed");
    assert_eq!(rig.events_of("agent_crashed").len(), 3);
    let failed = rig.events_of("workflow_failed");
    assert_eq!(failed.len(), 1, "{}", rig.story());
    assert!(failed[0]["details"]["reason"].as_str().is_some_and(|reason| reason.contains("crash_limit")), "{failed:?}");
    assert_eq!(rig.events_of("developer_redispatched").len(), 2);
    assert!(!rig.events_of("person_alerted").is_empty());
    assert!(ended.out.contains("rekindle why T1"), "{ended:?}");
    // Said again it tells the same; a person opens it again.
    assert_eq!(rig.run().end().code, Some(3));
    rig.ok(&["task", "retry", "T1"]);
    rig.write("agent.sh", "touch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n");
    rig.finish();
    rig.audit();
}

#[test]
fn skipping_a_failed_task_lets_the_rest_go_on() {
    let agent = "[ $REKINDLE_TASK = T1 ] && exit 3\ntouch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(CHAIN, agent);
    assert_eq!(rig.run().end().code, Some(3));
    rig.ok(&["task", "skip", "T1"]);
    rig.finish();
    assert_eq!(rig.task("T1")["state"], "skipped");
    assert_eq!(rig.task("T2")["state"], "complete");
    rig.audit();
}

#[test]
fn a_lie_completes_nothing() {
    let plan = "# Lies\n\n### T1: work\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n";
    // It claims without having done anything, through two channels; its replacement does the work.
    let agent = "if [ $REKINDLE_ATTEMPT = 1 ]; then echo 'TASK_COMPLETE: T1'; rekindle task done T1; exit 0; fi\n\
        cp \"$REKINDLE_PROMPT_FILE\" brief\necho yes > made\nrekindle task done T1\n";
    let rig = Rig::new(plan, agent);
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 2, "{}", rig.story());
    assert!(rig.events_of("checks_finished").iter().any(|event| event["details"]["passed"] == false));
    let ends = rig.events_of("attempt_ended");
    assert_eq!(ends[0]["details"]["cause"], "exited_incomplete", "{ends:?}");
    let brief = std::fs::read_to_string(rig.path("brief")).expect("brief");
    assert!(brief.contains("test -s made"), "{brief}");
    rig.audit();
}

#[test]
fn a_task_without_proof_is_complete_and_marked() {
    let rig = Rig::new("# Word\n\n### T1: work\n\nWork.\n", "rekindle task done T1 --result 'my word'\n");
    rig.finish();
    let task = rig.task("T1");
    assert_eq!((&task["unproven"], &task["result"]), (&true.into(), &"my word".into()));
    rig.audit();
}

#[test]
fn a_timeout_ends_an_attempt_and_is_named() {
    let plan = "# Slow\n\n### T1: work\n- timeout: 1s\n- accept: `test -e made`\n\nWork.\n";
    let agent = "if [ $REKINDLE_ATTEMPT = 1 ]; then $FAKE count never; fi\ntouch made\nrekindle task done T1\n";
    let rig = Rig::new(plan, agent);
    rig.finish();
    let timeouts = rig.events_of("developer_timeout");
    assert_eq!(timeouts.len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("attempt_ended")[0]["details"]["cause"], "timed_out");
    assert_eq!(rig.task("T1")["attempts"], 2);
    rig.audit();
}

#[test]
fn silence_is_a_hang_and_work_without_words_is_not() {
    let plan = "# Hang\n\n### T1: hangs\n- accept: `test -e made-T1`\n\nWork.\n\n### T2: works\n- accept: `test -e made-T2`\n\nWork.\n";
    // The one sleeps without a word; the other keeps a processor busy for three times the limit without a word.
    let agent = r#"
if [ $REKINDLE_TASK = T1 ] && [ $REKINDLE_ATTEMPT = 1 ]; then exec sleep 600; fi
if [ $REKINDLE_TASK = T2 ]; then end=$(( $(date +%s) + 4 )); while [ $(date +%s) -lt $end ]; do :; done; fi
touch made-$REKINDLE_TASK
rekindle task done $REKINDLE_TASK
"#;
    let rig = Rig::new(plan, agent).with("\n[hang]\nsilence = \"1200ms\"\n");
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 2, "{}", rig.story());
    assert_eq!(rig.task("T2")["attempts"], 1, "{}", rig.story());
    let hung = rig.events_of("agent_hung");
    assert_eq!(hung.len(), 1, "{}", rig.story());
    let ends = rig.events_of("attempt_ended");
    assert!(ends.iter().any(|end| end["details"]["cause"].as_str().is_some_and(|cause| cause.starts_with("hung"))));
    rig.audit();
}

#[test]
fn an_agent_that_does_not_leave_after_its_last_task_is_stopped() {
    let rig = Rig::new("# Stay\n\n### T1: work\n\nWork.\n", "rekindle task done T1\nexec sleep 600\n")
        .with("\n[hang]\nafter_result = \"200ms\"\n");
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
}

#[test]
fn a_missing_program_is_told_before_anything_starts() {
    let rig = Rig::new(CHAIN, "").with_settings(
        "[agents.script]\nkind = \"command\"\ncommand = [\"/nowhere/agent\"]\n\n[run]\nagent = \"script\"\n",
    );
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("/nowhere/agent"), "{ended:?}");
}

#[test]
fn a_program_that_cannot_be_started_uses_up_its_attempts_and_the_state_stays_readable() {
    let rig = Rig::new("# Start\n\n### T1: work\n\nWork.\n", "").with_settings(
        "[agents.script]\nkind = \"command\"\ncommand = [\"./broken\"]\n\n[run]\nagent = \"script\"\nbackoff = \"10ms\"\n",
    );
    rig.write("broken", "#!/nowhere/interpreter\n");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(rig.path("broken"), PermissionsExt::from_mode(0o755)).expect("mode");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["cause"], "start_failed", "{}", rig.story());
    assert_eq!(rig.run().end().code, Some(3), "the log cannot be read again");
    rig.ok(&["task", "retry", "T1"]);
    rig.audit();
}

#[test]
fn a_wave_begins_when_the_one_before_it_has_ended() {
    let plan = "# Waves\n\n## Wave 1\n\n### A1: slow\n- accept: `test -e made-A1`\n\nWork.\n\n\
        ### A2: quick\n- accept: `test -e made-A2`\n\nWork.\n\n## Wave 2\n\n### B1: later\n- accept: `test -e made-B1`\n\nWork.\n";
    let agent = "echo $REKINDLE_TASK >> ran\n[ $REKINDLE_TASK = A1 ] && $FAKE wait go\ntouch made-$REKINDLE_TASK\n\
        rekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(plan, agent);
    let run = rig.run();
    rig.until("A2 complete", || (rig.has("made-A2") && rig.task("A2")["state"] == "complete").then_some(()));
    assert!(!rig.lines("ran").contains(&"B1".to_owned()), "wave 2 has begun");
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.lines("ran").last().map(String::as_str), Some("B1"));
    let waves: Vec<String> =
        rig.events_of("wave_started").iter().map(|event| event["details"]["wave"].to_string()).collect();
    assert_eq!(waves, ["1", "2"]);
    rig.audit();
}

#[test]
fn an_artifact_that_is_gone_at_the_next_start_is_made_again() {
    let plan = "# Disk\n\n### T1: make\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n\n\
        ### T2: wait\n- accept: `test -e go`\n\nWork.\n";
    let agent = "echo $REKINDLE_TASK >> ran\ncase $REKINDLE_TASK in T1) echo yes > made ;; T2) $FAKE wait go ;; esac\n\
        rekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(plan, agent);
    let run = rig.run();
    rig.await_event("task_completed");
    run.kill();
    std::fs::remove_file(rig.path("made")).expect("removed");
    rig.touch("go");
    rig.finish();
    let ran = rig.lines("ran");
    assert_eq!(ran.iter().filter(|line| *line == "T1").count(), 2, "{ran:?}\n{}", rig.story());
    assert_eq!(ran.iter().filter(|line| *line == "T2").count(), 1, "{ran:?}\n{}", rig.story());
    assert_eq!(rig.events_of("task_reopened").len(), 1);
    assert!(!rig.events_of("state_reconciled").is_empty());
    rig.audit();
}

#[test]
fn no_recover_leaves_a_crash_to_a_person() {
    let rig = Rig::new("# Once\n\n### T1: work\n\nWork.\n", "echo x >> ran\nexit 1\n");
    assert_eq!(rig.rekindle(&["run", "plan.md", "--no-recover"]).code, Some(3));
    assert_eq!(rig.lines("ran").len(), 1);
    rig.audit();
}

#[test]
fn recover_replaces_a_living_agent_without_counting_it() {
    let agent =
        "echo $REKINDLE_EPOCH >> ran\n[ $REKINDLE_EPOCH = 1 ] && exec sleep 600\ntouch made\nrekindle task done T1\n";
    let rig = Rig::new("# Again\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n", agent);
    let run = rig.run();
    rig.await_event("agent_started");
    rig.ok(&["recover", "developer-T1"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.lines("ran"), ["1", "2"]);
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
}
