//! Time awake, time asleep and the wall are three things: limits count the first, a provider's reset goes by the last.

use rekindle_core::activity::{Failure, Problem, StreamEvent};
use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, ClockSeen, Event, MachineEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::Report;
use rekindle_core::role::Role;
use rekindle_core::time::Time;

use crate::harness::{Story, exit_code, task};

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n- blocked-by: T1\n\nDo.\n";

const NIGHT_MS: u64 = 8 * 60 * 60_000;

fn seen(slept_ms: u64, wall_ahead_ms: i64) -> Input {
    Input::ClockSeen(ClockSeen { boot_id: "boot".into(), slept_ms, wall_ahead_ms })
}

fn limits() -> Limits {
    let traits = Traits { structured_output: true, takes_messages: true, compacts: true, ..Traits::new("able") };
    Limits { traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn working() -> Story {
    let mut story = Story::with(TWO, limits());
    story.input(seen(5_000, 0));
    story.started(1);
    story.report(1, Report::Start { task: task("T1") });
    story
}

fn is_stopped(story: &Story) -> bool {
    story.state.attempts[&AttemptId(1)].stop.is_some()
}

#[test]
fn a_night_asleep_across_a_restart_times_no_adopted_agent_out() {
    let timeout_ms = Limits::default().timeout_for(Role::Developer);
    assert!(timeout_ms < NIGHT_MS, "a night is longer than any agent has");
    let mut story = working();
    let alive = || vec![(AttemptId(1), Found::Alive { pid: 100, shim_pid: 99 })];
    story.after_ms(60_000 + NIGHT_MS).coordinator(limits(), alive());
    story.input(seen(5_000 + NIGHT_MS, 0));
    story.input(Input::TimePassed);
    assert!(!is_stopped(&story), "it slept with the machine");
    let mut untold = working();
    untold.after_ms(60_000 + NIGHT_MS).input(Input::TimePassed);
    assert!(is_stopped(&untold), "awake for so long it would be stopped");
    // Told again, as a coordinator does that starts at once after another.
    story.coordinator(limits(), alive());
    story.input(seen(5_000 + NIGHT_MS, 0));
    story.after_ms(timeout_ms - 120_000).input(Input::TimePassed);
    assert!(!is_stopped(&story), "a minute of its time is left");
    story.after_ms(120_000).input(Input::TimePassed);
    assert!(is_stopped(&story), "its time awake is over");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn sleep_of_an_earlier_boot_is_nobodys_time() {
    let mut story = working();
    story.input(Input::ClockSeen(ClockSeen { boot_id: "another".into(), slept_ms: NIGHT_MS, wall_ahead_ms: 0 }));
    let timeout_ms = Limits::default().timeout_for(Role::Developer);
    story.after_ms(timeout_ms).input(Input::TimePassed);
    assert!(is_stopped(&story));
}

/// The wall clock was set ahead while the machine was off, and the machine cannot look at the old attempt yet.
#[test]
fn time_across_a_reboot_times_no_attempt_out() {
    let mut story = working();
    story.after_ms(60_000 + NIGHT_MS).input(Input::CoordinatorStarted {
        pid: 2,
        limits: Box::new(limits()),
        boot_id: "another".into(),
        boottime_ms: 0,
        found: vec![(AttemptId(1), Found::Unresponsive)],
        missing: Vec::new(),
    });
    story.input(Input::ClockSeen(ClockSeen { boot_id: "another".into(), slept_ms: 0, wall_ahead_ms: 0 }));
    story.input(Input::TimePassed);
    assert!(!is_stopped(&story), "nobody knows how long the machine was off");
    assert_eq!(story.replayed(), story.state);
    let end = story.input(Input::AttemptLost { attempt: AttemptId(1), with_host: false });
    let causes: Vec<&Cause> = end.events.iter().filter_map(cause).collect();
    assert_eq!(causes, [&Cause::ShimLost], "what is found of it decides, not the clock");
}

fn cause(event: &Event) -> Option<&Cause> {
    match &event.body {
        Body::Attempt(AttemptEvent::AttemptEnded { cause, .. }) => Some(cause),
        _ => None,
    }
}

#[test]
fn an_agent_that_lingers_and_a_stop_under_way_have_the_time_awake_too() {
    let mut story = working();
    story.done(1, "T1");
    story.checked("T1", true);
    let idle = story.state.attempts[&AttemptId(1)].idle_since.expect("it has nothing left to do");
    story.after_ms(NIGHT_MS).input(seen(5_000 + NIGHT_MS, 0));
    assert_eq!(story.state.attempts[&AttemptId(1)].idle_since, Some(idle.plus_ms(NIGHT_MS)));
    assert_eq!(story.replayed(), story.state);
}

/// Meets a limit whose reset the provider names by the wall; when the account is tried again, by the coordinator's clock.
fn limited(story: &mut Story, reset: Time) -> Time {
    let sign = StreamEvent::Failed(Failure {
        problem: Problem::UsageLimit,
        resets_at: Some(reset),
        text: "said so".into(),
        runaway: false,
    });
    story.input(Input::Streamed { attempt: AttemptId(1), event: sign });
    story.exited(1, exit_code(1));
    story.state.gates["able"].until.expect("a time")
}

#[test]
fn a_reset_by_the_wall_is_compared_with_the_wall() {
    const HOUR_MS: i64 = 3_600_000;
    for ahead_ms in [-HOUR_MS, 0, HOUR_MS] {
        let mut story = working();
        story.input(seen(5_000, ahead_ms));
        let wall = Time(story.now.0 + ahead_ms);
        let until = limited(&mut story, wall.plus_ms(600_000));
        assert_eq!(until.since_ms(story.now), 610_000, "ten minutes by the wall, {ahead_ms} ms ahead");
    }
}

#[test]
fn a_wait_for_a_reset_follows_a_wall_that_is_set() {
    let mut story = working();
    let wall = story.now;
    let until = limited(&mut story, wall.plus_ms(600_000));
    story.input(seen(5_000, 300_000));
    assert_eq!(story.state.gates["able"].until, Some(until.minus_ms(300_000)), "five minutes less are left");
    let resumes_at = story.state.run.as_ref().and_then(|run| run.resumes_at).expect("the run waits for it");
    assert_eq!(resumes_at, until.minus_ms(300_000));
    let moved =
        story.log.iter().filter(|event| matches!(event.body, Body::Machine(MachineEvent::ClockMoved(_)))).count();
    assert_eq!(moved, 2);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_wall_that_is_set_back_closes_no_account_that_had_opened() {
    let mut story = working();
    let reset = story.now.plus_ms(20_000);
    let until = limited(&mut story, reset);
    story.now = until;
    story.input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "one probes the account");
    story.input(seen(5_000, -3_600_000));
    assert_eq!(story.state.gates["able"].until, Some(until), "the wall has shown that reset");
    story.started(2);
    story.done(2, "T1");
    story.checked("T1", true);
    story.exited(2, exit_code(0));
    assert!(story.state.live_attempts().count() > 0, "and the next one begins at once");
    assert_eq!(story.replayed(), story.state);
}
