//! Work that is counted, not timed: only a lost design (a sync a line, a text index in the commit) breaks these bounds.

use rekindle_engine::store::{Batch, Read, Store};
use rekindle_testkit::contract::store::{line, offset};

use crate::bed::{open, state};

/// Lines of a batch.
const EACH: u64 = 500;

/// Batches, so that what the store does now and then is in the count.
const BATCHES: u64 = 100;

#[test]
fn a_batch_of_lines_costs_far_fewer_writes_than_lines() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    let text = "0123456789abcdef ".repeat(12)[..200].to_owned();
    let before = writes();
    for batch in 0..BATCHES {
        let lines = (0..EACH).map(|n| line("agent", 1, (batch * EACH + n) * 201, &text)).collect();
        let offsets = vec![offset(1, (batch + 1) * EACH * 201)];
        store.append(Batch { lines, offsets, ..Batch::default() }).expect("append");
    }
    let each = (writes() - before) / BATCHES;
    assert!(each < EACH / 2, "{each} writes for a batch of {EACH} lines");
    assert_eq!(store.log_tail(None, 1).expect("tail")[0].seq, BATCHES * EACH);
}

/// Write calls of this process so far.
fn writes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("counted by the kernel");
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("write calls");
    line.parse().expect("a number")
}
