//! The shadow log: a second, plain copy of every event, to repair the database from. This file owns the segment files and
//! their records; `open` and `repair` decide what to take from them.
//!
//! A record is one line, `length checksum json`, written after the commit it copies and before its acknowledgement, without
//! a sync of its own: the database has already synced. A companion thread syncs once a second. Records also carry spool
//! offsets, so that a replay does not hand lines to an adapter twice; the lines themselves are in the spools.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::connect::io_fault;
use crate::state_dir::sync_dir;
use crate::store::chain::{self, Hash};
use crate::store::{Error, Head, SpoolOffset, StoredEvent, Stream};

mod scan;
mod sync;

pub use scan::{last_record, quick_end, records, segments};
pub use sync::Syncer;

/// Size at which a new segment starts: large enough that there are few, small enough to drop them one by one.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// One record: what one transaction added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowRecord {
    #[serde(rename = "e")]
    pub events: Vec<ShadowEvent>,
    /// Where spools stood after it: attempt, 1 for out or 2 for err, next byte.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    offsets: Vec<(u64, i64, u64)>,
}

impl ShadowRecord {
    /// The offsets, as the store has them.
    pub fn offsets(&self) -> impl Iterator<Item = SpoolOffset> + '_ {
        self.offsets.iter().filter_map(|&(attempt, code, next)| {
            Some(SpoolOffset { attempt, stream: chain::stream_from_code(code)?, next })
        })
    }

    /// Where the log ends after this record, if it has events.
    pub fn head(&self) -> Option<Head> {
        let last = self.events.last()?;
        Some(Head { last_seq: last.seq, last_hash: Hash::from_hex(&last.hash)? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowEvent {
    seq: u64,
    time_ms: i64,
    run: String,
    kind: String,
    agent: Option<String>,
    task: Option<String>,
    epoch: Option<u64>,
    details: String,
    hash: String,
}

impl ShadowEvent {
    fn new(event: &StoredEvent) -> ShadowEvent {
        let StoredEvent { seq, time_ms, run, kind, agent, task, epoch, details, hash } = event.clone();
        ShadowEvent { seq, time_ms, run, kind, agent, task, epoch, details, hash: hash.to_string() }
    }

    /// Converts the event; `None` if its hash is malformed.
    pub fn into_stored(self) -> Option<StoredEvent> {
        let ShadowEvent { seq, time_ms, run, kind, agent, task, epoch, details, hash } = self;
        let hash = Hash::from_hex(&hash)?;
        Some(StoredEvent { seq, time_ms, run, kind, agent, task, epoch, details, hash })
    }
}

/// The writing end. It may fall behind when its disk is full; [`Shadow::reached`] says how far it got, and the owner of the
/// database brings it up to date again.
pub struct Shadow {
    dir: PathBuf,
    syncer: Syncer,
    segment: Option<Segment>,
    number: u64,
    reached: u64,
    /// Offsets not yet written: those of transactions without events wait for the next record or the next second.
    pending: BTreeMap<(u64, Stream), u64>,
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.syncer.stop();
    }
}

struct Segment {
    file: Arc<File>,
    path: PathBuf,
    len: u64,
}

impl Shadow {
    /// Opens for appending after the last whole record; anything that a crash left after it is truncated.
    pub fn open(dir: &Path) -> Result<Shadow, Error> {
        match std::fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(io_fault(dir, &e));
            }
            _ => {}
        }
        let last = segments(dir)?.pop();
        let mut shadow = Shadow {
            dir: dir.to_owned(),
            syncer: Syncer::start()?,
            segment: None,
            number: last.as_ref().map_or(0, |(number, _)| *number),
            reached: last_record(dir)?.map_or(0, |head| head.last_seq),
            pending: BTreeMap::new(),
        };
        if let Some((_, path)) = last {
            let end = scan::sound_length(&path)?;
            let file = OpenOptions::new().append(true).open(&path).map_err(|e| io_fault(&path, &e))?;
            file.set_len(end).and_then(|()| file.sync_all()).map_err(|e| io_fault(&path, &e))?;
            shadow.syncer.already(shadow.reached);
            shadow.segment = Some(Segment { file: Arc::new(file), path, len: end });
        }
        Ok(shadow)
    }

    /// The last event in it.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Whether offsets wait to be written.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Remembers offsets for the next record.
    pub fn note_offsets(&mut self, offsets: &[SpoolOffset]) {
        for offset in offsets {
            self.pending.insert((offset.attempt, offset.stream), offset.next);
        }
    }

    /// Writes events, which must follow those already written, together with the pending offsets.
    pub fn append(&mut self, events: &[StoredEvent]) -> Result<(), Error> {
        // A failed sync may have lost records that were written: go back and write them again, in a new segment.
        if let Some(synced) = self.syncer.take_failure() {
            self.segment = None;
            self.reached = self.reached.min(synced);
            return Err(Error::Io("the shadow log could not be synced".into()));
        }
        if events.first().is_some_and(|first| first.seq != self.reached + 1) {
            return Err(Error::Io("the shadow log is behind".into()));
        }
        let pending = self.pending.iter();
        let record = ShadowRecord {
            events: events.iter().map(ShadowEvent::new).collect(),
            offsets: pending.map(|(&(attempt, stream), &next)| (attempt, chain::stream_code(stream), next)).collect(),
        };
        if record.events.is_empty() && record.offsets.is_empty() {
            return Ok(());
        }
        self.write(&encode(&record)?)?;
        self.pending.clear();
        if let Some(last) = events.last() {
            self.reached = last.seq;
        }
        if let Some(segment) = &self.segment {
            self.syncer.written(&segment.file, self.reached);
        }
        Ok(())
    }

    /// Waits until everything written is on disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.syncer.sync_now().map_err(|e| io_fault(&self.dir, &e))
    }

    /// The part that another thread may ask to sync.
    pub fn syncer(&self) -> Syncer {
        self.syncer.clone()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.segment.as_ref().is_none_or(|s| s.len >= SEGMENT_BYTES) {
            self.begin_segment()?;
        }
        let Some(segment) = &mut self.segment else {
            return Err(Error::Io("the shadow log has no segment".into()));
        };
        match (&*segment.file).write_all(bytes) {
            Ok(()) => segment.len += bytes.len() as u64,
            Err(error) => {
                let fault = io_fault(&segment.path, &error);
                // Half a record would make the next one unreadable; a segment that cannot be truncated is abandoned.
                if segment.file.set_len(segment.len).is_err() {
                    self.segment = None;
                }
                return Err(fault);
            }
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), Error> {
        if self.segment.is_some() {
            self.sync()?;
        }
        let number = self.number + 1;
        let path = self.dir.join(format!("{number:06}.jsonl"));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|e| io_fault(&path, &e))?;
        sync_dir(&self.dir).map_err(|e| io_fault(&self.dir, &e))?;
        self.number = number;
        self.segment = Some(Segment { file: Arc::new(file), path, len: 0 });
        Ok(())
    }
}

/// Drops segments that no kept backup needs any more: those that end at or before `seq`, except the last.
pub fn prune(dir: &Path, seq: u64) -> Result<(), Error> {
    let mut all = segments(dir)?;
    all.pop();
    for (_, path) in all {
        let end = scan::last_in(&path)?.and_then(|record| record.head());
        if end.is_none_or(|head| head.last_seq > seq) {
            break;
        }
        std::fs::remove_file(&path).map_err(|e| io_fault(&path, &e))?;
    }
    Ok(())
}

fn encode(record: &ShadowRecord) -> Result<Vec<u8>, Error> {
    let json = serde_json::to_vec(record).map_err(|e| Error::Database(e.to_string()))?;
    let mut bytes = format!("{:08x} {:016x} ", json.len(), chain::record_sum(&json)).into_bytes();
    bytes.extend_from_slice(&json);
    bytes.push(b'\n');
    Ok(bytes)
}

/// Decodes a line, if it is whole and unchanged.
fn decode(line: &[u8]) -> Option<ShadowRecord> {
    let line = line.strip_suffix(b"\n")?;
    let (len, rest) = (line.get(..8)?, line.strip_prefix(line.get(..8)?)?.strip_prefix(b" ")?);
    let (sum, json) = (rest.get(..16)?, rest.get(16..)?.strip_prefix(b" ")?);
    let hex = |digits: &[u8]| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    if hex(len)? != json.len() as u64 || hex(sum)? != chain::record_sum(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests;
