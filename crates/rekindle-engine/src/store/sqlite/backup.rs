//! Backups: verified copies of the database, of which the newest five are kept. This file owns their names, how one is taken
//! and which are removed; `repair` restores them.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::check::{self, Depth};
use super::connect::{self, fault, io_fault};
use super::{schema, shadow};
use crate::state_dir::{StateDir, install};
use crate::store::Error;

/// How long a backup counts as recent.
pub const INTERVAL_MS: i64 = 3_600_000;

/// Backups kept: they reach several hours back, and one damaged file does not take the last chance.
const KEPT: usize = 5;

/// A backup on disk. Its name holds all its metadata: `number-event-time.db`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    /// Rises with every backup; clocks may not.
    pub number: u64,
    /// The last event in it.
    pub seq: u64,
    pub time_ms: i64,
    pub path: PathBuf,
}

/// The backups, newest first.
pub fn list(dir: &StateDir) -> Result<Vec<Kept>, Error> {
    let folder = dir.backups();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io_fault(&folder, &e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(parse(entry.map_err(|e| io_fault(&folder, &e))?.path()));
    }
    found.sort();
    found.reverse();
    Ok(found)
}

fn parse(path: PathBuf) -> Option<Kept> {
    let mut parts = path.file_name()?.to_str()?.strip_suffix(".db")?.splitn(3, '-');
    let (number, seq) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let time_ms = parts.next()?.parse().ok()?;
    Some(Kept { number, seq, time_ms, path })
}

/// Whether the last backup is old, or dated in the future because the clock was corrected.
pub fn is_due(dir: &StateDir, now_ms: i64) -> Result<bool, Error> {
    let age = |kept: &Kept| now_ms.saturating_sub(kept.time_ms);
    Ok(list(dir)?.first().map(age).is_none_or(|age| !(0..INTERVAL_MS).contains(&age)))
}

/// Copies the database behind `source`, verifies the copy, and removes backups and log segments that are no longer needed.
pub fn take(dir: &StateDir, source: &Connection, now_ms: i64, migrations: &[&str]) -> Result<PathBuf, Error> {
    let folder = dir.backups();
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(io_fault(&folder, &e));
        }
        _ => {}
    }
    let number = list(dir)?.first().map_or(0, |newest| newest.number) + 1;
    let temporary = folder.join("taking.tmp");
    remove_database(&temporary)?;
    let copied = copy(source, &temporary).and_then(|()| verified_head(&temporary, migrations));
    let seq = match copied {
        Ok(seq) => seq,
        Err(error) => {
            // The error is what matters; the next backup removes the leftover at the latest.
            drop(remove_database(&temporary));
            return Err(error);
        }
    };
    let path = folder.join(format!("{number:08}-{seq}-{now_ms}.db"));
    install(&temporary, &path).map_err(|e| io_fault(&path, &e))?;
    prune(dir)?;
    Ok(path)
}

/// Copies in one step: a copy in several steps would start over whenever the writer commits.
fn copy(source: &Connection, to: &Path) -> Result<(), Error> {
    let mut target = connect::private(to, true)?;
    let backup = Backup::new(source, &mut target).map_err(fault)?;
    match backup.step(-1).map_err(fault)? {
        StepResult::Done => Ok(()),
        _ => Err(Error::Busy("the database was locked when a backup was due".into())),
    }
}

/// Verifies a whole copy; returns its last event.
pub fn verified_head(path: &Path, migrations: &[&str]) -> Result<u64, Error> {
    let conn = connect::private(path, false)?;
    schema::check_marks(&conn, path, migrations)?;
    let report = check::content(&conn, Depth::Whole, migrations)?;
    match report.problems.into_iter().next() {
        None => Ok(report.head.last_seq),
        Some(problem) => Err(Error::Corrupt(problem)),
    }
}

fn prune(dir: &StateDir) -> Result<(), Error> {
    let all = list(dir)?;
    for old in all.iter().skip(KEPT) {
        std::fs::remove_file(&old.path).map_err(|e| io_fault(&old.path, &e))?;
    }
    // Only once there are enough backups: until then the shadow log from its beginning is worth having.
    match all.get(KEPT - 1) {
        Some(oldest) => shadow::prune(&dir.shadow(), oldest.seq),
        None => Ok(()),
    }
}

/// Removes a database that is not in use, with the files that SQLite may have left beside it.
pub fn remove_database(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io_fault(path, &e)),
            _ => {}
        }
    }
    Ok(())
}
