//! The plan's health commands: a baseline before any work, repair of what failed before, rework for what the work broke; and
//! tasks that prove too large.

use crate::rig::Rig;

const PLAN: &str =
    "---\nhealth: [\"sh ./health.sh\"]\n---\n# Health\n\n### T1: the work\n- accept: `test -e made`\n\nDo it.\n";

/// What each role does: the developer works, the repair repairs where it is let, the auditor looks.
const AGENT: &str = r#"
echo "$REKINDLE_ROLE $REKINDLE_TASK $REKINDLE_ATTEMPT" >> ran
case "$REKINDLE_ROLE" in
  remediation) test -e hopeless || touch healthy; rekindle task done "$REKINDLE_TASK" ;;
  health_auditor) echo "HEALTH_AUDIT: HEALTHY" ;;
  *) touch made; rekindle task done "$REKINDLE_TASK" ;;
esac
"#;

fn rig() -> Rig {
    let rig = Rig::new(PLAN, AGENT);
    rig.write("health.sh", "test -e healthy && exit 0\necho 'not healthy'\nexit 4\n");
    rig
}

fn seq(event: &serde_json::Value) -> u64 {
    event["seq"].as_u64().expect("a place")
}

#[test]
fn what_failed_before_the_work_is_repaired_and_audited() {
    let rig = rig();
    rig.finish();
    let baseline = &rig.events_of("health_checked")[0];
    let first =
        rig.events().into_iter().find(|event| event["kind"].as_str().is_some_and(|kind| kind.ends_with("_dispatched")));
    assert!(seq(baseline) < seq(&first.expect("dispatched")), "{}", rig.story());
    assert_eq!(baseline["details"]["results"][0]["passed"], false);
    assert_eq!(rig.events_of("task_added")[0]["task"], "health", "{}", rig.story());
    assert_eq!(rig.events_of("remediation_dispatched").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("health_auditor_dispatched").len(), 1, "{}", rig.story());
    assert_eq!(rig.task("health")["state"], "complete");
    assert_eq!(rig.task("T1")["attempts"], 1, "it is nobody's fault: {}", rig.story());
    rig.audit();
}

#[test]
fn three_rounds_of_repair_in_vain_end_with_a_person() {
    let rig = rig();
    rig.touch("hopeless");
    let ended = rig.rekindle(&["run", "plan.md", "--no-wait"]);
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    let rounds = rig.lines("ran").iter().filter(|line| line.starts_with("remediation ")).count();
    assert_eq!(rounds, 3, "{}", rig.story());
    assert_eq!(rig.task("T1")["state"], "complete", "everything else goes on: {}", rig.story());
    let asked = &rig.events_of("question_asked")[0];
    let text = asked["details"]["text"].as_str().expect("text");
    assert!(text.contains("still fail after 3 rounds of repair"), "{text}");
    std::fs::remove_file(rig.path("hopeless")).expect("there is hope");
    rig.ok(&["answer", &asked["details"]["id"].to_string(), "done"]);
    rig.finish();
    assert_eq!(rig.task("health")["state"], "complete");
}

#[test]
fn what_the_work_broke_is_its_own_to_mend() {
    let agent = r#"
touch made
test "$REKINDLE_ATTEMPT" = 1 && rm healthy || touch healthy
rekindle task done T1 > "told-$REKINDLE_ATTEMPT" 2>&1
cp "$REKINDLE_PROMPT_FILE" "prompt-$REKINDLE_ATTEMPT"
"#;
    let rig = rig();
    rig.write("agent.sh", agent);
    rig.touch("healthy");
    rig.finish();
    assert_eq!(rig.events_of("task_added").len(), 0, "{}", rig.story());
    let failed = rig.events_of("checks_finished");
    assert_eq!(failed[0]["details"]["evidence"]["health"][0]["origin"], "introduced", "{}", rig.story());
    let told = rig.lines("told-1").join("\n");
    assert!(told.contains("health command `sh ./health.sh` fails: passed before the work began"), "{told}");
    let prompt = rig.lines("prompt-2").join("\n");
    assert!(prompt.contains("sh ./health.sh") && prompt.contains("not healthy"), "{prompt}");
    assert_eq!(rig.task("T1")["attempts"], 2);
    rig.audit();
}

#[test]
fn a_failing_check_of_a_task_is_its_developers_and_nobody_elses() {
    let agent = "test \"$REKINDLE_ATTEMPT\" = 1 || touch made\nrekindle task done T1\n";
    let rig = rig();
    rig.write("agent.sh", agent);
    rig.touch("healthy");
    rig.finish();
    assert_eq!(rig.events_of("task_added").len(), 0, "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 2);
}

const SPLIT: &str = "# Split\n\n### T1: large\n- accept: `grep -q second order`\n\nDo it.\n\n### T2: after\n- blocked by: T1\n- accept: `true`\n\nThen.\n";

#[test]
fn an_agent_splits_its_task_and_works_through_the_parts() {
    let agent = r#"
test "$REKINDLE_TASK" = T2 && { rekindle task done T2; exit; }
rekindle task split T1 "the first half" "the second half"
echo first >> order
rekindle task done T1.1
echo second >> order
rekindle task done T1.2
"#;
    let rig = Rig::new(SPLIT, agent);
    rig.finish();
    for task in ["T1", "T1.1", "T1.2", "T2"] {
        assert_eq!(rig.task(task)["state"], "complete", "{}", rig.story());
    }
    assert_eq!(rig.task("T1")["parts"], serde_json::json!(["T1.1", "T1.2"]));
    let shown = rig.ok(&["status"]);
    let place = |id: &str| {
        shown.lines().position(|line| line.starts_with(&format!("{id} "))).unwrap_or_else(|| panic!("{id} in {shown}"))
    };
    let order = ["T1", "↳ T1.1", "↳ T1.2", "T2"].map(place);
    assert!(order.is_sorted(), "{order:?}\n{shown}");
    let file = std::fs::read_to_string(rig.state().join("build-status--plan.md")).expect("a file");
    assert!(file.contains("| ↳ T1.1 | PASS |"), "{file}");
    rig.audit();
}

#[test]
fn a_person_splits_a_task_and_its_parts_run_in_order() {
    let agent = r#"
case "$REKINDLE_TASK" in
  T1) touch working; $FAKE wait never ;;
  T1.1) echo first >> order ;;
  T1.2) echo second >> order ;;
esac
rekindle task done "$REKINDLE_TASK"
"#;
    let rig = Rig::new(SPLIT, agent);
    let running = rig.run();
    rig.await_file("working");
    rig.ok(&["task", "split", "T1", "the first half", "the second half"]);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.lines("order"), ["first", "second"]);
    assert_eq!(rig.task("T1")["state"], "complete");
    rig.audit();
}

#[test]
fn a_task_that_timed_out_twice_is_proposed_to_be_split() {
    let plan = "# Slow\n\n### T1: slow\n- timeout: 1s\n- attempts: 3\n- accept: `test -e made`\n\nDo it.\n";
    let agent = "test \"$REKINDLE_ATTEMPT\" -lt 3 && $FAKE wait never\ntouch made\nrekindle task done T1\n";
    let rig = Rig::new(plan, agent);
    let ended = rig.finish();
    assert_eq!(rig.events_of("developer_timeout").len(), 2, "{}", rig.story());
    assert_eq!(rig.events_of("split_suggested").len(), 1, "{}", rig.story());
    assert!(ended.err.contains("rekindle task split T1 'FIRST PART' 'SECOND PART'"), "{}", ended.err);
}
