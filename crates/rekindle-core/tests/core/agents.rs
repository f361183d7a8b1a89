//! Agents that tell of themselves: how they are taken up again, what follows from a compaction, a limit, an end of a turn.

use rekindle_core::activity::{Failure, Measure, Problem, StreamEvent, Transcript, UnderWay};
use rekindle_core::cause::Cause;
use rekindle_core::decide::{self, Standstill, Step};
use rekindle_core::effect::Effect;
use rekindle_core::event::{AttemptEvent, Body, SessionEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::{Checkpoint, Exit, Report};
use rekindle_core::state::{RunPhase, TaskState};
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;

use crate::harness::{Story, exit_code, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";
const FOUR: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n\n### T3: c\n\nDo.\n\n### T4: d\n\nDo.\n";

fn able() -> Traits {
    Traits { structured_output: true, resumes: true, compacts: true, reinjects: true, mcp: true, ..Traits::new("able") }
}

fn limits(traits: Traits) -> Limits {
    let clis = vec!["default".to_owned(), "other".to_owned()];
    let traits = [("default".to_owned(), traits), ("other".to_owned(), Traits::new("other"))].into();
    Limits { traits, clis, attempts: 9, ..Limits::default() }
}

/// A story whose first agent runs and has told its session.
fn running(traits: Traits) -> Story {
    let mut story = Story::with(ONE, limits(traits));
    story.started(1);
    sign(&mut story, 1, session("s1"));
    story
}

fn session(id: &str) -> StreamEvent {
    StreamEvent::Session { id: id.to_owned(), model: None }
}

fn sign(story: &mut Story, attempt: u64, sign: StreamEvent) -> Step {
    story.input(Input::Streamed { attempt: AttemptId(attempt), event: sign })
}

fn measured(used: u64) -> StreamEvent {
    StreamEvent::Measured(Measure { context_used: Some(used), context_window: Some(100), ..Measure::default() })
}

fn failed(problem: Problem, resets_at: Option<Time>) -> StreamEvent {
    StreamEvent::Failed(Failure { problem, resets_at, text: "said so".into(), runaway: false })
}

fn closed(story: &mut Story, attempt: u64, transcript: Transcript) {
    let cut_off = Some("Bash: sleep 100".to_owned());
    let measure = story.state.attempts[&AttemptId(attempt)].cli_session.measure;
    story.input(Input::SessionClosed {
        attempt: AttemptId(attempt),
        measure,
        transcript,
        cut_off,
        under_way: UnderWay::default(),
    });
}

/// The strategy and the reason of the newest attempt, after time enough for any backoff.
fn next(story: &mut Story) -> (Strategy, String) {
    story.after_ms(400_000);
    story.input(Input::TimePassed);
    let dispatched = story.log.iter().rev().find_map(|event| match &event.body {
        Body::Attempt(AttemptEvent::Dispatched { strategy, reason, .. }) => Some((*strategy, reason.clone())),
        _ => None,
    });
    dispatched.expect("dispatched")
}

fn cause(story: &Story, attempt: u64) -> Option<&Cause> {
    story.state.attempts[&AttemptId(attempt)].cause.as_ref()
}

fn stop_cause(story: &Story, attempt: u64) -> Option<&Cause> {
    story.state.attempts[&AttemptId(attempt)].stop.as_ref().map(|stop| &stop.cause)
}

fn killed() -> Exit {
    Exit { signal: Some(9), ..Exit::default() }
}

#[test]
fn a_killed_agent_with_context_left_is_resumed_and_the_reason_says_so() {
    let mut story = running(able());
    sign(&mut story, 1, measured(20));
    closed(&mut story, 1, Transcript::Whole);
    story.exited(1, killed());
    let (strategy, reason) = next(&mut story);
    assert_eq!(strategy, Strategy::Resume);
    assert_eq!(reason, "resume: it was ended by signal 9; its session is whole and has 80 % of its context left");
    let cli_session = &story.state.attempts[&AttemptId(2)].cli_session;
    assert_eq!(cli_session.resumes.as_deref(), Some("s1"));
    assert_eq!(story.state.attempts[&AttemptId(1)].cli_session.cut_off.as_deref(), Some("Bash: sleep 100"));
}

#[test]
fn nothing_is_resumed_that_should_not_be() {
    type Change = fn(&mut Story);
    let cases: &[(&str, Traits, Change, &str)] = &[
        ("cannot resume", Traits::new("plain"), |_| {}, "it was ended by signal 9"),
        ("transcript gone", able(), |story| closed(story, 1, Transcript::Missing), "transcript"),
        ("context used up", able(), |story| drop(sign(story, 1, measured(91))), "only 9 %"),
    ];
    for (name, traits, change, says) in cases {
        let mut story = running(traits.clone());
        change(&mut story);
        story.exited(1, killed());
        let (strategy, reason) = next(&mut story);
        assert_eq!(strategy, Strategy::Fresh, "{name}: {reason}");
        assert!(reason.contains(says), "{name}: {reason}");
    }
    let mut story = Story::with(ONE, limits(able()));
    story.started(1);
    story.exited(1, killed());
    assert_eq!(next(&mut story).0, Strategy::Fresh, "a session that was never told cannot be resumed");
}

#[test]
fn two_resumes_that_fail_at_once_are_followed_by_a_fresh_agent() {
    let mut story = running(able());
    story.after_ms(100_000);
    story.exited(1, killed());
    for attempt in [2, 3] {
        assert_eq!(next(&mut story).0, Strategy::Resume, "attempt {attempt}");
        story.started(attempt);
        sign(&mut story, attempt, session("s1"));
        story.exited(attempt, exit_code(1));
    }
    let (strategy, reason) = next(&mut story);
    assert_eq!(strategy, Strategy::Fresh, "{reason}");
    assert!(reason.contains("resumes of its session failed at once"), "{reason}");
}

#[test]
fn a_session_that_does_not_come_back_is_stopped_at_once() {
    let mut story = running(able());
    story.exited(1, killed());
    assert_eq!(next(&mut story).0, Strategy::Resume);
    story.started(2);
    let step = sign(&mut story, 2, session("s2"));
    assert!(step.effects.contains(&Effect::StopAttempt { attempt: AttemptId(2), at_once: true }));
    story.exited(2, killed());
    assert!(matches!(cause(&story, 2), Some(Cause::StartFailed { .. })));
    assert_eq!(next(&mut story).0, Strategy::Fresh);
}

#[test]
fn an_end_without_a_word_is_asked_about_once_and_then_counts() {
    let mut story = running(able());
    story.exited(1, exit_code(0));
    assert_eq!(next(&mut story).0, Strategy::Resume);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "still the first that counts");
    assert!(story.state.attempts[&AttemptId(2)].cli_session.asks_for_report);
    story.started(2);
    sign(&mut story, 2, session("s1"));
    story.exited(2, exit_code(0));
    story.checked("T1", false);
    next(&mut story);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 2, "the second end without a word counted");
}

#[test]
fn a_usage_limit_closes_the_account_until_its_reset_and_costs_no_attempt() {
    let mut story = Story::with(FOUR, Limits { max_agents: 2, ..limits(able()) });
    story.started(1);
    story.started(2);
    let reset = story.now.plus_ms(600_000);
    sign(&mut story, 1, failed(Problem::UsageLimit, Some(reset)));
    story.exited(1, exit_code(1));
    assert_eq!(cause(&story, 1), Some(&Cause::UsageLimit { resets_at: Some(reset) }));
    let first = reset.plus_ms(10_000);
    assert_eq!(story.state.gates["able"].until, Some(first));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 0);
    // The other one meets the same limit: one strike, and nobody is started.
    sign(&mut story, 2, failed(Problem::UsageLimit, Some(reset)));
    story.exited(2, exit_code(1));
    assert_eq!(story.state.gates["able"].strikes, 1);
    assert_eq!(decide::standstill(&story.state), Standstill::Reset);
    assert_eq!(decide::next_deadline(&story.state, story.now), Some(first));
    assert_eq!(story.state.live_attempts().count(), 0);
    story.now = first;
    story.input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "one probe");
    story.started(3);
    sign(&mut story, 3, measured(5));
    assert!(story.state.gates.is_empty(), "two are all there may be");
    assert_eq!(story.state.live_attempts().count(), 2);
}

#[test]
fn a_gate_widens_by_doubling() {
    let mut story = Story::with(FOUR, Limits { max_agents: 4, ..limits(able()) });
    for attempt in 1..=4 {
        story.started(attempt);
        sign(&mut story, attempt, failed(Problem::UsageLimit, None));
    }
    for attempt in 1..=4 {
        story.exited(attempt, exit_code(1));
    }
    story.after_ms(story.state.limits.usage.default_wait_ms);
    story.input(Input::TimePassed);
    for (attempt, live) in [(5, 2), (6, 4)] {
        story.started(attempt);
        sign(&mut story, attempt, measured(5));
        assert_eq!(story.state.live_attempts().count(), live, "after {attempt}");
    }
}

#[test]
fn overload_is_waited_out_longer_each_time() {
    let mut story = running(able());
    let mut waits = Vec::new();
    for attempt in 1..=6 {
        if attempt > 1 {
            story.started(attempt);
            sign(&mut story, attempt, session("s1"));
        }
        sign(&mut story, attempt, failed(Problem::Overloaded, None));
        story.exited(attempt, exit_code(1));
        let until = story.state.gates["able"].until.expect("a time");
        waits.push(until.since_ms(story.now));
        story.now = until;
        story.input(Input::TimePassed);
    }
    assert!(waits.iter().all(|wait| *wait >= 2_000 && *wait <= 302_000), "{waits:?}");
    assert!(waits.iter().max() > waits.first(), "{waits:?}");
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "only the living one");
}

#[test]
fn another_kind_takes_over_while_an_account_waits_if_it_was_asked_for() {
    let mut story = Story::with(ONE, limits(Traits { fallback: Some("other".into()), ..able() }));
    story.started(1);
    sign(&mut story, 1, session("s1"));
    sign(&mut story, 1, failed(Problem::UsageLimit, None));
    story.exited(1, exit_code(1));
    let newest = &story.state.attempts[&AttemptId(2)];
    assert_eq!((newest.cli.as_str(), newest.cli_session.strategy), ("other", Strategy::Other));
}

#[test]
fn refused_credentials_ask_a_person_once_and_the_answer_opens_the_gate() {
    let mut story = Story::with(FOUR, Limits { max_agents: 2, ..limits(able()) });
    for attempt in [1, 2] {
        story.started(attempt);
        sign(&mut story, attempt, failed(Problem::Auth, None));
        story.exited(attempt, exit_code(1));
    }
    assert_eq!(story.state.questions.len(), 1, "one question for the account");
    assert_eq!(story.state.live_attempts().count(), 0);
    assert_eq!(decide::standstill(&story.state), Standstill::Person);
    story.order(Order::Answer { id: QuestionId(1), text: "done".into() });
    assert!(story.state.gates.is_empty());
    assert_eq!(story.state.live_attempts().count(), 2);
}

#[test]
fn no_wait_ends_a_run_that_only_waits_for_a_reset() {
    let mut story = Story::with(ONE, Limits { no_wait: true, ..limits(able()) });
    story.started(1);
    sign(&mut story, 1, failed(Problem::UsageLimit, None));
    story.exited(1, exit_code(1));
    assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(_))));
}

#[test]
fn repeated_compaction_hands_over_to_a_fresh_agent_that_is_advised_to_split() {
    let mut story = running(able());
    let compacted = |turns| StreamEvent::Compacted { automatic: Some(true), turns, calls: turns };
    sign(&mut story, 1, compacted(10));
    assert_eq!(stop_cause(&story, 1), None, "once is told again and goes on");
    sign(&mut story, 1, StreamEvent::Acted);
    assert!(story.state.attempts[&AttemptId(1)].cli_session.astray.is_none(), "at its task");
    sign(&mut story, 1, compacted(30));
    assert_eq!(stop_cause(&story, 1), Some(&Cause::Compacted));
    story.exited(1, exit_code(1));
    let (strategy, _) = next(&mut story);
    assert_eq!(strategy, Strategy::Fresh);
    let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(2)).expect("facts");
    assert!(facts.advise_split);
}

#[test]
fn two_compactions_with_few_answers_between_them_are_a_loop() {
    let mut story = running(able());
    sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns: 10, calls: 1 });
    sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns: 14, calls: 2 });
    assert_eq!(stop_cause(&story, 1), Some(&Cause::CompactionLoop));
}

#[test]
fn a_kind_that_cannot_be_told_again_is_handed_over_at_its_first_compaction() {
    let mut story = running(Traits { reinjects: false, ..able() });
    sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns: 10, calls: 1 });
    assert_eq!(stop_cause(&story, 1), Some(&Cause::Compacted));
}

#[test]
fn one_that_is_not_seen_at_its_task_is_told_once_more_and_then_handed_over() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns: 10, calls: 5 });
    for calls in 6..15 {
        sign(&mut story, 1, StreamEvent::Called { calls });
    }
    assert!(story.state.attempts[&AttemptId(1)].cli_session.told.is_empty());
    let step = sign(&mut story, 1, StreamEvent::Called { calls: 15 });
    assert!(step.effects.iter().any(|effect| matches!(effect, Effect::TellAgent { number: 1, .. })), "{step:?}");
    story.after_ms(5 * 60 * 1000);
    story.input(Input::TimePassed);
    assert_eq!(stop_cause(&story, 1), Some(&Cause::Compacted));
}

#[test]
fn a_report_shows_that_it_is_at_its_task() {
    let mut story = running(able());
    sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns: 10, calls: 5 });
    story.report(1, Report::Checkpoint { task: task("T1"), checkpoint: Checkpoint::default() });
    assert!(story.state.attempts[&AttemptId(1)].cli_session.astray.is_none());
}

#[test]
fn nearly_full_context_is_prepared_for() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    let step = sign(&mut story, 1, measured(90));
    let names: Vec<String> = step.events.iter().map(|event| event.body.name()).collect();
    assert_eq!(names, ["agent_measured", "compaction_start", "agent_told"]);
    assert!(sign(&mut story, 1, measured(91)).effects.is_empty(), "asked once");
    let step = sign(&mut story, 1, StreamEvent::Compacted { automatic: Some(true), turns: 50, calls: 9 });
    assert!(step.events.iter().any(|event| event.body.name() == "compaction_complete"));
    // One that cannot compact is handed over.
    let mut story = running(Traits { compacts: false, ..able() });
    sign(&mut story, 1, measured(95));
    assert_eq!(stop_cause(&story, 1), Some(&Cause::ContextExhausted));
    let mut story = running(Traits { compacts: false, takes_messages: true, ..able() });
    sign(&mut story, 1, measured(95));
    assert_eq!(stop_cause(&story, 1), None, "it has a moment to save a checkpoint");
    story.after_ms(30_000);
    story.input(Input::TimePassed);
    assert_eq!(stop_cause(&story, 1), Some(&Cause::ContextExhausted));
}

#[test]
fn every_second_compaction_puts_the_whole_plan_before_it_again() {
    let limits = |traits| Limits {
        traits: [("default".to_owned(), traits)].into(),
        compaction: rekindle_core::limits::CompactionLimits { hand_over_after: 9, ..Default::default() },
        ..Limits::default()
    };
    let mut story = Story::with(ONE, limits(Traits { takes_messages: true, reinjects: false, ..able() }));
    story.started(1);
    let told =
        |story: &Story| story.state.attempts[&AttemptId(1)].cli_session.told.last().map(|told| told.text.clone());
    let compact = |story: &mut Story, n: u64| {
        let step = sign(story, 1, StreamEvent::Compacted { automatic: Some(true), turns: n * 50, calls: n * 9 });
        step.events.iter().any(
            |event| matches!(&event.body, Body::Session(SessionEvent::CompactionComplete(over)) if over.full_reload),
        )
    };
    assert!(!compact(&mut story, 1), "the first");
    assert!(!told(&story).expect("told").contains("The Whole Plan"));
    assert!(compact(&mut story, 2), "the second");
    assert!(told(&story).expect("told").contains("## The Whole Plan (full reload)"));
    let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(1)).expect("facts");
    assert_eq!(facts.whole_plan.map(|plan| plan.len()), Some(1));
    assert!(!compact(&mut story, 3), "the third");
}

#[test]
fn one_that_waits_for_messages_is_reminded_once_and_then_let_go() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    let told = |step: &Step| step.effects.iter().any(|effect| matches!(effect, Effect::TellAgent { .. }));
    let let_go = |step: &Step| step.effects.contains(&Effect::CloseInput { attempt: AttemptId(1) });
    let step = sign(&mut story, 1, StreamEvent::Result { ok: true });
    assert!(told(&step) && !let_go(&step), "{step:?}");
    let step = sign(&mut story, 1, StreamEvent::Result { ok: true });
    assert!(!told(&step) && let_go(&step), "{step:?}");
    story.exited(1, exit_code(0));
    story.checked("T1", false);
    assert_eq!(cause(&story, 1), Some(&Cause::ExitedIncomplete));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "it was asked already, so this counts");
}

#[test]
fn one_that_has_finished_is_let_go_when_its_claim_is_proven() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    story.done(1, "T1");
    let step = sign(&mut story, 1, StreamEvent::Result { ok: true });
    assert!(step.effects.is_empty(), "its claim is being proven: {step:?}");
    let step = story.checked("T1", true);
    assert_eq!(step.effects, [Effect::CloseInput { attempt: AttemptId(1) }]);
    story.exited(1, exit_code(0));
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
}

#[test]
fn a_failed_turn_lets_it_go_and_its_own_words_are_the_cause() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    sign(&mut story, 1, failed(Problem::UsageLimit, None));
    let step = sign(&mut story, 1, StreamEvent::Result { ok: false });
    assert!(step.effects.contains(&Effect::CloseInput { attempt: AttemptId(1) }));
    story.exited(1, exit_code(1));
    assert_eq!(cause(&story, 1), Some(&Cause::UsageLimit { resets_at: None }));
}

#[test]
fn a_runaway_is_stopped() {
    let mut story = running(able());
    let failure = Failure { problem: Problem::Overloaded, resets_at: None, text: "again".into(), runaway: true };
    sign(&mut story, 1, StreamEvent::Failed(failure));
    assert_eq!(stop_cause(&story, 1), Some(&Cause::Overloaded));
}

fn circles() -> StreamEvent {
    StreamEvent::Stalled { times: 8, words: "`ls` ran 8 times".into(), printed: "nothing".into() }
}

#[test]
fn an_agent_that_goes_round_in_circles_is_told_once_then_stopped() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    let step = sign(&mut story, 1, circles());
    let told = |effect: &Effect| matches!(effect, Effect::TellAgent { text, .. } if text.contains("`ls` ran 8 times"));
    assert!(step.effects.iter().any(told), "{:?}", step.effects);
    assert_eq!(stop_cause(&story, 1), None);
    sign(&mut story, 1, circles());
    assert_eq!(stop_cause(&story, 1), Some(&Cause::StalledNoProgress));
}

#[test]
fn one_that_does_not_listen_is_stopped_at_the_second_time_and_its_successor_is_told_what_did_not_work() {
    let mut story = running(able());
    sign(&mut story, 1, circles());
    assert_eq!(stop_cause(&story, 1), None, "one alarm alone costs no attempt");
    sign(&mut story, 1, circles());
    assert_eq!(stop_cause(&story, 1), Some(&Cause::StalledNoProgress));
    story.exited(1, exit_code(1));
    assert_eq!(next(&mut story).0, Strategy::Fresh);
    let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(2)).expect("facts");
    assert!(rekindle_core::brief::render(&facts).contains("`ls` ran 8 times"), "the advice");
}

#[test]
fn a_program_that_gives_up_for_a_loop_is_not_resumed_although_it_ends_well() {
    let mut story = running(able());
    sign(&mut story, 1, failed(Problem::Looping, None));
    sign(&mut story, 1, StreamEvent::Result { ok: true });
    story.exited(1, exit_code(0));
    assert_eq!(cause(&story, 1), Some(&Cause::StalledNoProgress));
}

#[test]
fn silence_means_what_the_stage_says() {
    let quiet = |story: &mut Story| {
        let evidence = "nothing".to_owned();
        story.input(Input::AttemptSilent { attempt: AttemptId(1), quiet_ms: 1, evidence });
    };
    let mut story = Story::with(ONE, limits(able()));
    story.started(1);
    quiet(&mut story);
    assert_eq!(stop_cause(&story, 1), Some(&Cause::HungBeforeFirstEvent));
    let mut story = running(able());
    quiet(&mut story);
    assert_eq!(stop_cause(&story, 1), Some(&Cause::HungMidStream));
    let mut story = running(able());
    sign(&mut story, 1, StreamEvent::Result { ok: true });
    quiet(&mut story);
    assert_eq!(stop_cause(&story, 1), Some(&Cause::HungAfterResult));
}

#[test]
fn measures_are_put_down_rarely_and_at_the_end() {
    let mut story = running(able());
    assert_eq!(sign(&mut story, 1, measured(10)).events.len(), 1, "the first");
    assert!(sign(&mut story, 1, measured(11)).events.is_empty(), "too soon");
    story.after_ms(10_000);
    assert_eq!(sign(&mut story, 1, measured(12)).events.len(), 1);
    let measure = Measure { context_used: Some(13), context_window: Some(100), ..Measure::default() };
    story.input(Input::SessionClosed {
        attempt: AttemptId(1),
        measure,
        transcript: Transcript::Unknown,
        cut_off: None,
        under_way: UnderWay::default(),
    });
    assert_eq!(story.state.attempts[&AttemptId(1)].cli_session.measure.context_used, Some(13));
}

#[test]
fn an_end_without_a_word_counts_where_its_session_cannot_be_asked() {
    let mut story = running(able());
    sign(&mut story, 1, measured(95));
    story.exited(1, exit_code(0));
    story.checked("T1", false);
    next(&mut story);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 2, "else it could end without a word for ever");
}

#[test]
fn an_answer_reaches_an_agent_that_still_works() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    let ask = Report::Ask { task: task("T1"), text: "which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    let step = story.order(Order::Answer { id: QuestionId(1), text: "this".into() });
    let told =
        step.effects.iter().any(|effect| matches!(effect, Effect::TellAgent { text, .. } if text.contains("this")));
    assert!(told, "{step:?}");
}

#[test]
fn every_message_that_may_not_have_arrived_is_delivered_again_after_a_restart() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    sign(&mut story, 1, StreamEvent::Result { ok: true });
    let ask = Report::Ask { task: task("T1"), text: "which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    story.order(Order::Answer { id: QuestionId(1), text: "this".into() });
    let again: Vec<u32> = decide::outstanding(&story.state)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::TellAgent { number, .. } => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(again, [1, 2]);
}

#[test]
fn a_program_that_never_stops_failing_fills_no_log() {
    let mut story = running(able());
    for _ in 0..2_000 {
        sign(&mut story, 1, failed(Problem::Other, None));
    }
    assert_eq!(stop_cause(&story, 1), Some(&Cause::StalledNoProgress));
    assert!(story.log.len() < 1_100, "{}", story.log.len());
}

#[test]
fn one_that_asked_and_left_costs_no_attempt_however_soon_the_answer_came() {
    let mut story = running(able());
    let ask = Report::Ask { task: task("T1"), text: "which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    story.order(Order::Answer { id: QuestionId(1), text: "this".into() });
    story.exited(1, exit_code(0));
    assert_eq!(cause(&story, 1), Some(&Cause::WaitingForInput));
    assert_eq!(next(&mut story).0, Strategy::Resume);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1);
}

#[test]
fn a_session_that_is_gone_costs_no_attempt_and_a_fresh_agent_follows() {
    let mut story = running(able());
    sign(&mut story, 1, failed(Problem::UsageLimit, None));
    story.exited(1, exit_code(1));
    story.after_ms(story.state.limits.usage.default_wait_ms);
    assert_eq!(next(&mut story).0, Strategy::Resume);
    story.started(2);
    sign(&mut story, 2, failed(Problem::SessionGone, None));
    story.exited(2, exit_code(1));
    assert_eq!(next(&mut story).0, Strategy::Fresh);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1);
    assert_eq!(story.state.breakers["default"].failed_starts, 0, "the program can be started");
}

#[test]
fn a_stand_in_that_failed_is_not_tried_again_while_only_time_is_missing() {
    let mut story = Story::with(ONE, limits(Traits { fallback: Some("other".into()), ..able() }));
    story.started(1);
    let reset = story.now.plus_ms(3_600_000);
    sign(&mut story, 1, failed(Problem::UsageLimit, Some(reset)));
    story.exited(1, exit_code(1));
    story.started(2);
    story.exited(2, exit_code(1));
    story.after_ms(600_000);
    story.input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 0, "it waits for the account instead");
    assert_eq!(decide::standstill(&story.state), Standstill::Reset);
    story.now = reset.plus_ms(3_600_000);
    story.input(Input::TimePassed);
    assert_eq!(story.state.attempts[&AttemptId(3)].cli, "default");
}

#[test]
fn a_session_that_is_answered_by_errors_alone_is_given_up_for_a_fresh_one() {
    let mut story = running(able());
    for attempt in 1..=3 {
        if attempt > 1 {
            story.started(attempt);
            sign(&mut story, attempt, session("s1"));
        }
        sign(&mut story, attempt, failed(Problem::Overloaded, None));
        story.exited(attempt, exit_code(1));
        let expected = if attempt < 3 { Strategy::Resume } else { Strategy::Fresh };
        assert_eq!(next(&mut story).0, expected, "after {attempt}");
    }
}

#[test]
fn a_note_that_is_sent_twice_is_one_note() {
    let mut story = running(able());
    for _ in 0..2 {
        story.report(1, Report::Note { text: "tabs".into() });
    }
    assert_eq!(story.state.notes.len(), 1);
}

#[test]
fn what_predecessors_forgot_is_not_held_against_an_agent() {
    let mut story = running(able());
    for turns in [10, 30] {
        sign(&mut story, 1, StreamEvent::Compacted { automatic: None, turns, calls: turns });
    }
    story.exited(1, exit_code(1));
    next(&mut story);
    story.started(2);
    sign(&mut story, 2, session("s2"));
    sign(&mut story, 2, StreamEvent::Compacted { automatic: None, turns: 10, calls: 10 });
    assert_eq!(stop_cause(&story, 2), None, "its first");
    assert_eq!(story.state.tasks[&task("T1")].compactions, 3, "all are shown");
}

#[test]
fn reminders_end() {
    let mut story = running(Traits { takes_messages: true, ..able() });
    for _ in 0..10 {
        story.report(1, Report::Checkpoint { task: task("T1"), checkpoint: Checkpoint::default() });
        sign(&mut story, 1, StreamEvent::Result { ok: true });
    }
    let cli_session = &story.state.attempts[&AttemptId(1)].cli_session;
    assert_eq!((cli_session.reminders, cli_session.input_closed), (3, true));
}
