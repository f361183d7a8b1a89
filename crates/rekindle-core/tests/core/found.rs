//! Faults that the simulator found, each as the shortest story that shows it.

use rekindle_core::cause::Cause;
use rekindle_core::decide::{self, Standstill};
use rekindle_core::effect::Effect;
use rekindle_core::event::{AttemptEvent, Body, PauseReason, RunEvent, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Input, Noted, Order};
use rekindle_core::limits::Limits;
use rekindle_core::report::{Exit, Report};
use rekindle_core::state::{AttemptPhase, State};
use rekindle_core::view::{self, Touched};

use crate::harness::{Story, exit_code, task};

#[test]
fn a_failed_start_can_be_read_back_from_the_log() {
    let mut story = Story::of("# Demo\n\n### T1: first\n- accept: `true`\n");
    story.input(Input::AttemptNotStarted { attempt: AttemptId(1), reason: "no such file".into() });
    let requeued = story
        .log
        .iter()
        .find(|event| matches!(event.body, Body::Task(TaskEvent::TaskRequeued { .. })))
        .expect("requeued");
    let back = Body::from_parts(&requeued.body.name(), &requeued.body.details()).expect("its own words");
    assert_eq!(back, requeued.body);
    let Body::Task(TaskEvent::TaskRequeued { cause, reason, .. }) = back else { unreachable!("found as such") };
    assert_eq!(cause, Cause::StartFailed { reason: "no such file".into() });
    assert!(reason.contains("attempts used"), "{reason}");
}

#[test]
fn limits_that_a_coordinator_brings_reach_every_row() {
    let mut story = Story::of("# Demo\n\n### T1: first\n- accept: `true`\n\n### T2: second\n- blocked by: T1\n");
    let before = view::task_row(&story.state, &task("T2")).expect("a row");
    let step = story.coordinator(Limits { attempts: 7, ..Limits::default() }, Vec::new());
    let mut touched = Touched::default();
    for event in &step.events {
        touched.add(&story.state, event);
    }
    let after = view::task_row(&story.state, &task("T2")).expect("a row");
    assert_ne!(before.attempt_limit, after.attempt_limit);
    assert!(touched.tasks.contains(&task("T2")), "a row that changed is written");
}

#[test]
fn a_list_takes_no_task_whose_artifact_somebody_else_is_at() {
    let plan = "# Demo\n\n### T1: a\n- artifacts: shared.txt\n- priority: 9\n\n### T2: b\n- agent: duo\n\n### T3: c\n- agent: duo\n- artifacts: shared.txt\n";
    let mut story = Story::of(plan);
    assert_eq!(story.state.attempts.len(), 2);
    let duo = story.state.attempts.values().find(|found| found.agent.as_str() == "duo").expect("runs");
    assert_eq!(duo.tasks, [task("T2")], "T3 would write what T1 writes");
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.exited(1, exit_code(0));
    story.started(2);
    story.done(2, "T2");
    story.checked("T2", true);
    story.exited(2, exit_code(0));
    let next = story.state.attempts.values().last().expect("a third");
    assert_eq!(next.tasks, [task("T3")], "and it is done once T1 is through");
}

#[test]
fn a_stop_that_nobody_took_is_ordered_again_ever_more_rarely() {
    let mut story = Story::of("# Demo\n\n### T1: first\n- accept: `true`\n");
    story.started(1);
    story.order(Order::Recover { agent: "developer-T1".into() });
    let mut waits = Vec::new();
    for _ in 0..12 {
        let due = decide::next_deadline(&story.state, story.now).expect("a stop under way has a deadline");
        waits.push(due.since_ms(story.now));
        story.now = due;
        let step = story.input(Input::TimePassed);
        assert_eq!(step.effects, [Effect::StopAttempt { attempt: AttemptId(1), at_once: true }]);
        assert_eq!(
            story.state.attempts[&AttemptId(1)].stop.as_ref().map(|stop| &stop.cause),
            Some(&Cause::StoppedByOperator)
        );
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert_eq!(waits.last(), Some(&(5 * 60 * 1000)), "{waits:?}");
}

#[test]
fn an_ended_attempt_is_over_when_the_operator_decides_its_claim() {
    for order in
        [Order::Skip { task: task("T1"), reason: "enough".into() }, Order::Complete { task: task("T1"), result: None }]
    {
        let mut story = Story::of("# Demo\n\n### T1: first\n- accept: `true`\n");
        story.started(1);
        story.done(1, "T1");
        story.exited(1, exit_code(0));
        assert_eq!(story.state.attempts[&AttemptId(1)].phase, AttemptPhase::Exited);
        let step = story.order(order);
        assert_eq!(story.state.attempts[&AttemptId(1)].phase, AttemptPhase::Ended);
        let stops = step.effects.iter().filter(|effect| matches!(effect, Effect::StopAttempt { .. })).count();
        assert_eq!(stops, 0, "there is nobody to stop: {:?}", step.effects);
        assert!(matches!(step.events.last().map(|event| &event.body), Some(Body::Run(RunEvent::RunFinished { .. }))));
    }
}

/// A run in which T1 waits for an answer, its agent gone.
fn waiting(plan: &str) -> State {
    let mut story = Story::of(plan);
    story.started(1);
    ask(&mut story);
    story.exited(1, exit_code(0));
    story.state
}

fn ask(story: &mut Story) {
    let (text, context) = ("which?".into(), String::new());
    story.report(1, Report::Ask { task: task("T1"), text, options: Vec::new(), context });
}

#[test]
fn a_later_wave_does_not_hide_that_a_person_is_waited_for() {
    let state = waiting(
        "# Demo\n\n## Wave 1\n\n### T1: first\n- accept: `true`\n\n## Wave 2\n\n### T2: second\n- accept: `true`\n",
    );
    assert_eq!(decide::standstill(&state), Standstill::Person);
}

#[test]
fn a_task_that_an_agent_waiting_for_a_person_holds_up_waits_for_that_person() {
    let mut story = Story::of("# Demo\n\n### T1: first\n- artifacts: a.txt\n\n### T2: second\n- artifacts: a.txt\n");
    story.started(1);
    ask(&mut story);
    assert_eq!(story.state.attempts.len(), 1, "T2 would write what T1 writes");
    assert_eq!(decide::standstill(&story.state), Standstill::Person);
}

#[test]
fn what_was_put_right_outside_stands_on_record_and_changes_nothing() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n");
    story.started(1);
    let before = story.state.clone();
    let noted = |named: Option<&str>| {
        Input::Noted(Noted { task: named.map(task), event_type: "stale_lock_removed".into(), detail: "a lock".into() })
    };
    // A task that nobody knows does not lose the note.
    for (named, about) in [(Some("T1"), Some("T1")), (Some("T9"), None), (None, None)] {
        let step = story.input(noted(named));
        let [event] = &step.events[..] else { panic!("{:?}", step.events) };
        assert_eq!(event.task.as_ref().map(|id| id.as_str()), about);
        assert!(
            matches!(&event.body, Body::Run(RunEvent::StateReconciled { event_type, .. }) if event_type == "stale_lock_removed")
        );
    }
    assert_eq!(story.state.tasks, before.tasks);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_timeout_names_the_limit_of_the_task_that_is_over_its_time() {
    let plan = "# Demo\n\n### T1: a\n- agent: duo\n\nDo.\n\n### T2: b\n- agent: duo\n- timeout: 1m\n- accept: `true`\n";
    let mut story = Story::of(plan);
    story.started(1);
    story.done(1, "T2");
    story.checked("T2", false);
    story.after_ms(60_000).input(Input::TimePassed);
    let told = story.log.iter().find_map(|event| match &event.body {
        Body::Attempt(AttemptEvent::RoleTimeout { timeout_ms, .. }) => Some(*timeout_ms),
        _ => None,
    });
    assert_eq!(told, Some(60_000), "T1 has the time of its role, which is not over");
}

/// The order was decided on before the end was known; the shim says that it never came to it.
#[test]
fn an_order_that_came_too_late_is_not_why_an_agent_left() {
    for (by_itself, cause) in [(true, "crashed"), (false, "stopped_by_operator")] {
        let mut story = Story::of("# Demo\n\n### T1: a\n\nDo.\n");
        story.started(1);
        story.order(Order::Pause(PauseReason::Operator));
        assert!(story.state.attempts[&AttemptId(1)].stop.is_some(), "a stop is ordered");
        story.exited(1, Exit { by_itself, ..exit_code(3) });
        let ended = story.state.attempts[&AttemptId(1)].cause.as_ref().map(|cause| cause.name());
        assert_eq!(ended, Some(cause), "by itself: {by_itself}");
        assert_eq!(story.replayed(), story.state);
    }
}
