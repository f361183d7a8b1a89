//! The database's schema and how it is migrated from one version to the next. This file owns the versions, the application's
//! mark and the comparison of a found schema with the expected one; `open` decides when to migrate and what to save first.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::connect::{self, fault, pragma};
use crate::store::Error;

/// Marks a file as ours in its header: "rknd".
pub const APPLICATION_ID: i64 = 0x726b_6e64;

/// Each entry moves the schema one version up; entries are never edited once released.
pub const MIGRATIONS: &[&str] =
    &[include_str!("schema/0001.sql"), include_str!("schema/0002.sql"), include_str!("schema/0003.sql")];

/// The version a new database has.
pub fn newest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

pub fn version(conn: &Connection) -> Result<i64, Error> {
    pragma(conn, "user_version")
}

/// Moves the schema to the newest version, each step in one transaction with its number: killed at any point, the
/// database has the old or the new version, never something between.
pub fn migrate(conn: &mut Connection, migrations: &[&str]) -> Result<(), Error> {
    for (number, sql) in (1..).zip(migrations) {
        if version(conn)? >= number {
            continue;
        }
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        tx.execute_batch(sql).map_err(fault)?;
        tx.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"))
            .map_err(fault)?;
        tx.commit().map_err(fault)?;
    }
    Ok(())
}

/// Whether the file is marked as ours and not newer than this program.
pub fn check_marks(conn: &Connection, path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let id = pragma(conn, "application_id")?;
    if id != APPLICATION_ID {
        return Err(Error::Foreign { path: path.to_owned(), why: format!("its application id is {id}") });
    }
    let (found, known) = (version(conn)?, newest(migrations));
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// The schema must match that of its version, statement by statement: a flipped bit in it changes meanings, and SQLite's own
/// check does not detect that.
pub fn check_shape(conn: &Connection, migrations: &[&str]) -> Result<(), Error> {
    let found = version(conn)?;
    let known = usize::try_from(found).ok().and_then(|n| migrations.get(..n));
    let Some(steps) = known.filter(|steps| !steps.is_empty()) else {
        return Err(Error::Corrupt(format!("schema version {found} never existed")));
    };
    let mut scratch = connect::scratch()?;
    migrate(&mut scratch, steps)?;
    if statements(conn)? != statements(&scratch)? {
        return Err(Error::Corrupt(format!("the schema is not that of version {found}")));
    }
    let encoding: String = conn.query_row("PRAGMA encoding", [], |row| row.get(0)).map_err(fault)?;
    if encoding != "UTF-8" {
        return Err(Error::Corrupt(format!("its text encoding is {encoding}")));
    }
    Ok(())
}

fn statements(conn: &Connection) -> Result<Vec<(String, String, Option<String>)>, Error> {
    let mut query = conn.prepare("SELECT name, tbl_name, sql FROM sqlite_schema ORDER BY name").map_err(fault)?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(fault)?;
    rows.collect::<Result<_, _>>().map_err(fault)
}
