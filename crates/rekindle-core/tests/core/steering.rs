//! A person's messages to agents, tasks that a person holds, and orders that can be taken back.

use std::collections::BTreeMap;

use rekindle_core::activity::StreamEvent;
use rekindle_core::brief;
use rekindle_core::cause::Cause;
use rekindle_core::decide::{self, Reply, Standstill};
use rekindle_core::effect::Effect;
use rekindle_core::event::{Body, PauseReason, PersonEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::Report;
use rekindle_core::state::{AttemptPhase, RunPhase, TaskState};
use rekindle_core::steering::{How, PersonProcess, TELL_MAX_BYTES, TELLS_WAITING, TellStage, UNDO_MS, Undoable};
use rekindle_core::strategy::Strategy;
use rekindle_core::view;

use crate::harness::{Story, exit_code, task};

const PLAN: &str = "---\nplan: demo\n---\n# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n";

fn hearing() -> Limits {
    let able =
        Traits { structured_output: true, resumes: true, takes_messages: true, compacts: true, ..Traits::new("able") };
    Limits { traits: BTreeMap::from([("default".to_owned(), able)]), ..Limits::default() }
}

fn tell(text: &str) -> Order {
    Order::Tell { task: task("T1"), text: text.to_owned(), key: String::new() }
}

fn person(pid: u32) -> PersonProcess {
    PersonProcess { boot_id: "boot".into(), pid, pidfd_inode: Some(u64::from(pid)), start_ticks: 1, pid_ns_inode: 1 }
}

fn attach(pid: u32) -> Order {
    Order::Attach { task: task("T1"), by: person(pid) }
}

fn with_undo(id: &str) -> Order {
    Order::WithUndo { order: Undoable::Skip { task: task(id), reason: "r".into() } }
}

fn refused(step: &decide::Step) -> &str {
    match &step.reply {
        Reply::Refused { reason } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn sent(effects: &[Effect]) -> Vec<(AttemptId, u32)> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::TellAgent { attempt, number, .. } => Some((*attempt, *number)),
        _ => None,
    });
    sent.collect()
}

fn prompt(story: &Story, attempt: u64) -> String {
    let facts = brief::facts_from(&story.state, AttemptId(attempt)).expect("facts");
    if facts.resumed { brief::render_resumed(&facts) } else { brief::render(&facts) }
}

#[test]
fn a_running_agent_that_listens_is_told_at_once_and_once() {
    let mut story = Story::with(PLAN, hearing());
    story.started(1);
    let step = story.order(tell("use tabs"));
    assert_eq!(sent(&step.effects), [(AttemptId(1), 1)]);
    assert!(matches!(&step.effects[0], Effect::TellAgent { text, .. } if text.contains("use tabs")));
    assert!(sent(&decide::outstanding(&story.state)).contains(&(AttemptId(1), 1)), "a crash forgets none");
    let second = story.order(tell("and no spaces"));
    assert!(sent(&second.effects).is_empty(), "one at a time, so that their order is kept");
    let step = story.input(Input::MessageTaken { attempt: AttemptId(1), number: 1 });
    assert_eq!(sent(&step.effects), [(AttemptId(1), 2)], "the next follows");
    assert!(step.events.iter().any(|event| matches!(
        event.body,
        Body::Person(PersonEvent::TellDelivered { number: 1, how: How::Message, .. })
    )));
    let again = story.input(Input::MessageTaken { attempt: AttemptId(1), number: 1 });
    assert_eq!((again.events.len(), again.reply), (0, Reply::Already));
    let row = view::task_row(&story.state, &task("T1")).expect("a row");
    assert_eq!(row.told[0].standing(), "delivered while its agent ran");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn an_agent_that_does_not_listen_has_it_in_its_next_prompt() {
    let mut story = Story::of(PLAN);
    story.started(1);
    let step = story.order(tell("use tabs"));
    assert!(sent(&step.effects).is_empty());
    assert!(!prompt(&story, 1).contains("use tabs"), "its prompt is out");
    story.exited(1, exit_code(1));
    story.after_ms(3_600_000).input(Input::TimePassed);
    let tell_stage = || TellStage::InPrompt { attempt: AttemptId(3) };
    assert_eq!(story.state.steering.tells[&1].stage, tell_stage());
    assert!(prompt(&story, 3).contains("use tabs"));
    // It never started: nobody has it, and the one after it is told.
    story.input(Input::AttemptNotStarted { attempt: AttemptId(3), reason: "no program".into() });
    assert_eq!(story.state.steering.tells[&1].stage, TellStage::Waiting);
    story.after_ms(3_600_000).input(Input::TimePassed);
    let step = story.started(4);
    assert!(step.events.iter().any(|event| matches!(
        event.body,
        Body::Person(PersonEvent::TellDelivered { number: 1, how: How::Prompt, .. })
    )));
    assert!(prompt(&story, 4).contains("Message 1 (T1), to be followed:\nuse tabs"));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_pending_task_keeps_it_for_its_brief_and_later_briefs_remember_it() {
    let mut story = Story::with(PLAN, Limits { max_agents: 1, ..Limits::default() });
    let step = story.order(Order::Tell { task: task("T2"), text: "mind the gap".into(), key: "k".into() });
    assert_eq!(step.reply, Reply::Accepted);
    let again = story.order(Order::Tell { task: task("T2"), text: "mind the gap".into(), key: "k".into() });
    assert_eq!(again.reply, Reply::Already, "an order that was sent twice is taken once");
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.exited(1, exit_code(0));
    assert!(prompt(&story, 2).contains("mind the gap"));
    story.started(2);
    story.exited(2, exit_code(1));
    story.after_ms(3_600_000).input(Input::TimePassed);
    assert!(prompt(&story, 3).contains("mind the gap"), "a replacement knows what the person said");
}

#[test]
fn an_agent_that_was_lost_before_it_had_the_message_leaves_it_to_the_next() {
    let mut story = Story::with(PLAN, hearing());
    story.started(1);
    story
        .input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Session { id: "s1".into(), model: None } });
    story.order(tell("use tabs"));
    assert!(matches!(story.state.steering.tells[&1].stage, TellStage::Sent { .. }));
    story.exited(1, exit_code(1));
    story.after_ms(3_600_000).input(Input::TimePassed);
    let next = *story.state.attempts.keys().last().expect("an attempt");
    assert_eq!(story.state.attempts[&next].cli_session.strategy, Strategy::Resume);
    assert!(prompt(&story, next.0).contains("use tabs"), "its session never had it");
}

#[test]
fn a_session_that_ended_a_turn_with_the_message_is_not_told_again() {
    for ended_turn in [true, false] {
        let mut story = Story::with(PLAN, hearing());
        story.started(1);
        let streamed = |sign| Input::Streamed { attempt: AttemptId(1), event: sign };
        story.input(streamed(StreamEvent::Session { id: "s1".into(), model: None }));
        story.order(tell("use tabs"));
        story.input(Input::MessageTaken { attempt: AttemptId(1), number: 1 });
        if ended_turn {
            story.input(streamed(StreamEvent::Result { ok: true }));
        }
        story.exited(1, exit_code(1));
        story.after_ms(3_600_000).input(Input::TimePassed);
        let next = *story.state.attempts.keys().last().expect("an attempt");
        assert_eq!(story.state.attempts[&next].cli_session.strategy, Strategy::Resume);
        assert_eq!(prompt(&story, next.0).contains("use tabs"), !ended_turn);
    }
}

#[test]
fn what_cannot_be_told_is_refused_with_what_to_type() {
    let mut story = Story::of(PLAN);
    assert!(refused(&story.order(tell(" \n\u{1b}[31m "))).contains("empty"));
    assert!(refused(&story.order(tell(&"x".repeat(TELL_MAX_BYTES + 1)))).contains("into a file"));
    let unknown = Order::Tell { task: task("T9"), text: "x".into(), key: String::new() };
    assert!(refused(&story.order(unknown)).contains("no task T9"));
    for _ in 0..TELLS_WAITING {
        assert_eq!(story.order(tell("x")).reply, Reply::Accepted);
    }
    assert!(refused(&story.order(tell("x"))).contains("next brief"));
    story.order(Order::Complete { task: task("T1"), result: None });
    assert!(refused(&story.order(tell("x"))).contains("rekindle task retry T1"));
    story.order(Order::Retry { task: task("T1") });
    assert_eq!(
        story.order(Order::Tell { task: task("T2"), text: "x".into(), key: String::new() }).reply,
        Reply::Accepted
    );
}

#[test]
fn a_person_has_the_task_alone_and_gives_it_back_with_what_changed() {
    let mut story = Story::with(PLAN, hearing());
    story.started(1);
    story
        .input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Session { id: "s1".into(), model: None } });
    let step = story.order(attach(7));
    assert!(step.effects.iter().any(|effect| matches!(effect, Effect::WatchPerson { .. })));
    assert!(step.effects.contains(&Effect::StopAttempt { attempt: AttemptId(1), at_once: false }));
    assert_eq!(story.order(attach(7)).reply, Reply::Already);
    assert!(refused(&story.order(attach(8))).contains("process 7"));
    story.exited(1, exit_code(130));
    assert_eq!(story.state.attempts[&AttemptId(1)].cause, Some(Cause::StoppedByOperator));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 0, "that costs nothing");
    story.after_ms(3_600_000).input(Input::TimePassed);
    let on_it =
        |story: &Story| story.state.live_attempts().filter(|(_, found)| found.tasks.contains(&task("T1"))).count();
    assert_eq!(on_it(&story), 0, "nobody else is started");
    let row = view::task_row(&story.state, &task("T1")).expect("a row");
    assert_eq!(row.state, "blocked");
    assert!(row.reason.expect("a reason").starts_with("held for you"));
    // A coordinator that takes over watches the program again.
    story.coordinator(hearing(), vec![(AttemptId(2), Found::Alive { pid: 1, shim_pid: 2 })]);
    assert!(decide::outstanding(&story.state).iter().any(|effect| matches!(effect, Effect::WatchPerson { .. })));
    let stranger = Input::PersonLeft { task: task("T1"), by: person(8), changed: Vec::new() };
    assert_eq!(story.input(stranger).reply, Reply::Already);
    let left = Input::PersonLeft { task: task("T1"), by: person(7), changed: vec!["new: a.txt".into()] };
    let step = story.input(left.clone());
    assert!(step.events.iter().any(|event| matches!(event.body, Body::Person(PersonEvent::Detached { .. }))));
    assert_eq!(on_it(&story), 1, "the run goes on with it");
    let next = *story.state.attempts.keys().last().expect("an attempt");
    assert_eq!(story.state.attempts[&next].cli_session.resumes.as_deref(), Some("s1"));
    let text = prompt(&story, next.0);
    assert!(text.contains("The person held T1 themselves") && text.contains("new: a.txt"), "{text}");
    assert_eq!(story.input(left).reply, Reply::Already);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn what_nobody_can_hold_is_refused() {
    let mut story = Story::with(PLAN, Limits { max_agents: 1, ..Limits::default() });
    let waiting = Order::Attach { task: task("T2"), by: person(7) };
    assert!(refused(&story.order(waiting)).contains("rekindle tell T2"));
    story.started(1);
    story.done(1, "T1");
    assert!(refused(&story.order(attach(7))).contains("being checked"));
    story.checked("T1", true);
    assert!(refused(&story.order(attach(7))).contains("rekindle task retry T1"));
}

#[test]
fn in_one_workspace_nobody_else_begins_meanwhile() {
    let plan = PLAN.replace("- accept: `true`\n", "- agent: duo\n- accept: `true`\n");
    let mut story = Story::with(&plan, Limits { worktrees: true, max_agents: 4, ..hearing() });
    story.started(1);
    story.order(attach(7));
    story.exited(1, exit_code(130));
    story.after_ms(3_600_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 0, "T2 is worked on in the same workspace");
    let other = Order::Attach { task: task("T2"), by: person(8) };
    assert!(matches!(story.order(other).reply, Reply::Refused { .. }));
    assert_eq!(decide::standstill(&story.state), Standstill::Working, "a person works on it");
}

/// Seed 133: a coordinator that left at once never heard that the person's program was gone, and so did the next.
#[test]
fn a_run_that_does_not_wait_stays_while_a_person_works() {
    let plan = PLAN.split("\n### T2").next().expect("one task");
    let mut story = Story::with(plan, Limits { no_wait: true, ..hearing() });
    story.started(1);
    story.order(attach(7));
    story.exited(1, exit_code(130));
    let phase = |story: &Story| story.state.run.as_ref().map(|run| run.phase);
    assert_eq!(phase(&story), Some(RunPhase::Running));
    story.input(Input::PersonLeft { task: task("T1"), by: person(7), changed: Vec::new() });
    story.after_ms(3_600_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "the task goes on");
}

#[test]
fn a_task_that_ended_meanwhile_is_only_let_go() {
    let mut story = Story::with(PLAN, hearing());
    story.started(1);
    story.order(attach(7));
    story.exited(1, exit_code(130));
    story.order(Order::Complete { task: task("T1"), result: None });
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    let step = story.input(Input::PersonLeft { task: task("T1"), by: person(7), changed: vec!["new: a".into()] });
    assert!(story.state.steering.attached.is_empty() && story.state.steering.tells.is_empty());
    assert!(step.events.iter().all(|event| !matches!(event.body, Body::Person(PersonEvent::Told { .. }))));
}

#[test]
fn a_hold_outlives_a_pause() {
    let mut story = Story::with(PLAN, hearing());
    story.started(1);
    story.started(2);
    story.order(attach(7));
    story.exited(1, exit_code(130));
    story.order(Order::Pause(PauseReason::Stop));
    story.exited(2, exit_code(130));
    assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(_))));
    assert!(story.state.steering.attached.contains_key(&task("T1")));
    let detach = Order::Detach { task: task("T1"), by: person(7), changed: Vec::new() };
    let step = decide::record(&mut story.state, story.now, Input::Ordered(detach));
    assert_eq!(step.reply, Reply::Accepted);
    assert!(story.state.attempts.values().all(|found| found.phase == AttemptPhase::Ended), "nothing is begun offline");
}

#[test]
fn an_order_with_a_way_back_is_acted_on_after_its_moment() {
    let mut story = Story::of(PLAN);
    story.started(1);
    let skip = || with_undo("T1");
    let step = story.order(skip());
    assert_eq!(step.reply, Reply::Placed(1));
    assert_eq!(story.order(skip()).reply, Reply::Placed(1), "the same order twice is one");
    assert_ne!(story.state.tasks[&task("T1")].state, TaskState::Skipped);
    assert_eq!(story.order(Order::Undo { number: 1 }).reply, Reply::Accepted);
    assert!(refused(&story.order(Order::Undo { number: 1 })).contains("cannot be undone"));
    story.after_ms(UNDO_MS).input(Input::TimePassed);
    assert_ne!(story.state.tasks[&task("T1")].state, TaskState::Skipped);
    story.order(skip());
    let due = story.now.plus_ms(UNDO_MS);
    assert!(decide::next_deadline(&story.state, story.now).is_some_and(|at| at <= due));
    story.after_ms(UNDO_MS).input(Input::TimePassed);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Skipped);
    assert!(refused(&story.order(Order::Undo { number: 2 })).contains("carried out"));
    let nonsense = with_undo("T9");
    assert!(refused(&story.order(nonsense)).contains("T9"), "what makes no sense is refused at once");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn another_answer_is_refused_while_one_can_be_taken_back() {
    let mut story = Story::of(PLAN);
    story.started(1);
    let ask = Report::Ask { task: task("T1"), text: "which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    let id = *story.state.questions.keys().last().expect("a question");
    let answer = |text: &str| Order::WithUndo { order: Undoable::Answer { id, text: text.into() } };
    assert_eq!(story.order(answer("red")).reply, Reply::Placed(1));
    assert_eq!(story.order(answer("red")).reply, Reply::Placed(1), "the same twice is one");
    assert!(refused(&story.order(answer("blue"))).contains("order 1"), "the first would win without a word");
    story.order(Order::Undo { number: 1 });
    assert_eq!(story.order(answer("blue")).reply, Reply::Placed(2));
    story.after_ms(UNDO_MS).input(Input::TimePassed);
    assert_eq!(story.state.questions[&id].answer.as_deref(), Some("blue"));
}

#[test]
fn a_run_does_not_end_before_an_order_that_can_still_be_taken_back() {
    let mut story = Story::of("---\nplan: demo\n---\n# Demo\n\n### T1: a\n- attempts: 1\n");
    story.started(1);
    story.order(with_undo("T1"));
    story.report(1, Report::Fail { task: task("T1"), reason: "no".into() });
    story.exited(1, exit_code(0));
    assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Running)));
    story.after_ms(UNDO_MS).input(Input::TimePassed);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Skipped);
    assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Finished(_))));
}

#[test]
fn a_coordinator_that_starts_late_acts_on_what_is_due() {
    let mut story = Story::of(PLAN);
    story.started(1);
    story.order(with_undo("T1"));
    story.after_ms(UNDO_MS);
    story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Alive { pid: 1, shim_pid: 2 })]);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Skipped);
}

#[test]
fn the_number_of_an_option_stands_for_it_and_an_empty_answer_is_none() {
    let ask = |options: &[&str]| {
        let mut story = Story::of(PLAN);
        story.started(1);
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        story.report(1, Report::Ask { task: task("T1"), text: "which?".into(), options, context: String::new() });
        story
    };
    let answer = |story: &mut Story, text: &str| {
        let id = *story.state.questions.keys().last().expect("a question");
        let step = story.order(Order::Answer { id, text: text.into() });
        (step.reply, story.state.questions[&id].answer.clone())
    };
    let mut story = ask(&["left", "right"]);
    assert!(matches!(answer(&mut story, " \n").0, Reply::Refused { reason } if reason.contains("empty")));
    assert_eq!(answer(&mut story, "2"), (Reply::Accepted, Some("right".into())));
    assert_eq!(answer(&mut story, "right").0, Reply::Already, "the same answer, spelled out");
    assert_eq!(answer(&mut ask(&["left", "right"]), "3").1, Some("3".into()), "no such option: a text");
    assert_eq!(answer(&mut ask(&["2", "1"]), "2").1, Some("2".into()), "an option that is itself a number");
    assert_eq!(answer(&mut ask(&[]), "1").1, Some("1".into()));
}
