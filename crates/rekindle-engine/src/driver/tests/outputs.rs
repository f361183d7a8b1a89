//! Outputs of checks stay outside the state: a run with a thousand long ones goes on, and so does one whose state an earlier
//! version let grow.

use std::fmt::Write as _;
use std::sync::Arc;

use rekindle_core::apply::apply;
use rekindle_core::event::{Body, Event, TaskEvent};
use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::report::{CheckResult, Evidence, Report, TAIL_BYTES, TAILS_BYTES};
use rekindle_core::state::State;
use rekindle_core::time::Time;
use rekindle_core::{decide, plan};

use crate::control::Called;
use crate::control::wire::Request;
use crate::driver::commit::SNAPSHOT_EVERY;
use crate::driver::{Driver, Message, Settings, encode, load};
use crate::evidence::Outputs;
use crate::redact::Redactor;
use crate::state_dir::StateDir;
use crate::store::{Batch, MAX_BATCH_BYTES, MemoryStore, Options, SqliteStore, Store};
use crate::token::Tokens;
use crate::world::MemoryWorld;

/// What one check prints: the most that is taken of it.
const PRINTED: usize = 32 * 1024;

/// Checks whose outputs are together more than a batch may hold, once in an event and once in a row.
const CHECKS: usize = MAX_BATCH_BYTES / PRINTED / 2 + 30;

/// A driver that has taken over what a store holds, after beginning a run of `text` where there is none.
fn take_over(store: Arc<dyn Store>, place: &std::path::Path, text: &str) -> Driver<MemoryWorld> {
    let (state, seq) = load(&*store).expect("a state");
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let is_new = state.run.is_none();
    let found = Found::Alive { pid: 2, shim_pid: 3 };
    let world = MemoryWorld { found, outputs: Some(Outputs::of(place)), ..MemoryWorld::default() };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let mut driver = Driver::new(store, world, (state, seq), Tokens::new([1; 32]), redactor, settings);
    if is_new {
        driver.request_run(requested(text)).expect("a run");
    }
    driver.start(1, Limits::default(), "boot".into(), 1).expect("a start");
    driver
}

fn requested(text: &str) -> Input {
    let plan = plan::parse("plan", text.as_bytes()).plan.expect("a plan");
    let run = RunId::new("run").expect("a name");
    Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None }
}

/// A check that printed as much as is taken; every third one failed.
fn printed(number: usize) -> CheckResult {
    let (line, failed) = (format!("line of check {number}\n"), number.is_multiple_of(3));
    CheckResult {
        command: format!("check {number}"),
        passed: !failed,
        code: Some(i32::from(failed)),
        timed_out: false,
        output: line.repeat(PRINTED / line.len()),
        kept: None,
        took_ms: 1,
        environment: None,
    }
}

/// A decision that an operator notes: an event each, so that a state is stored soon.
fn decision(number: usize) -> Message {
    let call = Request::Order(Order::Note { text: format!("decision {number}") });
    Message::Called(Called { token: None, ancestors: Vec::new(), call, reply: Box::new(|_| {}) })
}

#[test]
fn a_thousand_long_outputs_of_one_claim_do_not_stop_a_run() {
    let place = tempfile::tempdir().expect("a place");
    let mut text = "# Plan\n\n### T1: One\n\n".to_owned();
    for number in 0..CHECKS {
        let _written = writeln!(text, "- accept: check {number}");
    }
    let store = Arc::new(MemoryStore::new());
    let mut driver = take_over(store.clone(), place.path(), &text);
    let (task, attempt, epoch) = (TaskId::new("T1").expect("a name"), AttemptId(1), Epoch(1));
    driver.handle([Message::Started { attempt, pid: 2, shim_pid: 3 }]).expect("it starts");
    let token = Tokens::new([1; 32]).token(attempt, epoch);
    let report = Report::Done { task: task.clone(), result: None };
    let call = Request::report(report);
    let said = Message::Called(Called { token: Some(token), ancestors: Vec::new(), call, reply: Box::new(|_| {}) });
    driver.handle([said]).expect("a claim");
    let seen = Evidence { checks: (0..CHECKS).map(printed).collect(), ..Evidence::default() };
    let whole = seen.clone();
    driver.handle([Message::ChecksDone { task: task.clone(), epoch, evidence: seen }]).expect("the checks are taken");
    driver.handle((0..SNAPSHOT_EVERY).map(decision)).expect("the run goes on");

    let (state, _) = load(&*store).expect("a state");
    assert_eq!(&state, driver.state(), "what is stored is what was decided");
    let mut kept = state.tasks[&task].evidence.clone().expect("evidence");
    let (failed, passed): (Vec<_>, Vec<_>) = kept.checks.iter().partition(|check| !check.passed);
    assert!(passed.iter().all(|check| check.output.is_empty()), "nobody reads what passed");
    assert!(failed.iter().all(|check| check.output.len() <= TAIL_BYTES));
    assert!(failed[0].output.ends_with("line of check 0\n"), "the end of a failed one is there");
    assert!(kept.checks.iter().map(|check| check.output.len()).sum::<usize>() <= TAILS_BYTES);
    crate::evidence::fill(place.path(), &mut kept);
    assert_eq!(kept.checks[1].output, whole.checks[1].output, "what passed is still to be read");
    drop(driver);
    take_over(store, place.path(), &text).pass_time().expect("the next coordinator goes on");
}

/// The log as a version left it that kept every output in the state, with the last snapshot that fitted into a batch.
fn grown(store: &dyn Store, text: &str, tasks: usize) {
    let mut state = State::default();
    let begun = decide::decide(&mut state, Time(500), requested(text)).events;
    let run = begun[0].run.clone();
    store.append(Batch { events: begun.iter().map(encode).collect(), ..Batch::default() }).expect("begun");
    let (mut bytes, mut batch) = (0, Batch::default());
    for number in 0..tasks {
        let id = TaskId::new(format!("T{number}")).expect("a name");
        let evidence = Evidence { checks: vec![printed(3 * number)], ..Evidence::default() };
        bytes += evidence.checks[0].output.len();
        let body = Body::Task(TaskEvent::ChecksFinished { passed: false, evidence: evidence.clone() });
        let event = Event { time: Time(500), run: run.clone(), agent: None, task: Some(id.clone()), epoch: None, body };
        apply(&mut state, &event);
        state.tasks.get_mut(&id).expect("a task").evidence = Some(evidence);
        batch.events.push(encode(&event));
        if batch.events.len() == tasks / 8 || number + 1 == tasks {
            let last_that_fitted = (tasks / 2..tasks * 5 / 8).contains(&number);
            batch.snapshot = last_that_fitted.then(|| serde_json::to_vec(&state).expect("a state"));
            store.append(std::mem::take(&mut batch)).expect("appended");
        }
    }
    assert!(bytes > MAX_BATCH_BYTES, "its state is over the limit: {bytes}");
    let fitted = store.latest_snapshot().expect("a look").expect("a snapshot").state.len();
    assert!((MAX_BATCH_BYTES / 2..MAX_BATCH_BYTES).contains(&fitted), "the last one that fitted: {fitted}");
}

#[test]
fn a_state_that_an_earlier_version_let_grow_opens_and_goes_on() {
    const TASKS: usize = 2 * CHECKS;
    let place = tempfile::tempdir().expect("a place");
    let dir = StateDir::open_or_create(&place.path().join("state")).expect("a state directory");
    let mut text = "# Plan\n".to_owned();
    for number in 0..TASKS {
        let _written = write!(text, "\n### T{number}: Some\n\n- accept: check {}\n", 3 * number);
    }
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("a store");
    let store: Arc<dyn Store> = Arc::new(store);
    grown(&*store, &text, TASKS);

    let mut driver = take_over(Arc::clone(&store), place.path(), &text);
    driver.handle((0..SNAPSHOT_EVERY).map(decision)).expect("the run goes on");
    let stored = store.latest_snapshot().expect("a look").expect("a snapshot");
    assert!(stored.state.len() < MAX_BATCH_BYTES / 4, "it shrank to {} bytes", stored.state.len());
    let now = driver.state().clone();
    drop(driver);
    assert_eq!(load(&*store).expect("a state").0, now, "a resume finds what was decided");
}
