//! How a batch becomes one call of the database: the columns it is sent as. When to send and what an answer means is left to
//! `writer`.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::link::{Argument, Fault, Link};
use crate::store::chain::{self, stream_code, table_name};
use crate::store::{Batch, Head, LogLine, Row, SNAPSHOTS_KEPT, SpoolOffset, StoredEvent, Stream, Table};

const APPEND: &str = "SELECT rekindle.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
                      $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36)";

const REPLACE_ROWS: &str = "SELECT rekindle.replace_rows($1, $2, $3, $4, $5, $6, $7, $8)";

/// Who writes: the space and the epoch in which it is led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) space: i64,
    pub(super) epoch: i64,
}

/// Where the next event and the next line go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) head: Head,
    pub(super) last_line: u64,
}

/// PostgreSQL's integers are signed; all 64 bits are kept.
pub(super) fn stored(value: u64) -> i64 {
    value.cast_signed()
}

/// The number of a stream in the database.
pub(super) fn stream_number(stream: Stream) -> i16 {
    i16::try_from(stream_code(stream)).unwrap_or_default()
}

/// Events as they will be in the log.
pub(super) fn linked(head: Head, batch: &Batch) -> Vec<StoredEvent> {
    let mut head = head;
    let link = |event: &crate::store::NewEvent| {
        let event = chain::link(head, event.clone());
        head = Head { last_seq: event.seq, last_hash: event.hash };
        event
    };
    batch.events.iter().map(link).collect()
}

/// Sends a batch whose events are linked; the log must end at `at`.
pub(super) fn append(
    link: &mut Link,
    lead: Lead,
    at: Place,
    events: &[StoredEvent],
    batch: &Batch,
) -> Result<(), Fault> {
    let head = events.last().map_or(at.head, |event| Head { last_seq: event.seq, last_hash: event.hash });
    let (head_seq, head_hash) = (stored(at.head.last_seq), at.head.last_hash.0.as_slice());
    let last_line = stored(at.last_line);
    let snapshot_hash = batch.snapshot.as_ref().map(|state| chain::snapshot_hash(head, state).0.to_vec());
    let kept = i64::try_from(SNAPSHOTS_KEPT).unwrap_or(i64::MAX);
    let events = EventColumns::of(events);
    let lines = LineColumns::of(at.last_line, &batch.lines);
    let offsets = OffsetColumns::of(&batch.offsets);
    let rows = RowColumns::of(&batch.rows);
    let mut arguments: Vec<Argument<'_>> = vec![
        (&lead.space, Type::INT8),
        (&lead.epoch, Type::INT8),
        (&head_seq, Type::INT8),
        (&head_hash, Type::BYTEA),
        (&last_line, Type::INT8),
    ];
    events.push(&mut arguments);
    lines.push(&mut arguments);
    offsets.push(&mut arguments);
    rows.push(&mut arguments);
    arguments.extend([
        (&batch.snapshot as _, Type::BYTEA),
        (&snapshot_hash as _, Type::BYTEA),
        (&kept as _, Type::INT8),
    ]);
    link.query(APPEND, &arguments, batch.size_bytes()).map(drop)
}

/// Makes the derived tables exactly these rows.
pub(super) fn replace_rows(link: &mut Link, lead: Lead, rows: &[Row]) -> Result<(), Fault> {
    let bytes = rows.iter().map(|row| row.json.len() + row.key.len() + row.run.len()).sum();
    let columns = RowColumns::of(rows);
    let mut arguments: Vec<Argument<'_>> = vec![(&lead.space, Type::INT8), (&lead.epoch, Type::INT8)];
    columns.push(&mut arguments);
    link.query(REPLACE_ROWS, &arguments, bytes).map(drop)
}

#[derive(Default)]
struct EventColumns<'a> {
    time: Vec<i64>,
    run: Vec<&'a [u8]>,
    kind: Vec<&'a [u8]>,
    agent: Vec<Option<&'a [u8]>>,
    task: Vec<Option<&'a [u8]>>,
    epoch: Vec<Option<i64>>,
    details: Vec<&'a [u8]>,
    hash: Vec<&'a [u8]>,
}

impl<'a> EventColumns<'a> {
    fn of(events: &'a [StoredEvent]) -> Self {
        let mut columns = Self::default();
        for event in events {
            columns.time.push(event.time_ms);
            columns.run.push(event.run.as_bytes());
            columns.kind.push(event.kind.as_bytes());
            columns.agent.push(event.agent.as_deref().map(str::as_bytes));
            columns.task.push(event.task.as_deref().map(str::as_bytes));
            columns.epoch.push(event.epoch.map(stored));
            columns.details.push(event.details.as_bytes());
            columns.hash.push(&event.hash.0);
        }
        columns
    }

    fn push<'s>(&'s self, arguments: &mut Vec<Argument<'s>>) {
        arguments.extend([
            (&self.time as _, Type::INT8_ARRAY),
            (&self.run as _, Type::BYTEA_ARRAY),
            (&self.kind as _, Type::BYTEA_ARRAY),
            (&self.agent as _, Type::BYTEA_ARRAY),
            (&self.task as _, Type::BYTEA_ARRAY),
            (&self.epoch as _, Type::INT8_ARRAY),
            (&self.details as _, Type::BYTEA_ARRAY),
            (&self.hash as _, Type::BYTEA_ARRAY),
        ]);
    }
}

#[derive(Default)]
struct LineColumns<'a> {
    attempt: Vec<i64>,
    agent: Vec<&'a [u8]>,
    epoch: Vec<i64>,
    stream: Vec<i16>,
    time: Vec<i64>,
    pos: Vec<i64>,
    len: Vec<i64>,
    torn: Vec<bool>,
    text: Vec<&'a [u8]>,
    sum: Vec<i64>,
}

impl<'a> LineColumns<'a> {
    fn of(last: u64, lines: &'a [LogLine]) -> Self {
        let mut columns = Self::default();
        for (seq, line) in (last + 1..).zip(lines) {
            columns.attempt.push(stored(line.attempt));
            columns.agent.push(line.agent.as_bytes());
            columns.epoch.push(stored(line.epoch));
            columns.stream.push(stream_number(line.stream));
            columns.time.push(line.time_ms);
            columns.pos.push(stored(line.offset));
            columns.len.push(stored(line.len));
            columns.torn.push(line.torn);
            columns.text.push(line.text.as_bytes());
            columns.sum.push(chain::line_sum(seq, line));
        }
        columns
    }

    fn push<'s>(&'s self, arguments: &mut Vec<Argument<'s>>) {
        arguments.extend([
            (&self.attempt as _, Type::INT8_ARRAY),
            (&self.agent as _, Type::BYTEA_ARRAY),
            (&self.epoch as _, Type::INT8_ARRAY),
            (&self.stream as _, Type::INT2_ARRAY),
            (&self.time as _, Type::INT8_ARRAY),
            (&self.pos as _, Type::INT8_ARRAY),
            (&self.len as _, Type::INT8_ARRAY),
            (&self.torn as _, Type::BOOL_ARRAY),
            (&self.text as _, Type::BYTEA_ARRAY),
            (&self.sum as _, Type::INT8_ARRAY),
        ]);
    }
}

#[derive(Default)]
struct OffsetColumns {
    attempt: Vec<i64>,
    stream: Vec<i16>,
    next: Vec<i64>,
    sum: Vec<i64>,
}

impl OffsetColumns {
    /// A statement may write a row once: of several offsets of one spool the last counts.
    fn of(offsets: &[SpoolOffset]) -> Self {
        let last: BTreeMap<_, _> = offsets.iter().map(|offset| ((offset.attempt, offset.stream), *offset)).collect();
        let mut columns = Self::default();
        for offset in last.into_values() {
            columns.attempt.push(stored(offset.attempt));
            columns.stream.push(stream_number(offset.stream));
            columns.next.push(stored(offset.next));
            columns.sum.push(chain::offset_sum(offset));
        }
        columns
    }

    fn push<'s>(&'s self, arguments: &mut Vec<Argument<'s>>) {
        arguments.extend([
            (&self.attempt as _, Type::INT8_ARRAY),
            (&self.stream as _, Type::INT2_ARRAY),
            (&self.next as _, Type::INT8_ARRAY),
            (&self.sum as _, Type::INT8_ARRAY),
        ]);
    }
}

#[derive(Default)]
struct RowColumns<'a> {
    kind: Vec<&'static str>,
    run: Vec<&'a [u8]>,
    key: Vec<&'a [u8]>,
    ord: Vec<i64>,
    json: Vec<&'a [u8]>,
    sum: Vec<i64>,
}

impl<'a> RowColumns<'a> {
    /// A statement may write a row once: of several with one key the last counts.
    fn of(rows: &'a [Row]) -> Self {
        let last: BTreeMap<(Table, &str, &str), &Row> =
            rows.iter().map(|row| ((row.table, row.run.as_str(), row.key.as_str()), row)).collect();
        let mut columns = Self::default();
        for row in last.into_values() {
            columns.kind.push(table_name(row.table));
            columns.run.push(row.run.as_bytes());
            columns.key.push(row.key.as_bytes());
            columns.ord.push(stored(row.order));
            columns.json.push(row.json.as_bytes());
            columns.sum.push(chain::row_sum(row));
        }
        columns
    }

    fn push<'s>(&'s self, arguments: &mut Vec<Argument<'s>>) {
        arguments.extend([
            (&self.kind as _, Type::TEXT_ARRAY),
            (&self.run as _, Type::BYTEA_ARRAY),
            (&self.key as _, Type::BYTEA_ARRAY),
            (&self.ord as _, Type::INT8_ARRAY),
            (&self.json as _, Type::BYTEA_ARRAY),
            (&self.sum as _, Type::INT8_ARRAY),
        ]);
    }
}
