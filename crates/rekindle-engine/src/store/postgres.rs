//! The store on PostgreSQL, for a run that several machines look at: one space of a database, one writer that holds its lease,
//! every commit synced by the server. This file owns the handles that callers hold.
//!
//! The hash chain and the checksums are the ones of the other engines, made by the writer and checked by every reader: a store
//! can be moved between engines event by event. The database refuses every write whose epoch is over (see `schema`).

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{
    Batch, Error, Head, OpenReport, Read, Receipt, RemovedLines, Row, Snapshot, SpoolOffset, Store, StoredEvent,
    StoredLine, Stream, Table, Verification,
};

mod address;
mod check;
mod lines;
mod link;
mod passfile;
mod read;
mod removed;
mod schema;
mod write;
mod writer;

pub use address::Address;
pub(super) use address::shown;
use lines::Of;
use link::{Fault, Link};
use writer::Writer;

/// Connections kept for reading; more are opened when more threads read at once, and closed afterwards.
const READERS_KEPT: usize = 2;

/// How often a lease is renewed while it lasts: two renewals may fail without losing it.
const RENEWALS_PER_LEASE: u32 = 4;

/// How long leadership of a space lasts, and who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Names the one who leads to others. The same name leads again at once, so it must be one that two living
    /// coordinators never share: a host and a state directory whose lock is held.
    pub holder: String,
    pub length: Duration,
}

impl Lease {
    /// The usual length: short enough to go on soon after a leader's death, long enough for a slow moment.
    pub const USUAL: Duration = Duration::from_secs(15);

    fn millis(&self) -> i64 {
        i64::try_from(self.length.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Connections for reading.
struct Readers {
    address: Address,
    space: i64,
    free: Mutex<Vec<Link>>,
}

impl Readers {
    /// Asks over a free connection or a new one. A question that got no answer is asked once more over a new connection.
    fn ask<T>(&self, ask: impl Fn(&mut Link, i64) -> Result<T, Fault>) -> Result<T, Error> {
        let kept = self.lock().pop().filter(|link| !link.is_closed());
        let was_kept = kept.is_some();
        let mut link = kept.map_or_else(|| Link::connect(&self.address), Ok)?;
        let mut answer = ask(&mut link, self.space);
        if was_kept && matches!(answer, Err(Fault::Lost(_))) {
            link = Link::connect(&self.address)?;
            answer = ask(&mut link, self.space);
        }
        if !matches!(answer, Err(Fault::Lost(_))) {
            let mut free = self.lock();
            if free.len() < READERS_KEPT {
                free.push(link);
            }
        }
        answer.map_err(Fault::error)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Link>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews a lease beside the work until it is dropped.
struct Renewal {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Renewal {
    fn start(address: Address, lead: write::Lead, lease: &Lease) -> Result<Renewal, Error> {
        let (stop, stopped) = sync_channel::<()>(1);
        let (every, lease_ms) = (lease.length / RENEWALS_PER_LEASE, lease.millis());
        let renew = move || {
            let mut link: Option<Link> = None;
            while matches!(stopped.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
                link = link.filter(|link| !link.is_closed()).or_else(|| Link::connect(&address).ok());
                // A lead that is lost is told by the next write; a database that is away by every one.
                let renewed = link.as_mut().map(|link| writer::renew(link, lead, lease_ms));
                if matches!(renewed, Some(Err(Fault::Lost(_)))) {
                    link = None;
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-lease".into()).spawn(renew);
        let thread = thread.map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
        Ok(Renewal { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked; the lease then ends by itself.
            drop(thread.join());
        }
    }
}

/// A space of a database; `W` is what it takes to write, or nothing.
pub struct Postgres<W> {
    readers: Readers,
    writing: W,
}

/// The store for the coordinator that leads the space.
pub type PostgresStore = Postgres<Writing>;

/// The store for views, on any machine that reaches the database.
pub type PostgresReader = Postgres<()>;

/// Leadership of a space, given up when dropped.
pub struct Writing {
    writer: Mutex<Writer>,
    /// Stopped before leadership is given up.
    renewal: Option<Renewal>,
}

impl Writing {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.renewal = None;
        self.writer().resign();
    }
}

impl PostgresStore {
    /// Opens a space for writing: migrates the schema, makes the space where there is none, takes its lead.
    pub fn open(address: &Address, space: &str, lease: Lease) -> Result<(PostgresStore, OpenReport), Error> {
        let opened = Writer::open(address, space, lease.clone())?;
        let lead = opened.writer.lead();
        let report = OpenReport {
            created: opened.created,
            migrated: opened.migrated,
            head: opened.writer.head(),
            ..OpenReport::default()
        };
        let readers = Readers { address: address.clone(), space: lead.space, free: Mutex::default() };
        let renewal = Some(Renewal::start(address.clone(), lead, &lease)?);
        let writing = Writing { writer: Mutex::new(opened.writer), renewal };
        Ok((Postgres { readers, writing }, report))
    }
}

impl Store for PostgresStore {
    fn append(&self, batch: Batch) -> Result<Receipt, Error> {
        batch.check_size()?;
        self.writing.writer().append(batch)
    }

    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error> {
        self.writing.writer().replace_rows(&rows)
    }

    fn backup_if_due(&self, _now_ms: i64) -> Result<Option<PathBuf>, Error> {
        // Backups of a database server are its operator's.
        Ok(None)
    }

    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error> {
        self.writing.writer().remove_lines(attempt)
    }

    fn compact(&self) -> Result<u64, Error> {
        // The server's autovacuum gives room back.
        Ok(0)
    }
}

impl PostgresReader {
    /// Opens a space for reading; changes nothing.
    pub fn open(address: &Address, space: &str) -> Result<PostgresReader, Error> {
        let address = address.for_reading();
        let mut link = Link::connect(&address)?;
        let missing = || Error::NoSpace { address: address.to_string(), space: space.to_owned() };
        if schema::version(&mut link, &address)? == 0 {
            return Err(missing());
        }
        let space = schema::space(&mut link, space)?.ok_or_else(missing)?;
        Ok(Postgres { readers: Readers { address, space, free: Mutex::new(vec![link]) }, writing: () })
    }

    /// Who led last, whether or not the lease still lasts.
    pub fn last_leader(&self) -> Result<Option<String>, Error> {
        self.readers.ask(read::last_leader)
    }
}

impl<W: Send + Sync> Read for Postgres<W> {
    fn head(&self) -> Result<Head, Error> {
        self.readers.ask(read::head)
    }

    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.readers.ask(|link, space| read::events(link, space, after_seq, limit))
    }

    fn leader(&self) -> Result<Option<String>, Error> {
        self.readers.ask(read::leader)
    }

    fn kinds(&self) -> Result<Vec<String>, Error> {
        self.readers.ask(read::kinds)
    }

    fn events_of(&self, kinds: &[&str], after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.readers.ask(|link, space| read::events_of(link, space, kinds, after_seq, limit))
    }

    fn count_of(&self, kind: &str, after_seq: u64) -> Result<u64, Error> {
        self.readers.ask(|link, space| read::count_of(link, space, kind, after_seq))
    }

    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.readers.ask(read::latest_snapshot)
    }

    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error> {
        self.readers.ask(read::offsets)
    }

    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error> {
        self.readers.ask(|link, space| read::offset(link, space, attempt, stream))
    }

    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
        self.readers.ask(|link, space| read::rows(link, space, table, run))
    }

    fn row(&self, table: Table, run: &str, key: &str) -> Result<Option<Row>, Error> {
        self.readers.ask(|link, space| read::row(link, space, table, run, key))
    }

    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
        self.readers.ask(|link, space| lines::tail(link, space, Of::agent(agent), n))
    }

    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.readers.ask(|link, space| lines::since(link, space, Of::agent(agent), after, limit))
    }

    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.readers.ask(|link, space| lines::since(link, space, Of::Attempt(attempt), after, limit))
    }

    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.readers.ask(|link, space| lines::tail(link, space, Of::Attempt(attempt), limit))
    }

    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        self.readers.ask(|link, space| lines::places(link, space, attempt, after, limit))
    }

    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
        self.readers.ask(|link, space| lines::search(link, space, query, Of::agent(agent), limit))
    }

    fn verify(&self, from_seq: u64) -> Result<Verification, Error> {
        self.readers.ask(|link, space| check::content(link, space, from_seq))
    }
}
