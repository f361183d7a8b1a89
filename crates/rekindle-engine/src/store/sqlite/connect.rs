//! The one way to SQLite: every connection is opened here, with every setting read back, and every error of the library is
//! classified here. The files that ask for a connection decide what to do with it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::store::Error;

/// The first SQLite without the WAL-reset bug, which could lose commits when several connections checkpoint.
pub const LEAST_SQLITE: i32 = 3_051_003;

/// How long to wait for a foreign lock; a person's `sqlite3` shell may hold one for a moment.
const BUSY_MS: u64 = 5_000;

/// Largest WAL left on disk after a burst; below it the file is kept and reused, which is faster than growing it.
const WAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// Page cache of the writer, in KiB (negative by SQLite's convention): holds the hot ends of all tables.
const WRITER_CACHE: i64 = -16_384;

/// More statements than the store has, so that none is ever prepared twice.
const STATEMENTS: usize = 64;

/// `SQLITE_IOERR_FSYNC`.
const IOERR_FSYNC: i32 = 1034;
/// `SQLITE_IOERR_DIR_FSYNC`.
const IOERR_DIR_FSYNC: i32 = 1290;
/// `SQLITE_IOERR_SHMSIZE`: the shared memory file could not grow, which is a full disk.
const IOERR_SHMSIZE: i32 = 4874;
/// `SQLITE_IOERR_DATA`: a page does not match its checksum.
const IOERR_DATA: i32 = 8202;
/// `SQLITE_IOERR_CORRUPTFS`: the filesystem reports that it is damaged.
const IOERR_CORRUPTFS: i32 = 8458;
/// `SQLITE_READONLY_DBMOVED`: the file is no longer where it was opened.
const READONLY_DBMOVED: i32 = 1032;

/// Checks that the library is the bundled one; an older one of the system has the bug.
pub fn check_library() -> Result<(), Error> {
    let found = rusqlite::version_number();
    if found < LEAST_SQLITE {
        return Err(Error::Database(format!("SQLite {found} is older than {LEAST_SQLITE}, which this store needs")));
    }
    Ok(())
}

/// Opens an existing database to inspect it and, if it is sound, to write: nothing is changed yet.
pub fn existing(path: &Path) -> Result<Connection, Error> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set(&conn, "cell_size_check", 1)?;
    set(&conn, "mmap_size", 0)?;
    Ok(conn)
}

/// Turns a connection from [`existing`] into the writer's: WAL, every commit synced, checkpoints only on demand.
pub fn make_writer(conn: &Connection) -> Result<(), Error> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault)?;
    if mode != "wal" {
        return Err(Error::Denied(format!("the filesystem allows no write-ahead log (journal mode is {mode})")));
    }
    set(conn, "synchronous", 2)?;
    set(conn, "fullfsync", 1)?;
    set(conn, "checkpoint_fullfsync", 1)?;
    set(conn, "foreign_keys", 1)?;
    set(conn, "wal_autocheckpoint", 0)?;
    set(conn, "journal_size_limit", WAL_KEPT_BYTES)?;
    set(conn, "cache_size", WRITER_CACHE)
}

/// Opens a new or private file that no other process uses: a copy to check, or a database being built. It is one file,
/// without a WAL; the code that builds it syncs it before it gets its name.
pub fn private(path: &Path, create: bool) -> Result<Connection, Error> {
    let create = if create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | create)?;
    set(&conn, "cell_size_check", 1)?;
    set(&conn, "mmap_size", 0)?;
    let mode: String = conn.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).map_err(fault)?;
    if mode != "delete" {
        return Err(Error::Busy(format!("the copy stays in journal mode {mode}")));
    }
    Ok(conn)
}

/// Opens a database for reading only.
pub fn reader(path: &Path) -> Result<Connection, Error> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    set(&conn, "query_only", 1)?;
    set(&conn, "cell_size_check", 1)?;
    set(&conn, "mmap_size", 0)?;
    Ok(conn)
}

/// A database in memory, for comparing schemas.
pub fn scratch() -> Result<Connection, Error> {
    Connection::open_in_memory().map_err(fault)
}

/// After a doubtful sync the library must not tidy up on closing: the next opening must judge what is on disk.
pub fn close_untouched(conn: Connection) {
    // If setting it fails, the library's default remains, which is safe, only less careful.
    drop(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    drop(conn);
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let always = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let conn = Connection::open_with_flags(path, flags | always).map_err(fault)?;
    conn.busy_timeout(Duration::from_millis(BUSY_MS)).map_err(fault)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    set(&conn, "trusted_schema", 0)?;
    Ok(conn)
}

/// Sets a pragma and reads it back: SQLite ignores settings that it does not know or does not accept.
fn set(conn: &Connection, name: &str, value: i64) -> Result<(), Error> {
    conn.execute_batch(&format!("PRAGMA {name} = {value}")).map_err(fault)?;
    let found = pragma(conn, name)?;
    if found != value {
        return Err(Error::Database(format!("PRAGMA {name} is {found} after it was set to {value}")));
    }
    Ok(())
}

pub fn pragma(conn: &Connection, name: &str) -> Result<i64, Error> {
    conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).map_err(fault)
}

/// The library's message for a text index whose settings are gone; its error code is that of a caller's mistake.
const TEXT_INDEX_DAMAGED: &str = "invalid fts5 file format";

/// Classifies an error of the library. Only damage is called damage: a lock, or a lack of memory or of rights, passes.
pub fn fault(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    let code = match &error {
        rusqlite::Error::SqliteFailure(code, _) => *code,
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => return Error::Corrupt(text),
        _ => return Error::Database(text),
    };
    match (code.code, code.extended_code) {
        (_, IOERR_FSYNC | IOERR_DIR_FSYNC) => Error::MustReopen(format!("a sync to disk failed: {text}")),
        (_, IOERR_SHMSIZE) => Error::Full(text),
        (_, IOERR_DATA | IOERR_CORRUPTFS) => Error::Corrupt(text),
        (_, READONLY_DBMOVED) => Error::MustReopen(text),
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Error::Corrupt(text),
        (ErrorCode::DiskFull, _) => Error::Full(text),
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Error::Busy(text),
        // A lock call of this process was refused: its locks may be wrong until the process ends.
        (ErrorCode::FileLockingProtocolFailed, _) => Error::Busy(format!(
            "the system refuses to lock the database ({text}); if this lasts, leave with Ctrl-C and type rekindle resume"
        )),
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => Error::Denied(text),
        (ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::CannotOpen, _) => Error::Io(text),
        _ if text.contains(TEXT_INDEX_DAMAGED) => Error::Corrupt(text),
        _ => Error::Database(text),
    }
}

/// Classifies an error of the operating system about one of our files.
pub fn io_fault(path: &Path, error: &std::io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::Full(text),
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => Error::Denied(text),
        _ => Error::Io(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linked_library_has_the_wal_reset_fix() {
        assert!(rusqlite::version_number() >= LEAST_SQLITE, "found {}", rusqlite::version());
        check_library().expect("new enough");
    }

    #[test]
    fn only_damage_is_called_damage() {
        let named = |code: i32| fault(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
        assert!(matches!(named(11), Error::Corrupt(_)), "SQLITE_CORRUPT");
        assert!(matches!(named(26), Error::Corrupt(_)), "SQLITE_NOTADB");
        assert!(matches!(named(5), Error::Busy(_)), "SQLITE_BUSY");
        assert!(matches!(named(15), Error::Busy(said) if said.contains("rekindle resume")), "SQLITE_PROTOCOL");
        assert!(matches!(named(7), Error::Io(_)), "SQLITE_NOMEM");
        assert!(matches!(named(8), Error::Denied(_)), "SQLITE_READONLY");
        assert!(matches!(named(10), Error::Io(_)), "SQLITE_IOERR");
        assert!(matches!(named(13), Error::Full(_)), "SQLITE_FULL");
        assert!(matches!(named(14), Error::Io(_)), "SQLITE_CANTOPEN");
        assert!(matches!(named(IOERR_FSYNC), Error::MustReopen(_)));
    }
}
