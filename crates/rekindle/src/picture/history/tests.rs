//! What a script of events adds up to.

use rekindle_core::cause::Cause;
use rekindle_core::event::{AgentCompacted, HandedOn};
use rekindle_core::ids::QuestionId;
use rekindle_core::review::{Findings, Rework, ReworkSource, Stage};

use super::*;
use crate::picture::sample::{START, Script, id};

fn after(time: Time) -> i64 {
    time.0 - START
}

/// Attempt, begun, runs, ended, outcome.
type Told = (u64, i64, Option<i64>, Option<i64>, Option<String>);

fn outcomes(history: &History, task: &str) -> Vec<Told> {
    let spans = history.of(&id(task)).iter();
    let told = |span: &Span| {
        let (runs, ends) = (span.runs_at.map(after), span.ended_at.map(after));
        (span.attempt.0, after(span.begun_at), runs, ends, span.outcome.clone())
    };
    spans.map(told).collect()
}

fn kinds(span: &Span) -> Vec<MarkKind> {
    span.marks.iter().map(|mark| mark.kind).collect()
}

#[test]
fn a_crash_and_its_second_try_are_two_spans_with_the_wait_between() {
    let mut script = Script::default();
    script.dispatched(10, "dev", "t1", 1, false).task_started(10, "dev", "t1", 1, 1).runs(40, "dev", "t1", 1);
    script.crashed(900, "dev", "t1", 1);
    script.dispatched(1_500, "dev", "t1", 2, true).task_started(1_500, "dev", "t1", 2, 2).runs(1_530, "dev", "t1", 2);
    script.done(3_000, "dev", "t1", 2);
    let history = script.history();
    let (crashed, complete) = (Some("crashed".to_owned()), Some("complete".to_owned()));
    assert_eq!(
        outcomes(&history, "t1"),
        [(1, 10, Some(40), Some(900), crashed), (2, 1_500, Some(1_530), Some(3_000), complete)]
    );
    let spans = history.of(&id("t1"));
    assert_eq!((spans[0].number, spans[1].number), (1, 2));
    assert_eq!((spans[0].free_at, spans[1].free_at.map(after)), (None, Some(900)));
    assert_eq!(kinds(&spans[0]), [MarkKind::Crash]);
    assert_eq!(kinds(&spans[1]), [MarkKind::Recovery, MarkKind::Done]);
    assert_eq!((history.count(MarkKind::Crash), history.count(MarkKind::Recovery)), (1, 1));
    assert_eq!(history.news.iter().map(|news| news.kind).collect::<Vec<_>>(), [MarkKind::Crash, MarkKind::Recovery]);
}

#[test]
fn one_agent_with_several_tasks_has_a_span_at_each_from_when_it_was_there() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false).task_started(0, "dev", "t1", 1, 1).runs(50, "dev", "t1", 1);
    script.at(
        1_000,
        "dev",
        "t1",
        &Body::Task(TaskEvent::TaskCompleted { result: None, unproven: false, unreported: false }),
    );
    script.task_started(1_000, "dev", "t2", 1, 1);
    script.at(1_500, "dev", "t2", &Body::Session(SessionEvent::AgentCompacted(compacted(1))));
    let history = script.history();
    assert_eq!(outcomes(&history, "t1")[0].3, Some(1_000));
    assert_eq!(outcomes(&history, "t2"), [(1, 1_000, Some(1_000), None, None)]);
    assert!(history.of(&id("t1"))[0].marks.iter().all(|mark| mark.kind != MarkKind::Compaction));
    assert_eq!(kinds(&history.of(&id("t2"))[0]), [MarkKind::Compaction]);
}

fn compacted(attempt: u64) -> AgentCompacted {
    AgentCompacted { attempt: AttemptId(attempt), compactions: 1, automatic: Some(true), turns: 1, calls: 1 }
}

/// A reviewer may still be leaving when the developer is at the task again.
#[test]
fn work_that_is_sent_back_ends_the_reviewers_span() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false).task_started(0, "dev", "t1", 1, 1).runs(10, "dev", "t1", 1);
    script.at(
        100,
        "dev",
        "t1",
        &Body::Review(ReviewEvent::TaskHandedOn(HandedOn { stage: Stage::Review, result: None })),
    );
    script.dispatched(110, "critic", "t1", 2, false).task_started(110, "critic", "t1", 2, 1);
    let rework = Rework { source: ReworkSource::Critic, findings: Findings::default(), context: String::new() };
    script.at(200, "critic", "t1", &Body::Review(ReviewEvent::TaskRework(rework)));
    script.dispatched(210, "dev", "t1", 3, true).task_started(210, "dev", "t1", 3, 2);
    script.at(
        220,
        "critic",
        "t1",
        &Body::Attempt(AttemptEvent::AttemptEnded { attempt: AttemptId(2), cause: Cause::Completed, last_words: None }),
    );
    let history = script.history();
    let ends: Vec<_> = outcomes(&history, "t1").into_iter().map(|span| (span.3, span.4)).collect();
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(ends, [(Some(100), word("handed_on")), (Some(200), word("sent_back")), (None, None)]);
    assert_eq!(kinds(&history.of(&id("t1"))[1]), [MarkKind::Refused]);
}

/// However the log goes, at most the last span of a task is open.
#[test]
fn a_new_attempt_ends_the_one_before() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false).dispatched(500, "dev", "t1", 2, true);
    let spans = outcomes(&script.history(), "t1");
    assert_eq!(spans, [(1, 0, None, Some(500), Some("replaced".to_owned())), (2, 500, None, None, None)]);
}

#[test]
fn one_that_is_adopted_runs_even_if_nobody_saw_it_start() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false);
    script.at(
        700,
        "dev",
        "t1",
        &Body::Attempt(AttemptEvent::AgentAdopted { attempt: AttemptId(1), pid: 1, shim_pid: 2 }),
    );
    let history = script.history();
    assert_eq!(outcomes(&history, "t1"), [(1, 0, Some(700), None, None)]);
    assert_eq!(kinds(&history.of(&id("t1"))[0]), [MarkKind::Recovery]);
    script.runs(900, "dev", "t1", 1);
    assert_eq!(outcomes(&script.history(), "t1")[0].2, Some(700));
}

#[test]
fn a_loop_of_marks_is_told_by_its_first_ones_and_a_number() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false);
    for at in 0..100 {
        script.at(at, "dev", "t1", &Body::Session(SessionEvent::AgentCompacted(compacted(1))));
    }
    let history = script.history();
    let span = &history.of(&id("t1"))[0];
    assert_eq!((span.marks.len(), span.more_marks), (MARKS_MAX, 100 - MARKS_MAX));
    assert_eq!(history.count(MarkKind::Compaction), 100);
}

#[test]
fn a_question_parks_the_task_and_news_keeps_the_newest() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "t1", 1, false);
    for number in 0..300 {
        let body = Body::Person(PersonEvent::QuestionAsked {
            id: QuestionId(number),
            attempt: AttemptId(1),
            text: format!("question {number}?"),
            options: Vec::new(),
            context: String::new(),
            takes_work: false,
        });
        script.at(10, "dev", "t1", &body);
    }
    script.at(20, "dev", "t1", &Body::Task(TaskEvent::TaskParked { question: QuestionId(299) }));
    let history = script.history();
    assert_eq!(history.news.len(), NEWS_MAX);
    assert!(history.news.last().is_some_and(|news| news.text.contains("question 299?")), "{:?}", history.news.last());
    assert_eq!(outcomes(&history, "t1")[0].4.as_deref(), Some("parked"));
}

/// Newer versions write events that this one does not know, and older logs may be cut.
#[test]
fn what_is_not_known_is_passed_over() {
    let mut script = Script::default();
    script.task_started(5, "dev", "t1", 9, 1).crashed(6, "dev", "t1", 9).done(7, "dev", "t1", 9);
    script.events[0].kind = "from_the_future".to_owned();
    script.events[0].details = "not JSON".to_owned();
    let history = script.history();
    assert!(history.spans.values().all(Vec::is_empty), "{:?}", history.spans);
    assert_eq!(history.last_time, Some(Time(START + 12)));
}
