//! Budgets and quiet hours: who is told and asked, what starts and what does not, and that nothing is counted twice.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rekindle_core::activity::{Measure, StreamEvent, Transcript, UnderWay, Usage};
use rekindle_core::budget::{Allowance, Budgets, Calendar, Level, MICROS, Price, Scope, Spending};
use rekindle_core::decide::{self, Reply, Standstill, Step};
use rekindle_core::effect::Effect;
use rekindle_core::event::{AttemptEvent, Body, Event, MachineEvent, PauseReason, TaskEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::state::{RunPhase, State};
use rekindle_core::time::Time;
use rekindle_core::view::{self, WaitsFor};

use crate::harness::{Story, exit_code, task};
use crate::properties::{Move, play_with};

const THREE: &str = "---\nplan: demo\n---\n# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n\n### T3: c\n- accept: `true`\n";

fn usd(dollars: u64) -> Allowance {
    Allowance { usd_micros: Some(dollars * MICROS), ..Allowance::default() }
}

fn story(budget: Budgets, max_agents: u32) -> Story {
    Story::with(THREE, Limits { budget, max_agents, backoff_ms: 0, validation_window_ms: 0, ..Limits::default() })
}

/// What an agent has used in all, as its stream tells it.
fn used(story: &mut Story, attempt: u64, tokens: u64, cost_usd: Option<f64>) -> Step {
    let usage = Usage { input_tokens: tokens, cost_usd, ..Usage::default() };
    let event = StreamEvent::Measured(Measure { usage, ..Measure::default() });
    story.input(Input::Streamed { attempt: AttemptId(attempt), event })
}

/// Something happens a moment later: what was completed in the last moment of a log is proven again first.
fn later(story: &mut Story) {
    story.after_ms(1).order(Order::Note { text: "later".into() });
}

fn answer(story: &mut Story, question: u64, text: &str) -> Step {
    story.order(Order::Answer { id: QuestionId(question), text: text.into() })
}

fn names(step: &Step) -> Vec<String> {
    step.events.iter().map(|event| event.body.name()).collect()
}

fn live(story: &Story) -> Vec<u64> {
    story.state.live_attempts().map(|(id, _)| id.0).collect()
}

fn finish(story: &mut Story, attempt: u64, id: &str) {
    story.done(attempt, id);
    story.checked(id, true);
    story.exited(attempt, exit_code(0));
}

#[test]
fn a_notice_comes_once_and_a_question_when_something_would_start() {
    let mut story = story(Budgets { run: usd(10), ..Budgets::default() }, 1);
    story.started(1);
    assert!(used(&mut story, 1, 10, Some(7.99)).effects.is_empty());
    let near = used(&mut story, 1, 20, Some(8.0));
    assert_eq!(names(&near), ["agent_measured", "budget_notice"]);
    assert!(
        matches!(&near.effects[..], [Effect::AlertPerson { text, .. }] if text.contains("$8.00 of $10.00")),
        "{near:?}"
    );
    assert!(!names(&used(&mut story, 1, 30, Some(9.0))).contains(&"budget_notice".to_owned()));
    let reached = used(&mut story, 1, 40, Some(10.5));
    let told = ["agent_measured", "budget_reached", "question_asked", "budget_asked", "person_alerted"];
    assert_eq!(names(&reached), told, "T2 waits for its turn, so it is asked at once");
    assert_eq!(live(&story), [1], "its agent continues");
    finish(&mut story, 1, "T1");
    assert!(live(&story).is_empty(), "nothing new starts");
    assert_eq!(decide::standstill(&story.state), Standstill::Person);
    let waits = view::waits_of(&story.state, true, story.now);
    assert_eq!(
        waits.get(&task("T3")),
        Some(&WaitsFor::Budget { scope: Scope::Run, question: Some(QuestionId(1)) }),
        "{waits:?}"
    );
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_raised_limit_is_as_much_again_and_is_noticed_anew() {
    let mut story = story(Budgets { run: usd(10), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(10.5));
    finish(&mut story, 1, "T1");
    let raised = answer(&mut story, 1, "1");
    assert_eq!(story.state.budget.run.raised, 1);
    assert!(names(&raised).contains(&"developer_dispatched".to_owned()));
    assert_eq!(live(&story), [2]);
    story.started(2);
    assert!(names(&used(&mut story, 2, 1, Some(5.5))).contains(&"budget_notice".to_owned()), "16 of 20");
    assert_eq!(story.state.budget.run.spent.usd_micros, 16 * MICROS);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn going_on_lets_a_run_finish_without_asking_again() {
    let mut story = story(Budgets { run: usd(1), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(2.0));
    finish(&mut story, 1, "T1");
    answer(&mut story, 1, "go on");
    for (attempt, id) in [(2, "T2"), (3, "T3")] {
        story.started(attempt);
        used(&mut story, attempt, 1, Some(2.0));
        finish(&mut story, attempt, id);
    }
    assert!(matches!(story.state.run.as_ref().expect("a run").phase, RunPhase::Finished(_)));
    assert_eq!(story.state.questions.len(), 1);
    assert_eq!(story.state.budget.run.spent.usd_micros, 6 * MICROS);
}

#[test]
fn a_run_that_is_handed_back_lets_its_agents_finish_and_pauses() {
    let mut story = story(Budgets { run: usd(1), ..Budgets::default() }, 2);
    story.started(1);
    story.started(2);
    used(&mut story, 1, 1, Some(2.0));
    let answered = answer(&mut story, 1, "hand back");
    assert!(!names(&answered).contains(&"stop_ordered".to_owned()), "{answered:?}");
    assert_eq!(live(&story), [1, 2]);
    finish(&mut story, 1, "T1");
    assert_eq!(story.state.run.as_ref().expect("a run").phase, RunPhase::Running);
    finish(&mut story, 2, "T2");
    assert_eq!(story.state.run.as_ref().expect("a run").phase, RunPhase::Paused(PauseReason::Budget));
    // Whoever resumes it is asked again, as long as the budget is used up.
    let limits = story.state.limits.clone();
    story.coordinator(limits, Vec::new());
    // What was completed in the moment of the pause is proven again first.
    story.checked("T1", true);
    story.checked("T2", true);
    assert!(live(&story).is_empty());
    assert_eq!(story.state.questions.values().filter(|asked| asked.answer.is_none()).count(), 1);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_stop_pauses_the_run_as_a_person_does() {
    let mut story = story(Budgets { run: usd(1), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(2.0));
    let stopped = answer(&mut story, 1, "4");
    assert!(names(&stopped).contains(&"stop_ordered".to_owned()));
    story.exited(1, exit_code(0));
    assert_eq!(story.state.run.as_ref().expect("a run").phase, RunPhase::Paused(PauseReason::Operator));
}

#[test]
fn a_task_of_its_own_budget_waits_alone() {
    let mut story = story(Budgets { task: usd(5), ..Budgets::default() }, 1);
    story.started(1);
    let reached = used(&mut story, 1, 1, Some(5.0));
    assert_eq!(names(&reached), ["agent_measured", "budget_reached"], "it runs, and nothing is to be started");
    assert!(matches!(&reached.effects[..], [Effect::AlertPerson { text, .. }] if text.contains("task T1")));
    story.exited(1, exit_code(1));
    let question = story.state.tasks[&task("T1")].spending.question.expect("asked about T1");
    assert_eq!(story.state.attempts[&AttemptId(2)].tasks, [task("T2")], "others go on");
    story.after_ms(10_000_000).input(Input::TimePassed);
    assert_eq!(live(&story), [2]);
    finish(&mut story, 2, "T2");
    assert_eq!(story.state.attempts[&AttemptId(3)].tasks, [task("T3")]);
    // One more attempt, and then it is asked about again.
    finish(&mut story, 3, "T3");
    answer(&mut story, question.0, "2");
    assert_eq!(story.state.attempts[&AttemptId(4)].tasks, [task("T1")]);
    story.started(4);
    used(&mut story, 4, 1, Some(0.5));
    story.exited(4, exit_code(1));
    assert!(live(&story).is_empty());
    assert!(story.state.tasks[&task("T1")].spending.question.is_some_and(|again| again != question));
    assert_eq!(story.state.tasks[&task("T1")].spending.spent.usd_micros, 5_500_000);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_task_that_is_handed_back_is_taken_up_by_a_retry() {
    let mut story = story(Budgets { task: usd(5), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(6.0));
    story.exited(1, exit_code(1));
    let question = story.state.tasks[&task("T1")].spending.question.expect("asked");
    answer(&mut story, question.0, "hand back");
    for (attempt, id) in [(2, "T2"), (3, "T3")] {
        story.started(attempt);
        finish(&mut story, attempt, id);
    }
    story.after_ms(10_000_000).input(Input::TimePassed);
    assert!(live(&story).is_empty() && story.state.questions.values().all(|asked| asked.answer.is_some()));
    assert_eq!(decide::standstill(&story.state), Standstill::Person, "only a person is missing");
    assert_eq!(story.order(Order::Retry { task: task("T1") }).reply, Reply::Accepted);
    assert_eq!(live(&story), [4]);
}

#[test]
fn a_task_that_is_stopped_has_failed_until_it_is_retried() {
    let mut story = story(Budgets { task: usd(5), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(6.0));
    story.exited(1, exit_code(1));
    let question = story.state.tasks[&task("T1")].spending.question.expect("asked");
    answer(&mut story, question.0, "stop");
    assert!(story.state.tasks[&task("T1")].state.is_terminal());
}

#[test]
fn an_answer_that_is_none_of_the_choices_is_refused_with_them() {
    let mut story = story(Budgets { run: usd(1), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(2.0));
    let step = answer(&mut story, 1, "perhaps");
    let Reply::Refused { reason } = &step.reply else { panic!("{step:?}") };
    assert!(reason.contains("1 (raise), 2 (go on), 3 (hand back), 4 (stop)"), "{reason}");
    assert!(step.events.is_empty());
}

#[test]
fn without_waiting_a_used_up_budget_pauses_the_run_with_its_question_open() {
    let limits = Limits {
        budget: Budgets { run: usd(1), ..Budgets::default() },
        max_agents: 1,
        no_wait: true,
        ..Limits::default()
    };
    let mut story = Story::with(THREE, limits);
    story.started(1);
    used(&mut story, 1, 1, Some(2.0));
    finish(&mut story, 1, "T1");
    assert_eq!(story.state.run.as_ref().expect("a run").phase, RunPhase::Paused(PauseReason::NoWait));
    assert!(story.state.budget.run.question.is_some());
}

#[test]
fn a_higher_limit_in_the_configuration_takes_the_question_back() {
    let mut story = story(Budgets { run: usd(1), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 1, Some(2.0));
    finish(&mut story, 1, "T1");
    assert!(live(&story).is_empty());
    let limits = Limits { budget: Budgets { run: usd(100), ..Budgets::default() }, ..story.state.limits.clone() };
    later(&mut story);
    story.coordinator(limits, Vec::new());
    assert!(
        story.state.questions[&QuestionId(1)].answer.as_deref().is_some_and(|answer| answer.starts_with("withdrawn"))
    );
    assert_eq!(live(&story), [2]);
}

#[test]
fn the_day_is_counted_over_runs_and_ends_at_midnight() {
    let day = |date: &str| Input::CalendarSeen(Calendar { date: date.into(), quiet_until: None });
    let mut story = story(Budgets { day: usd(5), ..Budgets::default() }, 1);
    story.input(day("2026-11-18"));
    story.started(1);
    used(&mut story, 1, 1, Some(3.0));
    for (attempt, id) in [(1, "T1"), (2, "T2"), (3, "T3")] {
        if attempt > 1 {
            story.started(attempt);
        }
        finish(&mut story, attempt, id);
    }
    story.request(THREE);
    let limits = story.state.limits.clone();
    story.coordinator(limits, Vec::new());
    assert_eq!(story.state.budget.run.spent.usd_micros, 0);
    assert_eq!(story.state.budget.day.spent.usd_micros, 3 * MICROS, "an earlier run of the day");
    story.started(4);
    used(&mut story, 4, 1, Some(2.0));
    finish(&mut story, 4, "T1");
    assert!(live(&story).is_empty(), "the day's budget is used up");
    story.input(day("2026-11-19"));
    assert_eq!(live(&story), [5], "another day goes on by itself");
    assert_eq!(story.state.budget.day.spent.usd_micros, 0);
    assert!(story.state.questions.values().all(|asked| asked.answer.is_some()));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn quiet_hours_let_running_agents_finish_and_end_by_themselves() {
    let mut story = story(Budgets::default(), 1);
    story.started(1);
    let until = story.now.plus_ms(3_600_000);
    story.input(Input::CalendarSeen(Calendar { date: "d".into(), quiet_until: Some(until) }));
    assert_eq!(live(&story), [1]);
    finish(&mut story, 1, "T1");
    assert!(live(&story).is_empty());
    let waits = view::waits_of(&story.state, true, story.now);
    assert_eq!(waits.get(&task("T2")), Some(&WaitsFor::Quiet { until }));
    assert_eq!(decide::next_deadline(&story.state, story.now), Some(until));
    story.now = until;
    let over = story.input(Input::TimePassed);
    assert!(names(&over).contains(&"quiet_ended".to_owned()));
    assert_eq!(live(&story), [2]);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_machine_that_sleeps_into_the_next_night_starts_nothing_by_the_old_one() {
    const DAY_MS: u64 = 24 * 3_600_000;
    let mut story = story(Budgets::default(), 1);
    story.started(1);
    let until = story.now.plus_ms(3_600_000);
    let night = |until| Calendar { date: "d".into(), quiet_until: Some(until) };
    story.input(Input::CalendarSeen(night(until)));
    finish(&mut story, 1, "T1");
    story.now = until.plus_ms(DAY_MS - 1_000);
    let clock = rekindle_core::event::ClockSeen { boot_id: "boot".into(), slept_ms: DAY_MS, wall_ahead_ms: 0 };
    story.input(Input::MomentSeen { clock, calendar: night(until.plus_ms(DAY_MS)) });
    assert!(live(&story).is_empty(), "the last night is over, and this one is not");
    story.now = until.plus_ms(DAY_MS);
    story.input(Input::TimePassed);
    assert_eq!(live(&story), [2]);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn time_is_a_budget_too_and_sleep_is_not_counted() {
    let wall = Allowance { wall_ms: Some(100_000), ..Allowance::default() };
    let mut story = story(Budgets { run: wall, ..Budgets::default() }, 1);
    let clocks = |slept_ms| {
        let boot_id = "boot".into();
        Input::ClockSeen(rekindle_core::event::ClockSeen { boot_id, slept_ms, wall_ahead_ms: 0 })
    };
    story.input(clocks(0));
    story.started(1);
    let begun = story.state.attempts[&AttemptId(1)].dispatched_at;
    story.now = begun.plus_ms(50_000);
    story.input(clocks(20_000));
    assert_eq!(decide::next_deadline(&story.state, story.now), Some(begun.plus_ms(100_000)), "80 s awake");
    story.now = begun.plus_ms(100_000);
    assert!(names(&story.input(Input::TimePassed)).contains(&"budget_notice".to_owned()));
    story.now = begun.plus_ms(120_000);
    assert!(names(&story.input(Input::TimePassed)).contains(&"budget_reached".to_owned()));
    assert_eq!(live(&story), [1], "no kill");
    finish(&mut story, 1, "T1");
    assert!(live(&story).is_empty());
    assert_eq!(story.state.budget.run.by(story.now).wall_ms, 100_000);
    assert_eq!(story.state.tasks[&task("T1")].spending.spent.wall_ms, 100_000);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_price_of_the_users_counts_where_a_program_tells_no_cost() {
    let prices = BTreeMap::from([("gpt-5".to_owned(), Price { input: 2 * MICROS, cached: 0, output: 0 })]);
    let budget = Budgets { run: usd(1), ..Budgets::default() };
    let mut story = Story::with(THREE, Limits { budget, prices, max_agents: 1, ..Limits::default() });
    story.started(1);
    let session = StreamEvent::Session { id: "s".into(), model: Some("gpt-5-codex".into()) };
    story.input(Input::Streamed { attempt: AttemptId(1), event: session });
    used(&mut story, 1, 500_000, None);
    assert_eq!(story.state.budget.run.spent.usd_micros, MICROS);
    assert_eq!(story.state.budget.run.told, Level::Reached);
}

#[test]
fn an_adopted_agent_whose_words_are_read_again_is_billed_once() {
    let mut story = story(Budgets { run: usd(10), ..Budgets::default() }, 1);
    story.started(1);
    used(&mut story, 1, 100, Some(4.0));
    let limits = story.state.limits.clone();
    story.coordinator(limits, vec![(AttemptId(1), Found::Alive { pid: 100, shim_pid: 99 })]);
    let again = used(&mut story, 1, 100, Some(4.0));
    assert!(again.events.is_empty(), "{again:?}");
    let usage = Usage { input_tokens: 120, cost_usd: Some(5.0), ..Usage::default() };
    story.input(Input::SessionClosed {
        attempt: AttemptId(1),
        measure: Measure { usage, ..Measure::default() },
        transcript: Transcript::Unknown,
        cut_off: None,
        under_way: UnderWay::default(),
    });
    assert_eq!(story.state.budget.run.spent.usd_micros, 5 * MICROS);
    assert_eq!(story.state.budget.run.spent.tokens, 120);
}

/// The sums of a run, made anew from the largest totals of every attempt that its events tell.
fn summed(log: &[Event]) -> u64 {
    let mut totals: BTreeMap<AttemptId, [u64; 3]> = BTreeMap::new();
    for event in log {
        if let Body::Session(rekindle_core::event::SessionEvent::AgentMeasured { attempt, measure }) = &event.body {
            let usage = &measure.usage;
            let told = [usage.input_tokens, usage.cached_tokens, usage.output_tokens];
            let total = totals.entry(*attempt).or_default();
            total.iter_mut().zip(told).for_each(|(total, told)| *total = told.max(*total));
        }
    }
    totals.values().flatten().sum()
}

/// Whether a budget keeps a task from starting.
fn stops(state: &State, spending: &Spending, scope: Scope, now: Time) -> bool {
    !spending.admits(state.limits.budget.of(scope), now)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_counted_twice_and_nothing_starts_on_a_budget_that_is_used_up(
        moves in prop::collection::vec(any::<Move>(), 0..120),
    ) {
        let mut replayed = State::default();
        let mut taken = 0;
        let story = play_with(&moves, |story, _| {
            for event in &story.log[taken..] {
                let starts = match &event.body {
                    Body::Attempt(AttemptEvent::Dispatched { tasks, .. }) => tasks.clone(),
                    Body::Task(TaskEvent::TaskAssigned { .. }) => event.task.iter().cloned().collect(),
                    _ => Vec::new(),
                };
                for id in &starts {
                    let (ledger, task) = (&replayed.budget, &replayed.tasks[id]);
                    assert!(!stops(&replayed, &ledger.run, Scope::Run, event.time), "the run's: {event:?}");
                    assert!(!stops(&replayed, &ledger.day, Scope::Day, event.time), "the day's: {event:?}");
                    assert!(!stops(&replayed, &task.spending, Scope::Task, event.time), "{id}'s: {event:?}");
                    let quiet = ledger.quiet_until.is_some_and(|until| replayed.clocks.wall(event.time) < until);
                    assert!(!quiet, "a start in quiet hours: {event:?}");
                }
                if let Body::Machine(MachineEvent::BudgetReached(seen)) = &event.body {
                    assert!(seen.limit != Allowance::default());
                }
                rekindle_core::apply::apply(&mut replayed, event);
            }
            taken = story.log.len();
        });
        prop_assert_eq!(story.state.budget.run.spent.tokens, summed(&story.log));
        let tasks: u64 = story.state.tasks.values().map(|task| task.spending.spent.tokens).sum();
        prop_assert_eq!(tasks, summed(&story.log), "every token belongs to one task");
    }
}
