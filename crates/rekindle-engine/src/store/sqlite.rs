//! The store on SQLite: one file, one writing thread, group commit, every commit synced. This file owns the handles that
//! callers hold; each part behind them has its own file.
//!
//! The event log is chained by hashes, everything else carries checksums, and there are a shadow log and verified backups.
//! So damage is found, mostly repaired, and otherwise refused; it is never passed on as content.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Batch, Error, Head, Receipt, RemovedLines, Row, Store, Stream};
use crate::state_dir::StateDir;

mod backup;
mod check;
mod connect;
mod kinds;
mod lag;
mod open;
mod pool;
mod read;
mod removed;
mod repair;
mod replay;
mod schema;
mod shadow;
mod text_index;
mod write;
mod writer;

pub use lag::{Lag, lag};
use pool::{Pool, Pooled};
use writer::{QUEUE, Reply, Request, Writer};

/// The version of the bundled database library.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The time, for the name of a backup before a migration.
    pub now_ms: i64,
    /// Check every page and line, whatever the size: for use after a `verify` that found something.
    pub whole_check: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// There was no database, and a new one was created.
    pub created: bool,
    /// How the database was repaired, if it was damaged.
    pub repaired: Option<Repaired>,
    /// The schema was moved from one version to another.
    pub migrated: Option<(i64, i64)>,
    /// Events that the database had lost and the shadow log still had.
    pub replayed: u64,
    /// Events after this one are known to have existed and could not be brought back.
    pub lost_after: Option<u64>,
    /// Parts of spools whose lines are missing in the log index after a repair or a replay: read them again and append
    /// the lines, without observing them and without offsets.
    pub gaps: Vec<SpoolGap>,
    /// The derived tables are stale: rebuild them with `replace_rows`.
    pub rows_stale: bool,
    /// Every page and line was checked; otherwise run `verify(0)` in the background.
    pub whole: bool,
    pub head: Head,
}

/// How a damaged database was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    pub why: String,
    /// Where the damaged files are now.
    pub kept_aside: PathBuf,
    /// The backup it was built on; `None` if it was built from the shadow log and the damaged file alone.
    pub restored_from: Option<PathBuf>,
    /// Events taken from the shadow log.
    pub replayed: u64,
    /// Events taken from the damaged file itself.
    pub salvaged: u64,
}

/// A part of a spool that was read once, but whose lines are not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolGap {
    pub attempt: u64,
    /// Which of its two files.
    pub stream: Stream,
    /// First byte of the gap.
    pub from: u64,
    /// The byte after the gap.
    pub to: u64,
}

/// The store for the coordinator. Dropping it finishes pending requests and closes the files. After an error that says so
/// ([`Error::MustReopen`], [`Error::Gone`], [`Error::Corrupt`]) drop it and open it again.
pub struct SqliteStore {
    dir: StateDir,
    pool: Arc<Pool>,
    queue: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
    syncer: shadow::Syncer,
    /// Allows one backup at a time.
    backup: Mutex<()>,
}

impl SqliteStore {
    /// Opens the store of a directory, making, repairing or migrating it as needed. The caller holds the
    /// coordinator's lock: there is one writer.
    pub fn open(dir: &StateDir, options: Options) -> Result<(SqliteStore, OpenReport), Error> {
        SqliteStore::open_at(dir, options, schema::MIGRATIONS)
    }

    fn open_at(dir: &StateDir, options: Options, migrations: &[&str]) -> Result<(SqliteStore, OpenReport), Error> {
        let opened = open::open(dir, options, migrations)?;
        let pool = Arc::new(Pool::new(dir.database(), dir.shadow()));
        let syncer = opened.shadow.syncer();
        let writer = Writer::new(opened.conn, opened.shadow, Arc::clone(&pool), &dir.database())?;
        let (queue, requests) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(move || writer.run(&requests));
        let thread = thread.map_err(|e| Error::Io(format!("cannot start a thread: {e}")))?;
        let store = SqliteStore {
            dir: dir.clone(),
            pool,
            queue: Some(queue),
            thread: Some(thread),
            syncer,
            backup: Mutex::new(()),
        };
        Ok((store, opened.report))
    }

    /// Takes a backup now, no matter when the last one was taken.
    pub fn backup(&self, now_ms: i64) -> Result<PathBuf, Error> {
        let _one = self.backup.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_backup(now_ms)
    }

    fn take_backup(&self, now_ms: i64) -> Result<PathBuf, Error> {
        self.syncer.sync_now().map_err(|e| connect::io_fault(&self.dir.shadow(), &e))?;
        self.pool.ask(|conn| backup::take(&self.dir, conn, now_ms, schema::MIGRATIONS))
    }

    /// Hands a request to the writing thread and waits for its answer.
    fn request<T>(&self, make: impl FnOnce(Reply<T>) -> Request) -> Result<T, Error> {
        let (reply, answer) = sync_channel(1);
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue.send(make(reply)).map_err(|_| Error::Closed)?;
        answer.recv().map_err(|_| Error::Closed)?
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread can only have panicked, and the closed channel has already told its waiters.
            drop(thread.join());
        }
    }
}

impl Pooled for SqliteStore {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> Result<Receipt, Error> {
        batch.check_size()?;
        self.request(|reply| Request::Append(batch, reply))
    }

    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error> {
        self.request(|reply| Request::ReplaceRows(rows, reply))
    }

    fn backup_if_due(&self, now_ms: i64) -> Result<Option<PathBuf>, Error> {
        let _one = self.backup.lock().unwrap_or_else(PoisonError::into_inner);
        if backup::is_due(&self.dir, now_ms)? { self.take_backup(now_ms).map(Some) } else { Ok(None) }
    }

    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error> {
        self.request(|reply| Request::RemoveLines(attempt, reply))
    }

    fn compact(&self) -> Result<u64, Error> {
        self.request(Request::Compact)
    }
}

/// The store for views, in this or another process: reads while a coordinator writes, and when none runs.
pub struct SqliteReader {
    pool: Pool,
}

impl SqliteReader {
    /// Opens for reading; changes nothing, repairs nothing.
    pub fn open(dir: &StateDir) -> Result<SqliteReader, Error> {
        connect::check_library()?;
        let pool = Pool::new(dir.database(), dir.shadow());
        pool.ask(|_| Ok(()))?;
        Ok(SqliteReader { pool })
    }
}

impl Pooled for SqliteReader {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

#[cfg(test)]
mod tests;
