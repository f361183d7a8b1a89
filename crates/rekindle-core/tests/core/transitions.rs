//! Transition tests: one situation each, with everything that is decided in it.

use insta::assert_snapshot;
use rekindle_core::event::PauseReason;
use rekindle_core::ids::{AttemptId, Epoch, QuestionId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::report::{Checkpoint, Door, Exit, Report};
use rekindle_core::state::{RunPhase, TaskState};

use crate::harness::{Story, exit_code, lines, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";
const CHAIN: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\n### T2: second\n- blocked by: T1\n- accept: `true`\n";
const NAMED: &str = "# Demo\n\n### T1: first\n- agent: backend\n- accept: `true`\n\n### T2: second\n- agent: backend\n- blocked by: T1\n- accept: `true`\n";

#[test]
fn a_claim_is_proven_before_a_task_is_complete() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.done(1, "T1")), @"");
    assert_snapshot!(lines(&story.checked("T1", true)), @"");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @"");
}

#[test]
fn a_lie_is_refused_and_the_work_is_handed_over() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", false)), @"");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @"");
    story.after_ms(10_000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @"");
}

#[test]
fn an_exit_waits_for_the_checks_of_what_was_claimed() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @"");
    assert_snapshot!(lines(&story.checked("T1", true)), @"");
}

#[test]
fn evidence_without_a_claim_completes_nothing() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.checked("T1", true)), @"");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @"");
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Pending);
}

#[test]
fn attempts_are_used_up_and_dependants_stay_blocked() {
    let mut story = Story::of(CHAIN);
    for attempt in 1..=3 {
        story.started(attempt);
        let end = story.exited(attempt, exit_code(7));
        if attempt == 3 {
            assert_snapshot!(lines(&end), @"");
        }
        story.after_ms(600_000).input(Input::TimePassed);
    }
    assert_eq!(story.state.tasks[&task("T2")].attempts, 0);
}

#[test]
fn a_timeout_stops_and_is_the_cause() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.after_ms(15 * 60 * 1000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @"");
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(9), ..Exit::default() })), @"");
}

#[test]
fn a_named_agent_goes_on_with_its_next_task_at_once() {
    let mut story = Story::of(NAMED);
    assert_eq!(story.state.attempts[&AttemptId(1)].tasks.len(), 2);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", true)), @"");
    assert_snapshot!(lines(&story.exited(1, exit_code(1))), @"");
    story.after_ms(10_000).input(Input::TimePassed);
    assert_eq!(story.state.attempts[&AttemptId(2)].tasks, [task("T2")]);
    assert_eq!(story.state.attempts[&AttemptId(2)].epoch, Epoch(2));
}

#[test]
fn an_older_epoch_and_a_foreign_task_are_refused() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    assert_snapshot!(lines(&story.report(1, Report::Done { task: task("T2"), result: None })), @"");
    story.exited(1, exit_code(1));
    story.after_ms(10_000).input(Input::TimePassed);
    assert_snapshot!(lines(&story.done(1, "T1")), @"");
    let stale = Input::Reported {
        attempt: AttemptId(3),
        epoch: Epoch(1),
        door: Door::Command,
        report: Report::Done { task: task("T1"), result: None },
    };
    assert_snapshot!(lines(&story.input(stale)), @"");
}

#[test]
fn terminal_states_are_absorbing_for_agents() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    assert_snapshot!(lines(&story.done(1, "T1")), @"");
    assert_snapshot!(lines(&story.report(1, Report::Fail { task: task("T1"), reason: "no".into() })), @"");
    assert_snapshot!(lines(&story.checked("T1", false)), @"");
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
}

#[test]
fn a_question_parks_the_task_and_its_answer_opens_it() {
    let mut story = Story::of(ONE);
    story.started(1);
    let ask =
        Report::Ask { task: task("T1"), text: "Which?".into(), options: vec!["a".into()], context: String::new() };
    assert_snapshot!(lines(&story.report(1, ask)), @"");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @"");
    let answer = Order::Answer { id: QuestionId(1), text: "a".into() };
    assert_snapshot!(lines(&story.order(answer)), @"");
}

#[test]
fn no_wait_ends_when_only_a_person_is_missing() {
    let mut story = Story::with(ONE, Limits { no_wait: true, ..Limits::default() });
    story.started(1);
    let ask = Report::Ask { task: task("T1"), text: "Which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    story.exited(1, exit_code(0));
    assert_eq!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(PauseReason::NoWait)));
}

#[test]
fn a_pause_stops_agents_and_costs_no_attempt() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.order(Order::Pause(PauseReason::Interrupt))), @"");
    let checkpoint = Checkpoint { status: "half".into(), ..Checkpoint::default() };
    story.report(1, Report::Checkpoint { task: task("T1"), checkpoint });
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(2), ..Exit::default() })), @"");
    assert_snapshot!(lines(&story.coordinator(Limits::default(), Vec::new())), @"");
}

#[test]
fn a_crashed_coordinator_adopts_and_counts_nothing() {
    let mut story = Story::of(ONE);
    story.started(1);
    let alive = Found::Alive { pid: 100, shim_pid: 99 };
    assert_snapshot!(lines(&story.coordinator(Limits::default(), vec![(AttemptId(1), alive)])), @"");
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1);
}

#[test]
fn a_task_lost_with_two_coordinators_is_set_aside() {
    let mut story = Story::with(ONE, Limits { attempts: 9, ..Limits::default() });
    for attempt in 1..=2 {
        story.started(attempt);
        story.coordinator(story.state.limits.clone(), vec![(AttemptId(attempt), Found::Lost)]);
        let end = story.input(Input::AttemptLost { attempt: AttemptId(attempt), with_host: false });
        if attempt == 2 {
            assert_snapshot!(lines(&end), @"");
        }
        story.after_ms(600_000).input(Input::TimePassed);
    }
}

#[test]
fn a_process_that_never_began_costs_no_attempt() {
    let mut story = Story::of(ONE);
    let step = story.coordinator(Limits::default(), vec![(AttemptId(1), Found::NeverStarted)]);
    assert_snapshot!(lines(&step), @"");
}

#[test]
fn ten_failed_starts_open_the_breaker() {
    let mut plan = String::from("# Demo\n");
    for n in 1..=6 {
        plan.push_str(&format!("\n### T{n}: t\n- accept: `true`\n"));
    }
    let mut story = Story::with(&plan, Limits { max_agents: 1, attempts: 3, ..Limits::default() });
    for attempt in 1..=10 {
        let reason = "no such program".to_owned();
        story.input(Input::AttemptNotStarted { attempt: AttemptId(attempt), reason });
        story.after_ms(300_000).input(Input::TimePassed);
    }
    let opened = story.log.iter().filter(|event| event.body.name() == "breaker_opened").count();
    assert_eq!((opened, story.state.live_attempts().count()), (1, 0));
    story.after_ms(600_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "after ten minutes it is tried again");
}

#[test]
fn waves_wait_for_each_other_and_the_disk_is_looked_at_between() {
    let plan = "# Demo\n\n## Wave 1\n\n### T1: a\n- artifacts: a.txt\n\n## Wave 2\n\n### T2: b\n- artifacts: b.txt\n";
    let mut story = Story::of(plan);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", true)), @"");
    let missing = vec![(task("T1"), vec!["a.txt".to_owned()])];
    assert_snapshot!(lines(&story.input(Input::DiskInspected { missing })), @"");
}

#[test]
fn two_tasks_on_one_artifact_never_run_side_by_side() {
    let story = Story::of(
        "# Demo\n\n### T1: a\n- artifacts: x.txt\n\n### T2: b\n- artifacts: x.txt\n\n### T3: c\n- artifacts: y.txt\n",
    );
    let running: Vec<String> =
        story.state.live_attempts().flat_map(|(_, attempt)| attempt.tasks.iter().map(ToString::to_string)).collect();
    assert_eq!(running, ["T1", "T3"]);
}

#[test]
fn an_agent_that_lingers_after_its_last_task_is_stopped() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.after_ms(30_000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @"");
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(2), ..Exit::default() })), @"");
}

#[test]
fn an_operator_can_skip_retry_and_complete() {
    let mut story = Story::of(CHAIN);
    story.started(1);
    let reason = "not needed".to_owned();
    assert_snapshot!(lines(&story.order(Order::Skip { task: task("T1"), reason })), @"");
    story.exited(1, Exit { signal: Some(2), ..Exit::default() });
    assert_snapshot!(lines(&story.order(Order::Retry { task: task("T1") })), @"");
    assert_snapshot!(lines(&story.order(Order::Complete { task: task("T1"), result: None })), @"");
}

#[test]
fn without_recovery_the_first_failure_is_the_last() {
    let mut story = Story::with(ONE, Limits { recover: false, ..Limits::default() });
    story.started(1);
    assert_snapshot!(lines(&story.exited(1, exit_code(1))), @"");
}
