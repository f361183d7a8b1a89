//! What the driver owes the next start, on the store in memory and with an outside in which nothing happens.

mod growth;
mod outputs;
mod storms;
mod unstarted;

use std::sync::Arc;

use rekindle_core::ids::{RunId, TaskId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;

use super::commit::SNAPSHOT_EVERY;
use super::{Driver, Message, Settings, load, rows_from_log};
use crate::control::Called;
use crate::control::wire::Request;
use crate::redact::Redactor;
use crate::store::{MemoryStore, Read, Row, Table};
use crate::token::Tokens;
use crate::world::MemoryWorld;

/// A coordinator's life up to its death: it takes over, and an operator notes so many decisions.
fn live(store: &Arc<MemoryStore>, notes: usize) {
    let (state, seq) = load(&**store).expect("a state");
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let is_new = state.run.is_none();
    let mut driver =
        Driver::new(store.clone(), MemoryWorld::default(), (state, seq), Tokens::new([1; 32]), redactor, settings);
    if is_new {
        let plan = plan::parse("plan", b"# Plan\n\n### T1: One\n\nWork.\n").plan.expect("a plan");
        let run = RunId::new("run").expect("a name");
        let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
        driver.request_run(input).expect("a run");
    }
    driver.start(1, Limits::default(), "boot".into(), 1).expect("a start");
    for number in 0..notes {
        let call = Request::Order(Order::Note { text: format!("decision {number}") });
        let said = Message::Called(Called { token: None, ancestors: Vec::new(), call, reply: Box::new(|_| {}) });
        driver.handle([said]).expect("a note");
    }
}

#[test]
fn short_lives_leave_no_long_replay() {
    let store = Arc::new(MemoryStore::new());
    let notes = SNAPSHOT_EVERY / 8;
    for _ in 0..40 {
        live(&store, notes);
        let head = store.head().expect("a head").last_seq;
        let stored = store.latest_snapshot().expect("a snapshot").map_or(0, |snapshot| snapshot.seq);
        assert!(head - stored <= SNAPSHOT_EVERY as u64, "a start replays {} events", head - stored);
    }
    assert!(store.head().expect("a head").last_seq > 4 * SNAPSHOT_EVERY as u64, "there was enough to replay");
}

#[test]
fn rows_of_what_was_let_go_are_made_from_the_log_again() {
    let store = Arc::new(MemoryStore::new());
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let fresh = load(&*store).expect("an empty state");
    let mut driver =
        Driver::new(store.clone(), MemoryWorld::default(), fresh, Tokens::new([1; 32]), redactor, settings);
    let plan =
        plan::parse("plan", b"# Plan\n\n### T1: One\n\nWork.\n\n### T2: Two\n\nWork.\n\n### T3: Three\n\nWork.\n");
    let (plan, run) = (Box::new(plan.plan.expect("a plan")), RunId::new("run").expect("a name"));
    driver.request_run(Input::RunRequested { run, plan, plan_path: "/w/plan.md".into(), branch: None }).expect("a run");
    let kept = 8;
    driver.start(1, Limits { ended_kept: kept, ..Limits::default() }, "boot".into(), 1).expect("a start");
    let task = |id: &str| TaskId::new(id).expect("a name");
    let mut order = |order: Order| {
        let call = Request::Order(order);
        let said = Message::Called(Called { token: None, ancestors: Vec::new(), call, reply: Box::new(|_| {}) });
        driver.handle([said]).expect("an order");
    };
    order(Order::Complete { task: task("T1"), result: None });
    for _ in 0..=kept {
        order(Order::Complete { task: task("T2"), result: None });
        order(Order::Retry { task: task("T2") });
    }
    assert!(driver.state().tasks[&task("T1")].settled, "it ended long ago");
    let key = |row: &Row| (row.table, row.key.clone());
    let mut shown: Vec<Row> = Table::ALL.iter().flat_map(|table| store.rows(*table, None).expect("rows")).collect();
    let mut told = rows_from_log(&*store).expect("rows");
    shown.sort_by_key(key);
    told.sort_by_key(key);
    assert_eq!(told, shown);
}
