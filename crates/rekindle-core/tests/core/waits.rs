//! Accounts that wait for two things at once, and what views and timers make of it: found by the simulator.

use rekindle_core::activity::{Failure, Problem, StreamEvent};
use rekindle_core::decide::{self, Standstill};
use rekindle_core::event::{Body, ClockSeen, RunEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::Report;
use rekindle_core::time::Time;
use rekindle_core::view::Touched;

use crate::harness::{Story, exit_code, task};

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n";

const ONE: &str = "# Demo\n\n### T1: a\n\nDo.\n";

fn limits() -> Limits {
    let traits = Traits { structured_output: true, takes_messages: true, compacts: true, ..Traits::new("able") };
    Limits { max_agents: 2, traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn story() -> Story {
    let mut story = Story::with(TWO, limits());
    story.started(1);
    story.started(2);
    story
}

fn fails(story: &mut Story, attempt: u64, problem: Problem, resets_at: Option<Time>) {
    let sign = StreamEvent::Failed(Failure { problem, resets_at, text: "said so".into(), runaway: false });
    story.input(Input::Streamed { attempt: AttemptId(attempt), event: sign });
    story.exited(attempt, exit_code(1));
}

/// A run that waits for its account's limit, and whose newest attempt probes it when the wait is over.
fn probing(story: &mut Story) -> u64 {
    let until = story.state.gates["able"].until.expect("a time");
    story.now = until;
    story.input(Input::TimePassed);
    let live: Vec<u64> = story.state.live_attempts().map(|(id, _)| id.0).collect();
    assert_eq!(live.len(), 1, "one agent at a time");
    story.started(live[0]);
    live[0]
}

fn answer() -> Order {
    Order::Answer { id: QuestionId(1), text: "done".into() }
}

#[test]
fn an_answer_about_credentials_does_not_lift_a_limit() {
    let mut story = story();
    let reset = story.now.plus_ms(60_000);
    fails(&mut story, 1, Problem::UsageLimit, Some(reset));
    fails(&mut story, 2, Problem::Auth, None);
    story.order(answer());
    assert_eq!(story.state.live_attempts().count(), 0, "the limit still stands");
    story.after_ms(60_000 + 10_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "one probes");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_limit_does_not_take_a_question_away() {
    let mut story = story();
    let reset = story.now.plus_ms(60_000);
    fails(&mut story, 1, Problem::Auth, None);
    fails(&mut story, 2, Problem::UsageLimit, Some(reset));
    story.after_ms(24 * 60 * 60_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 0, "nobody has logged in");
    assert_eq!(decide::standstill(&story.state), Standstill::Person);
    story.order(answer());
    assert!(story.state.live_attempts().count() > 0);
}

#[test]
fn an_answer_that_opens_an_account_changes_the_run_as_views_show_it() {
    let mut story = story();
    fails(&mut story, 1, Problem::Auth, None);
    let step = story.order(answer());
    let mut touched = Touched::default();
    step.events.iter().for_each(|event| touched.add(&story.state, event));
    assert!(touched.run, "its waits are part of the run's row");
}

#[test]
fn a_question_about_credentials_outlives_its_task() {
    let mut story = story();
    fails(&mut story, 1, Problem::Auth, None);
    fails(&mut story, 2, Problem::Auth, None);
    story.order(Order::Skip { task: task("T1"), reason: "not needed".into() });
    assert_eq!(decide::standstill(&story.state), Standstill::Person, "T2 still waits for the login");
}

#[test]
fn a_compaction_with_nothing_left_to_do_sets_no_timer_that_is_always_due() {
    let mut story = Story::with(TWO, Limits { after_result_ms: 60 * 60_000, ..limits() });
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    let sign = StreamEvent::Compacted { automatic: None, turns: 9, calls: 9 };
    story.input(Input::Streamed { attempt: AttemptId(1), event: sign });
    story.after_ms(6 * 60_000).input(Input::TimePassed);
    let next = decide::next_deadline(&story.state, story.now);
    assert!(next.is_none_or(|due| due > story.now), "{next:?} at {:?}", story.now);
}

#[test]
fn a_limit_is_probed_soon_after_its_reset_and_then_ever_later_at_the_cost_of_no_attempt() {
    let mut story = story();
    let reset = story.now.plus_ms(20_000);
    fails(&mut story, 1, Problem::UsageLimit, Some(reset));
    // The other one meets the same limit and is told no time: that is the same wait.
    fails(&mut story, 2, Problem::UsageLimit, None);
    let mut waits = Vec::new();
    for probe in 1..=5 {
        let gate = story.state.gates["able"].clone();
        assert_eq!((gate.reset, gate.probe), (Some(reset), probe));
        let attempt = probing(&mut story);
        waits.push(story.now.since_ms(reset) / 1_000);
        // Some name the reset that has passed, some none.
        fails(&mut story, attempt, Problem::UsageLimit, (probe % 2 == 0).then_some(reset));
        assert_eq!(story.state.live_attempts().count(), 0, "nobody starts while the account waits");
    }
    assert_eq!(waits, [10, 30, 120, 300, 600]);
    assert!(story.state.tasks.values().all(|task| task.attempts == 0), "no attempt was spent");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_probe_that_is_told_a_new_reset_starts_over_from_it() {
    let mut story = story();
    let reset = story.now.plus_ms(20_000);
    fails(&mut story, 1, Problem::UsageLimit, Some(reset));
    fails(&mut story, 2, Problem::UsageLimit, Some(reset));
    for _ in 0..2 {
        let attempt = probing(&mut story);
        fails(&mut story, attempt, Problem::UsageLimit, None);
    }
    let attempt = probing(&mut story);
    let later = story.now.plus_ms(3_600_000);
    fails(&mut story, attempt, Problem::UsageLimit, Some(later));
    let gate = &story.state.gates["able"];
    assert_eq!((gate.until, gate.reset, gate.probe), (Some(later.plus_ms(10_000)), Some(later), 1));
}

#[test]
fn a_limit_that_names_no_reset_is_waited_for_as_configured() {
    let mut story = story();
    fails(&mut story, 1, Problem::UsageLimit, None);
    let gate = &story.state.gates["able"];
    assert_eq!((gate.until, gate.reset), (Some(story.now.plus_ms(story.state.limits.usage.default_wait_ms)), None));
}

#[test]
fn a_run_that_only_waits_is_paused_with_the_reset_that_was_named_and_not_again_between_probes() {
    let mut story = story();
    let reset = story.now.plus_ms(20_000);
    fails(&mut story, 1, Problem::UsageLimit, Some(reset));
    fails(&mut story, 2, Problem::UsageLimit, Some(reset));
    let pauses = |story: &Story| -> Vec<(Option<Time>, Option<Time>)> {
        let found = story.log.iter().filter_map(|event| match &event.body {
            Body::Run(RunEvent::SessionPause(pause)) => Some((pause.resets_at, pause.resumes_at)),
            _ => None,
        });
        found.collect()
    };
    assert_eq!(pauses(&story), [(Some(reset), Some(reset.plus_ms(10_000)))]);
    let attempt = probing(&mut story);
    fails(&mut story, attempt, Problem::UsageLimit, None);
    assert_eq!(pauses(&story).len(), 1, "the next probe is seconds away");
    assert_eq!(decide::standstill(&story.state), Standstill::Reset);
    assert_eq!(decide::next_deadline(&story.state, story.now), Some(reset.plus_ms(30_000)));
}

#[test]
fn a_run_that_waits_for_a_person_and_for_a_limit_that_is_over_is_not_paused_again_and_again() {
    const THREE: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n\n### T3: c\n- cli: other\n\nDo.\n";
    let mut limits = Limits { max_agents: 3, clis: vec!["default".into(), "other".into()], ..limits() };
    limits.traits.insert("other".to_owned(), Traits { structured_output: true, ..Traits::new("another") });
    let mut story = Story::with(THREE, limits);
    (1..=3).for_each(|attempt| drop(story.started(attempt)));
    fails(&mut story, 1, Problem::Auth, None);
    fails(&mut story, 2, Problem::UsageLimit, None);
    let reset = story.now.plus_ms(10 * story.state.limits.usage.default_wait_ms);
    fails(&mut story, 3, Problem::UsageLimit, Some(reset));
    let able = story.state.gates["able"].clone();
    assert!(
        able.question.is_some() && able.until < Some(reset),
        "one account waits for a person and a while: {able:?}"
    );
    for _ in 0..5 {
        story.now = story.now.max(able.until.expect("a time"));
        story.input(Input::TimePassed);
    }
    let pauses = story.log.iter().filter(|event| matches!(event.body, Body::Run(RunEvent::SessionPause(_)))).count();
    assert!(pauses <= 1, "a pause until a moment that is over ends as it begins: {pauses}");
}

/// What the newest attempt's model may take for a byte.
fn answer_limit(story: &Story) -> Option<u64> {
    let newest = story.state.live_attempts().map(|(id, _)| id).max().expect("somebody at work");
    decide::answer_limit_ms(&story.state, &story.state.attempts[&newest])
}

fn with_silence(silence_ms: u64, shows_calls: bool) -> Story {
    let traits = Traits { structured_output: true, shows_calls, ..Traits::new("able") };
    let traits = [("default".to_owned(), traits)].into();
    let mut story = Story::with(ONE, Limits { max_agents: 1, silence_ms, traits, ..Limits::default() });
    story.started(1);
    story
}

#[test]
fn a_model_has_ninety_seconds_for_a_byte_and_never_more_than_silence_has() {
    let mut story = with_silence(300_000, true);
    assert_eq!(answer_limit(&story), None, "before its first sign of life it has another limit");
    let session = |id: &str| StreamEvent::Session { id: id.into(), model: None };
    story.input(Input::Streamed { attempt: AttemptId(1), event: session("s1") });
    assert_eq!(answer_limit(&story), Some(90_000));
    story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Result { ok: true } });
    assert_eq!(answer_limit(&story), None, "after its turn it asks nobody");
    for (silence_ms, shows_calls, expected) in [(10_000, true, Some(10_000)), (300_000, false, None)] {
        let mut story = with_silence(silence_ms, shows_calls);
        story.input(Input::Streamed { attempt: AttemptId(1), event: session("s1") });
        assert_eq!(answer_limit(&story), expected);
    }
}

#[test]
fn after_a_hang_the_next_attempt_has_the_whole_silence() {
    let mut story = with_silence(300_000, true);
    story
        .input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Session { id: "s1".into(), model: None } });
    story.input(Input::AttemptSilent { attempt: AttemptId(1), quiet_ms: 90_000, evidence: "no answer".into() });
    story.exited(1, exit_code(143));
    story.after_ms(600_000).input(Input::TimePassed);
    story.started(2);
    story
        .input(Input::Streamed { attempt: AttemptId(2), event: StreamEvent::Session { id: "s1".into(), model: None } });
    assert_eq!(answer_limit(&story), None, "a slow provider must not use up the attempts");
}

#[test]
fn a_reset_that_is_named_takes_the_place_of_a_guess_and_follows_the_wall() {
    const HOUR_MS: i64 = 3_600_000;
    let clocks = |wall_ahead_ms| {
        Input::ClockSeen(rekindle_core::event::ClockSeen { boot_id: "boot".into(), slept_ms: 0, wall_ahead_ms })
    };
    let mut story = story();
    story.input(clocks(0));
    fails(&mut story, 1, Problem::UsageLimit, None);
    let guess = story.state.gates["able"].until.expect("a time");
    let reset = story.now.plus_ms(60_000);
    fails(&mut story, 2, Problem::UsageLimit, Some(reset));
    let gate = &story.state.gates["able"];
    assert_eq!((gate.reset, gate.until), (Some(reset), Some(reset.plus_ms(10_000))));
    assert!(gate.until < Some(guess), "nobody knew better than to wait for longer");
    story.input(clocks(-HOUR_MS));
    story.now = guess;
    story.input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 0, "by the wall the reset is an hour later");
    assert_eq!(probing(&mut story), 3);
    assert!(story.state.clocks.wall(story.now) > reset);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_reset_that_the_usage_command_names_takes_the_place_of_a_guess_too() {
    let usage = rekindle_core::limits::UsageLimits { asks: true, agents: vec!["default".into()], ..Default::default() };
    let mut story = Story::with(TWO, Limits { usage, ..limits() });
    let left = |remaining_percent, resets_at| {
        Input::UsageSeen(rekindle_core::event::UsageLeft { remaining_percent: Some(remaining_percent), resets_at })
    };
    story.input(left(80, None));
    story.started(1);
    fails(&mut story, 1, Problem::UsageLimit, None);
    let guess = story.state.gates["able"].until;
    story.after_ms(61_000).input(Input::TimePassed);
    story.state.usage.asking = true;
    let reset = story.now.plus_ms(60_000);
    story.input(left(0, Some(reset)));
    let gate = &story.state.gates["able"];
    assert_eq!(gate.reset, Some(reset));
    assert!(gate.until < guess);
}

#[test]
fn an_overloaded_provider_is_waited_for_beside_a_reset_that_was_named() {
    let long = Limits { backoff_ms: 60_000, ..limits() };
    let mut story = Story::with(TWO, long);
    story.started(1);
    story.started(2);
    let reset = story.now.plus_ms(20_000);
    fails(&mut story, 1, Problem::UsageLimit, Some(reset));
    fails(&mut story, 2, Problem::Overloaded, None);
    let gate = story.state.gates["able"].clone();
    assert_eq!((gate.reset, gate.probe), (Some(reset), 1), "the reset is not forgotten");
    let overloaded = gate.overloaded_until.expect("a wait of its own");
    assert!(overloaded >= story.now.plus_ms(60_000) && gate.until == Some(overloaded), "the longer of both: {gate:?}");
    let hour = 3_600_000;
    let wall = |ahead_ms| Input::ClockSeen(ClockSeen { boot_id: "boot".into(), slept_ms: 0, wall_ahead_ms: ahead_ms });
    story.input(wall(-hour));
    let later = story.state.gates["able"].until.expect("a time");
    assert_eq!(later, reset.plus_ms(10_000 + 3_600_000), "the reset follows the wall");
    story.input(wall(hour));
    assert_eq!(story.state.gates["able"].until, Some(overloaded), "no clock shortens the wait for the provider");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_reset_that_is_named_while_the_provider_is_overloaded_is_waited_for() {
    let mut story = Story::with(TWO, Limits { backoff_ms: 600_000, ..limits() });
    story.started(1);
    story.started(2);
    fails(&mut story, 1, Problem::Overloaded, None);
    let overloaded = story.state.gates["able"].until;
    let reset = story.now.plus_ms(20_000);
    fails(&mut story, 2, Problem::UsageLimit, Some(reset));
    let gate = &story.state.gates["able"];
    assert_eq!((gate.reset, gate.until), (Some(reset), overloaded), "both are known, the longer counts");
}

#[test]
fn an_agent_that_waits_for_a_person_keeps_no_other_from_its_account() {
    let mut story = story();
    fails(&mut story, 1, Problem::Overloaded, None);
    fails(&mut story, 2, Problem::Overloaded, None);
    let probe = probing(&mut story);
    let at = story.state.attempts[&AttemptId(probe)].tasks[0].clone();
    story.input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "one probes");
    story.report(probe, Report::Ask { task: at, text: "Which?".into(), options: Vec::new(), context: String::new() });
    assert_eq!(story.state.live_attempts().count(), 2, "the other goes on meanwhile");
    assert_eq!(story.replayed(), story.state);
}
