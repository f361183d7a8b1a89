//! Promises about kills and about many concurrent callers: what was acknowledged is there, whole, once and in order.

use std::collections::BTreeSet;

use rekindle_engine::store::{Batch, Error, NewEvent, Receipt, Store, Table};

use super::{Maker, event, events_only, line, offset, row};

/// Concurrent callers: far more than the cores, so that commits are shared.
const THREADS: u64 = 64;

/// Appends per caller.
const EACH: u64 = 8;

pub(super) fn whole(make: Maker<'_>) {
    let mut subject = make();
    for round in 0..5_u64 {
        let batch = Batch {
            expect_last_seq: Some(2 * round),
            events: vec![event(2 * round), event(2 * round + 1)],
            lines: vec![line("a", 1, 10 * round, &format!("line {round}"))],
            offsets: vec![offset(1, 10 * (round + 1))],
            rows: vec![row(Table::Task, "r", "T1", 0, &format!("{{\"round\":{round}}}"))],
            snapshot: Some(vec![round.to_le_bytes()[0]; 100]),
        };
        let told = subject.store().append(batch.clone()).expect("append");
        subject = subject.killed();
        let store = subject.store();
        assert_eq!(store.head().expect("head"), told, "events survive");
        assert_eq!(store.events(2 * round, 9).expect("events").len(), 2, "all events of the batch survive");
        let last = store.log_tail(None, 1).expect("tail").pop().expect("a line");
        assert_eq!(Some(&last.line), batch.lines.first(), "lines survive");
        assert_eq!(store.offsets().expect("offsets"), batch.offsets, "offsets survive");
        assert_eq!(store.rows(Table::Task, Some("r")).expect("rows"), batch.rows, "rows survive");
        let snapshot = store.latest_snapshot().expect("snapshot").expect("one");
        assert_eq!((snapshot.seq, Some(snapshot.state)), (told.last_seq, batch.snapshot), "the snapshot survives");
    }
}

pub(super) fn lines_with_offsets(make: Maker<'_>) {
    let mut subject = make();
    let text = "0123456789";
    for round in 0..10_u64 {
        let start = subject.store().offset(7, rekindle_engine::store::Stream::Out).expect("offset");
        assert_eq!(start, round * 33, "reading goes on where the last acknowledged lines ended");
        let lines = (0..3).map(|n| line("a", 7, start + n * 11, text)).collect();
        let batch = Batch { lines, offsets: vec![offset(7, start + 33)], ..Batch::default() };
        subject.store().append(batch).expect("append");
        subject = subject.killed();
    }
    let lines = subject.store().log_since(None, 0, 100).expect("since");
    let starts: Vec<u64> = lines.iter().map(|l| l.line.offset).collect();
    assert_eq!(starts, (0..30).map(|n| n * 11).collect::<Vec<_>>(), "no line is missing, doubled or out of order");
}

fn appender(store: &dyn Store, thread: u64) -> Vec<(Receipt, NewEvent)> {
    let append = |n: u64| {
        let event = NewEvent { run: format!("thread-{thread}"), ..event(n) };
        let batch = Batch {
            events: vec![event.clone()],
            lines: vec![line(&format!("agent-{thread}"), thread, n, &format!("{thread} {n}"))],
            offsets: vec![offset(thread, n + 1)],
            ..Batch::default()
        };
        (store.append(batch).expect("append"), event)
    };
    (0..EACH).map(append).collect()
}

pub(super) fn many_threads(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let acknowledged: Vec<(Receipt, NewEvent)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || appender(store, t))).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no panic")).collect()
    });
    let subject = subject.killed();
    let store = subject.store();
    let all = store.events(0, usize::MAX).expect("events");
    assert_eq!(all.len() as u64, THREADS * EACH, "nothing is missing and nothing is doubled");
    for (told, event) in &acknowledged {
        let at = usize::try_from(told.last_seq).expect("small") - 1;
        let found = all.get(at).expect("every acknowledged event survives a kill");
        assert_eq!((found.hash, &found.run, &found.details), (told.last_hash, &event.run, &event.details));
    }
    let places: BTreeSet<u64> = acknowledged.iter().map(|(told, _)| told.last_seq).collect();
    assert_eq!(places.len(), acknowledged.len(), "no place is given out twice");
    for thread in 0..THREADS {
        let run = format!("thread-{thread}");
        let order: Vec<_> = all.iter().filter(|e| e.run == run).map(|e| e.epoch).collect();
        assert_eq!(order, (0..EACH).map(Some).collect::<Vec<_>>(), "a caller's events stand in its order");
        let lines = store.log_tail(Some(&format!("agent-{thread}")), 100).expect("tail");
        assert_eq!(lines.len() as u64, EACH, "every acknowledged line survives a kill");
        let next = store.offset(thread, rekindle_engine::store::Stream::Out).expect("offset");
        assert_eq!(next, EACH, "offsets stand where the last line ended");
    }
    assert!(store.verify(0).expect("verify").ok());
}

pub(super) fn one_winner(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    for round in 0..4 {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let append = || {
                let batch = Batch { expect_last_seq: Some(round), ..events_only(vec![event(round)]) };
                store.append(batch)
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(append)).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        assert_eq!(answers.iter().filter(|a| a.is_ok()).count(), 1, "exactly one of equal expectations holds");
        let refused = Err(Error::Conflict { expected: round, found: round + 1 });
        assert_eq!(answers.iter().filter(|a| **a == refused).count(), 15, "the others are told where it ends");
    }
    assert_eq!(subject.killed().store().head().expect("head").last_seq, 4);
}
