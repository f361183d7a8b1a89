//! Agents that end their turn by their own choice without a report: their checks decide, a person where these cannot, and a
//! question in prose becomes a question.

use rekindle_core::activity::{Failure, Problem, StreamEvent};
use rekindle_core::cause::Cause;
use rekindle_core::decide;
use rekindle_core::effect::Effect;
use rekindle_core::event::{AgentSaid, AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::{Baseline, Checkpoint, Evidence, Exit, Report};
use rekindle_core::role::Role;
use rekindle_core::state::{Task, TaskState};
use rekindle_core::view;

use crate::harness::{Story, exit_code, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `test -f out`\n\nDo it.\n";
const BARE: &str = "# Demo\n\n### T1: first\n\nDo it.\n";
const REVIEWED: &str = "---\nreview: [critic]\n---\n# Demo\n\n### T1: first\n- accept: `test -f out`\n\nDo it.\n";
const ASKS: &str = "I found two ports. Which one shall I use?";

fn failing() -> Baseline {
    Baseline { failed: Some("`test -f out`".into()), unknown: None }
}

fn baseline(story: &mut Story, attempt: u64, baseline: Baseline) {
    story.input(Input::BaselineSeen { attempt: AttemptId(attempt), task: task("T1"), baseline });
}

fn says(story: &mut Story, attempt: u64, text: &str) {
    story.input(Input::AgentSaid(AgentSaid { attempt: AttemptId(attempt), text: text.into(), asks: false }));
}

/// An agent that says something and leaves.
fn leaves(story: &mut Story, attempt: u64, words: &str) {
    story.started(attempt);
    says(story, attempt, words);
    story.exited(attempt, exit_code(0));
}

fn later(story: &mut Story) {
    story.after_ms(400_000);
    story.input(Input::TimePassed);
}

fn first(story: &Story) -> &Task {
    &story.state.tasks[&task("T1")]
}

fn cause(story: &Story, attempt: u64) -> Option<&Cause> {
    story.state.attempts[&AttemptId(attempt)].cause.as_ref()
}

fn claimed(story: &Story) -> bool {
    decide::outstanding(&story.state).iter().any(|effect| matches!(effect, Effect::RunChecks { .. }))
}

fn failed_because(story: &Story) -> (String, String) {
    let told = story.log.iter().rev().find_map(|event| match &event.body {
        Body::Task(TaskEvent::WorkflowFailed { reason, detail }) => Some((reason.clone(), detail.clone())),
        _ => None,
    });
    told.expect("it failed")
}

#[test]
fn work_whose_check_failed_before_and_passes_now_is_taken_with_the_last_words() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, failing());
    leaves(&mut story, 1, "The task is finished.");
    assert!(claimed(&story), "a restart runs the checks again");
    story.checked("T1", true);
    let row = view::task_row(&story.state, &task("T1")).expect("a row");
    assert_eq!((row.state.as_str(), row.attempts, row.unreported, row.unproven), ("complete", 1, true, false));
    assert_eq!(row.result.as_deref(), Some("The task is finished."));
    assert_eq!(cause(&story, 1), Some(&Cause::Completed));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn work_that_was_taken_goes_through_review_and_stays_marked() {
    let mut story = Story::of(REVIEWED);
    baseline(&mut story, 1, failing());
    leaves(&mut story, 1, "Done.");
    story.checked("T1", true);
    assert_eq!(story.state.role_of(&task("T1")), Role::Critic);
    let findings = rekindle_core::review::Findings::default();
    let verdict = rekindle_core::review::Verdict::Pass;
    story.started(2);
    story.report(2, Report::Verdict { task: Some(task("T1")), role: Role::Critic, verdict, findings });
    story.checked("T1", true);
    assert_eq!(first(&story).state, TaskState::Complete);
    assert!(first(&story).workflow.unreported, "nobody has reported it meanwhile");
}

#[test]
fn what_an_agent_reports_after_all_is_not_unreported() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, failing());
    leaves(&mut story, 1, "Done.");
    story.checked("T1", false);
    later(&mut story);
    story.started(2);
    story.done(2, "T1");
    story.checked("T1", true);
    assert_eq!((first(&story).state, first(&story).workflow.unreported), (TaskState::Complete, false));
}

#[test]
fn a_person_is_asked_where_the_checks_prove_nothing() {
    let passed = Baseline::default();
    let unknown = Baseline { failed: None, unknown: Some("it took too long".into()) };
    for (seen, why) in [(Some(passed), "passed before"), (Some(unknown), "it took too long"), (None, "were not run")] {
        let mut story = Story::of(ONE);
        if let Some(seen) = seen {
            baseline(&mut story, 1, seen);
        }
        leaves(&mut story, 1, "The task is finished.");
        story.checked("T1", true);
        let question = &story.state.questions[&QuestionId(1)];
        assert!(question.text.contains("The task is finished.") && question.context.contains(why), "{question:?}");
        assert_eq!(question.options, ["done"]);
        assert_eq!((first(&story).state, first(&story).attempts), (TaskState::Blocked, 0), "it costs no attempt");
        assert_eq!(cause(&story, 1), Some(&Cause::WaitingForInput));
    }
}

#[test]
fn the_answer_done_takes_the_work_once_its_checks_pass() {
    let mut story = Story::of(BARE);
    leaves(&mut story, 1, "The task is finished.");
    story.input(Input::ChecksFinished { task: task("T1"), epoch: first(&story).epoch, evidence: Evidence::default() });
    assert!(story.state.questions[&QuestionId(1)].context.contains("neither checks nor artifacts"));
    story.order(Order::Answer { id: QuestionId(1), text: "Done".into() });
    assert!(claimed(&story));
    let epoch = first(&story).epoch;
    story.input(Input::ChecksFinished { task: task("T1"), epoch, evidence: Evidence::default() });
    let row = view::task_row(&story.state, &task("T1")).expect("a row");
    assert_eq!((row.state.as_str(), row.unreported, row.unproven), ("complete", true, true));
    assert_eq!(row.result.as_deref(), Some("The task is finished."));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn any_other_answer_goes_back_to_the_agent() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, Baseline::default());
    leaves(&mut story, 1, "The task is finished.");
    story.checked("T1", true);
    story.order(Order::Answer { id: QuestionId(1), text: "no, the title is missing".into() });
    assert_eq!((first(&story).state, first(&story).attempts), (TaskState::InProgress, 1), "the next attempt began");
    let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(2)).expect("facts");
    let answers: Vec<_> = facts.answers.iter().map(|answer| answer.answer.as_str()).collect();
    assert_eq!(answers, ["no, the title is missing"]);
}

#[test]
fn a_check_that_never_passed_is_named_and_no_crash_is_spoken_of() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, failing());
    for attempt in 1..=3 {
        leaves(&mut story, attempt, "The task is finished.");
        story.checked("T1", false);
        later(&mut story);
    }
    let (reason, detail) = failed_because(&story);
    assert_eq!(reason, "check_never_passed");
    assert!(detail.contains("check `true` exited with 1"), "{detail}");
    assert!(detail.ends_with("its last words: \"The task is finished.\""), "{detail}");
    let words = story.log.iter().filter_map(|event| match &event.body {
        Body::Attempt(AttemptEvent::AttemptEnded { last_words, .. }) => last_words.clone(),
        _ => None,
    });
    assert_eq!(words.collect::<Vec<_>>(), ["The task is finished."; 3]);
}

#[test]
fn only_an_end_by_choice_has_its_work_looked_at() {
    let crash = |story: &mut Story| drop(story.exited(1, exit_code(1)));
    let kill = |story: &mut Story| drop(story.exited(1, Exit { signal: Some(9), ..Exit::default() }));
    let stop = |story: &mut Story| {
        story.after_ms(16 * 60 * 1000).input(Input::TimePassed);
        story.exited(1, exit_code(0));
    };
    let failure = |story: &mut Story| {
        let failure = Failure { problem: Problem::Other, resets_at: None, text: "broke".into(), runaway: false };
        story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Failed(failure) });
        story.exited(1, exit_code(0));
    };
    let bad_turn = |story: &mut Story| {
        story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Result { ok: false } });
        story.exited(1, exit_code(0));
    };
    let ends: [&dyn Fn(&mut Story); 5] = [&crash, &kill, &stop, &failure, &bad_turn];
    for (number, end) in ends.iter().enumerate() {
        let mut story = Story::of(ONE);
        baseline(&mut story, 1, failing());
        story.started(1);
        says(&mut story, 1, "The task is finished.");
        end(&mut story);
        assert!(!claimed(&story), "end {number}");
        assert!(cause(&story, 1).is_some_and(|cause| *cause != Cause::Completed), "end {number}");
    }
}

#[test]
fn one_who_can_be_asked_is_reminded_first() {
    let traits = Traits { structured_output: true, resumes: true, ..Traits::new("able") };
    let limits = Limits { traits: [("default".to_owned(), traits)].into(), ..Limits::default() };
    let mut story = Story::with(ONE, limits);
    baseline(&mut story, 1, failing());
    story.started(1);
    story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Session { id: "s".into(), model: None } });
    says(&mut story, 1, "The task is finished.");
    story.exited(1, exit_code(0));
    assert!(!claimed(&story), "it is asked for its report first");
    later(&mut story);
    assert!(story.state.attempts[&AttemptId(2)].cli_session.asks_for_report);
    leaves(&mut story, 2, "As I said, it is finished.");
    story.checked("T1", true);
    assert_eq!((first(&story).state, first(&story).attempts), (TaskState::Complete, 1));
    assert!(first(&story).workflow.unreported);
}

#[test]
fn a_question_in_two_turns_in_a_row_is_put_to_a_person() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, failing());
    leaves(&mut story, 1, ASKS);
    story.checked("T1", false);
    assert!(story.state.questions.is_empty(), "one may be a figure of speech");
    later(&mut story);
    leaves(&mut story, 2, ASKS);
    story.checked("T1", false);
    let question = &story.state.questions[&QuestionId(1)];
    assert_eq!((question.text.as_str(), question.takes_work), (ASKS, false));
    assert_eq!((first(&story).state, first(&story).attempts), (TaskState::Blocked, 1));
    story.order(Order::Answer { id: QuestionId(1), text: "5432".into() });
    let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(3)).expect("its successor began");
    assert_eq!(facts.answers.len(), 1);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_question_asked_with_the_programs_own_tool_needs_no_second_turn() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.input(Input::AgentSaid(AgentSaid { attempt: AttemptId(1), text: "Port".into(), asks: true }));
    story.exited(1, exit_code(0));
    story.checked("T1", false);
    assert_eq!(story.state.questions[&QuestionId(1)].text, "Port");
}

#[test]
fn the_turn_of_the_reminder_counts_as_the_second() {
    let traits = Traits { structured_output: true, takes_messages: true, ..Traits::new("able") };
    let limits = Limits { traits: [("default".to_owned(), traits)].into(), ..Limits::default() };
    let mut story = Story::with(ONE, limits);
    baseline(&mut story, 1, failing());
    story.started(1);
    for _ in 0..2 {
        says(&mut story, 1, ASKS);
        story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Result { ok: true } });
    }
    story.exited(1, exit_code(0));
    story.checked("T1", false);
    assert_eq!(story.state.questions[&QuestionId(1)].text, ASKS);
}

#[test]
fn a_checkpoint_that_leaves_work_is_no_end_of_a_task_without_checks() {
    let mut story = Story::of(BARE);
    story.started(1);
    let checkpoint = Checkpoint { remaining: vec!["the rest".into()], ..Checkpoint::default() };
    story.report(1, Report::Checkpoint { task: task("T1"), checkpoint });
    story.exited(1, exit_code(0));
    assert_eq!(cause(&story, 1), Some(&Cause::ExitedIncomplete));
    assert!(story.state.questions.is_empty());
}

#[test]
fn only_the_first_baseline_counts_and_a_task_that_is_opened_again_gets_another() {
    let mut story = Story::of(ONE);
    baseline(&mut story, 1, failing());
    baseline(&mut story, 1, Baseline::default());
    assert_eq!(first(&story).workflow.baseline, Some(failing()));
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.order(Order::Retry { task: task("T1") });
    assert_eq!(first(&story).workflow.baseline, None);
}

#[test]
fn done_does_not_take_a_task_that_was_split_since_it_was_asked_about() {
    let mut story = Story::of(BARE);
    leaves(&mut story, 1, "Done.");
    story.checked("T1", true);
    story.order(Order::Split { task: task("T1"), subtasks: vec!["one half".into(), "the other".into()] });
    story.order(Order::Answer { id: QuestionId(1), text: "done".into() });
    assert!(!claimed(&story), "its parts are to be done first");
    assert_eq!(first(&story).state, TaskState::Pending);
    for (attempt, part) in [(2, "T1.1"), (3, "T1.2")] {
        story.started(attempt);
        story.done(attempt, part);
        story.checked(part, true);
        story.exited(attempt, exit_code(0));
    }
    story.checked("T1", true);
    assert_eq!(first(&story).state, TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}
