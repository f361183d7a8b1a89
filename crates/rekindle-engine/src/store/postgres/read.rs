//! Questions to a connection about events, rows, offsets and snapshots, each answer checked against its hash or checksum. Log
//! lines are in `lines`.

use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::Type;

use super::link::{Fault, Link};
use super::write::{stored, stream_number};
use crate::store::chain::{self, Hash, stream_from_code, table_name};
use crate::store::{Error, Head, Row, Snapshot, SpoolOffset, StoredEvent, Stream, Table};

/// The columns of an event, in the order [`event_of`] takes them.
const EVENT: &str = "seq, time_ms, run, kind, agent, task, epoch, details, hash";

/// An answer, or why there is none.
pub(super) type Answer<T> = Result<T, Fault>;

/// What was read is not what was written.
pub(super) fn damaged<T>(what: String) -> Answer<T> {
    Err(Fault::Refused(Error::Corrupt(what)))
}

/// A limit as PostgreSQL takes it.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Text as it was given: only UTF-8 is ever stored.
pub(super) fn text(row: &SqlRow, column: usize) -> Answer<String> {
    String::from_utf8(row.get(column)).or_else(|_| damaged("a stored text is not UTF-8".into()))
}

fn optional_text(row: &SqlRow, column: usize) -> Answer<Option<String>> {
    let found: Option<Vec<u8>> = row.get(column);
    found.map(String::from_utf8).transpose().or_else(|_| damaged("a stored text is not UTF-8".into()))
}

/// A head out of its two columns.
pub(super) fn head_of(seq: i64, hash: Vec<u8>) -> Result<Head, Error> {
    let last_hash =
        Hash::from_slice(&hash).ok_or_else(|| Error::Corrupt(format!("event {seq} has no complete hash")))?;
    Ok(Head { last_seq: seq.cast_unsigned(), last_hash })
}

/// Where the log ends, as the space says.
pub(super) fn head(link: &mut Link, space: i64) -> Answer<Head> {
    let rows =
        link.query("SELECT head_seq, head_hash FROM rekindle.space WHERE id = $1", &[(&space, Type::INT8)], 0)?;
    rows.first().map_or(Ok(Head::default()), |row| head_of(row.get(0), row.get(1)).map_err(Fault::Refused))
}

/// Who leads, as long as the lease lasts.
pub(super) fn leader(link: &mut Link, space: i64) -> Answer<Option<String>> {
    let sql = "SELECT leader FROM rekindle.space WHERE id = $1 AND leader_until > clock_timestamp()";
    Ok(link.query(sql, &[(&space, Type::INT8)], 0)?.first().and_then(|row| row.get(0)))
}

/// Who led last.
pub(super) fn last_leader(link: &mut Link, space: i64) -> Answer<Option<String>> {
    let rows = link.query("SELECT leader FROM rekindle.space WHERE id = $1", &[(&space, Type::INT8)], 0)?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

/// Events after a place, with the chain followed through them. The one before is read with them, for its hash.
pub(super) fn events(link: &mut Link, space: i64, after_seq: u64, limit: usize) -> Answer<Vec<StoredEvent>> {
    let sql = format!("SELECT {EVENT} FROM rekindle.event WHERE space = $1 AND seq >= $2 ORDER BY seq LIMIT $3");
    let (from, count) = (stored(after_seq), limit_of(limit).saturating_add(1));
    let arguments = [(&space as _, Type::INT8), (&from as _, Type::INT8), (&count as _, Type::INT8)];
    let rows = link.query(&sql, &arguments, limit.saturating_mul(1024))?;
    let mut rows = rows.iter();
    let mut head = Head::default();
    if after_seq > 0 {
        match rows.next().map(event_of).transpose()? {
            Some(before) if before.seq == after_seq => head = Head { last_seq: before.seq, last_hash: before.hash },
            _ => return Ok(Vec::new()),
        }
    }
    let mut events = Vec::new();
    for row in rows.take(limit) {
        let event = event_of(row)?;
        chain::follow(&mut head, &event).map_err(Fault::Refused)?;
        events.push(event);
    }
    Ok(events)
}

fn event_of(row: &SqlRow) -> Answer<StoredEvent> {
    let seq: i64 = row.get(0);
    let Some(hash) = Hash::from_slice(row.get(8)) else {
        return damaged(format!("event {seq} has no complete hash"));
    };
    Ok(StoredEvent {
        seq: seq.cast_unsigned(),
        time_ms: row.get(1),
        run: text(row, 2)?,
        kind: text(row, 3)?,
        agent: optional_text(row, 4)?,
        task: optional_text(row, 5)?,
        epoch: row.get::<_, Option<i64>>(6).map(i64::cast_unsigned),
        details: text(row, 7)?,
        hash,
    })
}

/// The kinds that the log holds, one step of the index each.
pub(super) fn kinds(link: &mut Link, space: i64) -> Answer<Vec<String>> {
    let sql = "WITH RECURSIVE step (kind) AS (
                   (SELECT kind FROM rekindle.event WHERE space = $1 ORDER BY kind LIMIT 1)
                   UNION ALL
                   SELECT (SELECT kind FROM rekindle.event WHERE space = $1 AND kind > step.kind ORDER BY kind LIMIT 1)
                   FROM step WHERE step.kind IS NOT NULL)
               SELECT kind FROM step WHERE kind IS NOT NULL";
    let rows = link.query(sql, &[(&space, Type::INT8)], 0)?;
    let mut kinds = rows.iter().map(|row| text(row, 0)).collect::<Answer<Vec<_>>>()?;
    kinds.sort_unstable();
    Ok(kinds)
}

/// Events of some kinds after a place, in order; each is checked with the hash of the one before it.
pub(super) fn events_of(
    link: &mut Link,
    space: i64,
    kinds: &[&str],
    after_seq: u64,
    limit: usize,
) -> Answer<Vec<StoredEvent>> {
    let columns = EVENT.replace(", ", ", e.");
    let sql = format!(
        "SELECT e.{columns}, before.hash FROM rekindle.event e
         LEFT JOIN rekindle.event before ON before.space = e.space AND before.seq = e.seq - 1
         WHERE e.space = $1 AND e.kind = ANY ($2) AND e.seq > $3 ORDER BY e.seq LIMIT $4"
    );
    let kinds: Vec<&[u8]> = kinds.iter().map(|kind| kind.as_bytes()).collect();
    let (after, count) = (stored(after_seq), limit_of(limit));
    let arguments = [
        (&space as _, Type::INT8),
        (&kinds as _, Type::BYTEA_ARRAY),
        (&after as _, Type::INT8),
        (&count as _, Type::INT8),
    ];
    let rows = link.query(&sql, &arguments, limit.saturating_mul(1024))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let event = event_of(row)?;
        let before: Option<Vec<u8>> = row.get(9);
        let mut head = match before {
            Some(hash) => head_of(stored(event.seq - 1), hash).map_err(Fault::Refused)?,
            None if event.seq == 1 => Head::default(),
            None => return damaged(format!("event {} has none before it", event.seq)),
        };
        chain::follow(&mut head, &event).map_err(Fault::Refused)?;
        found.push(event);
    }
    Ok(found)
}

/// How many events of a kind come after a place.
pub(super) fn count_of(link: &mut Link, space: i64, kind: &str, after_seq: u64) -> Answer<u64> {
    let (kind, after) = (kind.as_bytes(), stored(after_seq));
    let sql = "SELECT count(*) FROM rekindle.event WHERE space = $1 AND kind = $2 AND seq > $3";
    let arguments = [(&space as _, Type::INT8), (&kind as _, Type::BYTEA), (&after as _, Type::INT8)];
    Ok(link.query(sql, &arguments, 0)?.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

/// The newest snapshot that matches its hash and its event. One is read at a time: a state may be large.
pub(super) fn latest_snapshot(link: &mut Link, space: i64) -> Answer<Option<Snapshot>> {
    let mut below = i64::MAX;
    loop {
        let Some((snapshot, matches)) = snapshot_below(link, space, below)? else { return Ok(None) };
        if matches {
            return Ok(Some(snapshot));
        }
        below = stored(snapshot.seq);
    }
}

/// The newest snapshot before a place, and whether it matches its hash.
pub(super) fn snapshot_below(link: &mut Link, space: i64, below: i64) -> Answer<Option<(Snapshot, bool)>> {
    let sql = "SELECT s.seq, s.state, s.hash, e.hash FROM rekindle.snapshot s
               LEFT JOIN rekindle.event e ON e.space = s.space AND e.seq = s.seq
               WHERE s.space = $1 AND s.seq < $2 ORDER BY s.seq DESC LIMIT 1";
    let rows = link.query(sql, &[(&space, Type::INT8), (&below, Type::INT8)], STATE_BYTES)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let seq: i64 = row.get(0);
    let (state, hash, event): (Vec<u8>, Vec<u8>, Option<Vec<u8>>) = (row.get(1), row.get(2), row.get(3));
    let at = match event {
        Some(event) => head_of(seq, event).ok(),
        None => (seq == 0).then(Head::default),
    };
    let matches = at.is_some_and(|at| chain::snapshot_hash(at, &state).0.as_slice() == hash);
    Ok(Some((Snapshot { seq: seq.cast_unsigned(), state }, matches)))
}

/// What a stored state may come to, for the deadline of reading one.
const STATE_BYTES: usize = 256 * 1024 * 1024;

/// How far every spool has been read.
pub(super) fn offsets(link: &mut Link, space: i64) -> Answer<Vec<SpoolOffset>> {
    let sql = "SELECT attempt, stream, next, sum FROM rekindle.spool WHERE space = $1";
    let rows = link.query(sql, &[(&space, Type::INT8)], 0)?;
    let mut offsets = rows.iter().map(offset_of).collect::<Answer<Vec<_>>>()?;
    offsets.sort_unstable();
    Ok(offsets)
}

/// How far one spool has been read.
pub(super) fn offset(link: &mut Link, space: i64, attempt: u64, stream: Stream) -> Answer<u64> {
    let (attempt, stream) = (stored(attempt), stream_number(stream));
    let sql = "SELECT attempt, stream, next, sum FROM rekindle.spool WHERE space = $1 AND attempt = $2 AND stream = $3";
    let arguments = [(&space as _, Type::INT8), (&attempt as _, Type::INT8), (&stream as _, Type::INT2)];
    let rows = link.query(sql, &arguments, 0)?;
    rows.first().map_or(Ok(0), |row| offset_of(row).map(|offset| offset.next))
}

fn offset_of(row: &SqlRow) -> Answer<SpoolOffset> {
    let attempt: i64 = row.get(0);
    let wrong = || damaged(format!("the spool offset of attempt {attempt} does not match its checksum"));
    let Some(stream) = stream_from_code(row.get::<_, i16>(1).into()) else { return wrong() };
    let next = row.get::<_, i64>(2).cast_unsigned();
    let offset = SpoolOffset { attempt: attempt.cast_unsigned(), stream, next };
    if chain::offset_sum(offset) == row.get::<_, i64>(3) { Ok(offset) } else { wrong() }
}

/// Rows of a derived table, ordered by run, order and key.
pub(super) fn rows(link: &mut Link, space: i64, table: Table, run: Option<&str>) -> Answer<Vec<Row>> {
    let sql = "SELECT run, key, ord, json, sum FROM rekindle.derived
               WHERE space = $1 AND kind = $2 AND ($3::bytea IS NULL OR run = $3)";
    let (kind, run) = (table_name(table), run.map(str::as_bytes));
    let arguments = [(&space as _, Type::INT8), (&kind as _, Type::TEXT), (&run as _, Type::BYTEA)];
    let found = link.query(sql, &arguments, STATE_BYTES)?;
    let mut rows = found.iter().map(|row| row_of(table, row)).collect::<Answer<Vec<_>>>()?;
    rows.sort_by(|a, b| (&a.run, a.order, &a.key).cmp(&(&b.run, b.order, &b.key)));
    Ok(rows)
}

/// One row of a derived table.
pub(super) fn row(link: &mut Link, space: i64, table: Table, run: &str, key: &str) -> Answer<Option<Row>> {
    let sql = "SELECT run, key, ord, json, sum FROM rekindle.derived
               WHERE space = $1 AND kind = $2 AND run = $3 AND key = $4";
    let (kind, run, key) = (table_name(table), run.as_bytes(), key.as_bytes());
    let arguments =
        [(&space as _, Type::INT8), (&kind as _, Type::TEXT), (&run as _, Type::BYTEA), (&key as _, Type::BYTEA)];
    link.query(sql, &arguments, 0)?.first().map(|row| row_of(table, row)).transpose()
}

fn row_of(table: Table, row: &SqlRow) -> Answer<Row> {
    let read = Row {
        table,
        run: text(row, 0)?,
        key: text(row, 1)?,
        order: row.get::<_, i64>(2).cast_unsigned(),
        json: text(row, 3)?,
    };
    if chain::row_sum(&read) != row.get::<_, i64>(4) {
        return damaged(format!("a row of table {} does not match its checksum", table_name(table)));
    }
    Ok(read)
}
