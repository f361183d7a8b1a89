//! Accounts that wait for two things at once, and what views and timers make of it: found by the simulator.

use rekindle_core::activity::{Failure, Problem, Sign};
use rekindle_core::decide::{self, Standstill};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::time::Time;
use rekindle_core::view::Touched;

use crate::harness::{Story, exit_code, task};

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n";

fn limits() -> Limits {
    let traits = Traits { tells: true, takes_messages: true, compacts: true, ..Traits::new("able") };
    Limits { max_agents: 2, traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn story() -> Story {
    let mut story = Story::with(TWO, limits());
    story.started(1);
    story.started(2);
    story
}

fn fails(story: &mut Story, attempt: u64, problem: Problem, resets_at: Option<Time>) {
    let sign = Sign::Failed(Failure { problem, resets_at, text: "said so".into(), runaway: false });
    story.input(Input::Signed { attempt: AttemptId(attempt), sign });
    story.exited(attempt, exit_code(1));
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
    story.after_ms(60_000 + story.state.limits.usage.grace_ms).input(Input::TimePassed);
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
    let sign = Sign::Compacted { automatic: None, turns: 9, calls: 9 };
    story.input(Input::Signed { attempt: AttemptId(1), sign });
    story.after_ms(6 * 60_000).input(Input::TimePassed);
    let next = decide::next_deadline(&story.state, story.now);
    assert!(next.is_none_or(|due| due > story.now), "{next:?} at {:?}", story.now);
}
