//! How a batch becomes rows: the SQL for writing, inside a transaction that the caller holds. This file assigns the sequence
//! numbers of events and lines and remembers sources; `writer` decides when to commit.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use super::connect::fault;
use super::read::{self, limit_of, stored};
use crate::store::chain::{self, stream_code, table_name};
use crate::store::{Batch, Error, Head, LogLine, Row, SNAPSHOTS_KEPT, SpoolOffset, StoredEvent, Stream, Table};

/// Key of the number that marks the derived tables as stale, to be rebuilt with `replace_rows`.
pub const ROWS_STALE: &str = "rows_stale";

/// Sources remembered, so that a line costs no lookup; far more than agents ever run at once.
const MAX_SOURCES: usize = 4_096;

/// Where the next event and the next line go.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    pub head: Head,
    pub last_line: u64,
}

impl Cursor {
    /// Reads the cursor from the database.
    pub fn read(conn: &Connection) -> Result<Cursor, Error> {
        Ok(Cursor { head: read::head(conn)?, last_line: read::last_line(conn)? })
    }
}

/// Ids of sources already seen. Clear it after a rollback, which may have undone some of them.
#[derive(Debug, Default)]
pub struct Sources(HashMap<(u64, Stream), (String, u64, i64)>);

impl Sources {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn id(&mut self, conn: &Connection, line: &LogLine) -> Result<i64, Error> {
        let key = (line.attempt, line.stream);
        if let Some((agent, epoch, id)) = self.0.get(&key)
            && *agent == line.agent
            && *epoch == line.epoch
        {
            return Ok(*id);
        }
        let fields = (stored(line.attempt), stream_code(line.stream), &line.agent, stored(line.epoch));
        let known = conn
            .prepare_cached("SELECT id FROM source WHERE attempt = ?1 AND stream = ?2 AND agent = ?3 AND epoch = ?4")
            .and_then(|mut query| query.query_row(fields, |row| row.get(0)).optional())
            .map_err(fault)?;
        let id = match known {
            Some(id) => id,
            None => conn
                .prepare_cached("INSERT INTO source (attempt, stream, agent, epoch) VALUES (?1, ?2, ?3, ?4)")
                .and_then(|mut insert| insert.insert(fields))
                .map_err(fault)?,
        };
        if self.0.len() >= MAX_SOURCES {
            self.0.clear();
        }
        self.0.insert(key, (line.agent.clone(), line.epoch, id));
        Ok(id)
    }
}

/// Writes a batch; returns its events as stored.
pub fn batch(
    conn: &Connection,
    cursor: &mut Cursor,
    sources: &mut Sources,
    batch: &Batch,
) -> Result<Vec<StoredEvent>, Error> {
    let mut events = Vec::with_capacity(batch.events.len());
    for event in &batch.events {
        let event = chain::link(cursor.head, event.clone());
        put_event(conn, &event)?;
        cursor.head = Head { last_seq: event.seq, last_hash: event.hash };
        events.push(event);
    }
    batch.lines.iter().try_for_each(|line| put_line(conn, cursor, sources, line))?;
    batch.offsets.iter().try_for_each(|offset| put_offset(conn, *offset))?;
    batch.rows.iter().try_for_each(|row| put_row(conn, row))?;
    if let Some(state) = &batch.snapshot {
        put_snapshot(conn, cursor.head, state)?;
    }
    Ok(events)
}

/// Writes an event that is already chained.
pub fn put_event(conn: &Connection, event: &StoredEvent) -> Result<(), Error> {
    let sql = "INSERT INTO event (seq, time_ms, run, kind, agent, task, epoch, details, hash)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let fields = (
        stored(event.seq),
        event.time_ms,
        &event.run,
        &event.kind,
        &event.agent,
        &event.task,
        event.epoch.map(stored),
        &event.details,
        &event.hash.0,
    );
    conn.prepare_cached(sql).and_then(|mut insert| insert.execute(fields)).map_err(fault).map(drop)
}

/// Writes a line with the next sequence number.
pub fn put_line(conn: &Connection, cursor: &mut Cursor, sources: &mut Sources, line: &LogLine) -> Result<(), Error> {
    let sql =
        "INSERT INTO line (seq, source, time_ms, pos, len, torn, text, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let seq = cursor.last_line + 1;
    let source = sources.id(conn, line)?;
    let sum = chain::line_sum(seq, line);
    let fields = (stored(seq), source, line.time_ms, stored(line.offset), stored(line.len), line.torn, &line.text, sum);
    conn.prepare_cached(sql).and_then(|mut insert| insert.execute(fields)).map_err(fault)?;
    cursor.last_line = seq;
    Ok(())
}

/// Writes how far a spool has been read.
pub fn put_offset(conn: &Connection, offset: SpoolOffset) -> Result<(), Error> {
    let sql = "INSERT INTO spool (attempt, stream, next, sum) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (attempt, stream) DO UPDATE SET next = excluded.next, sum = excluded.sum";
    let fields = (stored(offset.attempt), stream_code(offset.stream), stored(offset.next), chain::offset_sum(offset));
    conn.prepare_cached(sql).and_then(|mut upsert| upsert.execute(fields)).map_err(fault).map(drop)
}

/// The upsert of one derived table; written out at compile time, so that the statement cache sees one constant each.
macro_rules! upsert_sql {
    ($table:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (run, key, ord, json, sum) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (run, key) DO UPDATE SET ord = excluded.ord, json = excluded.json, sum = excluded.sum"
        )
    };
}

fn put_row(conn: &Connection, row: &Row) -> Result<(), Error> {
    let sql = match row.table {
        Table::Run => upsert_sql!("run"),
        Table::Task => upsert_sql!("task"),
        Table::Attempt => upsert_sql!("attempt"),
        Table::Question => upsert_sql!("question"),
    };
    let fields = (&row.run, &row.key, stored(row.order), &row.json, chain::row_sum(row));
    conn.prepare_cached(sql).and_then(|mut upsert| upsert.execute(fields)).map_err(fault).map(drop)
}

/// Writes a snapshot and removes the oldest.
pub fn put_snapshot(conn: &Connection, head: Head, state: &[u8]) -> Result<(), Error> {
    let hash = chain::snapshot_hash(head, state);
    conn.prepare_cached("INSERT OR REPLACE INTO snapshot (seq, state, hash) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute((stored(head.last_seq), state, &hash.0)))
        .map_err(fault)?;
    let prune = "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?1)";
    conn.prepare_cached(prune).and_then(|mut d| d.execute([limit_of(SNAPSHOTS_KEPT)])).map_err(fault).map(drop)
}

/// Sets one of the store's own numbers.
pub fn put_meta(conn: &Connection, key: &str, value: i64) -> Result<(), Error> {
    let sql = "INSERT INTO meta (key, value, sum) VALUES (?1, ?2, ?3)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value, sum = excluded.sum";
    let fields = (key, value, chain::meta_sum(key, value));
    conn.prepare_cached(sql).and_then(|mut upsert| upsert.execute(fields)).map_err(fault).map(drop)
}

/// Makes the derived tables exactly these rows.
pub fn replace_rows(conn: &Connection, rows: &[Row]) -> Result<(), Error> {
    for table in Table::ALL {
        conn.execute(&format!("DELETE FROM {}", table_name(table)), []).map_err(fault)?;
    }
    rows.iter().try_for_each(|row| put_row(conn, row))?;
    put_meta(conn, ROWS_STALE, 0)
}

/// Whether the derived tables already hold exactly these rows. A row that cannot be read counts as different.
pub fn same_rows(conn: &Connection, rows: &[Row]) -> Result<bool, Error> {
    if read::meta(conn, ROWS_STALE)? != 0 {
        return Ok(false);
    }
    let mut wanted: HashMap<(Table, &str, &str), &Row> = HashMap::new();
    for row in rows {
        wanted.insert((row.table, &row.run, &row.key), row);
    }
    let mut count = 0;
    for table in Table::ALL {
        let found = match read::rows(conn, table, None) {
            Ok(found) => found,
            Err(Error::Corrupt(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        count += found.len();
        if found.iter().any(|row| wanted.get(&(row.table, row.run.as_str(), row.key.as_str())) != Some(&row)) {
            return Ok(false);
        }
    }
    Ok(count == wanted.len())
}
