//! The contract is worth something: stores with one planted bug each are caught by it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rekindle_engine::store::{
    Batch, Error, Head, MemoryStore, Read, Receipt, RemovedLines, Row, Snapshot, SpoolOffset, Store, StoredEvent,
    StoredLine, Stream, Table, Verification,
};
use rekindle_testkit::contract::store::{CASES, Subject};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// None: the wrapper itself must pass.
    None,
    /// Answers before the commit, which the next append makes.
    AckBeforeCommit,
    /// Ignores where the caller believes the log to end.
    IgnoreExpectation,
    /// Writes lines in one transaction and their offsets in the next.
    OffsetsLater,
    /// Writes lines of a batch that is then refused.
    LinesOfRefused,
    /// Forgets snapshots at a restart.
    NoSnapshot,
}

/// A good store with a bug in front of it.
struct Planted {
    bug: Bug,
    seen: MemoryStore,
    durable: Arc<MemoryStore>,
    late: Mutex<Option<Batch>>,
}

impl Planted {
    fn new(bug: Bug) -> Planted {
        Planted { bug, seen: MemoryStore::new(), durable: Arc::default(), late: Mutex::default() }
    }
}

impl Read for Planted {
    fn head(&self) -> Result<Head, Error> {
        self.seen.head()
    }
    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.seen.events(after_seq, limit)
    }
    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.seen.latest_snapshot()
    }
    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error> {
        self.seen.offsets()
    }
    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error> {
        self.seen.offset(attempt, stream)
    }
    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
        self.seen.rows(table, run)
    }
    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
        self.seen.log_tail(agent, n)
    }
    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.seen.log_since(agent, after, limit)
    }
    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.seen.attempt_lines(attempt, after, limit)
    }

    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.seen.attempt_tail(attempt, limit)
    }

    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        self.seen.attempt_places(attempt, after, limit)
    }

    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.seen.log_search(query, agent, limit)
    }
    fn verify(&self, from_seq: u64) -> Result<Verification, Error> {
        self.seen.verify(from_seq)
    }
}

impl Store for Planted {
    fn append(&self, mut batch: Batch) -> Result<Receipt, Error> {
        // One caller at a time, so that both copies take batches in the same order.
        let mut late = self.late.lock().expect("not poisoned");
        if self.bug == Bug::IgnoreExpectation {
            batch.expect_last_seq = None;
        }
        if self.bug == Bug::LinesOfRefused {
            let lines = Batch { lines: std::mem::take(&mut batch.lines), ..Batch::default() };
            self.seen.append(lines.clone())?;
            self.durable.append(lines)?;
        }
        let told = self.seen.append(batch.clone())?;
        batch.expect_last_seq = None;
        let now = match self.bug {
            Bug::AckBeforeCommit => late.replace(batch),
            Bug::OffsetsLater => {
                let offsets = Batch { offsets: std::mem::take(&mut batch.offsets), ..Batch::default() };
                if let Some(earlier) = late.replace(offsets) {
                    self.durable.append(earlier)?;
                }
                Some(batch)
            }
            Bug::NoSnapshot => Some(Batch { snapshot: None, ..batch }),
            _ => Some(batch),
        };
        now.map_or(Ok(()), |batch| self.durable.append(batch).map(drop))?;
        Ok(told)
    }

    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error> {
        self.durable.replace_rows(rows.clone())?;
        self.seen.replace_rows(rows)
    }

    fn backup_if_due(&self, _now_ms: i64) -> Result<Option<PathBuf>, Error> {
        Ok(None)
    }
    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error> {
        self.seen.remove_lines(attempt)
    }
    fn compact(&self) -> Result<u64, Error> {
        self.seen.compact()
    }
}

impl Subject for Planted {
    fn store(&self) -> &dyn Store {
        self
    }

    fn killed(&self) -> Box<dyn Subject> {
        let (seen, durable) = (self.durable.restarted(), Arc::new(self.durable.restarted()));
        Box::new(Planted { bug: self.bug, seen, durable, late: Mutex::default() })
    }
}

/// The names of the cases that a bug breaks.
fn broken(bug: Bug) -> Vec<&'static str> {
    let make = || -> Box<dyn Subject> { Box::new(Planted::new(bug)) };
    let fails = |case: fn(&dyn Fn() -> Box<dyn Subject>)| catch_unwind(AssertUnwindSafe(|| case(&make))).is_err();
    CASES.iter().filter(|(_, case)| fails(*case)).map(|(name, _)| *name).collect()
}

#[test]
fn the_wrapper_without_a_bug_keeps_the_contract() {
    assert_eq!(broken(Bug::None), Vec::<&str>::new());
}

#[test]
fn every_planted_bug_is_caught() {
    let expected = [
        (Bug::AckBeforeCommit, "what was acknowledged to many threads survives a kill"),
        (Bug::IgnoreExpectation, "a conflict writes nothing"),
        (Bug::OffsetsLater, "lines and offsets stand or fall together"),
        (Bug::LinesOfRefused, "a conflict writes nothing"),
        (Bug::NoSnapshot, "the newest snapshot is found"),
    ];
    for (bug, case) in expected {
        assert!(broken(bug).contains(&case), "{bug:?} slips through {case:?}");
    }
}
