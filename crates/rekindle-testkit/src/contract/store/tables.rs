//! Promises about what is stored besides events: derived rows, spool offsets, snapshots.

use rekindle_engine::store::{Batch, Row, SNAPSHOTS_KEPT, SpoolOffset, Stream, Table};

use super::{HARD_TEXTS, Maker, event, events_only, row};

pub(super) fn rows(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let put = |rows: Vec<Row>| store.append(Batch { rows, ..Batch::default() }).expect("append");
    put(vec![row(Table::Task, "b", "T1", 1, "1"), row(Table::Task, "a", "T2", u64::MAX, "2")]);
    put(vec![row(Table::Task, "a", "T9", 0, "3"), row(Table::Attempt, "a", "T9", 0, "other table")]);
    put(vec![row(Table::Task, "a", "T9", 7, "4"), row(Table::Task, "a", "T1", 7, "5")]);
    let expected = [
        row(Table::Task, "a", "T1", 7, "5"),
        row(Table::Task, "a", "T9", 7, "4"),
        row(Table::Task, "a", "T2", u64::MAX, "2"),
        row(Table::Task, "b", "T1", 1, "1"),
    ];
    for store in [store, subject.killed().store()] {
        assert_eq!(store.rows(Table::Task, None).expect("rows"), expected, "by run, order and key; the last wins");
        assert_eq!(store.rows(Table::Task, Some("a")).expect("rows"), expected[..3]);
        assert_eq!(store.rows(Table::Attempt, Some("a")).expect("rows").len(), 1);
        assert_eq!(store.rows(Table::Question, None).expect("rows"), []);
        assert_eq!(store.rows(Table::Task, Some("c")).expect("rows"), []);
    }
}

pub(super) fn rebuilt(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    store.append(Batch { rows: vec![row(Table::Run, "r", "gone", 0, "{}")], ..Batch::default() }).expect("append");
    let hard = |(n, text): (usize, &&str)| row(Table::Question, text, text, n as u64, text);
    let mut wanted: Vec<Row> = HARD_TEXTS.iter().enumerate().map(hard).collect();
    wanted.push(row(Table::Run, "r", "kept", 0, "{}"));
    for _ in 0..2 {
        store.replace_rows(wanted.clone()).expect("replace");
        let again = subject.killed();
        let found: Vec<Row> = Table::ALL.iter().flat_map(|t| again.store().rows(*t, None).expect("rows")).collect();
        assert_eq!(found.len(), wanted.len(), "exactly the given rows are left");
        assert!(wanted.iter().all(|row| found.contains(row)), "every given row is there");
    }
    store.replace_rows(Vec::new()).expect("replace");
    assert_eq!(store.rows(Table::Run, None).expect("rows"), []);
}

pub(super) fn offsets(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    assert_eq!(store.offset(1, Stream::Out).expect("offset"), 0, "a spool never read starts at 0");
    let at = |attempt, stream, next| SpoolOffset { attempt, stream, next };
    let put = |offsets| store.append(Batch { offsets, ..Batch::default() }).expect("append");
    put(vec![at(u64::MAX, Stream::Err, u64::MAX), at(2, Stream::Out, 10), at(2, Stream::Err, 20)]);
    put(vec![at(2, Stream::Out, 30)]);
    let expected = [at(2, Stream::Out, 30), at(2, Stream::Err, 20), at(u64::MAX, Stream::Err, u64::MAX)];
    for store in [store, subject.killed().store()] {
        assert_eq!(store.offsets().expect("offsets"), expected);
        assert_eq!(store.offset(2, Stream::Err).expect("offset"), 20);
    }
}

pub(super) fn snapshots(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    assert_eq!(store.latest_snapshot().expect("snapshot"), None);
    let count = SNAPSHOTS_KEPT as u64 + 3;
    for n in 1..=count {
        let state = Some(vec![n.to_le_bytes()[0]; 10_000]);
        store.append(Batch { snapshot: state, ..events_only(vec![event(n)]) }).expect("append");
    }
    store.append(events_only(vec![event(99)])).expect("append");
    for store in [store, subject.killed().store()] {
        let found = store.latest_snapshot().expect("snapshot").expect("one");
        assert_eq!((found.seq, found.state), (count, vec![count.to_le_bytes()[0]; 10_000]));
    }
    // A second state after the same event replaces the first.
    store.append(Batch { snapshot: Some(vec![7]), ..Batch::default() }).expect("append");
    store.append(Batch { snapshot: Some(vec![8]), ..Batch::default() }).expect("append");
    let found = subject.killed().store().latest_snapshot().expect("snapshot").expect("one");
    assert_eq!((found.seq, found.state), (count + 1, vec![8]));
}
