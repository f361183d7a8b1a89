//! Pauses and what they collect, the allowance as the user's command tells it, compactions that end in a hand-over.

use rekindle_core::activity::{Measure, StreamEvent};
use rekindle_core::decide::Step;
use rekindle_core::event::{Body, PauseReason, RunEvent, SessionEvent, UsageLeft};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::{Limits, Traits, UsageLimits};
use rekindle_core::report::{Checkpoint, Report};
use rekindle_core::state::RunPhase;
use rekindle_core::time::Time;

use crate::harness::{Story, exit_code, lines, task};

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n- blocked by: T1\n\nDo.\n";

fn limits(traits: Traits) -> Limits {
    Limits { traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn asking(no_wait: bool) -> Limits {
    let usage = UsageLimits { asks: true, ..UsageLimits::default() };
    Limits { usage, no_wait, ..Limits::default() }
}

fn names(step: &Step) -> Vec<String> {
    step.events.iter().map(|event| event.body.name()).collect()
}

fn phase(story: &Story) -> RunPhase {
    story.state.run.as_ref().expect("a run").phase
}

fn left(story: &mut Story, remaining_percent: Option<u8>, resets_at: Option<Time>) -> Step {
    story.input(Input::UsageSeen(UsageLeft { remaining_percent, resets_at }))
}

#[test]
fn a_pause_collects_checkpoints_from_whoever_takes_messages() {
    let mut story =
        Story::with(TWO, limits(Traits { structured_output: true, takes_messages: true, ..Traits::new("able") }));
    story.started(1);
    let step = story.order(Order::Pause(PauseReason::Operator));
    assert_eq!(names(&step), ["session_pause", "agent_told"], "{}", lines(&step));
    let checkpoint = Checkpoint { status: "half".into(), ..Checkpoint::default() };
    let step = story.report(1, Report::Checkpoint { task: task("T1"), checkpoint });
    assert_eq!(names(&step), ["checkpoint_saved", "stop_ordered"], "{}", lines(&step));
    story.exited(1, exit_code(0));
    assert_eq!(phase(&story), RunPhase::Paused(PauseReason::Operator));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 0, "a pause costs nothing");
}

#[test]
fn one_that_saves_no_checkpoint_is_stopped_after_its_time() {
    let mut story =
        Story::with(TWO, limits(Traits { structured_output: true, takes_messages: true, ..Traits::new("able") }));
    story.started(1);
    story.order(Order::Pause(PauseReason::Operator));
    story.after_ms(29_999).input(Input::TimePassed);
    assert!(story.state.attempts[&AttemptId(1)].stop.is_none());
    let step = story.after_ms(1).input(Input::TimePassed);
    assert_eq!(names(&step), ["stop_ordered"], "{}", lines(&step));
}

#[test]
fn a_low_allowance_pauses_until_the_reset_and_is_asked_again_after_it() {
    let mut story = Story::with(TWO, asking(false));
    let reset = story.now.plus_ms(60_000);
    let step = left(&mut story, Some(10), Some(reset));
    let pause = step.events.iter().find_map(|event| match &event.body {
        Body::Run(RunEvent::SessionPause(pause)) => Some(pause.clone()),
        _ => None,
    });
    let pause = pause.unwrap_or_else(|| panic!("{}", lines(&step)));
    assert_eq!((pause.reason, pause.remaining_percent), (PauseReason::UsageLimit, Some(10)));
    assert_eq!((pause.progress.total, pause.progress.blocked, pause.progress.relationships), (2, 1, 1));
    assert_eq!(phase(&story), RunPhase::Waiting(PauseReason::UsageLimit));
    // A coordinator that takes over meanwhile waits as well.
    story.after_ms(1_000).coordinator(asking(false), Vec::new());
    assert_eq!(phase(&story), RunPhase::Waiting(PauseReason::UsageLimit));
    let due = pause.resumes_at.expect("a time");
    assert!(
        due >= reset.plus_ms(10_000) && due <= reset.plus_ms(11_000),
        "the first try, with a little jitter: {due:?}"
    );
    story.now = due;
    let step = story.input(Input::TimePassed);
    assert_eq!(names(&step), ["session_resume", "usage_asked"], "{}", lines(&step));
    left(&mut story, Some(90), None);
    assert_eq!(story.state.live_attempts().count(), 1);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_low_allowance_ends_a_run_that_does_not_wait() {
    let mut story = Story::with(TWO, asking(true));
    let reset = story.now.plus_ms(60_000);
    let step = left(&mut story, Some(3), Some(reset));
    assert_eq!(names(&step), ["usage_seen", "session_pause", "run_paused"], "{}", lines(&step));
    assert_eq!(phase(&story), RunPhase::Paused(PauseReason::UsageLimit));
}

#[test]
fn an_operator_who_pauses_a_waiting_run_moves_nothing_out_of_the_window() {
    let mut story = Story::with(TWO, asking(false));
    let (paused, reset) = (story.now, story.now.plus_ms(24 * 60 * 60_000));
    left(&mut story, Some(0), Some(reset));
    story.after_ms(5 * 60 * 60_000).order(Order::Pause(PauseReason::Interrupt));
    assert_eq!(phase(&story), RunPhase::Paused(PauseReason::Interrupt));
    assert_eq!(story.state.run.as_ref().and_then(|run| run.paused_at), Some(paused));
}

#[test]
fn a_command_without_an_answer_is_told_of_once() {
    let mut story = Story::with(TWO, asking(false));
    let step = left(&mut story, None, None);
    assert!(names(&step).contains(&"person_alerted".to_owned()), "{}", lines(&step));
    assert_eq!(story.state.live_attempts().count(), 1, "the run goes on");
    story.started(1);
    story.after_ms(61_000).exited(1, exit_code(1));
    story.after_ms(300_000).input(Input::TimePassed);
    assert!(story.state.usage.asking);
    let step = left(&mut story, None, None);
    assert!(!names(&step).contains(&"person_alerted".to_owned()), "{}", lines(&step));
}

#[test]
fn who_was_lost_in_a_crash_gives_its_task_back_in_the_report() {
    let mut story = Story::with(TWO, Limits::default());
    story.started(1);
    let step = story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Lost)]);
    let recovery = step.events.iter().find_map(|event| match &event.body {
        Body::Run(RunEvent::CoordinatorRecovered(recovery)) => Some(recovery.clone()),
        _ => None,
    });
    let recovery = recovery.unwrap_or_else(|| panic!("{}", lines(&step)));
    assert_eq!((recovery.orphaned_agents, recovery.events_reconciled), (1, 1));
    let progress = recovery.progress;
    assert_eq!((progress.available, progress.in_progress, progress.blocked), (1, 0, 1));
}

#[test]
fn a_hand_over_for_want_of_context_ends_the_compaction_that_was_prepared_for() {
    let mut story = Story::with(TWO, limits(Traits { structured_output: true, ..Traits::new("able") }));
    story.started(1);
    let full = Measure { context_used: Some(95), context_window: Some(100), ..Measure::default() };
    let step = story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Measured(full) });
    assert!(names(&step).contains(&"compaction_start".to_owned()), "{}", lines(&step));
    story.exited(1, exit_code(0));
    story.after_ms(300_000).input(Input::TimePassed);
    let over: Vec<_> = story
        .log
        .iter()
        .filter_map(|event| match &event.body {
            Body::Session(SessionEvent::CompactionComplete(over)) => {
                Some((over.attempt, over.compaction_number, over.full_reload))
            }
            _ => None,
        })
        .collect();
    assert_eq!(over, [(AttemptId(2), 1, false)]);
    assert_eq!(story.replayed(), story.state);
}
