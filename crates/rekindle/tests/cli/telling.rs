//! What is shown of agents that tell of themselves: sessions, tokens, compactions, limits, and how their work was taken up.

use rekindle_core::activity::{Failure, Measure, Problem, StreamEvent, Usage};
use rekindle_core::limits::Traits;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::history::History;

/// When the limit is lifted.
const TWO_HOURS_MS: u64 = 7_200_000;

/// A run whose agent was compacted and killed, was resumed, and met its account's usage limit.
fn limited(environment: &Environment, reset_ms: u64) {
    let traits = Traits {
        account: "team".to_owned(),
        structured_output: true,
        resumes: true,
        compacts: true,
        reinjects: true,
        ..Traits::new("able")
    };
    let mut history = History::with("# Calculator\n\n### T1: Parse\n- accept: `make test`\n", traits);
    history.started("T1");
    history.signed("T1", StreamEvent::Session { id: "s-1".to_owned(), model: Some("large".to_owned()) });
    history.signed("T1", StreamEvent::Measured(measure(43_000, Some(0.125))));
    history.signed("T1", StreamEvent::Compacted { automatic: Some(true), turns: 12, calls: 30 });
    history.killed("T1", 9);
    history.wait(30_000);
    history.started("T1");
    history.signed("T1", StreamEvent::Session { id: "s-1".to_owned(), model: None });
    history.signed("T1", StreamEvent::Measured(measure(50_000, Some(0.25))));
    let failure = Failure {
        problem: Problem::UsageLimit,
        resets_at: Some(history.now().plus_ms(reset_ms)),
        text: "You've hit \u{1b}[31myour session limit".to_owned(),
        runaway: false,
    };
    history.signed("T1", StreamEvent::Failed(failure));
    history.killed("T1", 15);
    history.save(environment);
}

fn measure(context_used: u64, cost_usd: Option<f64>) -> Measure {
    let usage = Usage { input_tokens: 1_000, output_tokens: 200, cached_tokens: 11_145, cost_usd };
    Measure { usage, context_used: Some(context_used), context_window: Some(100_000) }
}

#[test]
fn status_shows_what_agents_have_used() {
    let environment = Environment::new();
    limited(&environment, TWO_HOURS_MS);
    let shown = environment.run(&["status", "--all"]);
    let (first, rest) = shown.split_once('\n').expect("lines");
    assert!(first.starts_with("out| plan: interrupted, 0/1 complete, "), "{first}");
    insta::assert_snapshot!(rest, @"
    out| interrupted: continue with `rekindle run plan.md`
    out| 
    out| TASK  STATE   ATTEMPTS  WAVE  TIME  AGENT         TITLE
    out| T1    paused       1/3     1        developer-T1  Parse (interrupted: continue with `rekindle run plan.md`)
    out| 
    out| AGENT         STATE  ATTEMPT  PID  TIME  CONTEXT  TOKENS   COST  ROLE       TASK
    out| developer-T1  ended        1         6s  43% +1c   12.3k  $0.12  developer  T1 (crashed)
    out| developer-T1  ended        2         6s      50%   12.3k  $0.25  developer  T1 (usage limit)
    err| the state takes $SIZE of disk
    exit 0
    ");
    let json = environment.json(&["status", "--json"]);
    let (reset, until) = ("2026-01-02T05:04:47.000Z", "2026-01-02T05:04:57.000Z");
    let wait = json!({ "account": "team", "cause": "usage_limit", "until": until, "reset": reset, "probe": 1 });
    assert_eq!(json["run"]["waits"], json!([wait]));
    let agent = &json["agents"][0];
    let expected = [
        ("kind", json!("able")),
        ("strategy", json!("resume")),
        ("session_id", json!("s-1")),
        ("context_used", json!(50_000)),
        ("context_window", json!(100_000)),
        ("tokens", json!(12_345)),
        ("usage", json!({ "input_tokens": 1_000, "output_tokens": 200, "cached_tokens": 11_145 })),
        ("cost_usd", json!(0.25)),
        ("cause", json!("usage_limit")),
    ];
    for (key, value) in expected {
        assert_eq!(agent[key], value, "{key} of {agent}");
    }
    let first = &environment.json(&["status", "--json", "--all"])["agents"][0];
    assert_eq!((&first["model"], &first["compactions"]), (&json!("large"), &json!(1)));
    let task = &json["tasks"][0];
    assert_eq!((&task["tokens"], &task["cost_usd"]), (&json!(24_690), &json!(0.375)), "of both attempts");
    assert_eq!(task["compactions"], 1);
}

#[test]
fn status_counts_down_to_a_reset_that_is_still_to_come() {
    let environment = Environment::new();
    limited(&environment, 1_000 * 365 * 86_400_000);
    let shown = environment.run(&["status"]);
    let wait = shown.lines().nth(3).expect("a fourth line");
    assert!(wait.starts_with("out| team waits for its usage limit until ") && wait.contains(" (in 36"), "{shown}");
}

#[test]
fn what_nobody_tells_is_null_and_has_no_column() {
    let environment = Environment::new();
    crate::history::eventful(&environment);
    let json = environment.json(&["status", "--json"]);
    let agent = &json["agents"][0];
    for key in ["session_id", "model", "context_used", "context_window", "usage", "cost_usd"] {
        assert_eq!(agent.get(key), Some(&Value::Null), "{key} of {agent}");
    }
    assert_eq!((&agent["kind"], &agent["tokens"]), (&json!("command"), &json!(0)));
    assert_eq!((&json["tasks"][0]["tokens"], &json["tasks"][0]["cost_usd"]), (&json!(0), &Value::Null));
    assert!(!environment.run(&["status"]).contains("TOKENS"));
}

#[test]
fn events_of_a_session_are_told_in_words() {
    let environment = Environment::new();
    limited(&environment, TWO_HOURS_MS);
    insta::assert_snapshot!(environment.run(&["events"]), @"
    out|     1 03:04:06         RUN                          plan with 1 task from plan.md
    out|     2 03:04:07 COORDINATOR                          process 100
    out|     3 03:04:07     STARTED T1 developer-T1          default, first attempt
    out|     4 03:04:07       BEGUN T1 developer-T1          attempt 1 starts
    out|     5 03:04:08        RUNS T1 developer-T1          process 1001, held by 2001
    out|     6 03:04:09     SESSION T1 developer-T1          s-1 with large
    out|     7 03:04:10    MEASURED T1 developer-T1          12.3k tokens, $0.12, 57 % of its context left (43.0k of 100.0k tokens used)
    out|     8 03:04:11   COMPACTED T1 developer-T1          its context was compacted by itself, once during this task
    out|     9 03:04:12     SESSION T1 developer-T1          its transcript is whole; cut off in the middle of Bash: make
    out|    10 03:04:13      EXITED T1 developer-T1          ended by signal 9
    out|    11 03:04:13     CRASHED T1 developer-T1          ended by signal 9
    out|    12 03:04:13       ENDED T1 developer-T1          crashed: it was ended by signal 9
    out|    13 03:04:13    REQUEUED T1 developer-T1          it was ended by signal 9; 1 of 3 attempts used, next after 337ms
    out|    14 03:04:44     STARTED T1 developer-T1          default, resume: it was ended by signal 9; its session is whole and has 57 % of its context left
    out|    15 03:04:44    REKINDLE T1 developer-T1          a replacement
    out|    16 03:04:44       BEGUN T1 developer-T1          attempt 2 starts
    out|    17 03:04:45        RUNS T1 developer-T1          process 1002, held by 2002
    out|    18 03:04:46     SESSION T1 developer-T1          s-1
    out|    19 03:04:47    MEASURED T1 developer-T1          12.3k tokens, $0.25, 50 % of its context left (50.0k of 100.0k tokens used)
    out|    20 03:04:48     TROUBLE T1 developer-T1          the usage limit is reached, reset at 05:04:47 (in 1h59m): You've hit your session limit
    out|    21 03:04:49     SESSION T1 developer-T1          its transcript is whole; cut off in the middle of Bash: make
    out|    22 03:04:50      EXITED T1 developer-T1          ended by signal 15
    out|    23 03:04:50       ENDED T1 developer-T1          usage_limit: the account's usage limit was reached
    out|    24 03:04:50       WAITS T1 developer-T1          team waits for its usage limit until 05:04:57 (in 2h00m), probe 1 after the reset at 05:04:47
    out|    25 03:04:50    REQUEUED T1 developer-T1          the account's usage limit was reached; 1 of 3 attempts used, next when its account may be used again; this attempt does not count
    out|    26 03:04:50     PAUSING                          Usage limit
    out|    27 03:04:50      PAUSED                          all agents have ended
    err| times are in UTC
    exit 0
    ");
}

#[test]
fn why_tells_the_strategy_and_what_it_rests_on() {
    let environment = Environment::new();
    limited(&environment, TWO_HOURS_MS);
    insta::assert_snapshot!(environment.run(&["why", "T1"]), @r"
    out| T1 Parse: paused, 1 of 3 attempts used
    out| interrupted: continue with `rekindle run plan.md`
    out| 03:04:07   ATTEMPT 1  developer-T1 (default, first attempt): crashed after 6s: it was ended by signal 9; 1 of 3 attempts used, next after 337ms
    out| 03:04:09     SESSION  developer-T1 (epoch 1): s-1 with large
    out| 03:04:11   COMPACTED  developer-T1 (epoch 1): its context was compacted by itself, once during this task
    out| 03:04:12     SESSION  developer-T1 (epoch 1): its transcript is whole; cut off in the middle of Bash: make
    out| 03:04:44   ATTEMPT 2  developer-T1 (default, resume: it was ended by signal 9; its session is whole and has 57 % of its context left): usage limit after 6s: the account's usage limit was reached; 1 of 3 attempts used, next when its account may be used again; this attempt does not count
    out| 03:04:46     SESSION  developer-T1 (epoch 2): s-1
    out| 03:04:48     TROUBLE  developer-T1 (epoch 2): the usage limit is reached, reset at 05:04:47 (in 1h59m): You've hit your session limit
    out| 03:04:49     SESSION  developer-T1 (epoch 2): its transcript is whole; cut off in the middle of Bash: make
    out| 03:04:50       WAITS  developer-T1 (epoch 2): team waits for its usage limit until 05:04:57 (in 2h00m), probe 1 after the reset at 05:04:47
    err| times are in UTC
    exit 0
    ");
    let json = environment.json(&["why", "T1", "--json"]);
    let decisions = json["decisions"].as_array().expect("a list");
    let starts: Vec<&Value> = decisions.iter().filter(|decision| !decision["strategy"].is_null()).collect();
    let shown: Vec<(&Value, &Value, &Value)> =
        starts.iter().map(|start| (&start["strategy"], &start["cause"], &start["attempt"])).collect();
    assert_eq!(shown, [(&json!("first"), &Value::Null, &json!(1)), (&json!("resume"), &json!("crashed"), &json!(2))]);
    let evidence = starts[1]["evidence"].as_array().expect("a list");
    assert_eq!(
        evidence,
        &[
            json!("ended by signal 9"),
            json!("57 % of its context left (43.0k of 100.0k tokens used)"),
            json!("compacted once during this task"),
            json!("session s-1"),
            json!("its transcript is whole; cut off in the middle of Bash: make"),
        ]
    );
    assert!(starts[1]["reason"].as_str().expect("a reason").contains("its session is whole"), "{}", starts[1]);
    let ended = decisions.iter().rfind(|decision| decision["kind"] == "attempt_ended").expect("it ended");
    assert_eq!(ended["cause"], "usage_limit");
    let evidence = ended["evidence"].to_string();
    assert!(evidence.contains("reset at 05:0") && !evidence.contains("\\u001b"), "{evidence}");
}
