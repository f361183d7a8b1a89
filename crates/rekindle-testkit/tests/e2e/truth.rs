//! Every view says the same: counts, words, attempts, times, and what an agent printed before it crashed.

use rustix::process::Signal;
use serde_json::Value;

use crate::rig::{Rig, objects};

/// Two tasks, the second behind the first; the third runs beside them.
const PLAN: &str =
    "# Plan\n\n### T1: One\n\nWork.\n\n### T2: Two\n\n- blocked by: T1\n\nWork.\n\n### T3: Three\n\nWork.\n";

/// A value that is known to be secret by the name of its variable.
const SECRET: &str = "swordfish-7f3a9c02b1";

/// Crashes at T1 with an error, escapes and a secret in its output; at others it reports.
const CRASHING: &str = r#"
if [ "$REKINDLE_TASK" = T1 ]; then
    echo 'reading the grammar'
    printf '\033[31merror: cannot open \033]0;owned\007grammar.y\033[0m\n' >&2
    echo "the key is $DEPLOY_TOKEN"
    for n in 1 2 3; do echo "cleaning up $n"; done
    exit 3
fi
rekindle task done "$REKINDLE_TASK"
"#;

fn crashing() -> Rig {
    let rig = Rig::new("# Plan\n\n### T1: One\n\n- attempts: 2\n\nWork.\n\n### T2: Two\n\nWork.\n", CRASHING);
    rig.set("DEPLOY_TOKEN", SECRET);
    rig
}

/// The text is harmless, has no secret, and tells the error before the last lines.
fn assert_evidence(view: &str, text: &str) {
    assert!(!text.contains(SECRET), "{view} tells a secret: {text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{view} has escapes: {text:?}");
    let error = text.find("error: cannot open grammar.y").unwrap_or_else(|| panic!("{view} has no error: {text}"));
    let last = text.rfind("cleaning up 3").unwrap_or_else(|| panic!("{view} has no last line: {text}"));
    assert!(error < last, "{view}: the error comes first: {text}");
    assert!(text.contains("[redacted:DEPLOY_TOKEN]"), "{view}: {text}");
}

#[test]
fn the_last_output_of_a_crashed_agent_stands_wherever_its_crash_is_told() {
    let rig = crashing()
        .with("\n[notify]\ncommand = [\"/bin/sh\", \"-c\", 'printf %s \"$REKINDLE_EVIDENCE\" > evidence.txt']\n");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_evidence("run", &ended.err);
    for arguments in [&["why", "T1"][..], &["status", "T1"], &["report"], &["report", "--html", "-"]] {
        assert_evidence(&arguments.join(" "), &rig.ok(arguments));
    }
    let output = rig.task("T1")["evidence"]["output"].clone();
    assert_eq!(output["error"], "error: cannot open grammar.y", "{output}");
    assert_eq!((&output["number"], &output["cause"]), (&Value::from(2), &Value::from("crashed")), "{output}");
    let lines: Vec<&str> = output["lines"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(!output.to_string().contains(SECRET), "{output}");
    assert!(rig.task("T2")["evidence"]["output"].is_null(), "nothing failed there");
    rig.await_file("evidence.txt");
    let told =
        rig.until("an alert's evidence", || Some(rig.lines("evidence.txt").join("\n")).filter(|text| !text.is_empty()));
    assert_evidence("an alert", &told);
}

#[test]
fn why_has_one_line_for_an_attempt_and_all_of_them_on_request() {
    let rig = crashing();
    rig.run().end();
    let why = rig.ok(&["why", "T1"]);
    for number in 1..=2 {
        assert_eq!(why.matches(&format!("ATTEMPT {number}")).count(), 1, "{why}");
    }
    for step in ["RUNS", "EXITED", "CRASHED", "ENDED", "REQUEUED"] {
        assert!(!why.contains(step), "{step} is told by the attempt's line: {why}");
    }
    let all = rig.ok(&["why", "T1", "--all"]);
    assert!(all.contains("EXITED") && all.contains("REQUEUED"), "{all}");
}

#[test]
fn attempts_are_numbered_by_task_wherever_they_are_shown_or_typed() {
    let rig = crashing();
    rig.run().end();
    let first = rig.ok(&["logs", "T1", "--attempt", "1"]);
    assert!(first.lines().all(|line| line.contains(" #1 ")) && first.contains("cleaning up 3"), "{first}");
    let lines = objects(&rig.ok(&["logs", "T1", "--json"]));
    let mut numbers: Vec<u64> = lines.iter().filter_map(|line| line["number"].as_u64()).collect();
    numbers.dedup();
    assert_eq!(numbers, [1, 2], "{lines:?}");
    let refused = rig.rekindle(&["logs", "T1", "--attempt", "3"]);
    assert!(refused.code == Some(2) && refused.err.contains("T1 has no attempt 3"), "{refused:?}");
    let status = rig.status();
    let agents = status["agents"].as_array().expect("a list");
    let of = |task: &str| agents.iter().find(|agent| agent["task"] == task).map(|agent| agent["number"].clone());
    assert_eq!((of("T1"), of("T2")), (Some(Value::from(2)), Some(Value::from(1))), "{status}");
    let shown = rig.ok(&["status", "T1"]);
    assert!(shown.contains("last output of attempt 2 (crashed)"), "{shown}");
}

#[test]
fn times_are_local_with_the_zone_named_once_and_utc_for_programs() {
    let rig = crashing();
    rig.run().end();
    let zones = [
        ("Asia/Kolkata", "Asia/Kolkata (UTC+05:30)", 330),
        ("America/St_Johns", "America/St_Johns (UTC-", -210),
        ("UTC", "UTC", 0),
    ];
    let utc = objects(&rig.ok(&["events", "--json"]));
    for (zone, named, minutes) in zones {
        rig.set("TZ", zone);
        assert_eq!(objects(&rig.ok(&["events", "--json"])), utc, "programs get UTC in {zone}");
        for arguments in [&["events"][..], &["why", "T1"], &["logs", "T1"], &["status", "T1"], &["runs"]] {
            let ended = rig.rekindle(arguments);
            let text = format!("{}{}", ended.out, ended.err);
            assert_eq!(text.matches(&format!("times are in {named}")).count(), 1, "{arguments:?} in {zone}: {text}");
        }
        for arguments in [&["report"][..], &["report", "--html", "-"]] {
            let text = rig.ok(arguments);
            assert_eq!(text.matches(&format!("times are in {named}")).count(), 1, "{arguments:?} in {zone}: {text}");
        }
        let first = utc[0]["time"].as_str().expect("a time").parse::<jiff::Timestamp>().expect("RFC 3339");
        // Newfoundland has summer time: what the zone's own rules say is asked, the offset only where it never changes.
        let local = first.to_zoned(jiff::tz::TimeZone::get(zone).expect("a zone of the database"));
        if zone != "America/St_Johns" {
            assert_eq!(local.offset().seconds(), minutes * 60);
        }
        let clock = local.strftime("%H:%M:%S").to_string();
        let events = rig.ok(&["events"]);
        assert!(events.lines().next().is_some_and(|line| line.contains(&clock)), "{zone}, {clock}: {events}");
        let plain = rig.rekindle(&["events", "--utc"]);
        assert!(plain.err.contains("times are in UTC"), "{plain:?}");
    }
}

#[test]
fn a_run_whose_coordinator_was_killed_says_how_it_goes_on() {
    let agent = "touch begun; $FAKE wait go; rekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(PLAN, agent);
    let run = rig.run();
    rig.await_file("begun");
    rig.await_event("agent_started");
    run.signal(Signal::KILL);
    run.end();
    let status = rig.ok(&["status"]);
    assert!(status.contains("interrupted: continue with `rekindle run plan.md`"), "{status}");
    assert!(status.starts_with("plan: interrupted, 0/3 complete"), "{status}");
    assert!(rig.ok(&["runs"]).contains("interrupted"), "the list of runs says it too");
    rig.touch("go");
    rig.finish();
    assert!(rig.ok(&["status"]).starts_with("plan: complete, 3/3 complete"));
}

#[test]
fn all_views_count_the_same_while_a_run_goes_on() {
    let agent = "$FAKE wait go-$REKINDLE_TASK; rekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(PLAN, agent);
    let run = rig.run();
    for (complete, task) in [(0, "T3"), (1, "T1"), (2, "T2")] {
        let wanted = format!("{complete}/3 complete");
        rig.until("the next count", || rig.rekindle(&["status"]).out.contains(&wanted).then_some(()));
        assert_eq!(rig.status()["run"]["complete"], complete);
        assert!(rig.ok(&["task", "list"]).contains(&wanted), "task list says {wanted}");
        assert!(rig.ok(&["runs"]).contains(&wanted), "runs says {wanted}");
        assert!(rig.ok(&["report"]).contains(&format!("{complete} of 3 tasks complete")), "the report says {wanted}");
        let file = rig.state().join("session-state.md");
        rig.until("the file for people", || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.contains(&format!("Progress: {complete}/3 tasks complete")).then_some(())
        });
        if complete == 0 {
            let waits = rig.task("T2")["waits_for"].clone();
            assert_eq!(
                (&waits["kind"], &waits["tasks"]),
                (&Value::from("task"), &serde_json::json!(["T1"])),
                "{waits}"
            );
        }
        rig.touch(&format!("go-{task}"));
    }
    let ended = run.end();
    assert!(ended.code == Some(0) && ended.out.contains("3 of 3 tasks complete"), "{ended:?}");
}

#[test]
fn views_take_tasks_and_runs_and_refuse_what_is_unknown() {
    let rig = crashing();
    rig.run().end();
    let unknown = rig.rekindle(&["events", "--kind", "agent_crash"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("agent_crashed"), "{unknown:?}");
    let runs = objects(&rig.ok(&["runs", "--json"]).replace('\n', ""));
    let id = runs[0][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!((&runs[0][0]["complete"], &runs[0][0]["failed"]), (&Value::from(1), &Value::from(1)));
    for arguments in
        [&["status"][..], &["why", "T1"], &["logs", "T1"], &["events"], &["report"], &["questions"], &["task", "list"]]
    {
        let named = [arguments, &["--run", &id]].concat();
        let of_newest = rig.ok(arguments);
        assert_eq!(rig.ok(&named), of_newest, "{named:?}");
        let unknown = rig.rekindle(&[arguments, &["--run", "nobody"]].concat());
        assert!(unknown.code == Some(2) && unknown.err.contains("there is no run"), "{unknown:?}");
    }
    let only = rig.ok(&["status", "T2", "--json"]);
    let only: Value = serde_json::from_str(&only).expect("JSON");
    assert_eq!(only["tasks"].as_array().map(Vec::len), Some(1), "{only}");
}
