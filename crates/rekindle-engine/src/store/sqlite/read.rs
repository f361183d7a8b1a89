//! Queries on a connection, each result checked against its hash or checksum. This file owns the SQL for reading; `pool`
//! chooses the connection, `text_index` does the searching.

use rusqlite::{Connection, OptionalExtension, Params};

use super::connect::fault;
use crate::store::chain::{self, Hash, stream_code, stream_from_code, table_name};
use crate::store::{Error, Head, LogLine, Row, Snapshot, SpoolOffset, StoredEvent, StoredLine, Stream, Table};

/// The columns of a line, in the order that [`line_of`] expects. The outer join turns a lost source into an error.
pub const LINE_COLUMNS: &str =
    "SELECT l.seq, s.attempt, s.agent, s.epoch, s.stream, l.time_ms, l.pos, l.len, l.torn, l.text, l.sum
     FROM line l LEFT JOIN source s ON s.id = l.source";

/// SQLite's integers are signed; all 64 bits are kept.
pub fn stored(value: u64) -> i64 {
    value.cast_signed()
}

/// A limit in the form SQLite expects.
pub fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub fn head(conn: &Connection) -> Result<Head, Error> {
    let sql = "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1";
    one_head(conn, sql, []).map(Option::unwrap_or_default)
}

/// Where the log ended after one event; `None` when there is no such event.
pub fn head_at(conn: &Connection, seq: u64) -> Result<Option<Head>, Error> {
    if seq == 0 {
        return Ok(Some(Head::default()));
    }
    one_head(conn, "SELECT seq, hash FROM event WHERE seq = ?1", [stored(seq)])
}

fn one_head(conn: &Connection, sql: &str, params: impl Params) -> Result<Option<Head>, Error> {
    let found: Option<(i64, Vec<u8>)> = conn
        .prepare_cached(sql)
        .and_then(|mut query| query.query_row(params, |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(fault)?;
    let Some((seq, hash)) = found else {
        return Ok(None);
    };
    let last_hash =
        Hash::from_slice(&hash).ok_or_else(|| Error::Corrupt(format!("event {seq} has no complete hash")))?;
    Ok(Some(Head { last_seq: seq.cast_unsigned(), last_hash }))
}

/// Events after a sequence number, with the chain followed through them.
pub fn events(conn: &Connection, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
    let Some(mut head) = head_at(conn, after_seq)? else {
        return Ok(Vec::new());
    };
    let mut query = conn
        .prepare_cached(
            "SELECT seq, time_ms, run, kind, agent, task, epoch, details, hash FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )
        .map_err(fault)?;
    let mut rows = query.query((stored(after_seq), limit_of(limit))).map_err(fault)?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let event = event_of(row).map_err(fault)?;
        chain::follow(&mut head, &event)?;
        events.push(event);
    }
    Ok(events)
}

pub fn event_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        time_ms: row.get(1)?,
        run: row.get(2)?,
        kind: row.get(3)?,
        agent: row.get(4)?,
        task: row.get(5)?,
        epoch: row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned),
        details: row.get(7)?,
        hash: Hash(row.get(8)?),
    })
}

/// The newest snapshot that matches its hash and the event it was taken after.
pub fn latest_snapshot(conn: &Connection) -> Result<Option<Snapshot>, Error> {
    let mut query = conn.prepare_cached("SELECT seq, state, hash FROM snapshot ORDER BY seq DESC").map_err(fault)?;
    let mut rows = query.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(i64, Vec<u8>, [u8; 32])> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        };
        let Ok((seq, state, hash)) = read(row) else {
            continue;
        };
        let seq = seq.cast_unsigned();
        if let Some(at) = head_at(conn, seq)?
            && chain::snapshot_hash(at, &state) == Hash(hash)
        {
            return Ok(Some(Snapshot { seq, state }));
        }
    }
    Ok(None)
}

/// How far every spool has been read.
pub fn offsets(conn: &Connection) -> Result<Vec<SpoolOffset>, Error> {
    let mut query = conn.prepare_cached("SELECT attempt, stream, next, sum FROM spool").map_err(fault)?;
    let rows = query.query_map([], raw_offset).map_err(fault)?;
    let mut offsets = rows.map(|row| row.map_err(fault).and_then(checked_offset)).collect::<Result<Vec<_>, _>>()?;
    offsets.sort_unstable();
    Ok(offsets)
}

/// How far one spool has been read.
pub fn offset(conn: &Connection, attempt: u64, stream: Stream) -> Result<u64, Error> {
    let sql = "SELECT attempt, stream, next, sum FROM spool WHERE attempt = ?1 AND stream = ?2";
    let found = conn
        .prepare_cached(sql)
        .and_then(|mut query| query.query_row((stored(attempt), stream_code(stream)), raw_offset).optional())
        .map_err(fault)?;
    found.map_or(Ok(0), |raw| checked_offset(raw).map(|offset| offset.next))
}

fn raw_offset(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, i64, i64, i64)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn checked_offset((attempt, stream, next, sum): (i64, i64, i64, i64)) -> Result<SpoolOffset, Error> {
    let damaged = || Error::Corrupt(format!("the spool offset of attempt {attempt} does not match its checksum"));
    let stream = stream_from_code(stream).ok_or_else(damaged)?;
    let offset = SpoolOffset { attempt: attempt.cast_unsigned(), stream, next: next.cast_unsigned() };
    if chain::offset_sum(offset) == sum { Ok(offset) } else { Err(damaged()) }
}

/// One row of a derived table.
pub fn row(conn: &Connection, table: Table, run: &str, key: &str) -> Result<Option<Row>, Error> {
    let sql = format!("SELECT run, key, ord, json, sum FROM {} WHERE run = ?1 AND key = ?2", table_name(table));
    let mut query = conn.prepare_cached(&sql).map_err(fault)?;
    let mut found = query.query([run, key]).map_err(fault)?;
    found.next().map_err(fault)?.map(|row| checked_row(table, row)).transpose()
}

fn checked_row(table: Table, row: &rusqlite::Row<'_>) -> Result<Row, Error> {
    let read = Row {
        table,
        run: row.get(0).map_err(fault)?,
        key: row.get(1).map_err(fault)?,
        order: row.get::<_, i64>(2).map_err(fault)?.cast_unsigned(),
        json: row.get(3).map_err(fault)?,
    };
    if chain::row_sum(&read) != row.get::<_, i64>(4).map_err(fault)? {
        let name = table_name(table);
        return Err(Error::Corrupt(format!("a row of table {name} does not match its checksum")));
    }
    Ok(read)
}

pub fn rows(conn: &Connection, table: Table, run: Option<&str>) -> Result<Vec<Row>, Error> {
    let sql = format!("SELECT run, key, ord, json, sum FROM {} WHERE ?1 IS NULL OR run = ?1", table_name(table));
    let mut query = conn.prepare_cached(&sql).map_err(fault)?;
    let mut found = query.query([run]).map_err(fault)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next().map_err(fault)? {
        rows.push(checked_row(table, row)?);
    }
    rows.sort_by(|a, b| (&a.run, a.order, &a.key).cmp(&(&b.run, b.order, &b.key)));
    Ok(rows)
}

/// One of the store's own numbers; 0 when it was never set.
pub fn meta(conn: &Connection, key: &str) -> Result<i64, Error> {
    let found: Option<(i64, i64)> = conn
        .prepare_cached("SELECT value, sum FROM meta WHERE key = ?1")
        .and_then(|mut query| query.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(fault)?;
    match found {
        None => Ok(0),
        Some((value, sum)) if chain::meta_sum(key, value) == sum => Ok(value),
        Some(_) => Err(Error::Corrupt(format!("the number {key} does not match its checksum"))),
    }
}

/// The last sequence number given to a line, removed or not; 0 when there is none.
pub fn last_line(conn: &Connection) -> Result<u64, Error> {
    let last: Option<i64> = conn
        .prepare_cached("SELECT max(seq) FROM line")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(fault)?;
    Ok(last.unwrap_or(0).cast_unsigned().max(super::removed::last(conn)?))
}

/// The last lines, oldest first.
pub fn log_tail(conn: &Connection, agent: Option<&str>, n: usize) -> Result<Vec<StoredLine>, Error> {
    let n_stored = limit_of(n);
    let Some(agent) = agent else {
        let mut lines = lines(conn, "ORDER BY l.seq DESC LIMIT ?1", [n_stored])?;
        lines.reverse();
        return Ok(lines);
    };
    tail_of(conn, &sources(conn, agent)?, n)
}

/// The last lines of one attempt, oldest first.
pub fn attempt_tail(conn: &Connection, attempt: u64, n: usize) -> Result<Vec<StoredLine>, Error> {
    tail_of(conn, &sources_of_attempt(conn, attempt)?, n)
}

/// Reads source by source, each from its end by its index: the cost does not grow with what was written before.
fn tail_of(conn: &Connection, sources: &[i64], n: usize) -> Result<Vec<StoredLine>, Error> {
    let mut found = Vec::new();
    for source in sources {
        found.extend(lines(conn, "WHERE l.source = ?1 ORDER BY l.seq DESC LIMIT ?2", (source, limit_of(n)))?);
    }
    found.sort_by_key(|line| line.seq);
    Ok(found.split_off(found.len().saturating_sub(n)))
}

/// Lines after a sequence number, oldest first.
pub fn log_since(conn: &Connection, agent: Option<&str>, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
    let (after, limit_stored) = (stored(after), limit_of(limit));
    let Some(agent) = agent else {
        return lines(conn, "WHERE l.seq > ?1 ORDER BY l.seq LIMIT ?2", (after, limit_stored));
    };
    lines_of(conn, &sources(conn, agent)?, after, limit)
}

/// Lines of one attempt after a sequence number, oldest first.
pub fn attempt_lines(conn: &Connection, attempt: u64, after: u64, limit: usize) -> Result<Vec<StoredLine>, Error> {
    lines_of(conn, &sources_of_attempt(conn, attempt)?, stored(after), limit)
}

/// The sequence numbers of those lines, from the index alone.
pub fn attempt_places(conn: &Connection, attempt: u64, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
    let mut found: Vec<u64> = Vec::new();
    for source in sources_of_attempt(conn, attempt)? {
        let sql = "SELECT seq FROM line WHERE source = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let mut query = conn.prepare_cached(sql).map_err(fault)?;
        let places = query.query_map((source, stored(after), limit_of(limit)), |row| row.get::<_, i64>(0));
        for place in places.map_err(fault)? {
            found.push(place.map_err(fault)?.unsigned_abs());
        }
    }
    found.sort_unstable();
    found.truncate(limit);
    Ok(found)
}

fn lines_of(conn: &Connection, sources: &[i64], after: i64, limit: usize) -> Result<Vec<StoredLine>, Error> {
    let mut found = Vec::new();
    for source in sources {
        let tail = "WHERE l.source = ?1 AND l.seq > ?2 ORDER BY l.seq LIMIT ?3";
        found.extend(lines(conn, tail, (source, after, limit_of(limit)))?);
    }
    found.sort_by_key(|line| line.seq);
    found.truncate(limit);
    Ok(found)
}

fn sources_of_attempt(conn: &Connection, attempt: u64) -> Result<Vec<i64>, Error> {
    let mut query = conn.prepare_cached("SELECT id FROM source WHERE attempt = ?1").map_err(fault)?;
    let ids = query.query_map([stored(attempt)], |row| row.get(0)).map_err(fault)?;
    ids.collect::<Result<_, _>>().map_err(fault)
}

fn sources(conn: &Connection, agent: &str) -> Result<Vec<i64>, Error> {
    let mut query = conn.prepare_cached("SELECT id FROM source WHERE agent = ?1").map_err(fault)?;
    let ids = query.query_map([agent], |row| row.get(0)).map_err(fault)?;
    ids.collect::<Result<_, _>>().map_err(fault)
}

/// The lines selected by the query with this ending.
pub fn lines(conn: &Connection, ending: &str, params: impl Params) -> Result<Vec<StoredLine>, Error> {
    let mut found = Vec::new();
    each_line(conn, ending, params, |line| {
        found.push(line);
        Ok(true)
    })?;
    Ok(found)
}

/// Passes the lines selected by the query with this ending to `take`, until it has enough and returns `false`.
pub fn each_line(
    conn: &Connection,
    ending: &str,
    params: impl Params,
    mut take: impl FnMut(StoredLine) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut query = conn.prepare_cached(&format!("{LINE_COLUMNS} {ending}")).map_err(fault)?;
    let mut rows = query.query(params).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        if !take(line_of(row)?)? {
            break;
        }
    }
    Ok(())
}

fn line_of(row: &rusqlite::Row<'_>) -> Result<StoredLine, Error> {
    let number = |column: usize| row.get::<_, i64>(column).map_err(fault);
    let seq = number(0)?.cast_unsigned();
    let damaged = || Error::Corrupt(format!("log line {seq} does not match its checksum"));
    let torn = match number(8)? {
        0 => false,
        1 => true,
        _ => return Err(damaged()),
    };
    let line = LogLine {
        attempt: number(1)?.cast_unsigned(),
        agent: row.get(2).map_err(fault)?,
        epoch: number(3)?.cast_unsigned(),
        stream: stream_from_code(number(4)?).ok_or_else(damaged)?,
        time_ms: number(5)?,
        offset: number(6)?.cast_unsigned(),
        len: number(7)?.cast_unsigned(),
        text: row.get(9).map_err(fault)?,
        torn,
    };
    if chain::line_sum(seq, &line) != number(10)? {
        return Err(damaged());
    }
    Ok(StoredLine { seq, line })
}
