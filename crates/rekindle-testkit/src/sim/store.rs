//! The store as a story's coordinators see it: the product's own in-memory engine behind a seam where bugs are planted.
//!
//! It decides nothing on its own. Exactly what the engine behind it holds is durable.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_engine::store::{
    Batch, Error, Head, MemoryStore, Read, Receipt, RemovedLines, Row, Snapshot, SpoolOffset, Store, StoredEvent,
    StoredLine, Stream, Table, Verification,
};

use super::plant::Plant;

/// The seam.
#[derive(Debug)]
pub struct SimStore {
    engine: Arc<MemoryStore>,
    plant: Option<Plant>,
    held: Mutex<Option<Batch>>,
    /// Number of reads that will be refused.
    reads_refused: Arc<AtomicU64>,
    most_lines: AtomicUsize,
}

impl SimStore {
    /// A seam around an engine.
    pub fn new(engine: Arc<MemoryStore>, plant: Option<Plant>, reads_refused: Arc<AtomicU64>) -> Self {
        Self { engine, plant, held: Mutex::new(None), reads_refused, most_lines: AtomicUsize::new(0) }
    }

    /// Refuses a read that may fail because of other processes, if one is due.
    fn may_read(&self) -> Result<(), Error> {
        let left = self.reads_refused.load(Ordering::Relaxed);
        if left == 0 {
            return Ok(());
        }
        self.reads_refused.store(left - 1, Ordering::Relaxed);
        Err(Error::Busy("a read (simulated)".to_owned()))
    }

    /// The planted lie about a batch that was refused.
    fn written_or_not(&self, batch: Batch) -> Result<Receipt, Error> {
        let head = self.engine.head()?;
        let last_seq = head.last_seq + batch.events.len() as u64;
        match self.engine.append(batch) {
            Err(Error::Full(_) | Error::Busy(_) | Error::Io(_) | Error::TooLarge { .. }) => {
                Ok(Head { last_seq, ..head })
            }
            other => other,
        }
    }

    /// Lines of the largest batch so far.
    pub fn most_lines(&self) -> usize {
        self.most_lines.load(Ordering::Relaxed)
    }

    /// The planted lie: a batch with a completion only seems to be durable, until the next one is.
    fn acknowledge_early(&self, batch: Batch) -> Result<Receipt, Error> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = held.take() {
            self.engine.append(before)?;
        }
        // A batch that also starts something would be detected by what it starts; here the answer alone should be the lie.
        let begins = |kind: &str| {
            let ends = ["_dispatched", "_claimed", "_ordered", "_closed", "_asked", "_told"];
            ends.iter().any(|end| kind.ends_with(end))
        };
        let completes = batch.events.iter().any(|event| event.kind == "task_completed");
        if !completes || batch.events.iter().any(|event| begins(&event.kind)) {
            return self.engine.append(batch);
        }
        let head = self.engine.head()?;
        let last_seq = head.last_seq + batch.events.len() as u64;
        *held = Some(batch);
        Ok(Head { last_seq, ..head })
    }
}

impl Read for SimStore {
    fn head(&self) -> Result<Head, Error> {
        self.engine.head()
    }

    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.engine.events(after_seq, limit)
    }

    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.may_read()?;
        self.engine.latest_snapshot()
    }

    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error> {
        self.engine.offsets()
    }

    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error> {
        self.may_read()?;
        match self.plant {
            Some(Plant::IngestWithoutOffset) => Ok(0),
            _ => self.engine.offset(attempt, stream),
        }
    }

    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
        self.may_read()?;
        self.engine.rows(table, run)
    }

    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
        self.may_read()?;
        self.engine.log_tail(agent, n)
    }

    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.engine.log_since(agent, after, limit)
    }

    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.engine.attempt_lines(attempt, after, limit)
    }

    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.engine.attempt_tail(attempt, limit)
    }

    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        self.engine.attempt_places(attempt, after, limit)
    }

    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.engine.log_search(query, agent, limit)
    }

    fn verify(&self, from_seq: u64) -> Result<Verification, Error> {
        self.engine.verify(from_seq)
    }
}

impl Store for SimStore {
    fn append(&self, batch: Batch) -> Result<Receipt, Error> {
        self.most_lines.fetch_max(batch.lines.len(), Ordering::Relaxed);
        match self.plant {
            Some(Plant::AckBeforeCommit) => self.acknowledge_early(batch),
            Some(Plant::RefusedAsWritten) => self.written_or_not(batch),
            _ => self.engine.append(batch),
        }
    }

    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error> {
        self.engine.replace_rows(rows)
    }

    fn backup_if_due(&self, now_ms: i64) -> Result<Option<PathBuf>, Error> {
        self.engine.backup_if_due(now_ms)
    }

    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error> {
        self.engine.remove_lines(attempt)
    }

    fn compact(&self) -> Result<u64, Error> {
        self.engine.compact()
    }
}
