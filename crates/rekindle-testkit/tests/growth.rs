//! Nothing grows without a name: what a coordinator holds in memory depends on its plan and on who is at work, not on how many
//! short tasks have gone by. Every byte of the heap is counted.

use std::alloc::System;
use std::sync::Arc;

use rekindle_core::state::State;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{self, SqliteStore, Store, Table};
use rekindle_testkit::short_lives::ShortLives;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Tasks after which memory has to be flat; everything that is kept by number has reached it by then.
const SETTLED: usize = 1_000;

const TASKS: usize = 3_000;

/// What a task may leave behind, in bytes: a tenth of what a task of a plan takes from the first moment on.
const LEFT_BYTES: i64 = 100;

/// Bytes in use, beyond what one more snapshot of the state takes meanwhile.
fn live_bytes() -> i64 {
    let heap = HEAP.stats();
    i64::try_from(heap.bytes_allocated).expect("a size") - i64::try_from(heap.bytes_deallocated).expect("a size")
}

fn open(dir: &std::path::Path) -> Arc<dyn Store> {
    let dir = StateDir::open_or_create(dir).expect("a state directory");
    Arc::new(SqliteStore::open(&dir, store::Options::default()).expect("a store").0)
}

/// The state that the whole log adds up to, without any stored state.
fn replayed(store: &dyn Store) -> State {
    let (mut state, mut seq) = (State::default(), 0);
    loop {
        let page = store.events(seq, 1_000).expect("events");
        let Some(last) = page.last() else { return state };
        seq = last.seq;
        for event in &page {
            rekindle_core::apply::apply(&mut state, &driver::decode(event).expect("an event"));
        }
    }
}

#[test]
fn thousands_of_short_tasks_leave_memory_flat_and_rows_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir.path().join("state"));
    let mut run = ShortLives::new(Arc::clone(&store), TASKS);
    run.live(SETTLED);
    let before = live_bytes();
    let lived = run.live(usize::MAX);
    let grown = live_bytes() - before;
    assert!(lived >= TASKS - SETTLED, "every task was worked on: {lived}");
    let each = grown / i64::try_from(lived).expect("a number");
    assert!(each <= LEFT_BYTES, "{each} bytes are left of each of {lived} short lives, from {before} bytes on");

    // What the state let go of stands in the rows, and replay gives the same state.
    let state = run.driver.state().clone();
    assert_eq!(state, replayed(&*store), "replay gives the state");
    let attempts = store.rows(Table::Attempt, Some("run")).expect("rows");
    assert_eq!(attempts.len(), run.lives, "a row for every attempt");
    let tasks = store.rows(Table::Task, Some("run")).expect("rows");
    let is_whole = |json: &str| json.contains("\"state\":\"complete\"") && json.contains("\"command\":\"make check\"");
    let without = tasks.iter().find(|row| !is_whole(&row.json));
    assert_eq!((tasks.len(), without), (TASKS, None), "every task's row has its end and its evidence");

    // The next coordinator finds them as they are, and makes them anew where they are gone.
    let rows = || Table::ALL.map(|table| store.rows(table, None).expect("rows"));
    let whole = rows();
    drop(run);
    drop(ShortLives::again(Arc::clone(&store)));
    assert_eq!(rows(), whole, "a start changes no row");
    let few: Vec<_> = whole.iter().flatten().filter(|row| row.order % 3 != 0).cloned().collect();
    store.replace_rows(few).expect("a store that takes it");
    drop(ShortLives::again(Arc::clone(&store)));
    assert_eq!(rows(), whole, "rows that were lost are made from the log again");
}
