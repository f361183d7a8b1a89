//! The database's schema and how it moves from one version to the next. It owns the versions, and what a server must be like to
//! be trusted with a log.

use std::path::PathBuf;

use tokio_postgres::types::Type;

use super::address::Address;
use super::link::{Fault, Link};
use crate::store::Error;

/// Each entry moves the schema one version up; entries are never edited once released.
const MIGRATIONS: &[&str] = &[include_str!("schema/0001.sql")];

/// Serialises migrations of several coordinators: a number that nobody else locks by chance.
const MIGRATION_LOCK: i64 = 0x726b_6e64_7067;

/// The oldest server that has everything the schema uses.
const LEAST_SERVER: i64 = 130_000;

/// What marks the schema as ours, with its version behind it.
const MARK: &str = "rekindle store, schema ";

/// The version a new database has.
fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Refuses a server that would lose acknowledged work.
pub(super) fn check_server(link: &mut Link) -> Result<(), Error> {
    let sql = "SELECT current_setting('server_version_num')::bigint, current_setting('fsync'), \
               current_setting('full_page_writes')";
    let rows = link.query(sql, &[], 0).map_err(Fault::error)?;
    let row = rows.first().ok_or_else(|| Error::Database("the server tells no settings".into()))?;
    let (version, fsync, pages): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
    if version < LEAST_SERVER {
        let (found, least) = (version / 10_000, LEAST_SERVER / 10_000);
        return Err(Error::Denied(format!("the server is PostgreSQL {found}, this store needs {least} or newer")));
    }
    if fsync != "on" || pages != "on" {
        let which = if fsync == "on" { "full_page_writes" } else { "fsync" };
        return Err(Error::Denied(format!("the server runs with {which} = off: a power cut would lose the log")));
    }
    Ok(())
}

/// The version of the schema that is there; 0 where there is none.
pub(super) fn version(link: &mut Link, address: &Address) -> Result<i64, Error> {
    let sql = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'rekindle'";
    let rows = link.query(sql, &[], 0).map_err(Fault::error)?;
    let Some(row) = rows.first() else { return Ok(0) };
    let mark: Option<String> = row.get(0);
    let version = mark.as_deref().and_then(|mark| mark.strip_prefix(MARK)).and_then(|number| number.parse().ok());
    let path = PathBuf::from(address.to_string());
    match version {
        None => Err(Error::Foreign { path, why: "it has a schema named rekindle that carries no mark of ours".into() }),
        Some(found) if found > newest() => Err(Error::Newer { path, found, known: newest() }),
        Some(found) => Ok(found),
    }
}

/// Moves the schema to the newest version; returns from which to which, if it moved. One coordinator does it, others wait. Each step is
/// one transaction with its number.
pub(super) fn migrate(link: &mut Link, address: &Address) -> Result<Option<(i64, i64)>, Error> {
    let found = version(link, address)?;
    if found == newest() {
        return Ok(None);
    }
    for number in found + 1..=newest() {
        let step = usize::try_from(number - 1).ok().and_then(|n| MIGRATIONS.get(n)).copied().unwrap_or_default();
        let make = if number == 1 { "CREATE SCHEMA IF NOT EXISTS rekindle;" } else { "" };
        // Under the lock the mark is read again: another one may have made the step meanwhile.
        let guard = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK}); {make} \
             DO $do$ BEGIN IF coalesce(obj_description((SELECT oid FROM pg_namespace WHERE nspname = 'rekindle'), \
             'pg_namespace'), '{MARK}{}') <> '{MARK}{}' THEN RAISE EXCEPTION 'made' USING ERRCODE = 'RK009'; END IF; END $do$;",
            number - 1,
            number - 1,
        );
        let sql = format!("{guard} {step} COMMENT ON SCHEMA rekindle IS '{MARK}{number}'; COMMIT;");
        if let Err(fault) = link.batch(&sql) {
            let error = fault.error();
            link.batch("ROLLBACK").map_err(Fault::error)?;
            if version(link, address)? < number {
                return Err(error);
            }
        }
    }
    Ok(Some((found, newest())))
}

/// The index behind searches, where the server has the extension and allows it. Without it a search reads every line.
pub(super) fn make_text_index(link: &mut Link) {
    let sql = "CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA rekindle; \
               CREATE INDEX IF NOT EXISTS line_text ON rekindle.line \
               USING gin (rekindle.searchable(text) rekindle.gin_trgm_ops)";
    // Refused where the extension is not installed: searching works without, only slower.
    drop(link.batch(sql));
}

/// The id of a space, if there is one of that name.
pub(super) fn space(link: &mut Link, name: &str) -> Result<Option<i64>, Error> {
    let rows = link.query("SELECT id FROM rekindle.space WHERE name = $1", &[(&name, Type::TEXT)], 0);
    Ok(rows.map_err(Fault::error)?.first().map(|row| row.get(0)))
}

/// The id of a space, which is made if it is not there.
pub(super) fn make_space(link: &mut Link, name: &str) -> Result<i64, Error> {
    let rows = link.query("SELECT rekindle.make_space($1)", &[(&name, Type::TEXT)], 0).map_err(Fault::error)?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| Error::Database("no space was made".into()))
}
