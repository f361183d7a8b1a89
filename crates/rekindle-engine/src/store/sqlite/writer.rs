//! The one thread that writes. It owns the writing connection, the order of commits, group commit, and the chores of idle
//! moments: the text index and checkpoints. `write` defines what a batch means; the queue brings it here.
//!
//! An append is answered after COMMIT has synced, after a check that the files are still there, and after the shadow log has
//! its copy. A failed sync is never retried: the thread closes the database and reports it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

use rusqlite::Connection;

use super::connect::{self, fault};
use super::pool::{Identity, Pool};
use super::shadow::Shadow;
use super::text_index::{self, INDEXED_UPTO};
use super::write::{self, Cursor, Sources};
use super::{RemovedLines, read, removed, replay};
use crate::store::{Batch, Error, Receipt, Row, SpoolOffset, StoredEvent};

/// Requests that may wait; each waiter is a thread, so this only bounds what a bug could pile up.
pub const QUEUE: usize = 1_024;

/// Requests in one transaction: bounds how long the first of them waits for the last.
const MAX_GROUP: usize = 256;

/// Idle time after which the thread turns to its chores.
const IDLE: Duration = Duration::from_millis(20);

/// WAL growth after which an idle moment is used for a checkpoint.
const IDLE_CHECKPOINT_BYTES: usize = 1024 * 1024;

/// WAL growth after which a checkpoint no longer waits for an idle moment: reading a long WAL is slow.
const FULL_CHECKPOINT_BYTES: usize = 32 * 1024 * 1024;

/// What a small transaction adds to the WAL besides its texts: a handful of pages.
const TRANSACTION_BYTES: usize = 16 * 1024;

/// Lines that may wait for the text index before busy times have to give way to it, one step per [`INDEX_EVERY`].
const INDEX_BACKLOG: u64 = 20_000;

/// Transactions between two steps of the text index in busy times.
const INDEX_EVERY: u32 = 64;

pub type Reply<T> = SyncSender<Result<T, Error>>;

/// What callers ask of the thread.
pub enum Request {
    Append(Batch, Reply<Receipt>),
    ReplaceRows(Vec<Row>, Reply<()>),
    RemoveLines(u64, Reply<RemovedLines>),
    Compact(Reply<u64>),
}

pub struct Writer {
    conn: Option<Connection>,
    shadow: Shadow,
    pool: Arc<Pool>,
    files: Vec<Identity>,
    cursor: Cursor,
    sources: Sources,
    indexed_upto: u64,
    wal_bytes: usize,
    since_index: u32,
    /// A chore failed; it waits for the next commit instead of being retried in a loop.
    chores_failed: bool,
    /// Why nothing can be written any more.
    broken: Option<Error>,
}

impl Writer {
    /// Takes over the connection and shadow log that opening prepared.
    pub fn new(conn: Connection, shadow: Shadow, pool: Arc<Pool>, path: &Path) -> Result<Writer, Error> {
        // An empty write transaction makes sure that the WAL exists before its identity is read.
        conn.execute_batch("BEGIN IMMEDIATE; COMMIT").map_err(fault)?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Ok(Writer {
            files: vec![Identity::of(path)?, Identity::of(Path::new(&wal))?],
            cursor: Cursor::read(&conn)?,
            indexed_upto: read::meta(&conn, INDEXED_UPTO)?.cast_unsigned(),
            conn: Some(conn),
            shadow,
            pool,
            sources: Sources::default(),
            wal_bytes: 0,
            since_index: 0,
            chores_failed: false,
            broken: None,
        })
    }

    /// Serves requests until every sender is gone.
    pub fn run(mut self, queue: &Receiver<Request>) {
        while let Some(first) = self.next(queue) {
            let mut group = vec![first];
            while group.len() < MAX_GROUP
                && let Ok(request) = queue.try_recv()
            {
                group.push(request);
            }
            self.serve(group);
            self.after_commit();
        }
        self.close();
    }

    /// The next request; while none comes, chores are done one by one.
    fn next(&mut self, queue: &Receiver<Request>) -> Option<Request> {
        if self.has_chores() {
            match queue.recv_timeout(IDLE) {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        while self.has_chores() {
            match queue.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => self.chore(),
            }
        }
        queue.recv().ok()
    }

    fn serve(&mut self, group: Vec<Request>) {
        let mut appends = Vec::with_capacity(group.len());
        for request in group {
            match request {
                Request::Append(batch, reply) => appends.push((batch, reply)),
                Request::ReplaceRows(rows, reply) => {
                    // In order: earlier requests are committed earlier.
                    self.append_all(std::mem::take(&mut appends));
                    let answer = self.replace_rows(&rows);
                    drop(reply.send(answer));
                }
                Request::RemoveLines(attempt, reply) => {
                    self.append_all(std::mem::take(&mut appends));
                    let answer = self.guarded(|_, conn| removed::step(conn, attempt));
                    drop(reply.send(answer));
                }
                Request::Compact(reply) => {
                    self.append_all(std::mem::take(&mut appends));
                    drop(reply.send(self.compact()));
                }
            }
        }
        self.append_all(appends);
    }

    /// Commits the batches as one transaction; if the whole transaction fails, commits them one by one, so that a batch that
    /// is too much for the disk does not fail the others.
    fn append_all(&mut self, appends: Vec<(Batch, Reply<Receipt>)>) {
        if appends.is_empty() {
            return;
        }
        let batches: Vec<&Batch> = appends.iter().map(|(batch, _)| batch).collect();
        let answers = match self.transaction(&batches) {
            Ok(answers) => answers,
            Err(Error::Full(_) | Error::Io(_) | Error::Database(_)) if batches.len() > 1 => batches
                .iter()
                .map(|batch| self.transaction(&[batch]).and_then(|mut one| one.pop().unwrap_or(Err(Error::Closed))))
                .collect(),
            Err(error) => vec![Err(error); batches.len()],
        };
        for ((_, reply), answer) in appends.into_iter().zip(answers) {
            // A caller that stopped waiting does not want the answer.
            drop(reply.send(answer));
        }
    }

    /// One transaction for some batches: an answer for each, or one error and nothing of any is written.
    fn transaction(&mut self, batches: &[&Batch]) -> Result<Vec<Result<Receipt, Error>>, Error> {
        let before = self.cursor;
        let mut events = Vec::new();
        let mut offsets = Vec::new();
        let answers = self.guarded(|writer, conn| {
            let mut answers = Vec::with_capacity(batches.len());
            for batch in batches {
                let found = writer.cursor.head.last_seq;
                if let Some(expected) = batch.expect_last_seq.filter(|expected| *expected != found) {
                    answers.push(Err(Error::Conflict { expected, found }));
                    continue;
                }
                events.extend(write::batch(conn, &mut writer.cursor, &mut writer.sources, batch)?);
                offsets.extend_from_slice(&batch.offsets);
                writer.wal_bytes += batch.size_bytes();
                answers.push(Ok(writer.cursor.head));
            }
            Ok(answers)
        });
        if answers.is_err() {
            self.cursor = before;
        } else {
            self.copy_to_shadow(&events, &offsets);
        }
        answers
    }

    /// Runs `work` in a write transaction; an error rolls everything back.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Writer, &Connection) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        let Some(conn) = self.conn.take() else {
            return Err(Error::Closed);
        };
        let done = conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([])).map_err(fault);
        let done = done.and_then(|_| work(self, &conn)).and_then(|value| {
            conn.prepare_cached("COMMIT").and_then(|mut s| s.execute([])).map_err(fault)?;
            Ok(value)
        });
        // Only files that are still reachable under their names are durable.
        let done = done.and_then(|value| self.files.iter().try_for_each(Identity::check).map(|()| value));
        self.wal_bytes += TRANSACTION_BYTES;
        if let Err(error) = &done {
            self.sources.clear();
            if !conn.is_autocommit() && conn.execute_batch("ROLLBACK").is_err() {
                self.break_off(conn, Error::MustReopen(format!("a rollback failed after: {error}")));
                return done;
            }
            if matches!(error, Error::MustReopen(_) | Error::Gone(_) | Error::Corrupt(_)) {
                self.break_off(conn, error.clone());
                return done;
            }
        }
        self.conn = Some(conn);
        done
    }

    /// Gives up the database for good.
    fn break_off(&mut self, conn: Connection, why: Error) {
        connect::close_untouched(conn);
        self.pool.close(why.clone());
        self.broken = Some(why);
    }

    fn replace_rows(&mut self, rows: &[Row]) -> Result<(), Error> {
        if let Some(conn) = &self.conn
            && write::same_rows(conn, rows)?
        {
            return Ok(());
        }
        self.guarded(|_, conn| write::replace_rows(conn, rows))
    }

    fn compact(&mut self) -> Result<u64, Error> {
        match (&self.broken, &self.conn) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(conn)) => removed::compact(conn),
            (None, None) => Err(Error::Closed),
        }
    }

    /// The commit is durable whatever happens here; a shadow log that falls behind is brought up to date at a later commit.
    fn copy_to_shadow(&mut self, events: &[StoredEvent], offsets: &[SpoolOffset]) {
        self.shadow.note_offsets(offsets);
        if events.is_empty() || self.shadow.append(events).is_ok() {
            return;
        }
        if let Some(conn) = &self.conn {
            drop(replay::catch_up(conn, &mut self.shadow));
        }
    }

    fn after_commit(&mut self) {
        self.chores_failed = false;
        self.since_index += 1;
        if self.wal_bytes >= FULL_CHECKPOINT_BYTES {
            self.checkpoint();
        }
        if self.cursor.last_line - self.indexed_upto > INDEX_BACKLOG && self.since_index >= INDEX_EVERY {
            self.index_step();
        }
    }

    fn has_chores(&self) -> bool {
        let waiting = self.shadow.has_pending()
            || self.indexed_upto < self.cursor.last_line
            || self.wal_bytes >= IDLE_CHECKPOINT_BYTES;
        waiting && !self.chores_failed && self.broken.is_none()
    }

    fn chore(&mut self) {
        if self.shadow.has_pending() {
            self.chores_failed |= self.shadow.append(&[]).is_err();
        } else if self.indexed_upto < self.cursor.last_line {
            self.index_step();
        } else {
            self.checkpoint();
        }
    }

    fn index_step(&mut self) {
        let upto = self.indexed_upto;
        match self.guarded(|_, conn| text_index::step(conn, upto)) {
            Ok(reached) => self.indexed_upto = reached,
            Err(_) => self.chores_failed = true,
        }
        self.since_index = 0;
    }

    /// PASSIVE never waits for readers and never blocks them; the WAL is reused, not truncated.
    fn checkpoint(&mut self) {
        self.wal_bytes = 0;
        let Some(conn) = self.conn.take() else { return };
        let synced = self.shadow.sync();
        let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(fault);
        match moved {
            Err(why @ (Error::MustReopen(_) | Error::Corrupt(_))) => self.break_off(conn, why),
            other => {
                self.chores_failed |= other.is_err() || synced.is_err();
                self.conn = Some(conn);
            }
        }
    }

    fn close(mut self) {
        if self.broken.is_none() {
            // The writer's connection should be the last: then SQLite leaves one whole file and no WAL. All of this is only
            // tidying; the next opening does whatever is skipped here.
            self.pool.close(Error::Closed);
            drop(self.shadow.append(&[]));
            self.checkpoint();
        }
    }
}
