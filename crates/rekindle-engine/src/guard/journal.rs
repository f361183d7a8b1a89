//! A session's journal: one line of JSON for each hook, appended in one write and synced once, by any number of hooks at
//! once. A line that was torn by a full disk or a power cut damages nothing but itself.
//!
//! Reading adds up the records. The sum up to some position is kept beside the journal so that a long session need not be
//! read from its start each time; it is derived and may be deleted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::{Fact, Record};
use rekindle_core::guard::session::Session;
use rekindle_shim::{atomic, clock};
use serde::{Deserialize, Serialize};

use super::place;

/// The journal's name in a session's directory.
pub const FILE: &str = "journal.jsonl";

const SUM_FILE: &str = "sum.json";

/// The version of the sum; another one is not read.
const SUM_VERSION: u32 = 2;

/// Attempts to get the lock, and milliseconds between them: a hook that holds it finishes in a few. After that the hook
/// continues without the lock: giving a session its text twice is better than not at all.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE_MS: u64 = 5;

/// Longest chain of sessions that continued one another.
const INHERITED_DEPTH: usize = 8;

#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    file: File,
}

/// The sum of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Sum {
    version: u32,
    /// Bytes of the journal that are in it.
    offset: u64,
    session: Session,
}

impl Journal {
    /// Opens a session's journal, creating it if it is missing.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join(FILE);
        let file = match Self::options().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                place::make(dir)?;
                let file = Self::options().create(true).mode(0o600).open(&path)?;
                // If a power cut loses a name, it loses the records too.
                for above in [Some(dir), dir.parent()].into_iter().flatten() {
                    File::open(above)?.sync_all()?;
                }
                file
            }
            other => other?,
        };
        Ok(Self { dir: dir.to_owned(), file })
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        options
    }

    /// Appends a record, which is durable when this returns; returns the journal's length before and after.
    pub fn append(&mut self, record: &Record) -> io::Result<(u64, u64)> {
        let line = serde_json::to_string(record)?;
        // Starts with a line feed, which ends any torn line before it. Blank lines are skipped.
        let bytes = format!("\n{line}\n");
        let written = self.file.write(bytes.as_bytes())?;
        if written < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.sync_data()?;
        let now = self.file.stream_position()?;
        Ok((now.saturating_sub(bytes.len() as u64), now))
    }

    /// Waits for another hook that is giving this session a text, but not for long. Others may append meanwhile.
    pub fn lock(&self) {
        for _ in 0..LOCK_TRIES {
            if rustix::fs::flock(&self.file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok() {
                return;
            }
            clock::pause(LOCK_PAUSE_MS);
        }
    }

    /// The sum of the journal.
    pub fn session(&self) -> io::Result<Session> {
        session(&self.dir)
    }

    /// Keeps the sum so far, for the next reading.
    pub fn keep_sum(&self) -> io::Result<Session> {
        let sum = sum(&self.dir, INHERITED_DEPTH)?;
        atomic::save(&self.dir, SUM_FILE, &serde_json::to_vec(&sum)?)?;
        Ok(sum.session)
    }
}

/// The sum of a session's journal, for a reader.
pub fn session(dir: &Path) -> io::Result<Session> {
    Ok(sum(dir, INHERITED_DEPTH)?.session)
}

/// The same after its first `records` records.
pub fn session_after(dir: &Path, records: u64) -> io::Result<Session> {
    let mut sum = Sum { version: SUM_VERSION, offset: 0, session: Session::default() };
    add_up(dir, &mut sum, INHERITED_DEPTH, records)?;
    Ok(sum.session)
}

fn sum(dir: &Path, depth: usize) -> io::Result<Sum> {
    let length = std::fs::metadata(dir.join(FILE)).map(|found| found.len())?;
    let kept: Option<Sum> =
        std::fs::read(dir.join(SUM_FILE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let kept = kept.filter(|sum| sum.version == SUM_VERSION && sum.offset <= length);
    let mut sum = kept.unwrap_or(Sum { version: SUM_VERSION, offset: 0, session: Session::default() });
    add_up(dir, &mut sum, depth, u64::MAX)?;
    Ok(sum)
}

fn add_up(dir: &Path, sum: &mut Sum, depth: usize, max_records: u64) -> io::Result<()> {
    let mut file = File::open(dir.join(FILE))?;
    file.seek(SeekFrom::Start(sum.offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A line without its end may still be being written.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            continue;
        };
        if sum.session.records >= max_records {
            return Ok(());
        }
        if sum.session.records == 0 {
            inherit(dir, &mut sum.session, &record, depth);
        }
        sum.session.add(&record);
    }
    sum.offset += whole as u64;
    Ok(())
}

/// A session that continues another begins with what that one left.
fn inherit(dir: &Path, session: &mut Session, first: &Record, depth: usize) {
    let earlier = first.facts.iter().find_map(|fact| match fact {
        Fact::Inherits { session } => Some(session),
        _ => None,
    });
    let (Some(earlier), Some(depth)) = (earlier, depth.checked_sub(1)) else {
        return;
    };
    let fit = earlier.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let Some(beside) = dir.parent().filter(|_| fit).map(|all| all.join(earlier)) else {
        return;
    };
    if beside != dir
        && let Ok(sum) = sum(&beside, depth)
    {
        session.inherit(&sum.session);
    }
}
