//! What comes before the work: a worktree that cannot be set up, and checks that cannot run, are one question each; no task pays for
//! them, and whoever does not need them goes on.

use rekindle_core::cause::Cause;
use rekindle_core::decide::{self, STOP, WITHOUT};
use rekindle_core::effect::Effect;
use rekindle_core::ids::{AttemptId, QuestionId, TaskId};
use rekindle_core::input::{Input, Order, PreflightTried, SetupSeen};
use rekindle_core::limits::Limits;
use rekindle_core::report::CheckResult;
use rekindle_core::state::{AttemptPhase, Preflight, RunPhase, TaskState};
use rekindle_core::view::{PersonAct, WaitsFor, waits_of};

use crate::harness::{Story, task};

const ONE: &str = "# Demo\n\n### T1: a\n- accept: `one`\n\nDo.\n";

const TWO: &str = "# Demo\n\n### T1: a\n- accept: `one`\n- accept: `both`\n\nDo.\n\n### T2: b\n- accept: `two`\n- accept: `both`\n\nDo.\n";

fn apart() -> Limits {
    Limits { max_agents: 2, worktrees: true, ..Limits::default() }
}

fn starting(story: &Story) -> Vec<u64> {
    let all = story.state.live_attempts().filter(|(_, found)| found.phase == AttemptPhase::Starting);
    all.map(|(id, _)| id.0).collect()
}

fn not_set_up(story: &mut Story, attempt: u64, id: &str) {
    let reason = "npm ci exited with 1".to_owned();
    story.input(Input::SetupFailed { attempt: AttemptId(attempt), task: task(id), reason });
}

fn answer(story: &mut Story, id: u64, text: &str) {
    story.input(Input::Ordered(Order::Answer { id: QuestionId(id), text: text.to_owned() }));
}

fn open(story: &Story) -> Vec<(u64, TaskId)> {
    let all = story.state.questions.iter().filter(|(_, question)| question.answer.is_none());
    all.map(|(id, question)| (id.0, question.task.clone())).collect()
}

/// The set-up is tried again.
fn retry(story: &mut Story) {
    story.now = story.state.preparing.setup.as_ref().expect("a set-up that failed").retry_at;
    story.input(Input::TimePassed);
}

fn unpaid(story: &Story) {
    for id in ["T1", "T2"] {
        assert_eq!(story.state.tasks[&task(id)].tries(), 0, "{id}");
    }
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_failed_set_up_is_one_question_for_all_and_costs_nothing() {
    let mut story = Story::with(TWO, apart());
    assert_eq!(starting(&story), [1, 2]);
    not_set_up(&mut story, 1, "T1");
    not_set_up(&mut story, 2, "T2");
    assert_eq!(open(&story), [(1, task("T1"))], "one question");
    assert!(matches!(story.state.attempts[&AttemptId(1)].cause, Some(Cause::SetupFailed { .. })));
    assert_eq!(starting(&story), [0_u64; 0], "nobody is started before it is answered");
    assert!(story.state.held.is_none(), "others could start");
    let waits = waits_of(&story.state, true, story.now);
    for id in ["T1", "T2"] {
        let expected = WaitsFor::Person { act: PersonAct::Answer, question: Some(QuestionId(1)) };
        assert_eq!(waits[&task(id)], expected, "{id}");
    }
    assert_eq!(decide::standstill(&story.state), decide::Standstill::Person);
    unpaid(&story);
    answer(&mut story, 1, "1");
    assert_eq!(starting(&story).len(), 2, "both try again");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn it_is_tried_again_by_itself_and_a_success_withdraws_the_question() {
    let mut story = Story::with(TWO, apart());
    not_set_up(&mut story, 1, "T1");
    not_set_up(&mut story, 2, "T2");
    let mut waits = Vec::new();
    for attempt in 3..8 {
        let due = decide::next_deadline(&story.state, story.now).expect("it is tried again");
        waits.push(due.since_ms(story.now) / 1000);
        story.now = due;
        story.input(Input::TimePassed);
        assert_eq!(starting(&story), [attempt], "one tries for all");
        let id = story.state.attempts[&AttemptId(attempt)].tasks[0].to_string();
        not_set_up(&mut story, attempt, &id);
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]) && waits.last() == Some(&900), "{waits:?}");
    unpaid(&story);
    let due = decide::next_deadline(&story.state, story.now).expect("it is tried again");
    story.now = due;
    story.input(Input::TimePassed);
    let id = story.state.attempts[&AttemptId(8)].tasks[0].clone();
    story.input(Input::SetUp { task: id, seen: SetupSeen::Finished { took_ms: 5 } });
    assert_eq!(open(&story), [], "withdrawn");
    assert_eq!(starting(&story).len(), 2, "the other follows");
    assert!(story.state.questions[&QuestionId(1)].answer.as_deref().is_some_and(|text| text.starts_with("withdrawn")));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn an_agent_that_starts_at_the_retry_withdraws_it_too_and_another_end_keeps_it() {
    let mut story = Story::with(TWO, apart());
    not_set_up(&mut story, 1, "T1");
    retry(&mut story);
    // The retry is lost with its machine: the question stays, and the next retry comes.
    story.input(Input::AttemptLost { attempt: AttemptId(3), with_host: true });
    assert_eq!(open(&story).len(), 1);
    retry(&mut story);
    let last = story.state.last_attempt;
    story.started(last);
    assert_eq!(open(&story), [], "{:?}", story.state.preparing);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_person_may_leave_the_set_up_out_or_stop_the_run() {
    let mut story = Story::with(TWO, apart());
    not_set_up(&mut story, 1, "T1");
    answer(&mut story, 1, WITHOUT);
    assert!(story.state.preparing.without);
    let mut story = Story::with(TWO, apart());
    not_set_up(&mut story, 1, "T1");
    not_set_up(&mut story, 2, "T2");
    answer(&mut story, 1, STOP);
    let phase = story.state.run.as_ref().map(|run| run.phase);
    assert!(matches!(phase, Some(RunPhase::Paused(_))), "{phase:?}");
    unpaid(&story);
}

fn checks_not_set_up(story: &mut Story, id: &str) -> Vec<Effect> {
    let epoch = story.state.tasks[&task(id)].epoch;
    let reason = "npm ci exited with 1".to_owned();
    story.input(Input::ChecksNotSetUp { task: task(id), epoch, reason }).effects
}

fn proves(effects: &[Effect], id: &str) -> bool {
    effects.contains(&Effect::ProveAgain { task: task(id) })
}

#[test]
fn a_set_up_that_fails_before_checks_is_the_same_question_and_the_claim_stands() {
    let mut story = Story::with(TWO, apart());
    story.started(1);
    story.done(1, "T1");
    checks_not_set_up(&mut story, "T1");
    not_set_up(&mut story, 2, "T2");
    assert_eq!(open(&story), [(1, task("T1"))], "one question for both");
    assert!(story.state.held.is_none(), "it is no want of the machine");
    assert!(story.state.tasks[&task("T1")].claim.is_some(), "the claim stands");
    story.exited(1, crate::harness::exit_code(0));
    assert_eq!(decide::standstill(&story.state), decide::Standstill::Person);
    assert_eq!(story.state.tasks[&task("T1")].tries(), 1, "its one attempt, and no more");
    let step = story.input(Input::Ordered(Order::Answer { id: QuestionId(1), text: "1".to_owned() }));
    assert!(proves(&step.effects, "T1"), "{:?}", step.effects);
    assert_eq!(starting(&story).len(), 1, "and T2 is begun");
    story.checked("T1", true);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn claims_wait_for_a_set_up_through_retries_and_a_stop_of_the_run() {
    let mut story = Story::with(ONE, apart());
    story.started(1);
    story.done(1, "T1");
    checks_not_set_up(&mut story, "T1");
    story.now = story.state.preparing.setup.as_ref().expect("a set-up that failed").retry_at;
    let step = story.input(Input::TimePassed);
    assert!(proves(&step.effects, "T1"), "it is tried again by itself: {:?}", step.effects);
    checks_not_set_up(&mut story, "T1");
    assert_eq!(open(&story).len(), 1, "nobody is asked twice");
    story.exited(1, crate::harness::exit_code(0));
    let step = story.input(Input::Ordered(Order::Answer { id: QuestionId(1), text: STOP.to_owned() }));
    assert!(proves(&step.effects, "T1"), "the claim is tried a last time: {:?}", step.effects);
    checks_not_set_up(&mut story, "T1");
    let phase = story.state.run.as_ref().map(|run| run.phase);
    assert!(matches!(phase, Some(RunPhase::Paused(_))), "{phase:?}");
    assert!(story.state.tasks[&task("T1")].claim.is_some(), "and proven when the run goes on");
    assert!(decide::outstanding(&story.state).iter().any(|effect| matches!(effect, Effect::RunChecks { .. })));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn checks_that_run_at_the_retry_withdraw_the_question() {
    let mut story = Story::with(TWO, Limits { max_agents: 1, ..apart() });
    story.started(1);
    story.done(1, "T1");
    checks_not_set_up(&mut story, "T1");
    retry(&mut story);
    story.checked("T1", true);
    assert_eq!(open(&story), [], "{:?}", story.state.preparing);
    assert!(story.state.preparing.is_empty());
    assert_eq!(story.replayed(), story.state);
}

fn result(command: &str, code: i32) -> CheckResult {
    CheckResult {
        command: command.to_owned(),
        passed: code == 0,
        code: Some(code),
        timed_out: false,
        output: "said\n".to_owned(),
        kept: None,
        took_ms: 1,
        environment: None,
    }
}

fn tried(story: &mut Story, codes: [i32; 3]) {
    let results = ["one", "both", "two"].into_iter().zip(codes).map(|(command, code)| result(command, code)).collect();
    story.input(Input::Preflight(PreflightTried { results, problem: None, took_ms: 3 }));
}

#[test]
fn nothing_begins_before_the_pre_flight_and_only_what_cannot_run_waits() {
    let mut story = Story::with(TWO, Limits { preflight: true, ..apart() });
    assert_eq!(story.state.preparing.preflight, Preflight::Ordered);
    assert_eq!(starting(&story), [0_u64; 0]);
    assert!(decide::outstanding(&story.state).contains(&Effect::Preflight), "a new coordinator does it");
    let commands: Vec<String> = decide::to_try(&story.state).into_iter().map(|check| check.command).collect();
    assert_eq!(commands, ["one", "both", "two"], "each once");
    tried(&mut story, [1, 0, 127]);
    assert_eq!(open(&story), [(1, task("T2"))]);
    let begun = |story: &Story| story.state.attempts.values().flat_map(|found| found.tasks.clone()).collect::<Vec<_>>();
    assert_eq!(begun(&story), [task("T1")], "the other goes on");
    assert!(!decide::outstanding(&story.state).contains(&Effect::Preflight));
    answer(&mut story, 1, "try it again");
    assert_eq!(story.state.preparing.preflight, Preflight::Ordered, "once more, because a person asked");
    tried(&mut story, [1, 0, 1]);
    assert_eq!(begun(&story), [task("T1"), task("T2")]);
    assert_eq!(story.state.tasks[&task("T2")].state, TaskState::InProgress);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_pre_flight_that_could_not_be_made_holds_nobody_up_and_a_late_one_changes_nothing() {
    let mut story = Story::with(TWO, Limits { preflight: true, ..apart() });
    let problem = Some("no room".to_owned());
    story.input(Input::Preflight(PreflightTried { problem, ..PreflightTried::default() }));
    assert_eq!(starting(&story), [1, 2]);
    tried(&mut story, [127, 127, 127]);
    assert_eq!(open(&story), [], "it was answered before");
    let shared = Story::with(TWO, Limits { preflight: true, worktrees: false, ..apart() });
    assert_eq!(shared.state.preparing.preflight, Preflight::None, "a shared checkout is a person's");
    assert_eq!(story.replayed(), story.state);
}
