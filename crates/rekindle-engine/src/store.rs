//! The durable store as its callers see it: what goes in, what comes out, and what can go wrong.
//!
//! This file owns the types and the two traits, [`Read`] for views and [`Store`] for the one writer. Events are opaque here:
//! the driver encodes and decodes them. How an engine keeps its promises is described in its own file ([`sqlite`],
//! [`memory`]); the contract suite of the testkit shows that both keep the same promises.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rekindle_core::text::counted;

pub mod chain;
pub mod locate;
pub mod memory;
pub mod postgres;
pub mod search;
pub mod sqlite;

pub use chain::Hash;
pub use locate::{Space, may_have_log, open, reader};
pub use memory::MemoryStore;
pub use postgres::{PostgresReader, PostgresStore};
pub use sqlite::{Lag, OpenReport, Options, Repaired, SpoolGap, SqliteReader, SqliteStore, lag, sqlite_version};

/// Largest sum of events and lines in one batch: far above any real step, far below what would stall the writer for seconds.
pub const MAX_BATCH_BYTES: usize = 64 * 1024 * 1024;

/// Page size for searching events in an engine that has no index of kinds.
const KINDS_PAGE: usize = 4_096;

/// Snapshots kept: the newest, and two to fall back on when the newest proves damaged.
pub const SNAPSHOTS_KEPT: usize = 3;

/// An event to be appended; the store gives it its sequence number and its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// When it happened, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    pub run: String,
    pub kind: String,
    /// The agent concerned, if any.
    pub agent: Option<String>,
    /// The task concerned, if any.
    pub task: Option<String>,
    pub epoch: Option<u64>,
    /// The rest, as the text of a JSON object; the store does not parse it.
    pub details: String,
}

/// An event as the log holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its sequence number, from 1, without gaps.
    pub seq: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    pub run: String,
    pub kind: String,
    /// The agent concerned, if any.
    pub agent: Option<String>,
    /// The task concerned, if any.
    pub task: Option<String>,
    pub epoch: Option<u64>,
    /// The rest, as the text of a JSON object.
    pub details: String,
    /// Hash over the previous event's hash and this row.
    pub hash: Hash,
}

/// Where an agent's output was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Out,
    Err,
    /// The transcript that the agent's program keeps. Only the read offset is stored: its lines are not indexed.
    Transcript,
}

/// One record of an agent's output, as the log index holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub attempt: u64,
    pub agent: String,
    pub epoch: u64,
    pub stream: Stream,
    /// When it was read, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    /// Where it begins in the spool, in bytes.
    pub offset: u64,
    /// Its raw length in the spool, in bytes; `text` may be shorter.
    pub len: u64,
    /// The text to show and search, truncated by the caller.
    pub text: String,
    /// It ended without a newline and will never get one.
    pub torn: bool,
}

/// A log line with its sequence number in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Its sequence number among all lines, from 1, rising.
    pub seq: u64,
    pub line: LogLine,
}

/// How far a spool has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolOffset {
    pub attempt: u64,
    /// Which of its two files.
    pub stream: Stream,
    /// First byte not yet read.
    pub next: u64,
}

/// The derived tables, one SQL table each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Run,
    Task,
    Attempt,
    Question,
}

impl Table {
    /// Every derived table, in the order they are compared and rebuilt.
    pub const ALL: [Table; 4] = [Table::Run, Table::Task, Table::Attempt, Table::Question];
}

/// A row of a derived table; `(table, run, key)` identifies it, and a later row with the same identity replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub table: Table,
    pub run: String,
    /// Its key within the run.
    pub key: String,
    /// Its position among its run's rows.
    pub order: u64,
    /// Its content, as JSON text; the store does not parse it.
    pub json: String,
}

/// Everything one step makes durable, in one transaction or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Append only if the log ends at this event; `None` appends wherever it ends.
    pub expect_last_seq: Option<u64>,
    pub events: Vec<NewEvent>,
    pub lines: Vec<LogLine>,
    /// How far the spools of those lines are now read.
    pub offsets: Vec<SpoolOffset>,
    /// Derived rows as they are after these events.
    pub rows: Vec<Row>,
    /// The state after these events, for a faster start.
    pub snapshot: Option<Vec<u8>>,
}

impl Batch {
    /// Whether there is nothing to make durable: rows follow from events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.lines.is_empty() && self.offsets.is_empty()
    }

    /// Bytes of text and state in the batch.
    pub fn size_bytes(&self) -> usize {
        let rows = self.rows.iter().map(|r| r.run.len() + r.key.len() + r.json.len());
        let snapshot = self.snapshot.as_ref().map_or(0, Vec::len);
        self.news_bytes() + rows.sum::<usize>() + snapshot
    }

    /// Bytes of new content in the batch, for the size limit. Rows and snapshot do not count: they are as large as the state
    /// they are derived from, and a run whose state has grown must not be refused for it.
    fn news_bytes(&self) -> usize {
        let events = self.events.iter().map(|e| {
            let names = e.agent.as_ref().map_or(0, String::len) + e.task.as_ref().map_or(0, String::len);
            e.run.len() + e.kind.len() + e.details.len() + names
        });
        let lines = self.lines.iter().map(|l| l.text.len() + l.agent.len());
        events.chain(lines).sum::<usize>()
    }

    /// Refuses a batch that no engine accepts, before it reaches a queue.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        let bytes = self.news_bytes();
        if bytes > MAX_BATCH_BYTES {
            return Err(Error::TooLarge { bytes, limit: MAX_BATCH_BYTES });
        }
        Ok(())
    }
}

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The last event's sequence number; 0 when there is none.
    pub last_seq: u64,
    /// The last event's hash; zeroes when there is none.
    pub last_hash: Hash,
}

/// The answer to an append: where the log ended right after that batch.
pub type Receipt = Head;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event it contains.
    pub seq: u64,
    /// The state, as the caller encoded it.
    pub state: Vec<u8>,
}

/// What a verification checked and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// Events whose hash was recomputed.
    pub events: u64,
    /// Log lines whose checksum was recomputed.
    pub lines: u64,
    /// Where the verified log ends.
    pub head: Head,
    /// What is wrong, one line each, bounded in number.
    pub problems: Vec<String>,
}

impl Verification {
    pub fn ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Why the store could not do what was asked. Each error says whether a retry can help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The log does not end where the caller expected; nothing of the batch was written.
    #[error("the log ends at event {found}, the batch was made for {expected}")]
    Conflict {
        /// Where the caller expected it to end.
        expected: u64,
        found: u64,
    },
    /// No space left; nothing of the batch was written, retry when there is space.
    #[error("no space left on the disk of the store: {0}")]
    Full(String),
    /// The disk failed; nothing of the batch was acknowledged, a retry may help.
    #[error("input/output error on the store: {0}")]
    Io(String),
    /// Another process holds the database; a retry may help.
    #[error("the database is locked by another process: {0}")]
    Busy(String),
    /// The database cannot be reached; trying again may help. Whether the last write was made is found out before the next.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// Another coordinator has taken leadership: nothing that this one writes counts any more.
    #[error("another coordinator has taken this run over: {0}")]
    Fenced(String),
    /// Another coordinator leads; it can be taken over when its lease is over.
    #[error("another coordinator drives this run: {0}")]
    Led(String),
    /// The run's agents are on another machine: from here they would seem to be gone.
    #[error("{} at {holder}: it can be continued only there", counted(*.agents, "agent of this run is", "agents of this run are"))]
    AgentsElsewhere { holder: String, agents: u64 },
    /// The address of a database cannot be used as it is written.
    #[error("{address} cannot be used: {why}")]
    Address { address: String, why: String },
    /// The database has no space of that name: nothing was stored there yet.
    #[error("{address} has no space named {space}")]
    NoSpace { address: String, space: String },
    /// Permissions or a read-only disk forbid it; a person has to fix that.
    #[error("the store cannot be written: {0}")]
    Denied(String),
    /// The batch is larger than the bound.
    #[error("a batch of {bytes} bytes is over the limit of {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// Content is not what was written; open the store again to have it repaired.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A file of the database was removed or replaced while in use; open the store again.
    #[error("{0} was removed or replaced while in use; the store must be opened again")]
    Gone(PathBuf),
    /// It is unknown whether the last write is durable; reopen the store and read where it ends.
    #[error("the store must be opened again: {0}")]
    MustReopen(String),
    #[error("{path} has schema {found}, this rekindle knows up to {known}; use a newer rekindle")]
    Newer {
        path: PathBuf,
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The file is not a rekindle store; it was left unchanged.
    #[error("{path} is not a rekindle store: {why}; it was left untouched")]
    Foreign {
        path: PathBuf,
        /// How that was recognised.
        why: String,
    },
    /// Damaged, and no copy is good enough to continue from; everything was left as it is.
    #[error("{path} is damaged ({why}) and cannot be repaired: {tried}")]
    Unrepairable { path: PathBuf, why: String, tried: String },
    /// The database and the shadow log hold different histories; a person has to choose.
    #[error("database and shadow log differ at event {seq}; neither was changed")]
    Diverged {
        /// The first event that differs.
        seq: u64,
    },
    /// The database does not end where this coordinator left it: it was restored from an older copy, or failed over without its
    /// newest events. Nothing was written; a person has to choose.
    #[error(
        "the database's log ends at event {found}, but event {known} was acknowledged: an older copy was put in its place"
    )]
    Rewound {
        /// The last event that was acknowledged.
        known: u64,
        found: u64,
    },
    /// The database library refused for another reason: a mistake in this program.
    #[error("database error: {0}")]
    Database(String),
    /// The store is closed, or (in memory) an injected crash has happened.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Whether the store may take the same again later, without a person and without being opened again.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Full(_) | Error::Io(_) | Error::Busy(_) | Error::Unreachable(_) => true,
            Error::Conflict { .. }
            | Error::Fenced(_)
            | Error::Led(_)
            | Error::AgentsElsewhere { .. }
            | Error::Address { .. }
            | Error::NoSpace { .. }
            | Error::Denied(_)
            | Error::TooLarge { .. }
            | Error::Corrupt(_)
            | Error::Gone(_)
            | Error::MustReopen(_)
            | Error::Newer { .. }
            | Error::Foreign { .. }
            | Error::Unrepairable { .. }
            | Error::Diverged { .. }
            | Error::Rewound { .. }
            | Error::Database(_)
            | Error::Closed => false,
        }
    }
}

/// The read half: what views need. Every answer is checked against its hash or checksum.
pub trait Read: Send + Sync {
    /// Where the log ends.
    fn head(&self) -> Result<Head, Error>;
    /// Up to `limit` events after `after_seq`, in order.
    fn events(&self, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error>;
    /// The kinds of events that the log holds, ordered by name.
    fn kinds(&self) -> Result<Vec<String>, Error> {
        let (mut kinds, mut after) = (BTreeSet::new(), 0);
        loop {
            let page = self.events(after, KINDS_PAGE)?;
            let Some(last) = page.last() else { return Ok(kinds.into_iter().collect()) };
            after = last.seq;
            kinds.extend(page.into_iter().map(|event| event.kind));
        }
    }
    /// Up to `limit` events of these kinds after `after_seq`, in order, found without reading the others.
    fn events_of(&self, kinds: &[&str], after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let (mut found, mut after) = (Vec::new(), after_seq);
        loop {
            let page = self.events(after, KINDS_PAGE)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            found.extend(page.into_iter().filter(|event| kinds.contains(&event.kind.as_str())));
            if found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }
    /// Counts the events of a kind after `after_seq` without reading them.
    fn count_of(&self, kind: &str, after_seq: u64) -> Result<u64, Error> {
        Ok(self.events_of(&[kind], after_seq, usize::MAX)?.len() as u64)
    }
    /// The newest snapshot that passes its check; damaged ones are skipped for an older one.
    fn latest_snapshot(&self) -> Result<Option<Snapshot>, Error>;
    /// How far every spool has been read, ordered by attempt and stream.
    fn offsets(&self) -> Result<Vec<SpoolOffset>, Error>;
    /// How far one spool has been read; 0 if it was never read.
    fn offset(&self, attempt: u64, stream: Stream) -> Result<u64, Error>;
    /// Rows of a derived table, of one run or of all, ordered by run, order and key.
    fn rows(&self, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error>;
    /// One row of a derived table.
    fn row(&self, table: Table, run: &str, key: &str) -> Result<Option<Row>, Error> {
        Ok(self.rows(table, Some(run))?.into_iter().find(|row| row.key == key))
    }
    /// The last `n` lines, of one agent or of all, oldest first.
    fn log_tail(&self, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error>;
    /// Up to `limit` lines after sequence number `after`, of one agent or of all, oldest first.
    fn log_since(&self, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error>;
    /// Up to `limit` lines of one attempt after sequence number `after`, both streams together, oldest first.
    fn attempt_lines(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error>;
    /// The last `limit` lines of one attempt, both streams together, oldest first.
    fn attempt_tail(&self, attempt: u64, limit: usize) -> Result<Vec<StoredLine>, Error>;
    /// Only the sequence numbers of those lines, found without reading a line: for a view that jumps around in a long log.
    fn attempt_places(&self, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error>;
    /// The last `limit` lines that contain every word of `query`, oldest first; see [`search::Query`].
    fn log_search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error>;
    /// The coordinator that leads, where the engine knows: one that this machine cannot see otherwise.
    fn leader(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }
    /// How many events were read and checked through it so far, where the engine counts that.
    fn events_read(&self) -> u64 {
        0
    }
    /// Recomputes the hash chain after `from_seq`; from 0, also checks everything else that is stored.
    fn verify(&self, from_seq: u64) -> Result<Verification, Error>;
}

/// The whole store, for the one coordinator.
pub trait Store: Read {
    /// Appends the batch; returns only when it is durable, or reports that nothing of it was acknowledged.
    fn append(&self, batch: Batch) -> Result<Receipt, Error>;
    /// Replaces all derived tables by exactly these rows; writes nothing when they are the same.
    fn replace_rows(&self, rows: Vec<Row>) -> Result<(), Error>;
    /// Takes a backup when the last one is an hour old, and returns its path; `None` for engines without files.
    fn backup_if_due(&self, now_ms: i64) -> Result<Option<PathBuf>, Error>;
    /// Removes some of the log lines of an attempt that has ended, in one short transaction; none means that none is left.
    fn remove_lines(&self, attempt: u64) -> Result<RemovedLines, Error>;
    /// Gives the room that removed lines left back to the disk, where that is worth it; returns how many bytes. Appends wait
    /// meanwhile, so no run may be driven.
    fn compact(&self) -> Result<u64, Error>;
}

/// What one step of removing lines removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedLines {
    pub lines: u64,
    /// Bytes of their texts.
    pub bytes: u64,
}
