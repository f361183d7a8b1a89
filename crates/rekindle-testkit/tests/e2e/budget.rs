//! Budgets with real processes: what agents say they used is counted once whoever is killed, nothing new starts on a budget that is
//! used up, running agents finish, and a person's answer decides.

use serde_json::Value;

use crate::rig::{Ended, Rig};

/// A stand-in that tells its cost as its program does: `spend DOLLARS TOKENS`.
const SPENDS: &str = r#"
spend() {
  printf '{"type":"step_finish","sessionID":"ses_%s","part":{"messageID":"m","reason":"tool-calls","tokens":{"input":%s,"output":0,"cache":{"read":0,"write":0}},"cost":%s}}\n' "$REKINDLE_TASK" "$2" "$1"
}
"#;

const SETTINGS: &str = "[agents.tells]\nkind = \"opencode\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
    [run]\nagent = \"tells\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"300ms\"\n";

fn rig(plan: &str, agent: &str, settings: &str) -> Rig {
    Rig::new(plan, &format!("{SPENDS}{agent}")).with_settings(&format!("{SETTINGS}{settings}"))
}

fn plan(tasks: usize) -> String {
    let task = |n: usize| format!("### T{n}: task {n}\n- accept: `test -e made-T{n}`\n\nDo it.\n\n");
    format!("# Money\n\n{}", (1..=tasks).map(task).collect::<String>())
}

/// Spends once, then does its task.
const WORKS: &str = "spend 0.6 100\ntouch \"made-$REKINDLE_TASK\"\nrekindle task done \"$REKINDLE_TASK\"\n";

fn asked(rig: &Rig) -> u64 {
    rig.await_event("budget_asked");
    rig.until("a question about the budget", || rig.status()["budget"]["run"]["question"].as_u64())
}

fn dispatched(rig: &Rig) -> usize {
    rig.events_of("developer_dispatched").len()
}

fn dollars(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no amount: {value}"))
}

fn told(ended: &Ended) -> String {
    format!("{}{}", ended.out, ended.err)
}

#[test]
fn a_run_asks_when_its_budget_is_used_up_and_goes_on_when_it_is_raised() {
    let rig = rig(&plan(4), WORKS, "\n[budget]\nrun = { usd = 1.0 }\n");
    rig.set("REKINDLE_RUN_MAX_AGENTS", "1");
    let run = rig.run();
    let question = asked(&rig);
    rig.until("both agents leave", || (rig.events_of("attempt_ended").len() == 2).then_some(()));
    let status = rig.status();
    assert_eq!(status["budget"]["run"]["state"], "asks", "{status}");
    assert!((dollars(&status["budget"]["run"]["spent"]["usd"]) - 1.2).abs() < 1e-9, "{status}");
    assert_eq!(dispatched(&rig), 2, "nothing new starts");
    let waits = rig.task("T4")["waits_for"].clone();
    assert_eq!((waits["kind"].as_str(), waits["scope"].as_str()), (Some("budget"), Some("run")), "{waits}");
    let shown = rig.ok(&["status"]);
    assert!(shown.contains("budget: run $1.20 of $1.00 (120 %), used up: answer question"), "{shown}");
    let refused = rig.rekindle(&["answer", &question.to_string(), "perhaps"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(told(&refused).contains("1 (raise), 2 (go on), 3 (hand back), 4 (stop)"), "{refused:?}");
    rig.ok(&["answer", &question.to_string(), "1"]);
    // The raised limit, two dollars, is met again by the fourth.
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert!(told(&ended).contains("the budget of the run is used up: $1.20 of $1.00"), "{ended:?}");
    let kinds: Vec<usize> =
        ["budget_notice", "budget_reached", "budget_answered"].map(|kind| rig.events_of(kind).len()).into();
    assert_eq!(kinds, [1, 2, 1], "{}", rig.story());
    let report = rig.ok(&["report", "--markdown", "-"]);
    assert!(report.contains("$0.60 for each of 4 proven tasks"), "{report}");
    rig.assert_nothing_left();
}

#[test]
fn without_waiting_a_run_that_lacks_only_money_exits_with_4() {
    let rig = rig(&plan(3), WORKS, "\n[budget]\nrun = { tokens = 100 }\n");
    rig.set("REKINDLE_RUN_MAX_AGENTS", "1");
    let ended = rig.start(&["run", "--no-wait", "plan.md"]).end();
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    assert_eq!(dispatched(&rig), 1);
    let status = rig.status();
    assert_eq!(status["budget"]["run"]["spent"]["tokens"], 100, "{status}");
    // A higher limit in the configuration takes the question back, and the run goes on.
    let ended = {
        rig.set("REKINDLE_BUDGET_RUN_TOKENS", "none");
        rig.run().end()
    };
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    rig.assert_nothing_left();
}

/// Spends and crashes in its first attempt, does its task in the second.
const CRASHES: &str = r#"
if [ "$REKINDLE_ATTEMPT" = 1 ]; then
  spend 0.7 10
  spend 0.5 10
  touch spent
  $FAKE wait go
  exit 7
fi
touch "made-$REKINDLE_TASK"
rekindle task done "$REKINDLE_TASK"
"#;

#[test]
fn a_killed_coordinator_counts_nothing_twice_and_asks_once() {
    let rig = rig(&plan(1), CRASHES, "\n[budget]\ntask = { usd = 1.0 }\n");
    let first = rig.run();
    rig.await_event("budget_reached");
    // Between what was spent and the question: its agent still runs, and nothing is to be started.
    first.kill();
    assert!(rig.events_of("question_asked").is_empty(), "{}", rig.story());
    let second = rig.run();
    rig.await_event("agent_adopted");
    second.kill();
    rig.touch("go");
    let third = rig.run();
    rig.await_event("budget_asked");
    third.kill();
    let fourth = rig.run();
    let question = rig.until("the question", || rig.task("T1")["waits_for"]["question"].as_u64());
    let spent = rig.task("T1")["budget"].clone();
    assert!((dollars(&spent["usd"]) - 1.2).abs() < 1e-9, "{spent}");
    assert_eq!((spent["tokens"].as_u64(), rig.events_of("budget_reached").len()), (Some(20), 1), "{spent}");
    assert_eq!((rig.events_of("question_asked").len(), dispatched(&rig)), (1, 1), "{}", rig.story());
    rig.ok(&["answer", &question.to_string(), "go on"]);
    let ended = fourth.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(dispatched(&rig), 2);
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains("one more attempt is allowed over the task's budget"), "{why}");
    rig.assert_nothing_left();
}

/// Agents that run at once.
const MANY: usize = 24;

/// Waits until all are there, makes one call, and does its task.
const AT_ONCE: &str = "touch \"here-$REKINDLE_TASK\"\n$FAKE wait go\nspend 0.1 100\ntouch \"made-$REKINDLE_TASK\"\nrekindle task done \"$REKINDLE_TASK\"\n";

#[test]
fn the_overshoot_of_many_agents_is_at_most_the_calls_in_flight() {
    let rig = rig(&plan(2 * MANY), AT_ONCE, "\n[budget]\nrun = { usd = 1.0 }\n");
    rig.set("REKINDLE_RUN_MAX_AGENTS", MANY.to_string());
    let run = rig.run();
    rig.until("all agents run", || (1..=MANY).all(|n| rig.has(&format!("here-T{n}"))).then_some(()));
    rig.touch("go");
    let question = asked(&rig);
    rig.until("all agents have left", || (rig.events_of("attempt_ended").len() >= MANY).then_some(()));
    let events = rig.events();
    let place = |kind: &str| events.iter().position(|event| event["kind"] == kind).expect(kind);
    let reached = place("budget_reached");
    let before = |kind: &str| events[..reached].iter().filter(|event| event["kind"] == kind).count();
    let in_flight = before("developer_dispatched") - before("attempt_ended");
    let later = events[reached..].iter().filter(|event| event["kind"] == "developer_dispatched").count();
    assert_eq!(later, 0, "nothing new starts: {}", rig.story());
    let spent = dollars(&rig.status()["budget"]["run"]["spent"]["usd"]);
    let overshoot = spent - 1.0;
    assert!(in_flight <= MANY && overshoot <= in_flight as f64 * 0.1 + 1e-9, "{overshoot} of {in_flight} calls");
    assert!((spent - before("developer_dispatched") as f64 * 0.1).abs() < 1e-9, "each call counts once: {spent}");
    rig.ok(&["answer", &question.to_string(), "2"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let status = rig.status();
    assert!((dollars(&status["budget"]["run"]["spent"]["usd"]) - 4.8).abs() < 1e-9, "{status}");
    rig.assert_nothing_left();
}

#[test]
fn a_price_of_the_users_counts_where_the_program_tells_no_cost() {
    let agent = "spend 0 500000\ntouch \"made-$REKINDLE_TASK\"\nrekindle task done \"$REKINDLE_TASK\"\n";
    let prices = "\n[budget]\nday = { usd = 1 }\n\n[prices.default]\ninput = 2.0\noutput = 8.0\n";
    let rig = rig(&plan(2), agent, prices);
    rig.set("REKINDLE_RUN_MAX_AGENTS", "1");
    let ended = rig.start(&["run", "--no-wait", "plan.md"]).end();
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    let budget = rig.status()["budget"].clone();
    assert_eq!(
        (budget["day"]["state"].as_str(), budget["day"]["spent"]["usd"].as_f64()),
        (Some("asks"), Some(1.0)),
        "{budget}"
    );
    assert!(budget["date"].as_str().is_some_and(|date| date.len() == 10), "{budget}");
}

#[test]
fn in_quiet_hours_nothing_new_starts() {
    let now = std::process::Command::new("date").args(["-u", "+%H"]).output().expect("date");
    let hour: u32 = String::from_utf8_lossy(&now.stdout).trim().parse().expect("an hour");
    let (from, to) = ((hour + 23) % 24, (hour + 3) % 24);
    let quiet = format!("\n[quiet_hours]\nfrom = \"{from:02}:00\"\nto = \"{to:02}:00\"\n");
    let rig = rig(&plan(1), WORKS, &quiet);
    let run = rig.run();
    rig.await_event("quiet_began");
    let waits = rig.until("a wait", || Some(rig.task("T1")["waits_for"].clone()).filter(|waits| !waits.is_null()));
    assert_eq!(waits["kind"], "quiet", "{waits}");
    assert!(rig.ok(&["status"]).contains("quiet hours: over in"));
    assert_eq!(dispatched(&rig), 0);
    run.kill();
    let ended = rig.start(&["run", "--no-wait", "plan.md"]).end();
    assert_eq!((ended.code, dispatched(&rig)), (Some(4), 0), "{ended:?}");
    // Without them the run goes on.
    rig.write("rekindle.toml", SETTINGS);
    rig.finish();
    rig.assert_nothing_left();
}
