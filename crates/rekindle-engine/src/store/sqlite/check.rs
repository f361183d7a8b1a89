//! Whether a database holds what was written into it: SQLite's own check, the hash chain, every checksum. This file owns
//! what is checked and how deep; `open`, `backup` and the caller of `verify` decide what to do about a finding.

use rekindle_core::text::counted;
use rusqlite::Connection;

use super::connect::fault;
use super::read::{self, each_line, limit_of, stored};
use super::schema;
use crate::store::chain;
use crate::store::{Error, Head, Table, Verification};

/// Limit on reported findings; the first ones say enough.
const MAX_PROBLEMS: usize = 16;

/// Events read at once while following the chain: bounds memory, amortises the query.
pub const CHUNK: usize = 4_096;

/// How deep to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The chain after an event, and everything small besides.
    Tail(u64),
    /// The whole chain, and everything small besides.
    Chain,
    /// All of it: SQLite's integrity check, the schema, the chain, every line.
    Whole,
}

/// Checks the content and reports what is wrong. Returns an error only if the check itself was not possible.
pub fn content(conn: &Connection, depth: Depth, migrations: &[&str]) -> Result<Verification, Error> {
    let mut report = Verification::default();
    note(&mut report, schema::check_shape(conn, migrations))?;
    if !report.ok() {
        return Ok(report);
    }
    below_schema(conn, depth)
}

/// The same check, for a schema that is known to be right.
pub fn below_schema(conn: &Connection, depth: Depth) -> Result<Verification, Error> {
    let mut report = Verification::default();
    if depth == Depth::Whole {
        let found = integrity(conn);
        note(&mut report, found)?;
    }
    if !report.ok() {
        return Ok(report);
    }
    let from = if let Depth::Tail(seq) = depth { seq } else { 0 };
    let chain = follow_chain(conn, from, &mut report);
    note(&mut report, chain)?;
    let beside = beside(conn);
    note(&mut report, beside)?;
    if depth == Depth::Whole {
        let lines = lines(conn, &mut report);
        note(&mut report, lines)?;
    }
    Ok(report)
}

/// Damage becomes a finding; any other error ends the check.
fn note(report: &mut Verification, result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Corrupt(what)) => {
            if report.problems.len() < MAX_PROBLEMS {
                report.problems.push(what);
            }
            Ok(())
        }
        other => other,
    }
}

fn integrity(conn: &Connection) -> Result<(), Error> {
    let mut query = conn.prepare(&format!("PRAGMA integrity_check({MAX_PROBLEMS})")).map_err(fault)?;
    let lines = query.query_map([], |row| row.get::<_, String>(0)).map_err(fault)?;
    let lines = lines.collect::<Result<Vec<_>, _>>().map_err(fault)?;
    if lines == ["ok"] { Ok(()) } else { Err(Error::Corrupt(lines.join("; "))) }
}

fn follow_chain(conn: &Connection, from: u64, report: &mut Verification) -> Result<(), Error> {
    let start = read::head_at(conn, from)?.ok_or_else(|| Error::Corrupt(format!("event {from} is missing")))?;
    report.head = start;
    loop {
        let events = read::events(conn, report.head.last_seq, CHUNK)?;
        let Some(last) = events.last() else { break };
        report.events += events.len() as u64;
        report.head = Head { last_seq: last.seq, last_hash: last.hash };
    }
    let outside: i64 = conn
        .query_row("SELECT count(*) FROM event WHERE seq < 1 OR seq > ?1", [stored(report.head.last_seq)], |row| {
            row.get(0)
        })
        .map_err(fault)?;
    if outside > 0 {
        return Err(Error::Corrupt(format!("{} outside the chain", counted(outside, "event is", "events are"))));
    }
    Ok(())
}

/// Everything small: offsets, derived rows, the store's own numbers, snapshots.
fn beside(conn: &Connection) -> Result<(), Error> {
    read::offsets(conn)?;
    for table in Table::ALL {
        read::rows(conn, table, None)?;
    }
    for key in [super::text_index::INDEXED_UPTO, super::write::ROWS_STALE] {
        read::meta(conn, key)?;
    }
    let indexed = read::meta(conn, super::text_index::INDEXED_UPTO)?.cast_unsigned();
    if indexed > read::last_line(conn)? {
        return Err(Error::Corrupt(format!("the text index reaches to line {indexed}, which does not exist")));
    }
    snapshots(conn)
}

fn snapshots(conn: &Connection) -> Result<(), Error> {
    let mut query = conn.prepare("SELECT seq, state, hash FROM snapshot").map_err(fault)?;
    let mut rows = query.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        let seq = row.get::<_, i64>(0).map_err(fault)?.cast_unsigned();
        let (state, hash): (Vec<u8>, [u8; 32]) = (row.get(1).map_err(fault)?, row.get(2).map_err(fault)?);
        let at = read::head_at(conn, seq)?;
        if at.is_none_or(|at| chain::snapshot_hash(at, &state).0 != hash) {
            return Err(Error::Corrupt(format!("the snapshot at event {seq} does not match its hash")));
        }
    }
    Ok(())
}

/// Lines are numbered without gaps, so a missing one that is not on record as removed is damage too.
fn lines(conn: &Connection, report: &mut Verification) -> Result<(), Error> {
    let removed = super::removed::all(conn)?;
    let mut removed = removed.into_iter().peekable();
    let (mut next, mut count) = (1, 0);
    each_line(conn, "ORDER BY l.seq LIMIT ?1", [limit_of(usize::MAX)], |line| {
        while let Some(gap) = removed.next_if(|gap| *gap.start() == next && *gap.end() < line.seq) {
            next = gap.end() + 1;
        }
        if line.seq != next {
            return Err(Error::Corrupt(format!("log line {next} is missing")));
        }
        next += 1;
        count += 1;
        Ok(true)
    })?;
    report.lines = count;
    Ok(())
}
