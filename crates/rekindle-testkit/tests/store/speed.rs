//! Not a benchmark: bounds so wide that only a lost design (a sync a line, a text index in the commit) breaks them.

use std::time::Instant;

use rekindle_engine::store::{Batch, Read, Store};
use rekindle_testkit::contract::store::{line, offset};

use crate::bed::{knob, open, state};

#[test]
fn lines_are_taken_in_batches_far_faster_than_agents_write_them() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    let text = "0123456789abcdef ".repeat(12)[..200].to_owned();
    let (batches, each) = (knob("REKINDLE_SPEED_BATCHES", 100), 500);
    let started = Instant::now();
    for batch in 0..batches {
        let lines = (0..each).map(|n| line("agent", 1, (batch * each + n) * 201, &text)).collect();
        let offsets = vec![offset(1, (batch + 1) * each * 201)];
        store.append(Batch { lines, offsets, ..Batch::default() }).expect("append");
    }
    let seconds = started.elapsed().as_secs_f64();
    let rate = (batches * each) as f64 / seconds;
    assert!(rate > 5_000.0, "{rate:.0} lines/s");
    assert_eq!(store.log_tail(None, 1).expect("tail")[0].seq, batches * each);
    if knob("REKINDLE_SPEED_TELL", 0) == 1 {
        panic!("told on request: {rate:.0} lines/s");
    }
}
