//! Promises about events alone: they come back whole, in order and chained, and a batch made for another end of the
//! log writes nothing.

use rekindle_engine::store::chain::follow;
use rekindle_engine::store::{Batch, Error, Head, MAX_BATCH_BYTES, NewEvent, StoredEvent, Table};

use super::{HARD_TEXTS, Maker, event, events_only, line, offset, row};

fn given(stored: &StoredEvent) -> NewEvent {
    let StoredEvent { time_ms, run, kind, agent, task, epoch, details, .. } = stored.clone();
    NewEvent { time_ms, run, kind, agent, task, epoch, details }
}

pub(super) fn come_back(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    assert_eq!(store.head().expect("head"), Head::default(), "a new log is empty");
    assert_eq!(store.events(0, 10).expect("events"), [], "a new log is empty");
    let extremes = NewEvent { time_ms: i64::MIN, agent: None, task: None, epoch: Some(u64::MAX), ..event(0) };
    let plain = NewEvent { time_ms: i64::MAX, epoch: None, ..event(1) };
    store.append(events_only(vec![extremes.clone(), plain.clone()])).expect("append");
    store.append(events_only(vec![event(2)])).expect("append");
    let read = store.events(0, 10).expect("events");
    assert_eq!(read.iter().map(given).collect::<Vec<_>>(), [extremes, plain, event(2)]);
    assert_eq!(read.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 2, 3], "places rise by one from one");
    let again = subject.killed();
    assert_eq!(again.store().events(0, 10).expect("events"), read, "a kill changes nothing that was acknowledged");
}

pub(super) fn pages(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    store.append(events_only((0..25).map(event).collect())).expect("append");
    let mut after = 0;
    let mut seen = Vec::new();
    loop {
        let page = store.events(after, 10).expect("events");
        let Some(last) = page.last() else { break };
        after = last.seq;
        seen.push(page.len());
    }
    assert_eq!((seen, after), (vec![10, 10, 5], 25));
    assert_eq!(store.events(25, 10).expect("events"), [], "nothing after the end");
    assert_eq!(store.events(1_000, 10).expect("events"), [], "nothing after a place that does not exist");
    assert_eq!(store.events(0, 0).expect("events"), [], "a limit of none is none");
}

pub(super) fn any_text(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let hard = |text: &&str| NewEvent {
        run: (*text).into(),
        kind: (*text).into(),
        agent: Some((*text).into()),
        task: Some((*text).into()),
        details: (*text).into(),
        ..event(1)
    };
    let events: Vec<NewEvent> = HARD_TEXTS.iter().map(hard).collect();
    store.append(events_only(events.clone())).expect("append");
    let read = subject.killed().store().events(0, 100).expect("events");
    assert_eq!(read.iter().map(given).collect::<Vec<_>>(), events);
}

pub(super) fn chained(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let mut told = Head::default();
    for n in 0..20 {
        told = store.append(events_only(vec![event(n), event(n + 100)])).expect("append");
        assert_eq!(told.last_seq, 2 * n + 2, "the answer says where the log ends after this batch");
        assert_eq!(store.head().expect("head"), told, "the head is what was answered");
    }
    let mut walked = Head::default();
    for event in store.events(0, 100).expect("events") {
        follow(&mut walked, &event).expect("every event follows from the one before");
    }
    assert_eq!(walked, told);
    for from in [0, 7] {
        let report = store.verify(from).expect("verify");
        assert!(report.ok(), "{report:?}");
        assert_eq!((report.head, report.events), (told, 40 - from));
    }
}

pub(super) fn conflict(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let ahead = Batch { expect_last_seq: Some(3), ..events_only(vec![event(0)]) };
    assert_eq!(store.append(ahead), Err(Error::Conflict { expected: 3, found: 0 }));
    let right = Batch { expect_last_seq: Some(0), ..events_only(vec![event(0)]) };
    let head = store.append(right).expect("the log ends where it was expected to");
    let stale = Batch {
        expect_last_seq: Some(0),
        events: vec![event(1)],
        lines: vec![line("a", 1, 0, "text")],
        offsets: vec![offset(1, 5)],
        rows: vec![row(Table::Task, "r", "k", 0, "{}")],
        snapshot: Some(vec![1]),
    };
    assert_eq!(store.append(stale), Err(Error::Conflict { expected: 0, found: 1 }));
    for store in [store, subject.killed().store()] {
        assert_eq!(store.head().expect("head"), head, "a refused batch adds no event");
        assert_eq!(store.log_tail(None, 5).expect("tail"), [], "a refused batch adds no line");
        assert_eq!(store.offsets().expect("offsets"), [], "a refused batch moves no offset");
        assert_eq!(store.rows(Table::Task, None).expect("rows"), [], "a refused batch adds no row");
        assert_eq!(store.latest_snapshot().expect("snapshot"), None, "a refused batch leaves no snapshot");
    }
}

pub(super) fn empty(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    assert_eq!(store.append(Batch::default()).expect("append"), Head::default());
    let head = store.append(events_only(vec![event(0)])).expect("append");
    assert_eq!(store.append(Batch::default()).expect("append"), head);
}

pub(super) fn too_large(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let large = NewEvent { details: "x".repeat(MAX_BATCH_BYTES + 1), ..event(0) };
    assert!(matches!(store.append(events_only(vec![large])), Err(Error::TooLarge { .. })));
    store.append(events_only(vec![event(0)])).expect("the next append goes through");
}

pub(super) fn large_state(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let state = vec![7; MAX_BATCH_BYTES + 1];
    let large = Batch { snapshot: Some(state.clone()), ..events_only(vec![event(0)]) };
    store.append(large).expect("a state is as large as the run that it tells of");
    let kept = store.latest_snapshot().expect("a look").expect("a snapshot");
    assert!(kept.state == state, "it comes back whole");
}

pub(super) fn some_kinds(make: Maker<'_>) {
    let subject = make();
    let store = subject.store();
    let kinds = ["note", "start", "note", "note", "end", "note"];
    let named = |number: u64| NewEvent { kind: kinds[(number % 6) as usize].to_owned(), ..event(number) };
    store.append(events_only((0..60).map(named).collect())).expect("append");
    assert_eq!(store.kinds().expect("kinds"), ["end", "note", "start"]);
    let all = store.events(0, 100).expect("events");
    for (wanted, after, limit) in [
        (&["start", "end"][..], 0, 100),
        (&["end", "start"], 7, 5),
        (&["note"], 50, 100),
        (&["other"], 0, 9),
        (&[], 0, 9),
    ] {
        let fits = |event: &&StoredEvent| event.seq > after && wanted.contains(&event.kind.as_str());
        let expected: Vec<StoredEvent> = all.iter().filter(fits).take(limit).cloned().collect();
        assert_eq!(store.events_of(wanted, after, limit).expect("some"), expected, "{wanted:?} after {after}");
    }
    assert_eq!(store.count_of("note", 6).expect("counted"), 36);
    assert_eq!(store.count_of("other", 0).expect("counted"), 0);
}
