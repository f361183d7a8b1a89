//! Repairs a damaged database: a new one is built from the newest good backup, the shadow log and whatever the damaged file
//! still proves; the damaged files are kept aside. This file owns the order of sources and the exchange of files; `open`
//! found the damage.
//!
//! Nothing is exchanged before the new database is complete, verified and synced under the name `repaired.db`. From then on
//! that name means "finish the exchange", so the next opening continues after a crash at any point.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};

use super::backup::{self, remove_database};
use super::check::{self, Depth};
use super::connect::{self, fault, io_fault};
use super::replay::{self, Offsets};
use super::write::{Cursor, Sources, put_event, put_line, put_offset, put_snapshot};
use super::{OpenReport, Repaired, SpoolGap, read, removed, schema};
use crate::state_dir::{StateDir, install, move_if_there, sync_dir};
use crate::store::chain;
use crate::store::{Error, Head};

/// A database under construction.
const WORK: &str = "repairing.tmp";

/// A complete database that waits to replace the damaged one.
const READY: &str = "repaired.db";

/// Rounds of reading the shadow log and the damaged file in turn; each must bring events, so real damage ends far earlier.
const ROUNDS: usize = 64;

/// Events taken from a damaged file at once, before going one by one up to the damage.
const CHUNK: usize = 256;

/// Builds and installs a new database, and writes into the report what was done and what is missing.
pub fn repair(dir: &StateDir, why: &str, migrations: &[&str], report: &mut OpenReport) -> Result<(), Error> {
    let refuse = |tried: String| Error::Unrepairable { path: dir.database(), why: why.to_owned(), tried };
    let work = dir.path().join(WORK);
    remove_database(&work)?;
    let restored_from = base(dir, &work, migrations)?;
    let mut conn = connect::private(&work, false)?;
    schema::migrate(&mut conn, migrations)?;
    let damaged = connect::reader(&dir.database()).ok();
    let tx = conn.transaction().map_err(fault)?;
    let rebuilt = rebuild(dir, &tx, damaged.as_ref())?;
    tx.commit().map_err(fault)?;
    drop(damaged);
    if rebuilt.head.last_seq == 0 {
        let tried = "no good backup, no shadow log, and no event in it that its hash proves";
        return Err(refuse(tried.to_owned()));
    }
    let checked = check::content(&conn, Depth::Whole, migrations)?;
    if let Some(problem) = checked.problems.into_iter().next() {
        return Err(refuse(problem));
    }
    drop(conn);
    install(&work, &dir.path().join(READY)).map_err(|e| io_fault(&work, &e))?;
    report.gaps = rebuilt.gaps;
    report.lost_after = rebuilt.lost_after;
    report.repaired = Some(Repaired {
        why: why.to_owned(),
        kept_aside: finish_exchange(dir)?.unwrap_or_else(|| dir.path().to_owned()),
        restored_from,
        replayed: rebuilt.replayed,
        salvaged: rebuilt.salvaged,
    });
    Ok(())
}

/// Puts the newest good backup, or an empty database, at `work` to build on.
fn base(dir: &StateDir, work: &Path, migrations: &[&str]) -> Result<Option<PathBuf>, Error> {
    for kept in backup::list(dir)? {
        std::fs::copy(&kept.path, work).map_err(|e| io_fault(work, &e))?;
        match backup::verified_head(work, migrations) {
            Ok(_) => return Ok(Some(kept.path)),
            Err(Error::Corrupt(_) | Error::Foreign { .. } | Error::Newer { .. }) => remove_database(work)?,
            Err(error) => return Err(error),
        }
    }
    let mut conn = connect::private(work, true)?;
    schema::migrate(&mut conn, migrations)?;
    Ok(None)
}

struct Rebuilt {
    head: Head,
    replayed: u64,
    salvaged: u64,
    lost_after: Option<u64>,
    gaps: Vec<SpoolGap>,
}

fn rebuild(dir: &StateDir, tx: &Transaction<'_>, damaged: Option<&Connection>) -> Result<Rebuilt, Error> {
    let mut head = read::head(tx)?;
    let (mut replayed, mut salvaged) = (0, 0);
    let mut offsets = Offsets::new();
    for _ in 0..ROUNDS {
        let round = replay::events(tx, &dir.shadow(), head)?;
        replayed += round.events;
        offsets.extend(round.offsets);
        head = round.head;
        let found = damaged.map_or(Ok(0), |damaged| salvage_events(tx, damaged, &mut head))?;
        salvaged += found;
        if found == 0 {
            break;
        }
    }
    let shadowed = super::shadow::last_record(&dir.shadow())?.map_or(0, |head| head.last_seq);
    let agrees = damaged.is_some_and(|damaged| read::head(damaged).is_ok_and(|theirs| theirs == head));
    let whole_log = match damaged {
        Some(damaged) if agrees => salvage_log(tx, damaged)?,
        _ => false,
    };
    let gaps = replay::write_offsets(tx, if whole_log { const { &Offsets::new() } } else { &offsets })?;
    if let Some(snapshot) = damaged.and_then(|damaged| read::latest_snapshot(damaged).ok().flatten())
        && let Some(at) = read::head_at(tx, snapshot.seq)?
    {
        put_snapshot(tx, at, &snapshot.state)?;
    }
    let lost_after = (shadowed > head.last_seq || !agrees && claims_more(damaged, head)).then_some(head.last_seq);
    Ok(Rebuilt { head, replayed, salvaged, lost_after, gaps })
}

/// Whether the damaged file claims later events than could be proved.
fn claims_more(damaged: Option<&Connection>, head: Head) -> bool {
    damaged.is_some_and(|damaged| read::head(damaged).is_ok_and(|theirs| theirs.last_seq > head.last_seq))
}

/// Takes events that continue the chain out of the damaged file, up to the first one that does not continue it or cannot be
/// read.
fn salvage_events(tx: &Transaction<'_>, damaged: &Connection, head: &mut Head) -> Result<u64, Error> {
    let mut taken = 0;
    let mut size = CHUNK;
    loop {
        let events = match read::events(damaged, head.last_seq, size) {
            Ok(events) if !events.is_empty() => events,
            Err(_) if size > 1 => {
                size = 1;
                continue;
            }
            _ => return Ok(taken),
        };
        for event in events {
            if chain::follow(head, &event).is_err() {
                return Ok(taken);
            }
            put_event(tx, &event)?;
            taken += 1;
        }
    }
}

/// Takes the log index out of the damaged file, all of it or nothing: a partial copy would duplicate lines when the rest is
/// read from the spools again.
fn salvage_log(tx: &Transaction<'_>, damaged: &Connection) -> Result<bool, Error> {
    let Ok(offsets) = read::offsets(damaged) else {
        return Ok(false);
    };
    tx.execute_batch("SAVEPOINT log").map_err(fault)?;
    let mut cursor = Cursor::read(tx)?;
    let mut sources = Sources::default();
    // Lines removed since the backup was taken are in it again; the next cleanup removes them again.
    let Ok(gone) = removed::all(damaged) else {
        tx.execute_batch("ROLLBACK TO log; RELEASE log").map_err(fault)?;
        return Ok(false);
    };
    let mut gone = gone.into_iter().filter(|places| *places.end() > cursor.last_line).collect::<VecDeque<_>>();
    let copied =
        read::each_line(damaged, "WHERE l.seq > ?1 ORDER BY l.seq", [read::stored(cursor.last_line)], |found| {
            skip_removed(tx, &mut cursor, &mut gone, found.seq)?;
            if found.seq != cursor.last_line + 1 {
                return Err(Error::Corrupt(format!("log line {} is missing", cursor.last_line + 1)));
            }
            put_line(tx, &mut cursor, &mut sources, &found.line)?;
            Ok(true)
        });
    let copied = copied.and_then(|()| skip_removed(tx, &mut cursor, &mut gone, u64::MAX));
    match copied {
        Ok(()) => {
            offsets.into_iter().try_for_each(|offset| put_offset(tx, offset))?;
            tx.execute_batch("RELEASE log").map_err(fault)?;
            Ok(true)
        }
        Err(Error::Full(why)) => Err(Error::Full(why)),
        Err(_) => {
            tx.execute_batch("ROLLBACK TO log; RELEASE log").map_err(fault)?;
            Ok(false)
        }
    }
}

/// Records which of the lines before `upto` were removed from the damaged file.
fn skip_removed(
    tx: &Transaction<'_>,
    cursor: &mut Cursor,
    gone: &mut VecDeque<RangeInclusive<u64>>,
    upto: u64,
) -> Result<(), Error> {
    while let Some(places) = gone.front()
        && *places.start() <= cursor.last_line + 1
        && *places.end() < upto
    {
        removed::put(tx, cursor.last_line + 1..=*places.end())?;
        cursor.last_line = *places.end();
        gone.pop_front();
    }
    Ok(())
}

/// Moves a waiting repaired database into place and the damaged files aside; returns where the damaged files are.
pub fn finish_exchange(dir: &StateDir) -> Result<Option<PathBuf>, Error> {
    let (ready, path) = (dir.path().join(READY), dir.database());
    if !ready.try_exists().map_err(|e| io_fault(&ready, &e))? {
        return Ok(None);
    }
    let aside = put_aside(dir, &["state.db", "state.db-wal", "state.db-shm", "state.db-journal"])?;
    install(&ready, &path).map_err(|e| io_fault(&path, &e))?;
    Ok(Some(aside))
}

/// Moves files of the state directory into a new folder `damaged-N`, for a person to inspect and remove.
pub fn put_aside(dir: &StateDir, names: &[&str]) -> Result<PathBuf, Error> {
    let aside = new_folder(dir)?;
    for name in names {
        let from = dir.path().join(name);
        move_if_there(&from, &aside.join(name)).map_err(|e| io_fault(&from, &e))?;
    }
    sync_dir(&aside).and_then(|()| sync_dir(dir.path())).map_err(|e| io_fault(&aside, &e))?;
    Ok(aside)
}

fn new_folder(dir: &StateDir) -> Result<PathBuf, Error> {
    for number in 1_u64.. {
        let path = dir.path().join(format!("damaged-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io_fault(&path, &e)),
        }
    }
    Err(Error::Io("no name is left for damaged files".into()))
}
