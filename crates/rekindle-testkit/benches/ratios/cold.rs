//! A cold restart: the store opened and the state loaded, over histories of ten thousand to a million events. The limit
//! is reading the rows alone; the goal is that history does not matter.

use std::path::Path;
use std::sync::Arc;

use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{self, Read, SqliteStore, Store};

use crate::bed::{DriverBed, open_store, scratch};
use crate::floor::RawDatabase;
use crate::measure::{Options, Ratio, Row, Samples, human, seconds};

/// Histories.
const EVENTS: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Events of one transaction while a history is made.
const EVENTS_PER_COMMIT: usize = 250;

/// Tasks of the plan: the state's size, which is what a start should depend on.
const TASKS: usize = 100;

const ROUNDS: usize = 9;

/// Makes a history through the driver, as agents' checkpoints would.
fn history(path: &Path, events: usize) {
    let store: Arc<dyn Store> = Arc::new(open_store(path));
    let mut bed = DriverBed::new(Arc::clone(&store), TASKS);
    let mut number = 0;
    while store.head().expect("a head").last_seq < events as u64 {
        let messages: Vec<driver::Message> = (0..EVENTS_PER_COMMIT).map(|n| bed.checkpoint(number + n)).collect();
        number += EVENTS_PER_COMMIT;
        bed.driver.handle(messages).expect("a history");
    }
}

/// Opens and loads; returns the seconds of both.
fn open_and_load(path: &Path) -> (f64, f64) {
    let dir = StateDir::open(path).expect("a state directory");
    let mut opened = None;
    let open = seconds(|| opened = Some(SqliteStore::open(&dir, store::Options::default()).expect("a store")));
    let (store, report) = opened.expect("opened above");
    assert_eq!(report.repaired, None, "nothing is wrong with it");
    let load = seconds(|| {
        let (state, _) = driver::load(&store).expect("a state");
        store.replace_rows(driver::all_rows(&state)).expect("the rows are the same");
    });
    (open, load)
}

/// Starts over histories of rising length.
pub fn restart(options: &Options) -> Vec<Row> {
    let lengths = if options.quick { &EVENTS[..2] } else { &EVENTS[..] };
    let mut rows = Vec::new();
    let mut first: Option<f64> = None;
    for events in lengths {
        let dir = scratch();
        let path = dir.path().join("store");
        let making = seconds(|| history(&path, *events));
        let database = StateDir::open(&path).expect("a state directory").database();
        let [mut least, mut opening, mut both] = [const { Samples { rounds: Vec::new() } }; 3];
        for _ in 0..options.rounds(ROUNDS) {
            least.push(seconds(|| assert!(RawDatabase::read_state(&database) > 0, "rows are there")));
            let (open, load) = open_and_load(&path);
            opening.push(open);
            both.push(open + load);
        }
        let whole = store_verify(&path);
        let goal_ms = if *events <= 10_000 { 25.0 } else { 50.0 };
        let took = both.median();
        let grown = took / *first.get_or_insert(took);
        let measured = format!("{}, {grown:.2}× of 10 k", human(took));
        let detail = format!(
            "open {}, load {}; {} the {} of reading rows; made in {}",
            human(opening.median()),
            human(took - opening.median()),
            Ratio::of(&both, &least).times(),
            human(least.median()),
            human(making)
        );
        let area = format!("cold restart, {events} events");
        rows.push(Row::judged(&area, &format!("≤ {goal_ms} ms"), measured, took <= goal_ms / 1e3, detail));
        if *events == 1_000_000 {
            let detail = "every hash of the chain and everything beside it".into();
            rows.push(Row::judged("full verification, 1 M events", "≤ 1.5 s", human(whole), whole <= 1.5, detail));
        }
    }
    rows
}

fn store_verify(path: &Path) -> f64 {
    let store = open_store(path);
    seconds(|| assert!(store.verify(0).expect("a verification").ok(), "a sound store"))
}
