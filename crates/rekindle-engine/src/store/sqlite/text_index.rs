//! Full-text search over log lines, and the index behind it. The writer fills the index lazily, in bounded steps, in idle
//! moments; a search uses the index as far as it reaches and scans the rest. [`Query`] defines what matches; the index only
//! proposes.

use rusqlite::Connection;

use super::connect::fault;
use super::read::{self, each_line, limit_of, stored};
use super::write::put_meta;
use crate::store::search::Query;
use crate::store::{Error, StoredLine};

/// Key of the number up to which lines are indexed.
pub const INDEXED_UPTO: &str = "text_index_upto";

/// Lines indexed in one step: some milliseconds, so that an append that comes in between hardly waits.
const STEP_LINES: usize = 512;

/// Bytes of text after which a step ends early: the same reason, for long lines.
const STEP_BYTES: usize = 128 * 1024;

/// Advances the index by one step, in the caller's transaction; returns how far it then reaches.
pub fn step(conn: &Connection, upto: u64) -> Result<u64, Error> {
    let mut query =
        conn.prepare_cached("SELECT seq, text FROM line WHERE seq > ?1 ORDER BY seq LIMIT ?2").map_err(fault)?;
    let mut insert = conn.prepare_cached("INSERT INTO line_text (rowid, text) VALUES (?1, ?2)").map_err(fault)?;
    let mut rows = query.query((stored(upto), limit_of(STEP_LINES))).map_err(fault)?;
    let (mut reached, mut bytes, mut lines) = (upto, 0, 0);
    while bytes < STEP_BYTES
        && let Some(row) = rows.next().map_err(fault)?
    {
        lines += 1;
        let seq: i64 = row.get(0).map_err(fault)?;
        let text: String = row.get(1).map_err(fault)?;
        insert.execute((seq, &text)).map_err(fault)?;
        bytes += text.len();
        reached = seq.cast_unsigned();
    }
    if bytes < STEP_BYTES && lines < STEP_LINES {
        // No line comes after this one: any higher numbers were removed before they were indexed.
        reached = reached.max(read::last_line(conn)?);
    }
    put_meta(conn, INDEXED_UPTO, stored(reached))?;
    Ok(reached)
}

/// The last `limit` lines that match, oldest first.
pub fn search(conn: &Connection, text: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>, Error> {
    let query = Query::new(text);
    let mut found = Hit { query: &query, limit, lines: Vec::new() };
    if query.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    // Newest first: the part that is not indexed yet, then the indexed one.
    let upto = read::meta(conn, INDEXED_UPTO)?;
    scan(conn, "l.seq > ?1", upto, agent, &mut found)?;
    match query.index_expression() {
        _ if found.full() => {}
        None => scan(conn, "l.seq <= ?1", upto, agent, &mut found)?,
        Some(expression) => ask_index(conn, &expression, upto, agent, &mut found)?,
    }
    found.lines.reverse();
    Ok(found.lines)
}

/// Matches so far, newest first.
struct Hit<'a> {
    query: &'a Query,
    limit: usize,
    lines: Vec<StoredLine>,
}

impl Hit<'_> {
    fn full(&self) -> bool {
        self.lines.len() >= self.limit
    }

    fn take(&mut self, line: StoredLine) {
        if self.query.matches(&line.line.text) {
            self.lines.push(line);
        }
    }
}

/// Scans every line on one side of `upto`.
fn scan(conn: &Connection, side: &str, upto: i64, agent: Option<&str>, found: &mut Hit<'_>) -> Result<(), Error> {
    let ending = format!("WHERE {side} AND (?2 IS NULL OR s.agent = ?2) ORDER BY l.seq DESC");
    each_line(conn, &ending, (upto, agent), |line| {
        found.take(line);
        Ok(!found.full())
    })
}

/// Checks the lines that the index proposes.
fn ask_index(
    conn: &Connection,
    expression: &str,
    upto: i64,
    agent: Option<&str>,
    found: &mut Hit<'_>,
) -> Result<(), Error> {
    let mut query = conn
        .prepare_cached("SELECT rowid FROM line_text WHERE line_text MATCH ?1 AND rowid <= ?2 ORDER BY rowid DESC")
        .map_err(fault)?;
    let mut rows = query.query((expression, upto)).map_err(fault)?;
    while !found.full()
        && let Some(row) = rows.next().map_err(fault)?
    {
        let seq: i64 = row.get(0).map_err(fault)?;
        let ending = "WHERE l.seq = ?1 AND (?2 IS NULL OR s.agent = ?2)";
        each_line(conn, ending, (seq, agent), |line| {
            found.take(line);
            Ok(true)
        })?;
    }
    Ok(())
}
