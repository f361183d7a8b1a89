//! A supervisor that ends before it has started its agent: the machine's doing, at the cost of no attempt.

use std::sync::Arc;

use rekindle_core::ids::{AttemptId, RunId, TaskId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::state::TaskState;

use crate::control::Called;
use crate::control::wire::Request;
use crate::driver::{Driver, Message, Settings, load};
use crate::redact::Redactor;
use crate::store::MemoryStore;
use crate::token::Tokens;
use crate::world::MemoryWorld;

fn begun() -> Driver<MemoryWorld> {
    first_over(Arc::new(MemoryStore::new()))
}

/// The first coordinator of a run with one task, which is being started.
fn first_over(store: Arc<MemoryStore>) -> Driver<MemoryWorld> {
    let mut driver = over(store, Found::NeverStarted);
    let plan = plan::parse("plan", b"# Plan\n\n### T1: One\n\nWork.\n").plan.expect("a plan");
    let run = RunId::new("run").expect("a name");
    let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
    driver.request_run(input).expect("a run");
    driver.start(1, limits(), "boot".into(), 1).expect("a start");
    driver
}

fn limits() -> Limits {
    Limits { attempts: 1, ..Limits::default() }
}

/// A driver over a store; what it finds of every attempt is given.
fn over(store: Arc<MemoryStore>, found: Found) -> Driver<MemoryWorld> {
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let fresh = load(&*store).expect("a state");
    let world = MemoryWorld { found, ..MemoryWorld::default() };
    Driver::new(store, world, fresh, Tokens::new([1; 32]), redactor, settings)
}

/// The second coordinator may not look at what the first one was starting. Nothing was started, so the watch has nothing to tell: the
/// driver looks again by itself until it knows.
#[test]
fn one_that_could_not_be_looked_at_is_looked_at_again_without_being_told() {
    let store = Arc::new(MemoryStore::new());
    drop(first_over(Arc::clone(&store)));

    let mut second = over(store, Found::Unresponsive);
    second.start(2, limits(), "boot".into(), 2).expect("a takeover");
    assert!(second.world().launched.is_empty(), "it may be running");
    let mut looks = 0;
    for refused in [true, true, false] {
        let at = second.next_deadline().expect("another look is planned");
        second.world().time = at;
        second.world().found = if refused { Found::Unresponsive } else { Found::NeverStarted };
        let due = second.unread();
        looks += due.len();
        second.handle(due.into_iter().map(|attempt| Message::Grew { attempt })).expect("a look");
    }
    assert_eq!(looks, 3);
    assert_eq!(second.world().launched, [AttemptId(1)], "it never ran: it is started now, as the same attempt");
    assert!(second.unread().is_empty(), "nothing is left to look at");
}

#[test]
fn its_end_costs_no_attempt_and_holds_starts() {
    let mut driver = begun();
    driver.handle([Message::Ended { attempt: AttemptId(1) }]).expect("told");
    let state = driver.state();
    let task = &state.tasks[&TaskId::new("T1").expect("a name")];
    assert_eq!((task.state, task.attempts), (TaskState::Pending, 0), "{:?}", task.reason);
    assert!(state.held.as_deref().is_some_and(|why| why.contains("supervisor")), "{:?}", state.held);
}

#[test]
fn one_that_was_to_be_stopped_ended_for_that() {
    let mut driver = begun();
    let call = Request::Order(Order::Pause(rekindle_core::event::PauseReason::Operator));
    let said = Message::Called(Called { token: None, ancestors: Vec::new(), call, reply: Box::new(|_| {}) });
    driver.handle([said]).expect("a pause");
    driver.handle([Message::Ended { attempt: AttemptId(1) }]).expect("told");
    let ended = &driver.state().attempts[&AttemptId(1)];
    assert_eq!(ended.cause.as_ref().map(|cause| cause.name()), Some("stopped_by_operator"));
    assert!(driver.state().held.is_none(), "nothing is wrong with the machine");
}
