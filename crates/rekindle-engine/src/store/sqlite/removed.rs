//! Removes the log lines of a run that is over. Lines are numbered without gaps, so every removal is recorded: a gap that is
//! not recorded is damage. Events are never removed, so their chain stays whole.

use std::ops::RangeInclusive;

use rusqlite::{Connection, OptionalExtension};

use super::connect::{fault, pragma};
use super::read::{limit_of, meta, stored};
use super::text_index::INDEXED_UPTO;
use crate::store::{Error, RemovedLines, chain};

/// Lines removed in one transaction: some milliseconds, so that an append that comes in between hardly waits.
const STEP_LINES: usize = 512;

/// Bytes of text after which a step ends early: the same reason, for long lines.
const STEP_BYTES: usize = 256 * 1024;

/// Free pages below which a database is left as it is: rewriting it would cost more than it brings.
const FREE_MIN_BYTES: u64 = 1024 * 1024;

/// Removes some lines of one attempt, in the caller's transaction. None means that none is left.
pub fn step(conn: &Connection, attempt: u64) -> Result<RemovedLines, Error> {
    let indexed = meta(conn, INDEXED_UPTO)?;
    let sql = "SELECT l.seq, l.text FROM line l WHERE l.source IN (SELECT id FROM source WHERE attempt = ?1)
               ORDER BY l.seq LIMIT ?2";
    let mut query = conn.prepare_cached(sql).map_err(fault)?;
    let mut rows = query.query((stored(attempt), limit_of(STEP_LINES))).map_err(fault)?;
    let mut going: Vec<(i64, String)> = Vec::new();
    let mut removed = RemovedLines::default();
    while removed.bytes < STEP_BYTES as u64
        && let Some(row) = rows.next().map_err(fault)?
    {
        let (seq, text): (i64, String) = (row.get(0).map_err(fault)?, row.get(1).map_err(fault)?);
        removed.lines += 1;
        removed.bytes += text.len() as u64;
        going.push((seq, text));
    }
    drop(rows);
    let mut unindex = conn
        .prepare_cached("INSERT INTO line_text (line_text, rowid, text) VALUES ('delete', ?1, ?2)")
        .map_err(fault)?;
    let mut delete = conn.prepare_cached("DELETE FROM line WHERE seq = ?1").map_err(fault)?;
    for (seq, text) in &going {
        if *seq <= indexed {
            unindex.execute((seq, text)).map_err(fault)?;
        }
        delete.execute([seq]).map_err(fault)?;
    }
    let places: Vec<u64> = going.iter().map(|(seq, _)| seq.cast_unsigned()).collect();
    for part in places.chunk_by(|one, next| one + 1 == *next) {
        if let (Some(first), Some(last)) = (part.first(), part.last()) {
            put(conn, *first..=*last)?;
        }
    }
    Ok(removed)
}

/// Records that the lines with these numbers were removed; adjacent ranges are merged.
pub fn put(conn: &Connection, places: RangeInclusive<u64>) -> Result<(), Error> {
    let (mut first, mut last) = (*places.start(), *places.end());
    if let Some(before) = ending_at(conn, first.saturating_sub(1))? {
        first = *before.start();
    }
    if let Some(after) = beginning_at(conn, last.saturating_add(1))? {
        delete(conn, *after.start())?;
        last = *after.end();
    }
    let sql = "INSERT INTO removed_line (first, last, sum) VALUES (?1, ?2, ?3)
               ON CONFLICT (first) DO UPDATE SET last = excluded.last, sum = excluded.sum";
    let fields = (stored(first), stored(last), chain::removed_sum(first, last));
    conn.prepare_cached(sql).and_then(|mut put| put.execute(fields)).map_err(fault).map(drop)
}

fn delete(conn: &Connection, first: u64) -> Result<(), Error> {
    let sql = "DELETE FROM removed_line WHERE first = ?1";
    conn.prepare_cached(sql).and_then(|mut delete| delete.execute([stored(first)])).map_err(fault).map(drop)
}

/// Whether the database has the table: a database of an earlier version is read before it is migrated.
fn is_there(conn: &Connection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'removed_line'";
    conn.prepare_cached(sql)
        .and_then(|mut query| query.query_row([], |row| row.get::<_, i64>(0)))
        .map_err(fault)
        .map(|n| n > 0)
}

/// All removed ranges, in order.
pub fn all(conn: &Connection) -> Result<Vec<RangeInclusive<u64>>, Error> {
    if !is_there(conn)? {
        return Ok(Vec::new());
    }
    let mut query = conn.prepare_cached("SELECT first, last, sum FROM removed_line ORDER BY first").map_err(fault)?;
    let found = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(fault)?;
    found.map(|row| row.map_err(fault).and_then(checked)).collect()
}

/// The removed range that begins at a line number.
fn beginning_at(conn: &Connection, first: u64) -> Result<Option<RangeInclusive<u64>>, Error> {
    one(conn, "SELECT first, last, sum FROM removed_line WHERE first = ?1", first)
}

fn ending_at(conn: &Connection, last: u64) -> Result<Option<RangeInclusive<u64>>, Error> {
    let sql = "SELECT first, last, sum FROM removed_line WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    Ok(one(conn, sql, last)?.filter(|found| *found.end() == last))
}

/// The last line number that was removed; 0 when there is none.
pub fn last(conn: &Connection) -> Result<u64, Error> {
    if !is_there(conn)? {
        return Ok(0);
    }
    let sql = "SELECT first, last, sum FROM removed_line WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    Ok(one(conn, sql, i64::MAX.cast_unsigned())?.map_or(0, |found| *found.end()))
}

fn one(conn: &Connection, sql: &str, place: u64) -> Result<Option<RangeInclusive<u64>>, Error> {
    let found = conn
        .prepare_cached(sql)
        .and_then(|mut query| {
            query.query_row([stored(place)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })
        .map_err(fault)?;
    found.map(checked).transpose()
}

fn checked((first, last, sum): (i64, i64, i64)) -> Result<RangeInclusive<u64>, Error> {
    let places = first.cast_unsigned()..=last.cast_unsigned();
    if places.is_empty() || chain::removed_sum(*places.start(), *places.end()) != sum {
        return Err(Error::Corrupt(format!("the record of removed lines at {first} does not match its checksum")));
    }
    Ok(places)
}

/// Returns free pages to the disk where they are a good part of the database; returns how many bytes. No transaction may be
/// open. It needs space for a second copy for a moment: on a disk without that space the database stays as it is.
pub fn compact(conn: &Connection) -> Result<u64, Error> {
    let of = |name: &str| pragma(conn, name).map(i64::cast_unsigned);
    let (page, pages, free) = (of("page_size")?, of("page_count")?, of("freelist_count")?);
    if free * page < FREE_MIN_BYTES || free * 4 < pages {
        return Ok(0);
    }
    conn.execute_batch("VACUUM").map_err(fault)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fault)?;
    Ok(pages.saturating_sub(of("page_count")?) * page)
}
