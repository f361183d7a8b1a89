//! The hashes that prove content: the chain over events, and the checksums of everything else. This file decides what is
//! hashed and in which form; the engines decide when to check.
//!
//! The form is canonical and unambiguous: every field is a fixed number of bytes, or its length followed by its bytes, or a
//! presence byte followed by the field. Changing the form breaks every existing store: that needs a migration.

use std::fmt;

use super::{Error, Head, LogLine, NewEvent, Row, SpoolOffset, StoredEvent, Stream, Table};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What the first event is chained to.
    pub const ZERO: Hash = Hash([0; 32]);

    /// The hash with these bytes, if they are 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Hash> {
        bytes.try_into().ok().map(Hash)
    }

    /// Parses a hash written as 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Hash> {
        blake3::Hash::from_hex(text).ok().map(|hash| Hash(*hash.as_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// A hasher fed in the canonical form. It has a short buffer in front, because BLAKE3 is far slower on single bytes.
struct Canon(Vec<u8>);

impl Canon {
    fn new(tag: &str) -> Canon {
        let mut canon = Canon(Vec::with_capacity(512));
        canon.text(tag);
        canon
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Canon, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn hash(self) -> Hash {
        Hash(*blake3::hash(&self.0).as_bytes())
    }

    /// The first eight bytes as SQLite's integer: enough against chance, not against malice, which could rewrite both.
    fn sum(self) -> i64 {
        let hash = blake3::hash(&self.0);
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        i64::from_le_bytes(first)
    }
}

/// Appends an event to the chain.
pub fn link(head: Head, event: NewEvent) -> StoredEvent {
    let mut stored = StoredEvent {
        seq: head.last_seq + 1,
        time_ms: event.time_ms,
        run: event.run,
        kind: event.kind,
        agent: event.agent,
        task: event.task,
        epoch: event.epoch,
        details: event.details,
        hash: Hash::ZERO,
    };
    stored.hash = event_hash(head.last_hash, &stored);
    stored
}

/// The hash an event must have after the given previous one.
pub fn event_hash(previous: Hash, event: &StoredEvent) -> Hash {
    let mut canon = Canon::new("event");
    canon.0.extend_from_slice(&previous.0);
    canon.u64(event.seq);
    canon.i64(event.time_ms);
    canon.text(&event.run);
    canon.text(&event.kind);
    canon.option(event.agent.as_deref(), Canon::text);
    canon.option(event.task.as_deref(), Canon::text);
    canon.option(event.epoch, Canon::u64);
    canon.text(&event.details);
    canon.hash()
}

/// Walks a chain: the event must be the next one and carry the right hash; the head moves on to it.
pub fn follow(head: &mut Head, event: &StoredEvent) -> Result<(), Error> {
    if event.seq != head.last_seq + 1 {
        return Err(Error::Corrupt(format!("event {} follows event {}", event.seq, head.last_seq)));
    }
    if event_hash(head.last_hash, event) != event.hash {
        return Err(Error::Corrupt(format!("event {} does not match its hash", event.seq)));
    }
    *head = Head { last_seq: event.seq, last_hash: event.hash };
    Ok(())
}

/// The hash of a snapshot; it binds the state to the event it was taken after, so that it cannot be used with another
/// history.
pub fn snapshot_hash(head: Head, state: &[u8]) -> Hash {
    let mut canon = Canon::new("snapshot");
    canon.u64(head.last_seq);
    canon.0.extend_from_slice(&head.last_hash.0);
    canon.bytes(state);
    canon.hash()
}

/// The checksum of a log line with its sequence number.
pub fn line_sum(seq: u64, line: &LogLine) -> i64 {
    let mut canon = Canon::new("line");
    canon.u64(seq);
    canon.u64(line.attempt);
    canon.text(&line.agent);
    canon.u64(line.epoch);
    canon.i64(stream_code(line.stream));
    canon.i64(line.time_ms);
    canon.u64(line.offset);
    canon.u64(line.len);
    canon.text(&line.text);
    canon.i64(i64::from(line.torn));
    canon.sum()
}

/// The checksum of a derived row.
pub fn row_sum(row: &Row) -> i64 {
    let mut canon = Canon::new(table_name(row.table));
    canon.text(&row.run);
    canon.text(&row.key);
    canon.u64(row.order);
    canon.text(&row.json);
    canon.sum()
}

/// The checksum of a spool offset.
pub fn offset_sum(offset: SpoolOffset) -> i64 {
    let mut canon = Canon::new("spool");
    canon.u64(offset.attempt);
    canon.i64(stream_code(offset.stream));
    canon.u64(offset.next);
    canon.sum()
}

/// The checksum of one of the store's own named numbers.
pub fn meta_sum(key: &str, value: i64) -> i64 {
    let mut canon = Canon::new("meta");
    canon.text(key);
    canon.i64(value);
    canon.sum()
}

/// The checksum of the record that lines were removed.
pub fn removed_sum(first: u64, last: u64) -> i64 {
    let mut canon = Canon::new("removed");
    canon.u64(first);
    canon.u64(last);
    canon.sum()
}

/// The checksum in front of a record of the shadow log.
pub fn record_sum(bytes: &[u8]) -> u64 {
    let mut canon = Canon::new("record");
    canon.bytes(bytes);
    canon.sum().cast_unsigned()
}

/// The number a stream is stored as.
pub fn stream_code(stream: Stream) -> i64 {
    match stream {
        Stream::Out => 1,
        Stream::Err => 2,
        Stream::Transcript => 3,
    }
}

/// The stream stored as this number.
pub fn stream_from_code(code: i64) -> Option<Stream> {
    match code {
        1 => Some(Stream::Out),
        2 => Some(Stream::Err),
        3 => Some(Stream::Transcript),
        _ => None,
    }
}

/// The name of a derived table in hashes and in SQL.
pub fn table_name(table: Table) -> &'static str {
    match table {
        Table::Run => "run",
        Table::Task => "task",
        Table::Attempt => "attempt",
        Table::Question => "question",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> NewEvent {
        NewEvent {
            time_ms: 1,
            run: "r".into(),
            kind: "k".into(),
            agent: Some("a".into()),
            task: None,
            epoch: Some(3),
            details: "{}".into(),
        }
    }

    #[test]
    fn the_form_is_fixed_for_ever() {
        let stored = link(Head::default(), event());
        assert_eq!(stored.hash.to_string(), FIRST_HASH, "a changed form breaks every existing store");
    }

    /// The hash of `event()` as first event, recorded once.
    const FIRST_HASH: &str = "691319e8e5e2331e979757edd2abda8da2180e871e3c24875ed8915cbfd26dc4";

    #[test]
    fn neighbouring_fields_cannot_be_shifted() {
        let plain = link(Head::default(), event()).hash;
        let shifted = NewEvent { run: "rk".into(), kind: String::new(), ..event() };
        assert_ne!(plain, link(Head::default(), shifted).hash);
        let moved = NewEvent { agent: None, task: Some("a".into()), ..event() };
        assert_ne!(plain, link(Head::default(), moved).hash);
        let absent = NewEvent { epoch: None, ..event() };
        assert_ne!(plain, link(Head::default(), absent).hash);
    }

    #[test]
    fn a_chain_breaks_where_content_changes() {
        let first = link(Head::default(), event());
        let mut head = Head::default();
        follow(&mut head, &first).expect("an untouched event follows");
        let mut second = link(head, event());
        second.details = "{ }".into();
        assert!(follow(&mut head.clone(), &second).is_err());
        second.details = "{}".into();
        follow(&mut head, &second).expect("the restored event follows");
        assert_eq!(head.last_seq, 2);
    }
}
