//! Pauses that end by themselves, resumes that look again at what was done, and what people read of them.

use rustix::process::Signal;
use serde_json::Value;

use crate::rig::Rig;

/// Says what is left: little as long as there is a file that says so, which it takes away.
const USAGE: &str = r#"
echo asked >> asked
if test -e low; then
  after=$(cat low)
  rm low
  echo "{\"remaining_percent\": 5, \"resets_at\": \"$(date -u -d "+$after seconds" +%Y-%m-%dT%H:%M:%SZ)\"}"
else
  echo '{"remaining_percent": 90}'
fi
"#;

const ASKS: &str = "\n[usage]\ncommand = \"sh ./usage.sh\"\ngrace = \"1s\"\n";

/// Works until it is told, then claims.
const AGENT: &str = r#"
echo "$REKINDLE_TASK $REKINDLE_ATTEMPT" >> ran
touch "working-$REKINDLE_TASK"
$FAKE wait "go-$REKINDLE_TASK"
echo good > "made-$REKINDLE_TASK"
rekindle task done "$REKINDLE_TASK"
"#;

fn plan(tasks: usize) -> String {
    let task = |number| format!("### T{number}: task {number}\n- accept: `grep -q good made-T{number}`\n\nDo it.\n\n");
    format!("# Session\n\n{}", (1..=tasks).map(task).collect::<String>())
}

fn rig(tasks: usize, settings: &str) -> Rig {
    let rig = Rig::new(&plan(tasks), AGENT).with(settings);
    rig.write("usage.sh", USAGE);
    rig
}

fn allow_all(rig: &Rig, tasks: usize) {
    (1..=tasks).for_each(|number| rig.touch(&format!("go-T{number}")));
}

/// What the usage command was run in is gone once it has answered, also after a coordinator that did not see it answer.
fn assert_no_usage_bundles(rig: &Rig) {
    let place = rig.state().join("checks/usage");
    let kept: Vec<_> = std::fs::read_dir(place).expect("the command was run").flatten().map(|e| e.path()).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().expect("a place")
}

/// Whether lines stand in a text in this order, each on a line of its own; `…` stands for the rest of a line.
fn assert_block(text: &str, block: &[&str]) {
    let lines: Vec<&str> = text.lines().collect();
    let fits = |line: &&str, expected: &&str| match expected.strip_suffix('…') {
        Some(head) => line.starts_with(head),
        None => line == expected,
    };
    let found =
        lines.windows(block.len()).any(|window| window.iter().zip(block).all(|(line, block)| fits(line, block)));
    assert!(found, "{block:#?} does not stand in\n{text}");
}

#[test]
fn a_low_allowance_stops_agents_waits_for_the_reset_and_goes_on() {
    let rig = rig(3, ASKS);
    let first = rig.start(&["run", "plan.md", "--max-agents", "2"]);
    rig.await_file("working-T1");
    rig.await_file("working-T2");
    first.kill();
    // The next coordinator has a slot for the third task and asks before it hands it out.
    rig.write("low", "3");
    let second = rig.start(&["run", "plan.md", "--max-agents", "3"]);
    rig.await_event("session_resume");
    allow_all(&rig, 3);
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_block(
        &ended.err,
        &[
            "SESSION PAUSED - Usage limit",
            "",
            "State persisted to: .rekindle/state.db",
            "Progress: 0/3 tasks complete",
            "In progress: 2 tasks",
            "Pending audit: 0 tasks",
            "Compactions this session: 0",
            "",
            "Session remaining: 5%",
            "Session resets at: 20…",
            "Auto-resuming at: 20…",
        ],
    );
    assert_block(&ended.err, &["SESSION RESUMED - Reset complete"]);
    assert_eq!(ended.err.matches("resumes in ").count(), 1, "{}", ended.err);
    let pauses = rig.events_of("session_pause");
    assert_eq!(pauses.len(), 1, "{}", rig.story());
    let details = &pauses[0]["details"];
    assert_eq!((&details["reason"], &details["remaining_percent"]), (&"usage_limit".into(), &5.into()));
    let resume = &rig.events_of("session_resume")[0];
    assert_eq!(resume["details"]["resume_count"], 1);
    let (paused, resumed) = (seq(&pauses[0]), seq(resume));
    let between = |event: &&Value| (paused..resumed).contains(&seq(event));
    assert_eq!(rig.events_of("developer_dispatched").iter().filter(between).count(), 0, "{}", rig.story());
    assert_eq!(rig.events_of("stop_ordered").iter().filter(between).count(), 2, "{}", rig.story());
    let asked = rig.events_of("usage_asked");
    assert!(asked.iter().any(|event| seq(event) > resumed), "it is asked again after the reset: {}", rig.story());
    for task in ["T1", "T2", "T3"] {
        assert_eq!(rig.task(task)["attempts"], 1, "a pause costs nothing: {}", rig.story());
    }
    assert!(asked.len() > 1, "{}", rig.story());
    assert_no_usage_bundles(&rig);
    rig.audit();
}

#[test]
fn a_coordinator_that_dies_while_it_waits_is_followed_by_one_that_waits() {
    let rig = rig(1, ASKS);
    allow_all(&rig, 1);
    rig.write("low", "4");
    let first = rig.run();
    rig.await_event("run_paused");
    let status = rig.status();
    assert_eq!((&status["run"]["state"], &status["run"]["pause_reason"]), (&"waiting".into(), &"usage_limit".into()));
    first.kill();
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_block(&ended.err, &["SESSION RESUMED - Reset complete"]);
    let recovered = &rig.events_of("coordinator_recovered")[0];
    let resumes = rig.events_of("session_resume");
    assert_eq!((rig.events_of("session_pause").len(), resumes.len()), (1, 1), "{}", rig.story());
    assert!(seq(&resumes[0]) > seq(recovered), "{}", rig.story());
    let due = status["run"]["resumes_at"].as_str().expect("a time").to_owned();
    assert!(resumes[0]["time"].as_str().expect("a time") >= due.as_str(), "{due}\n{}", rig.story());
    assert_eq!(rig.lines("ran"), ["T1 1"]);
    rig.audit();
}

#[test]
fn a_usage_command_without_an_answer_keeps_nobody_from_working() {
    for command in ["exit 3", "echo plenty", "sleep 600"] {
        let settings = format!("\n[usage]\ncommand = \"{command}\"\n\n[timeouts]\ncheck = \"1s\"\n");
        let rig = Rig::new(&plan(2), AGENT).with(&settings);
        allow_all(&rig, 2);
        let ended = rig.finish();
        let said = "the usage command gives no answer that can be read";
        assert_eq!(ended.err.matches(said).count(), 1, "{command}: {}", ended.err);
        assert_eq!(rig.events_of("session_pause").len(), 0, "{command}: {}", rig.story());
        assert_no_usage_bundles(&rig);
        rig.assert_nothing_left();
    }
}

#[test]
fn an_allowance_that_speaks_for_one_agent_leaves_the_others_at_work() {
    let text = "# Two accounts\n\n### T1: with the one\n- cli: script\n- accept: `grep -q good made-T1`\n\nDo it.\n\n\
                ### T2: with the other\n- cli: other\n- accept: `grep -q good made-T2`\n\nDo it.\n";
    let settings = "[agents.script]\ncommand = [\"/bin/sh\", \"./agent.sh\"]\naccount = \"one\"\n\n\
                    [agents.other]\ncommand = [\"/bin/sh\", \"./agent.sh\"]\naccount = \"two\"\n\n\
                    [run]\nagent = \"script\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"300ms\"\n\n\
                    [usage]\ncommand = \"sh ./usage.sh\"\nagents = [\"script\"]\ngrace = \"1s\"\n";
    let rig = Rig::new(text, AGENT).with_settings(settings);
    rig.write("usage.sh", USAGE);
    rig.write("low", "3");
    allow_all(&rig, 2);
    let ended = rig.finish();
    assert_eq!(ended.err.matches("times are in UTC").count(), 1, "the zone is named once: {}", ended.err);
    let closed = &rig.events_of("gate_closed")[0];
    assert_eq!(closed["details"]["account"], "one", "{}", rig.story());
    let dispatched = rig.events_of("developer_dispatched");
    let of = |task: &str| dispatched.iter().find(|event| event["task"] == task).unwrap_or_else(|| panic!("{task}"));
    assert!(seq(of("T2")) < seq(of("T1")), "{}", rig.story());
    assert!(seq(of("T1")) > seq(closed), "{}", rig.story());
    let until = closed["details"]["until"].as_i64().expect("a time");
    let first = rig.events_of("session_resume");
    assert!(first.len() <= 1, "{}", rig.story());
    let started = rig.task("T1")["started_at"].as_str().expect("a time").to_owned();
    assert!(millis(&started) >= until, "{started} {until}\n{}", rig.story());
}

fn millis(stamp: &str) -> i64 {
    stamp.parse::<jiff::Timestamp>().expect("RFC 3339").as_millisecond()
}

#[test]
fn an_interrupt_while_it_waits_pauses_for_good_and_no_wait_ends_with_4() {
    let rig = rig(1, ASKS);
    allow_all(&rig, 1);
    rig.write("low", "600");
    let waiting = rig.run();
    rig.await_event("run_paused");
    rig.until("its line", || waiting.said().contains("WAITING").then_some(()));
    waiting.signal(Signal::INT);
    let ended = waiting.end();
    assert_eq!(ended.code, Some(130), "{}", rig.story());
    assert_eq!(ended.err.matches("times are in UTC").count(), 1, "{}", ended.err);
    assert_eq!(rig.status()["run"]["state"], "paused");
    rig.write("low", "600");
    let ended = rig.rekindle(&["run", "plan.md", "--no-wait"]);
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    assert!(!ended.err.contains("Auto-resuming"), "nobody is there to do it: {}", ended.err);
    assert_eq!(rig.status()["run"]["state"], "paused");
    assert_eq!(rig.lines("ran"), [""; 0]);
    // Killed while it waits, then paused by an operator: nobody is left who would go on.
    rig.write("low", "600");
    let waiting = rig.run();
    rig.until("a run that waits", || (rig.status()["run"]["state"] == "waiting").then_some(()));
    waiting.kill();
    rig.ok(&["pause"]);
    assert_eq!(rig.status()["run"]["state"], "paused");
    rig.finish();
}

/// T1 is complete and T2 is at work when the run is paused; then what T1 made is broken.
fn paused_after_one(settings: &str) -> Rig {
    let rig = rig(2, settings);
    rig.touch("go-T1");
    let running = rig.start(&["run", "plan.md", "--max-agents", "1"]);
    rig.await_file("working-T2");
    rig.ok(&["pause"]);
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}\n{}", rig.story());
    assert_block(
        &paused.err,
        &[
            "SESSION PAUSED - User stop",
            "",
            "State persisted to: .rekindle/state.db",
            "Progress: 1/2 tasks complete",
            "In progress: 1 task",
        ],
    );
    rig.write("made-T1", "bad\n");
    rig.touch("go-T2");
    rig
}

#[test]
fn what_was_completed_just_before_a_pause_is_looked_at_again_before_other_work() {
    let rig = paused_after_one("");
    let ended = rig.start(&["run", "plan.md", "--max-agents", "1"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_block(&ended.err, &["SESSION RESUMED"]);
    let resume = &rig.events_of("session_resume")[0];
    assert_eq!(resume["details"]["tasks_to_revalidate"], 1, "{}", rig.story());
    let rework = &rig.events_of("task_rework")[0];
    assert_eq!((&rework["task"], &rework["details"]["source"]), (&"T1".into(), &"validation".into()));
    let after: Vec<Value> =
        rig.events_of("developer_dispatched").into_iter().filter(|event| seq(event) > seq(resume)).collect();
    assert!(after.iter().all(|event| seq(event) > seq(rework)), "nothing before the look: {}", rig.story());
    let order: Vec<&Value> = after.iter().map(|event| &event["task"]).collect();
    assert_eq!(order, ["T1", "T2"], "{}", rig.story());
    assert_eq!(std::fs::read_to_string(rig.path("made-T1")).expect("there"), "good\n");
    rig.audit();
}

#[test]
fn what_was_completed_longer_ago_is_left_alone() {
    let rig = paused_after_one("\n[validation]\nwindow = \"1ms\"\n");
    let ended = rig.start(&["run", "plan.md", "--max-agents", "1"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("session_resume")[0]["details"]["tasks_to_revalidate"], 0, "{}", rig.story());
    assert_eq!(rig.events_of("validation_started").len(), 0, "{}", rig.story());
    assert_eq!(std::fs::read_to_string(rig.path("made-T1")).expect("there"), "bad\n");
}

#[test]
fn a_recovery_tells_what_it_found_and_validates() {
    let text = format!("{}### T4: after the second\n- blocked by: T2\n- accept: `true`\n\nThen.\n", plan(3));
    let rig = Rig::new(&text, AGENT);
    rig.touch("go-T1");
    let first = rig.run();
    rig.await_file("working-T2");
    rig.await_file("working-T3");
    rig.await_event("task_completed");
    // Else its end may be a fact to reconcile too.
    rig.await_event("attempt_ended");
    let lost = rig
        .events_of("developer_dispatched")
        .iter()
        .find(|event| event["task"] == "T3")
        .map(|event| event["details"]["attempt"].as_u64().expect("a number"));
    let record = rig.shim_record(lost.expect("dispatched")).expect("record");
    let number = |who: &str| u32::try_from(record[who]["pid"].as_u64().expect("pid")).expect("number");
    let (shim, agent) = (rig.pin(number("shim")), rig.pin(number("agent")));
    first.kill();
    shim.kill();
    agent.kill();
    let second = rig.run();
    rig.await_event("coordinator_recovered");
    ["go-T2", "go-T3", "go-T4"].iter().for_each(|name| rig.touch(name));
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_block(
        &ended.err,
        &[
            "COORDINATOR RECOVERY",
            "",
            "Prior state found: .rekindle/state.db",
            "Saved at: 20…",
            "Events to reconcile: 1",
            "Orphaned agents: 1",
            "Recent completions to validate: 1",
            "",
            "Recovery complete. Resuming normal operation.",
            "",
            "Progress: 1/4 tasks complete",
            "Available: 1 task",
            "Blocked: 1 task",
        ],
    );
    let validated = rig.events_of("validation_started");
    assert_eq!(validated.len(), 1, "{}", rig.story());
    assert_eq!(validated[0]["task"], "T1");
    let ran = rig.lines("ran");
    assert_eq!(ran.iter().filter(|line| line.starts_with("T1 ")).count(), 1, "what holds is not done again: {ran:?}");
    assert_eq!(ran.iter().filter(|line| line.starts_with("T2 ")).count(), 1, "the living one goes on: {ran:?}");
    rig.audit();
}
