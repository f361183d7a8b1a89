//! Connections for reading, shared by the threads of a process, and the read half of the store on top of them. This file
//! owns how many there are and notices when the database behind them was replaced; the queries themselves are in `read`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::check::{self, Depth};
use super::connect;
use super::{kinds, read, schema, shadow, text_index};
use crate::store::{
    Error, Head, Read, Row, Snapshot, SpoolOffset, StoredEvent, StoredLine, Stream, Table, Verification,
};

/// Connections kept open between queries: more are opened when needed and closed again.
const KEPT: usize = 4;

/// Which file a path led to when it was checked: another file under the same name differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    path: PathBuf,
    dev: u64,
    ino: u64,
}

impl Identity {
    /// The identity of the file at a path; a missing file is [`Error::Gone`].
    pub fn of(path: &Path) -> Result<Identity, Error> {
        match path.symlink_metadata() {
            Ok(meta) => Ok(Identity { path: path.to_owned(), dev: meta.dev(), ino: meta.ino() }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::Gone(path.to_owned())),
            Err(e) => Err(connect::io_fault(path, &e)),
        }
    }

    /// Checks that the file is still there and the same.
    pub fn check(&self) -> Result<(), Error> {
        if Identity::of(&self.path)? == *self { Ok(()) } else { Err(Error::Gone(self.path.clone())) }
    }
}

pub struct Pool {
    path: PathBuf,
    shadow: PathBuf,
    state: Mutex<State>,
    events_read: AtomicU64,
}

#[derive(Default)]
struct State {
    idle: Vec<(Identity, Connection)>,
    closed: Option<Error>,
}

impl Pool {
    pub fn new(path: PathBuf, shadow: PathBuf) -> Pool {
        Pool { path, shadow, state: Mutex::default(), events_read: AtomicU64::new(0) }
    }

    /// Closes all connections; every further query returns this error.
    pub fn close(&self, why: Error) {
        let mut state = self.lock();
        state.closed = Some(why);
        state.idle.clear();
    }

    /// Events that were read and checked so far: what a view costs on a long log.
    pub fn events_read(&self) -> u64 {
        self.events_read.load(Ordering::Relaxed)
    }

    fn counted(&self, events: Vec<StoredEvent>) -> Vec<StoredEvent> {
        self.events_read.fetch_add(events.len() as u64, Ordering::Relaxed);
        events
    }

    pub fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        // After a repair the path leads to another file: connections to the old one would answer from the past.
        let now = Identity::of(&self.path)?;
        let kept = {
            let mut state = self.lock();
            if let Some(why) = &state.closed {
                return Err(why.clone());
            }
            state.idle.retain(|(identity, _)| *identity == now);
            state.idle.pop()
        };
        let (identity, conn) = match kept {
            Some(kept) => kept,
            None => (now, open(&self.path)?),
        };
        let answer = question(&conn);
        let mut state = self.lock();
        if state.idle.len() < KEPT && state.closed.is_none() {
            state.idle.push((identity, conn));
        }
        answer
    }

    /// Queries with a new connection. The text index's own check trusts what its connection remembers of the index, and
    /// reports damage when the writer has merged parts of it since.
    fn ask_afresh<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(why) = &self.lock().closed {
            return Err(why.clone());
        }
        Identity::of(&self.path)?;
        question(&open(&self.path)?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> Result<Connection, Error> {
    let conn = connect::reader(path)?;
    schema::check_marks(&conn, path, schema::MIGRATIONS)?;
    Ok(conn)
}

/// Something that reads through a pool.
pub trait Pooled: Send + Sync {
    fn pool(&self) -> &Pool;
}

impl<T: Pooled> Read for T {
    fn head(&self) -> Result<Head, Error> {
        self.pool().ask(read::head)
    }

    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.pool().ask(|conn| read::events(conn, after_seq, limit)).map(|events| self.pool().counted(events))
    }

    fn events_read(&self) -> u64 {
        self.pool().events_read()
    }

    fn kinds(&self) -> Result<Vec<String>, Error> {
        self.pool().ask(kinds::all)
    }

    fn events_of(&self, kinds: &[&str], after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.pool().ask(|conn| kinds::events(conn, kinds, after_seq, limit)).map(|events| self.pool().counted(events))
    }

    fn count_of(&self, kind: &str, after_seq: u64) -> Result<u64, Error> {
        self.pool().ask(|conn| kinds::count(conn, kind, after_seq))
    }

    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.pool().ask(read::latest_snapshot)
    }

    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error> {
        self.pool().ask(read::offsets)
    }

    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error> {
        self.pool().ask(|conn| read::offset(conn, attempt, stream))
    }

    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
        self.pool().ask(|conn| read::rows(conn, table, run))
    }

    fn row(&self, table: Table, run: &str, key: &str) -> Result<Option<Row>, Error> {
        self.pool().ask(|conn| read::row(conn, table, run, key))
    }

    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
        self.pool().ask(|conn| read::log_tail(conn, agent, n))
    }

    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.pool().ask(|conn| read::log_since(conn, agent, after, limit))
    }

    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.pool().ask(|conn| read::attempt_lines(conn, attempt, after, limit))
    }

    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.pool().ask(|conn| read::attempt_tail(conn, attempt, limit))
    }

    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        self.pool().ask(|conn| read::attempt_places(conn, attempt, after, limit))
    }

    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.pool().ask(|conn| text_index::search(conn, query, agent, limit))
    }

    fn verify(&self, from_seq: u64) -> Result<Verification, Error> {
        let depth = if from_seq == 0 { Depth::Whole } else { Depth::Tail(from_seq) };
        let pool = self.pool();
        // Read the shadow log first: it only ever trails the database, so the database must have what it has now.
        let shadowed = shadow::last_record(&pool.shadow)?;
        pool.ask_afresh(|conn| {
            // One transaction, so that a writer in between cannot make two reads of the same thing differ.
            let tx = conn.unchecked_transaction().map_err(connect::fault)?;
            let mut report = check::content(&tx, depth, schema::MIGRATIONS)?;
            if let Some(at) = shadowed
                && report.ok()
                && read::head_at(&tx, at.last_seq)? != Some(at)
            {
                report.problems.push(format!("the shadow log has another event {}", at.last_seq));
            }
            Ok(report)
        })
    }
}
