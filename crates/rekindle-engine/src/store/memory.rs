//! The store in memory, for the simulator and as the model of the contract: the same promises, no files. It owns the faults
//! that tests can inject; exactly `Content` is durable, and a restart is a clone of it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chain::{self, Hash};
use super::search::Query;
use super::{
    Batch, Error, Head, Read, Receipt, RemovedLines, Row, SNAPSHOTS_KEPT, Snapshot, SpoolOffset, Store, StoredEvent,
    StoredLine, Stream, Table, Verification,
};

/// What happens to one of the next appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The append succeeds; used to place a fault further ahead.
    None,
    /// The disk is full: refused, nothing written, and the store continues.
    Full,
    /// Another process holds the database: refused, nothing written.
    Busy,
    /// The disk gives an error: refused, nothing written.
    Io,
    /// The batch is over the bound: refused, nothing written.
    TooLarge,
    /// The process dies before the commit: nothing is durable, nothing is acknowledged.
    CrashBeforeCommit,
    /// The process dies after the commit: everything is durable, nothing is acknowledged.
    CrashAfterCommit,
}

/// Everything that survives a crash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    events: Vec<Arc<StoredEvent>>,
    lines: Vec<StoredLine>,
    /// The last place that was given to a line, removed or not.
    last_line: u64,
    offsets: BTreeMap<(u64, Stream), u64>,
    rows: BTreeMap<(Table, String, String), Row>,
    snapshots: Vec<(Head, Vec<u8>, Hash)>,
}

#[derive(Debug, Default)]
struct Inner {
    content: Content,
    faults: VecDeque<Fault>,
    crashed: bool,
}

#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Adds a fault for the next append that has none yet.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// The store that a restart after a crash at this moment would find: the durable content, no faults.
    pub fn restarted(&self) -> MemoryStore {
        let content = self.lock().content.clone();
        MemoryStore { inner: Mutex::new(Inner { content, ..Inner::default() }) }
    }

    /// Restarts in place, for a caller that has dropped everything else that used the store: nothing of a long log is
    /// copied.
    pub fn restart(&self) {
        let mut inner = self.lock();
        inner.faults.clear();
        inner.crashed = false;
    }

    /// The durable events after a sequence number, without copying each one. Unlike every other call, this also works on a
    /// crashed store.
    pub fn durable_since(&self, after_seq: u64) -> Vec<Arc<StoredEvent>> {
        let events = &self.lock().content.events;
        events[usize::try_from(after_seq).unwrap_or(usize::MAX).min(events.len())..].to_vec()
    }

    pub fn has_snapshot(&self) -> bool {
        !self.lock().content.snapshots.is_empty()
    }

    /// How many events and lines are durable.
    pub fn lengths(&self) -> (usize, usize) {
        let content = &self.lock().content;
        (content.events.len(), content.lines.len())
    }

    /// Whether an injected crash has happened; every call now returns [`Error::Closed`].
    pub fn crashed(&self) -> bool {
        self.lock().crashed
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panicking test thread must not hide the content from the ones that check it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Result<MutexGuard<'_, Inner>, Error> {
        let inner = self.lock();
        if inner.crashed { Err(Error::Closed) } else { Ok(inner) }
    }
}

impl Content {
    fn head(&self) -> Head {
        self.events.last().map_or_else(Head::default, |e| Head { last_seq: e.seq, last_hash: e.hash })
    }

    fn apply(&mut self, batch: Batch) -> Receipt {
        let mut head = self.head();
        for event in batch.events {
            let stored = chain::link(head, event);
            head = Head { last_seq: stored.seq, last_hash: stored.hash };
            self.events.push(Arc::new(stored));
        }
        for line in batch.lines {
            self.last_line += 1;
            self.lines.push(StoredLine { seq: self.last_line, line });
        }
        for offset in batch.offsets {
            self.offsets.insert((offset.attempt, offset.stream), offset.next);
        }
        for row in batch.rows {
            self.put_row(row);
        }
        if let Some(state) = batch.snapshot {
            let hash = chain::snapshot_hash(head, &state);
            self.snapshots.retain(|(at, _, _)| at.last_seq != head.last_seq);
            self.snapshots.push((head, state, hash));
            let surplus = self.snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
            self.snapshots.drain(..surplus);
        }
        head
    }

    fn put_row(&mut self, row: Row) {
        self.rows.insert((row.table, row.run.clone(), row.key.clone()), row);
    }

    fn lines_of<'a>(&'a self, agent: Option<&'a str>) -> impl DoubleEndedIterator<Item = &'a StoredLine> {
        self.lines.iter().filter(move |l| agent.is_none_or(|agent| agent == l.line.agent))
    }
}

/// Takes the first `n` of lines that come newest first, and returns them oldest first.
fn newest<'a>(lines: impl Iterator<Item = &'a StoredLine>, n: usize) -> Vec<StoredLine> {
    let mut found: Vec<StoredLine> = lines.take(n).cloned().collect();
    found.reverse();
    found
}

impl Read for MemoryStore {
    fn head(&self) -> Result<Head, Error> {
        Ok(self.live()?.content.head())
    }

    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let inner = self.live()?;
        let from = usize::try_from(after_seq).unwrap_or(usize::MAX).min(inner.content.events.len());
        Ok(inner.content.events[from..].iter().take(limit).map(|event| StoredEvent::clone(event)).collect())
    }

    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        let inner = self.live()?;
        let good =
            inner.content.snapshots.iter().rev().find(|(at, state, hash)| chain::snapshot_hash(*at, state) == *hash);
        Ok(good.map(|(at, state, _)| Snapshot { seq: at.last_seq, state: state.clone() }))
    }

    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error> {
        let inner = self.live()?;
        let all = inner.content.offsets.iter();
        Ok(all.map(|(&(attempt, stream), &next)| SpoolOffset { attempt, stream, next }).collect())
    }

    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error> {
        Ok(self.live()?.content.offsets.get(&(attempt, stream)).copied().unwrap_or(0))
    }

    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
        let inner = self.live()?;
        let wanted = |row: &&Row| row.table == table && run.is_none_or(|run| run == row.run);
        let mut rows: Vec<Row> = inner.content.rows.values().filter(wanted).cloned().collect();
        rows.sort_by(|a, b| (&a.run, a.order, &a.key).cmp(&(&b.run, b.order, &b.key)));
        Ok(rows)
    }

    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
        Ok(newest(self.live()?.content.lines_of(agent).rev(), n))
    }

    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        let inner = self.live()?;
        let from = inner.content.lines.partition_point(|line| line.seq <= after);
        let wanted = |l: &&StoredLine| agent.is_none_or(|agent| agent == l.line.agent);
        Ok(inner.content.lines[from..].iter().filter(wanted).take(limit).cloned().collect())
    }

    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        let inner = self.live()?;
        let lines = inner.content.lines_of(None).filter(|l| l.line.attempt == attempt && l.seq > after);
        Ok(lines.take(limit).cloned().collect())
    }

    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        let inner = self.live()?;
        Ok(newest(inner.content.lines_of(None).rev().filter(|l| l.line.attempt == attempt), limit))
    }

    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        Ok(self.attempt_lines(attempt, after, limit)?.iter().map(|line| line.seq).collect())
    }

    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
        let query = Query::new(query);
        let inner = self.live()?;
        Ok(newest(inner.content.lines_of(agent).rev().filter(|l| query.matches(&l.line.text)), limit))
    }

    fn verify(&self, from_seq: u64) -> Result<Verification, Error> {
        let inner = self.live()?;
        let mut report = Verification { lines: inner.content.lines.len() as u64, ..Verification::default() };
        for event in &inner.content.events {
            if let Err(error) = chain::follow(&mut report.head, event) {
                report.problems.push(error.to_string());
                break;
            }
            report.events += u64::from(event.seq > from_seq);
        }
        Ok(report)
    }
}

impl Store for MemoryStore {
    fn append(&self, batch: Batch) -> Result<Receipt, Error> {
        batch.check_size()?;
        let mut inner = self.live()?;
        let found = inner.content.head().last_seq;
        if let Some(expected) = batch.expect_last_seq.filter(|expected| *expected != found) {
            return Err(Error::Conflict { expected, found });
        }
        match inner.faults.pop_front().unwrap_or(Fault::None) {
            Fault::None => Ok(inner.content.apply(batch)),
            Fault::Full => Err(Error::Full("asked for by the test".into())),
            Fault::Busy => Err(Error::Busy("asked for by the test".into())),
            Fault::Io => Err(Error::Io("asked for by the test".into())),
            Fault::TooLarge => Err(Error::TooLarge { bytes: usize::MAX, limit: 0 }),
            Fault::CrashBeforeCommit => {
                inner.crashed = true;
                Err(Error::Closed)
            }
            Fault::CrashAfterCommit => {
                inner.content.apply(batch);
                inner.crashed = true;
                Err(Error::Closed)
            }
        }
    }

    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error> {
        let mut inner = self.live()?;
        inner.content.rows.clear();
        rows.into_iter().for_each(|row| inner.content.put_row(row));
        Ok(())
    }

    fn backup_if_due(&self, _now_ms: i64) -> Result<Option<PathBuf>, Error> {
        self.live().map(|_| None)
    }

    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error> {
        let mut inner = self.live()?;
        let mut removed = RemovedLines::default();
        inner.content.lines.retain(|line| {
            let goes = line.line.attempt == attempt;
            removed.lines += u64::from(goes);
            removed.bytes += if goes { line.line.text.len() as u64 } else { 0 };
            !goes
        });
        Ok(removed)
    }

    fn compact(&self) -> Result<u64, Error> {
        self.live().map(|_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewEvent;

    fn one(kind: &str) -> Batch {
        let event = NewEvent {
            time_ms: 0,
            run: "r".into(),
            kind: kind.into(),
            agent: None,
            task: None,
            epoch: None,
            details: "{}".into(),
        };
        Batch { events: vec![event], ..Batch::default() }
    }

    #[test]
    fn a_crash_before_the_commit_leaves_nothing_and_after_it_everything() {
        for (fault, left) in [(Fault::CrashBeforeCommit, 1), (Fault::CrashAfterCommit, 2)] {
            let store = MemoryStore::new();
            store.inject(Fault::None);
            store.inject(fault);
            store.append(one("a")).expect("the first append has no fault");
            assert_eq!(store.append(one("b")), Err(Error::Closed));
            assert_eq!(store.head(), Err(Error::Closed), "a crashed store answers nothing");
            assert_eq!(store.restarted().head().expect("restarted").last_seq, left);
        }
    }

    #[test]
    fn a_full_disk_refuses_one_append_and_the_next_goes_through() {
        let store = MemoryStore::new();
        store.inject(Fault::Full);
        assert!(matches!(store.append(one("a")), Err(Error::Full(_))));
        assert_eq!(store.append(one("a")).expect("space is back").last_seq, 1);
    }
}
