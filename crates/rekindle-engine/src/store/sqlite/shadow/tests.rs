//! The shadow log alone: what it keeps, what a torn end or a damaged middle costs, what is let go.

use super::*;
use crate::store::NewEvent;

fn chain_of(count: u64) -> Vec<StoredEvent> {
    let mut head = Head::default();
    let mut events = Vec::new();
    for n in 0..count {
        let event = NewEvent {
            time_ms: 1,
            run: "r".into(),
            kind: "k".into(),
            agent: None,
            task: Some("line\nbreak \u{2028}".into()),
            epoch: Some(n),
            details: format!("{{\"n\":{n}}}"),
        };
        let stored = chain::link(head, event);
        head = Head { last_seq: stored.seq, last_hash: stored.hash };
        events.push(stored);
    }
    events
}

fn read_back(dir: &Path) -> Vec<StoredEvent> {
    let mut found = Vec::new();
    records(dir, |record| {
        found.extend(record.events.into_iter().filter_map(ShadowEvent::into_stored));
        Ok(())
    })
    .expect("read");
    found
}

fn written(dir: &Path, events: &[StoredEvent]) {
    let mut shadow = Shadow::open(dir).expect("opens");
    for event in events {
        shadow.append(std::slice::from_ref(event)).expect("append");
    }
}

#[test]
fn events_come_back_and_appending_goes_on_after_a_torn_end() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("shadow");
    let events = chain_of(6);
    written(&dir, &events[..4]);
    assert_eq!(read_back(&dir), events[..4]);
    let path = segments(&dir).expect("listed")[0].1.clone();
    let whole = std::fs::read(&path).expect("read");
    let last_start = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').expect("several lines") + 1;
    for cut in last_start..whole.len() {
        std::fs::write(&path, &whole[..cut]).expect("cut");
        assert_eq!(last_record(&dir).expect("read").map(|h| h.last_seq), Some(3), "cut at {cut}");
        let shadow = Shadow::open(&dir).expect("opens");
        assert_eq!(shadow.reached(), 3);
        assert_eq!(path.metadata().expect("there").len(), last_start as u64, "the torn end is cut off");
    }
    written(&dir, &events[3..]);
    assert_eq!(read_back(&dir), events);
}

#[test]
fn a_damaged_record_is_passed_over_and_the_others_are_read() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("shadow");
    let events = chain_of(5);
    written(&dir, &events);
    let path = segments(&dir).expect("listed")[0].1.clone();
    let whole = std::fs::read(&path).expect("read");
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).expect("written");
        let found = read_back(&dir);
        assert!(found.len() >= 3, "byte {at}: at most two records are hit");
        assert!(found.iter().all(|e| events.contains(e)), "byte {at}: what is read is what was written");
    }
}

#[test]
fn records_must_follow_and_offsets_ride_along() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("shadow");
    let events = chain_of(3);
    let mut shadow = Shadow::open(&dir).expect("opens");
    assert!(shadow.append(&events[1..]).is_err(), "a gap is not written");
    shadow.note_offsets(&[SpoolOffset { attempt: 7, stream: Stream::Err, next: 5 }]);
    shadow.note_offsets(&[SpoolOffset { attempt: 7, stream: Stream::Err, next: 9 }]);
    assert!(shadow.has_pending());
    shadow.append(&events).expect("append");
    assert!(!shadow.has_pending());
    shadow.sync().expect("synced");
    drop(shadow);
    let mut offsets = Vec::new();
    records(&dir, |record| {
        offsets.extend(record.offsets());
        Ok(())
    })
    .expect("read");
    assert_eq!(offsets, [SpoolOffset { attempt: 7, stream: Stream::Err, next: 9 }]);
}

#[test]
fn only_segments_that_no_backup_needs_are_let_go() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("shadow");
    let events = chain_of(9);
    for part in events.chunks(3) {
        let mut shadow = Shadow::open(&dir).expect("opens");
        shadow.segment = None;
        shadow.append(part).expect("append");
    }
    let numbers = || segments(&dir).expect("listed").iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(numbers(), [1, 2, 3]);
    prune(&dir, 5).expect("pruned");
    assert_eq!(numbers(), [2, 3], "the second segment holds event 6");
    prune(&dir, 100).expect("pruned");
    assert_eq!(numbers(), [3], "the last one is being written");
}
