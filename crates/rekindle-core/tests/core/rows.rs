//! Rows as views read them: one count, and what each task waits for, true at every step of random histories.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rekindle_core::activity::{Failure, Problem, StreamEvent};
use rekindle_core::decide::turns;
use rekindle_core::event::{Event, PauseReason};
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::progress::Progress;
use rekindle_core::refusal::Refusal;
use rekindle_core::render::session_state;
use rekindle_core::report::Report;
use rekindle_core::state::{Attempt, AttemptPhase, RunPhase, State};
use rekindle_core::view::{
    self, AttemptRow, Because, Counts, PersonAct, QuestionRow, RunRow, SetUp, TaskRow, Touched, Waits, WaitsFor,
};

use crate::harness::{Story, exit_code, task};
use crate::properties::{Move, play_with};

/// Rows as a store has them: only what events touched was written again.
#[derive(Default)]
struct Kept {
    run: Option<RunRow>,
    tasks: BTreeMap<TaskId, TaskRow>,
    attempts: BTreeMap<AttemptId, AttemptRow>,
    questions: BTreeMap<rekindle_core::ids::QuestionId, QuestionRow>,
}

impl Kept {
    fn take(&mut self, state: &State, events: &[Event]) {
        let mut touched = Touched::default();
        events.iter().for_each(|event| touched.add(state, event));
        if touched.run {
            self.run = view::run_row(state);
        }
        let unsettled =
            |id: &&TaskId| state.tasks.get(*id).is_some_and(|task| !task.settled) || touched.ended.contains(*id);
        for id in touched.tasks.iter().filter(unsettled) {
            self.tasks.extend(view::task_row(state, id).map(|row| (id.clone(), row)));
        }
        for id in touched.attempts {
            self.attempts.extend(view::attempt_row(state, id).map(|row| (id, row)));
        }
        for id in touched.questions {
            self.questions.extend(view::question_row(state, id).map(|row| (id, row)));
        }
    }

    fn waits(&self, now: rekindle_core::time::Time) -> BTreeMap<TaskId, WaitsFor> {
        let tasks: Vec<TaskRow> = self.tasks.values().cloned().collect();
        let attempts: Vec<AttemptRow> = self.attempts.values().cloned().collect();
        let questions: Vec<QuestionRow> = self.questions.values().cloned().collect();
        let run = self.run.as_ref().expect("a run");
        let waits = Waits::new(run, &tasks, &attempts, &questions, true, now);
        tasks.iter().filter_map(|task| Some((task.id.clone(), waits.of(task)?))).collect()
    }
}

/// What must hold of rows at any moment.
fn check(story: &Story, kept: &Kept) -> Result<(), TestCaseError> {
    let (state, now) = (&story.state, story.now);
    let rows: Vec<TaskRow> = kept.tasks.values().cloned().collect();
    let counts = Counts::of(&rows);
    prop_assert_eq!(counts, Counts::of_state(state));
    let progress = Progress::of(state);
    prop_assert_eq!((progress.complete as usize, progress.total as usize), (counts.complete, counts.all));
    let file = session_state::render(state, &[]).unwrap_or_default();
    prop_assert!(file.contains(&format!("- Progress: {} tasks complete", counts.progress())), "{}", file);
    prop_assert_eq!(counts.open() + counts.complete + counts.failed + counts.skipped, counts.all);

    let waits = view::waits_of(state, true, now);
    prop_assert_eq!(&kept.waits(now), &waits, "rows that were written step by step say the same");
    let ready = turns::ready(state, now);
    let running = state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running);
    for (id, task) in &state.tasks {
        let wait = waits.get(id);
        if task.state.is_terminal() {
            prop_assert_eq!(wait, None, "{} has ended", id);
            continue;
        }
        let held = task.holder.is_some_and(|holder| state.attempts.get(&holder).is_some_and(|a| a.ended_at.is_none()));
        prop_assert!(wait.is_some() || held || task.is_being_proven(), "{} waits for nothing: {:?}", id, task);
        let own_turn = running && ready.contains(id) && state.held.is_none();
        let own_turn = own_turn && !turns::waits_for_health(state) && !turns::waits_for_preflight(state);
        match wait {
            None => {}
            Some(
                WaitsFor::Task { because: Because::Plan | Because::Failed, .. }
                | WaitsFor::Wave { .. }
                | WaitsFor::Time { .. }
                | WaitsFor::SetUp { .. },
            ) => prop_assert!(!own_turn, "{} could begin and waits for {:?}", id, wait),
            Some(WaitsFor::Slot { .. }) => {
                prop_assert!(own_turn || !running || task.holder.is_some(), "{} waits for no slot: {:?}", id, task);
                let full = state.live_attempts().count() >= state.limits.max_agents as usize;
                let one_at_a_time = state.hold.strikes > 0;
                prop_assert!(full || one_at_a_time || !running, "{} has a slot and waits for one: {:?}", id, task);
            }
            Some(WaitsFor::Agent { agent, stopping }) => {
                let lives = |a: &&Attempt| a.agent == *agent && a.phase != AttemptPhase::Ended;
                let found = state.attempts.values().rev().find(lives);
                prop_assert!(found.is_some(), "{} waits for {}, which has ended", id, agent);
                let ordered = found.is_some_and(|found| found.is_live() && found.stop.is_some());
                prop_assert_eq!(ordered, *stopping, "{} waits for {}", id, agent);
            }
            Some(
                WaitsFor::Person { .. } | WaitsFor::Account { .. } | WaitsFor::Machine { .. } | WaitsFor::Task { .. },
            ) => {}
            Some(WaitsFor::Budget { .. }) => prop_assert!(!state.limits.budget.is_none(), "{} has no limit", id),
            Some(WaitsFor::Quiet { .. }) => prop_assert!(state.budget.quiet_until.is_some(), "{} may start", id),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_count_the_same_and_say_what_tasks_wait_for_at_every_step(
        moves in prop::collection::vec(any::<Move>(), 0..60)
    ) {
        let mut kept = Kept::default();
        let mut found: Result<(), TestCaseError> = Ok(());
        play_with(&moves, |story, events| {
            kept.take(&story.state, events);
            if found.is_ok() {
                found = check(story, &kept);
            }
        });
        found?;
    }
}

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n- blocked by: T1\n\nDo.\n";

fn limits(max_agents: u32) -> Limits {
    let traits = Traits { structured_output: true, takes_messages: true, ..Traits::new("able") };
    Limits { max_agents, traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn waits(story: &Story, id: &str) -> Option<WaitsFor> {
    view::waits_of(&story.state, true, story.now).remove(&task(id))
}

#[test]
fn a_task_behind_another_waits_for_it() {
    let mut story = Story::with(TWO, limits(2));
    assert_eq!(waits(&story, "T1"), None, "its agent starts");
    let after = |because| Some(WaitsFor::Task { tasks: vec![task("T1")], because });
    assert_eq!(waits(&story, "T2"), after(Because::Plan));
    story.order(Order::Stop { task: task("T1") });
    assert_eq!(waits(&story, "T2"), after(Because::Failed), "a person has to see to it");
}

#[test]
fn a_later_wave_waits_for_the_one_before() {
    let story = Story::with("# Demo\n\n## Wave 1\n\n### T1: a\n\nDo.\n\n## Wave 2\n\n### T2: b\n\nDo.\n", limits(2));
    assert_eq!(waits(&story, "T2"), Some(WaitsFor::Wave { wave: 1 }));
}

#[test]
fn what_could_begin_waits_for_a_slot_its_agent_or_its_files() {
    let plain = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n";
    assert_eq!(waits(&Story::with(plain, limits(1)), "T2"), Some(WaitsFor::Slot { max_agents: 1 }));
    let listed = "# Demo\n\n### T1: a\n- agent: duo\n\nDo.\n\n### T2: b\n- agent: duo\n\nDo.\n";
    let first = |because| Some(WaitsFor::Task { tasks: vec![task("T1")], because });
    assert_eq!(waits(&Story::with(listed, limits(2)), "T2"), first(Because::Agent));
    let shared = "# Demo\n\n### T1: a\n- artifacts: x\n\nDo.\n\n### T2: b\n- artifacts: x\n\nDo.\n";
    assert_eq!(waits(&Story::with(shared, limits(2)), "T2"), first(Because::Files));
}

#[test]
fn a_task_whose_agent_is_being_stopped_waits_for_it_to_stop_and_for_no_slot() {
    for max_agents in [1, 2] {
        let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n", limits(max_agents));
        story.started(1);
        story.order(Order::Stop { task: task("T1") });
        story.order(Order::Retry { task: task("T1") });
        let agent = story.state.attempts[&AttemptId(1)].agent.clone();
        let stops = Some(WaitsFor::Agent { agent, stopping: true });
        assert_eq!(waits(&story, "T1"), stops, "with {max_agents} at once");
        story.exited(1, exit_code(143));
        assert_eq!(waits(&story, "T1"), None, "its next agent starts");
    }
}

#[test]
fn a_reviewer_waits_for_the_developer_to_end() {
    let reviewed = "---\nplan: demo\nreview: [critic]\n---\n# Demo\n\n### T1: a\n\nDo.\n";
    let mut story = Story::with(reviewed, limits(2));
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    let agent = story.state.attempts[&AttemptId(1)].agent.clone();
    assert!(matches!(waits(&story, "T1"), Some(WaitsFor::Agent { agent: found, .. }) if found == agent));
}

#[test]
fn the_first_part_waits_for_the_agent_of_the_whole_to_stop() {
    let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n", limits(3));
    story.started(1);
    story.order(Order::Split { task: task("T1"), subtasks: vec!["one".into(), "two".into()] });
    let agent = story.state.attempts[&AttemptId(1)].agent.clone();
    assert_eq!(waits(&story, "T1.1"), Some(WaitsFor::Agent { agent, stopping: true }));
    let after = WaitsFor::Task { tasks: vec![task("T1.1")], because: Because::Plan };
    assert_eq!(waits(&story, "T1.2"), Some(after));
}

#[test]
fn an_account_with_a_limit_is_named_with_its_reset() {
    let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n", limits(1));
    story.started(1);
    let resets_at = Some(story.now.plus_ms(60_000));
    let failure = Failure { problem: Problem::UsageLimit, resets_at, text: "limit".into(), runaway: false };
    story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Failed(failure) });
    story.exited(1, exit_code(1));
    for id in ["T1", "T2"] {
        let Some(WaitsFor::Account { account, cause, until }) = waits(&story, id) else {
            panic!("{id}: {:?}", waits(&story, id))
        };
        assert_eq!((account.as_str(), cause.as_str()), ("able", "usage_limit"));
        assert!(until >= resets_at, "{until:?}");
    }
}

#[test]
fn a_person_is_waited_for_with_what_they_have_to_do() {
    let mut story = Story::with(TWO, limits(1));
    story.started(1);
    let ask = Report::Ask { task: task("T1"), text: "which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    let person = |act, question| Some(WaitsFor::Person { act, question });
    assert_eq!(waits(&story, "T1"), person(PersonAct::Answer, Some(rekindle_core::ids::QuestionId(1))));
    let mut paused = Story::with("# Demo\n\n### T1: a\n\nDo.\n", limits(1));
    paused.started(1);
    paused.order(Order::Pause(PauseReason::Operator));
    paused.exited(1, exit_code(1));
    assert_eq!(waits(&paused, "T1"), person(PersonAct::Resume, None));
    let alone = Story::with("# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n", limits(1));
    let nobody = view::waits_of(&alone.state, false, alone.now).remove(&task("T2"));
    assert_eq!(nobody, person(PersonAct::GoOn, None), "its coordinator is gone");
}

#[test]
fn the_set_up_the_machine_and_a_pause_before_the_next_attempt_are_waits() {
    let health = "---\nplan: demo\nhealth: [\"make test\"]\n---\n# Demo\n\n### T1: a\n\nDo.\n";
    assert_eq!(waits(&Story::with(health, limits(1)), "T1"), Some(WaitsFor::SetUp { what: SetUp::Health }));
    let mut short = Story::with("# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n", limits(1));
    let refusal = Refusal { reason: "no space on disk".into(), hint: "df".into() };
    short.input(Input::PressureSeen { short: Some(refusal) });
    let held = Some(WaitsFor::Machine { reason: "no space on disk".into(), until: None });
    assert_eq!(waits(&short, "T2"), held);
    let mut crashed = Story::with("# Demo\n\n### T1: a\n\nDo.\n", limits(1));
    crashed.started(1);
    crashed.exited(1, exit_code(7));
    assert!(matches!(waits(&crashed, "T1"), Some(WaitsFor::Time { until }) if until > crashed.now));
}

#[test]
fn attempts_are_numbered_by_task_whether_they_count_or_not() {
    let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n", limits(2));
    story.started(1);
    story.exited(1, exit_code(7));
    story.after_ms(600_000).input(Input::TimePassed);
    let rows: Vec<AttemptRow> =
        story.state.attempts.keys().filter_map(|id| view::attempt_row(&story.state, *id)).collect();
    let number = |id: &str, attempt| view::number_of(&rows, &task(id), AttemptId(attempt));
    assert_eq!((number("T1", 1), number("T2", 2), number("T1", 3)), (Some(1), Some(1), Some(2)));
    let old: Vec<AttemptRow> = rows.into_iter().map(|row| AttemptRow { numbers: BTreeMap::new(), ..row }).collect();
    assert_eq!(view::number_of(&old, &task("T1"), AttemptId(3)), Some(2), "rows of earlier versions are counted");
}

#[test]
fn an_agent_whose_task_was_skipped_has_completed_nothing() {
    let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n", limits(1));
    story.started(1);
    story.order(Order::Skip { task: task("T1"), reason: "not needed".into() });
    story.exited(1, exit_code(0));
    let row = view::attempt_row(&story.state, AttemptId(1)).expect("a row");
    assert_eq!(row.cause.as_deref(), Some("stopped_by_operator"));
}
