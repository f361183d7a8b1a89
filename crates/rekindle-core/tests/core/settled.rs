//! What is let go of tasks that ended long ago, and that decisions about them are the same.

use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::report::Report;
use rekindle_core::state::{State, TaskState};

use crate::harness::{Story, exit_code, task};

const TASKS: usize = 12;

/// Tasks that have ended.
const ENDED: usize = 10;

fn plan() -> String {
    let tasks = (1..=TASKS).map(|n| format!("### T{n}: task {n}\n- accept: `true`\n\nDo.\n\n"));
    format!("# Demo\n\n{}", tasks.collect::<String>())
}

/// A run of short tasks, one after the other, that keeps two that have ended.
fn told() -> Story {
    let limits = Limits { max_agents: 1, ended_kept: 2, ..Limits::default() };
    let mut story = Story::with(&plan(), limits);
    for attempt in 1..=ENDED as u64 {
        story.started(attempt);
        let id = story.state.attempts[&AttemptId(attempt)].tasks[0].to_string();
        story.done(attempt, &id);
        story.checked(&id, true);
        story.exited(attempt, exit_code(0));
    }
    story
}

#[test]
fn what_ended_long_ago_leaves_its_state_and_its_epoch() {
    let story = told();
    let state = &story.state;
    let ended = state.attempts.values().filter(|attempt| !attempt.is_live()).count();
    assert_eq!(ended, 2, "the attempts at the two that ended last");
    assert_eq!((state.past.attempts, state.agents.len()), (ENDED as u64 - 2, 3), "and the one at work");
    let settled: Vec<_> = state.tasks.values().filter(|task| task.settled && task.evidence.is_none()).collect();
    assert_eq!(settled.len(), ENDED - 2);
    assert!(settled.iter().all(|task| task.state == TaskState::Complete && task.epoch.0 == 1));
    assert_eq!(*state, story.replayed(), "replay lets go of the same");
}

#[test]
fn a_stored_state_is_the_same_after_it_was_read_again() {
    let story = told();
    let stored = serde_json::to_vec(&story.state).expect("a state");
    let read: State = serde_json::from_slice(&stored).expect("a state");
    assert_eq!(read, story.state);
    let (begun, untouched) = (read.begun().count(), read.untouched().count());
    assert_eq!((begun, untouched), (story.state.begun().count(), story.state.untouched().count()));
}

#[test]
fn a_task_that_was_let_go_is_opened_again_with_a_new_epoch() {
    let mut story = told();
    let first = task("T1");
    assert!(story.state.tasks[&first].settled);
    // The next coordinator finds that its artifact is gone.
    story.input(Input::CoordinatorStarted {
        pid: 2,
        limits: Box::new(Limits { max_agents: 1, ended_kept: 2, ..Limits::default() }),
        boot_id: "boot".into(),
        boottime_ms: 0,
        found: vec![(AttemptId(ENDED as u64 + 1), Found::NeverStarted)],
        missing: vec![(first.clone(), vec!["made".into()])],
    });
    let found = &story.state.tasks[&first];
    assert!(!found.settled && found.epoch.0 > 1, "{found:?}");
    assert_eq!(story.state, story.replayed());
}

#[test]
fn answered_questions_go_with_their_task() {
    let limits = Limits { max_agents: 1, ended_kept: 1, ..Limits::default() };
    let mut story = Story::with(&plan(), limits);
    story.started(1);
    let id = story.state.attempts[&AttemptId(1)].tasks[0].to_string();
    let (text, context) = ("Which?".to_owned(), String::new());
    story.report(1, Report::Ask { task: task(&id), text, options: Vec::new(), context });
    story.order(Order::Answer { id: QuestionId(1), text: "This.".into() });
    for attempt in 1..=3 {
        if attempt > 1 {
            story.started(attempt);
        }
        let id = story.state.attempts[&AttemptId(attempt)].tasks[0].to_string();
        story.done(attempt, &id);
        story.checked(&id, true);
        story.exited(attempt, exit_code(0));
    }
    assert!(story.state.questions.is_empty(), "{:?}", story.state.questions);
    assert_eq!(story.state.past.questions, 1);
    assert_eq!(story.state, story.replayed());
}
