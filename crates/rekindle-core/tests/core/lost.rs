//! Attempts that are lost: with the agent, or from the log.

use rekindle_core::event::{AttemptEvent, Body};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;
use rekindle_core::state::TaskState;

use crate::harness::{Story, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n";

/// The next coordinator says that the agent is lost and is killed before it settles that. So is the one after it.
#[test]
fn one_loss_is_counted_once_although_the_next_coordinators_are_killed_at_once() {
    let mut story = Story::with(ONE, Limits { attempts: 9, ..Limits::default() });
    story.started(1);
    for _ in 0..3 {
        story.coordinator(story.state.limits.clone(), vec![(AttemptId(1), Found::Lost)]);
    }
    assert_eq!(story.state.tasks[&task("T1")].crashes, 1, "one attempt, one loss");
    story.input(Input::AttemptLost { attempt: AttemptId(1), with_host: false });
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Pending, "it is tried again");
    let told = story
        .log
        .iter()
        .filter(|event| matches!(event.body, Body::Attempt(AttemptEvent::OrphanAgentDetected { .. })))
        .count();
    assert_eq!(told, 1, "and told once");
}

#[test]
fn attempts_begin_above_every_bundle_that_exists() {
    let mut story = Story { state: rekindle_core::state::State::default(), now: Story::of(ONE).now, log: Vec::new() };
    story.request(ONE);
    story.input(Input::AttemptsLost { highest: AttemptId(7) });
    story.coordinator(Limits::default(), Vec::new());
    let attempts: Vec<AttemptId> = story.state.attempts.keys().copied().collect();
    assert_eq!(attempts, [AttemptId(8)]);
    assert_eq!(story.input(Input::AttemptsLost { highest: AttemptId(7) }).events, [], "known by now");
    assert_eq!(story.replayed(), story.state, "the log alone says so as well");
}
