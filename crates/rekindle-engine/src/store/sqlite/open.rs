//! From a state directory to a database that is fit to write: created, checked, repaired, migrated, level with its shadow
//! log. This file owns the order of these steps and what each finding leads to; each step has its own file.

use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::check::{self, Depth};
use super::connect::{self, fault, io_fault};
use super::shadow::{self, Shadow};
use super::write::ROWS_STALE;
use super::{OpenReport, Options, backup, read, repair, replay, schema};
use crate::state_dir::{StateDir, install};
use crate::store::{Error, Head};

/// Events up to which the whole chain is followed at every opening: some tens of milliseconds.
const WHOLE_CHAIN_EVENTS: u64 = 50_000;

/// Size up to which every page and every line is checked at every opening, for the same reason. Above it the caller runs
/// `verify(0)` in the background.
const WHOLE_CHECK_BYTES: u64 = 8 * 1024 * 1024;

/// Name of a database that is still being built.
const CREATING: &str = "creating.tmp";

/// What opening gives to the writer.
pub struct Opened {
    pub conn: Connection,
    /// The shadow log, level with the database.
    pub shadow: Shadow,
    pub report: OpenReport,
}

/// Opens the database of a directory. No other process does so at the same time: the caller holds the coordinator's lock.
pub fn open(dir: &StateDir, options: Options, migrations: &[&str]) -> Result<Opened, Error> {
    connect::check_library()?;
    repair::finish_exchange(dir)?;
    let mut report = OpenReport::default();
    let mut conn = sound(dir, options, migrations, &mut report)?;
    migrate(dir, &mut conn, options, migrations, &mut report)?;
    connect::make_writer(&conn)?;
    settle_wal(&conn)?;
    level(dir, &mut conn, &mut report)?;
    let mut shadow = Shadow::open(&dir.shadow())?;
    replay::catch_up(&conn, &mut shadow)?;
    report.head = read::head(&conn)?;
    report.rows_stale = read::meta(&conn, ROWS_STALE)? != 0;
    Ok(Opened { conn, shadow, report })
}

/// A connection to a database that was found sound, after making or repairing it if need be.
fn sound(dir: &StateDir, options: Options, migrations: &[&str], report: &mut OpenReport) -> Result<Connection, Error> {
    let path = dir.database();
    let mut why = None;
    match path.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound && has_copies(dir)? => why = Some("the file is missing".to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            create(dir, migrations)?;
            report.created = true;
        }
        Err(e) => return Err(io_fault(&path, &e)),
        Ok(meta) if !meta.is_file() => {
            return Err(Error::Foreign { path, why: "it is not a regular file".into() });
        }
        Ok(_) => {}
    }
    if why.is_none() {
        match examine(&path, options, migrations, report) {
            Ok(conn) => return Ok(conn),
            Err(Error::Corrupt(damage)) => why = Some(damage),
            // With copies of ours beside it, the foreign file must have replaced our database.
            Err(Error::Foreign { why: damage, .. }) if has_copies(dir)? => why = Some(damage),
            Err(error) => return Err(error),
        }
    }
    repair::repair(dir, &why.unwrap_or_default(), migrations, report)?;
    examine(&path, options, migrations, report)
}

/// Whether there is anything of ours to rebuild from.
fn has_copies(dir: &StateDir) -> Result<bool, Error> {
    Ok(!backup::list(dir)?.is_empty() || shadow::last_record(&dir.shadow())?.is_some())
}

/// Builds the database under another name: a database of ours is never seen half made, so an empty file is never ours.
fn create(dir: &StateDir, migrations: &[&str]) -> Result<(), Error> {
    let temporary = dir.path().join(CREATING);
    backup::remove_database(&temporary)?;
    let mut conn = connect::private(&temporary, true)?;
    schema::migrate(&mut conn, migrations)?;
    drop(conn);
    install(&temporary, &dir.database()).map_err(|e| io_fault(&temporary, &e))
}

/// Opens and checks; damage is [`Error::Corrupt`], conditions that pass without repair are other errors.
fn examine(path: &Path, options: Options, migrations: &[&str], report: &mut OpenReport) -> Result<Connection, Error> {
    let bytes = path.symlink_metadata().map_err(|e| io_fault(path, &e))?.len();
    if bytes == 0 {
        return Err(Error::Foreign { path: path.to_owned(), why: "it is empty".into() });
    }
    let conn = connect::existing(path)?;
    match inspect(&conn, path, bytes, options, migrations) {
        Ok(depth) => {
            report.whole = depth == Depth::Whole;
            Ok(conn)
        }
        // A damaged, foreign or newer database is left exactly as it was found, its WAL included.
        Err(error) => {
            connect::close_untouched(conn);
            Err(error)
        }
    }
}

fn inspect(conn: &Connection, path: &Path, bytes: u64, options: Options, migrations: &[&str]) -> Result<Depth, Error> {
    schema::check_marks(conn, path, migrations)?;
    check_journal(conn, path)?;
    schema::check_shape(conn, migrations)?;
    let events = read::head(conn)?.last_seq;
    let depth = match (events <= WHOLE_CHAIN_EVENTS, bytes <= WHOLE_CHECK_BYTES) {
        _ if options.whole_check => Depth::Whole,
        (true, true) => Depth::Whole,
        (true, false) => Depth::Chain,
        (false, _) => read::latest_snapshot(conn)?.map_or(Depth::Chain, |snapshot| Depth::Tail(snapshot.seq)),
    };
    let found = check::below_schema(conn, depth)?;
    match found.problems.into_iter().next() {
        None => Ok(depth),
        Some(problem) => Err(Error::Corrupt(problem)),
    }
}

/// A header that no longer says WAL hides the WAL beside it, and with it the newest commits.
fn check_journal(conn: &Connection, path: &Path) -> Result<(), Error> {
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(fault)?;
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let hidden = Path::new(&wal).metadata().is_ok_and(|meta| meta.len() > 0);
    if mode != "wal" && hidden {
        return Err(Error::Corrupt(format!("its journal mode is {mode}, but it has a write-ahead log")));
    }
    Ok(())
}

fn migrate(
    dir: &StateDir,
    conn: &mut Connection,
    options: Options,
    migrations: &[&str],
    report: &mut OpenReport,
) -> Result<(), Error> {
    let (from, to) = (schema::version(conn)?, schema::newest(migrations));
    if from < to {
        backup::take(dir, conn, options.now_ms, migrations)?;
        schema::migrate(conn, migrations)?;
        report.migrated = Some((from, to));
    }
    Ok(())
}

/// Moves what a killed process left in the WAL into the database. Only then is it durable: its commit may not have
/// been synced, and after a failed sync a second one proves nothing about the WAL's pages, so they are written anew.
fn settle_wal(conn: &Connection) -> Result<(), Error> {
    let checkpoint = |mode: &str| -> Result<bool, Error> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|busy| busy == 0).map_err(fault)
    };
    match checkpoint("RESTART") {
        Ok(true) => Ok(()),
        // A view that is reading at the moment must not keep a run from starting; it only delays the reuse of the WAL.
        Ok(false) | Err(Error::Busy(_)) => checkpoint("PASSIVE").map(drop),
        Err(error) => Err(error),
    }
}

/// Compares with the shadow log: events that only the shadow log has were lost from the database's WAL and are put back; a
/// shadow log that does not connect to the database is set aside.
fn level(dir: &StateDir, conn: &mut Connection, report: &mut OpenReport) -> Result<(), Error> {
    let head = read::head(conn)?;
    let Some(shadowed) = shadow::last_record(&dir.shadow())? else {
        return Ok(());
    };
    if shadowed.last_seq <= head.last_seq {
        return match read::head_at(conn, shadowed.last_seq)? {
            Some(same) if same == shadowed => Ok(()),
            _ => Err(Error::Diverged { seq: shadowed.last_seq }),
        };
    }
    let tx = conn.transaction().map_err(fault)?;
    let replayed = replay::events(&tx, &dir.shadow(), head)?;
    if replayed.diverged {
        return Err(Error::Diverged { seq: head.last_seq + replayed.events + 1 });
    }
    if replayed.events > 0 {
        report.gaps.extend(replay::write_offsets(&tx, &replayed.offsets)?);
    }
    tx.commit().map_err(fault)?;
    report.replayed = replayed.events;
    let Head { last_seq, .. } = replayed.head;
    if last_seq < shadowed.last_seq {
        report.lost_after = Some(last_seq);
        repair::put_aside(dir, &["shadow"])?;
    }
    Ok(())
}
