//! Reads the shadow log back: which segments there are, their records in order, and where the last whole one ends. This file
//! finds whole records among damaged ones; callers that follow their hashes decide whether to trust them.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::connect::io_fault;
use super::{ShadowRecord, decode};
use crate::store::{Error, Head, MAX_BATCH_BYTES};

/// Longest line read as a record: a group of batches, with JSON's escapes, could not be longer; garbage could.
const MAX_RECORD_BYTES: u64 = 8 * MAX_BATCH_BYTES as u64;

/// Step size for searching backwards from a file's end for the beginning of a line.
const BACK_STEP: u64 = 64 * 1024;

/// How much of a segment's end is searched for its last event: offsets without events are written once a second, so this is
/// hours of them.
const QUICK_BYTES: u64 = 1024 * 1024;

/// The segments, in order, with their numbers.
pub fn segments(dir: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io_fault(dir, &e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| io_fault(dir, &e))?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let Some(number) = number.filter(|_| path.extension().is_some_and(|e| e == "jsonl")) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Hands every whole record, in order, to `take`; damaged ones are passed over.
pub fn records(dir: &Path, mut take: impl FnMut(ShadowRecord) -> Result<(), Error>) -> Result<(), Error> {
    for (_, path) in segments(dir)? {
        each_line(&path, |_, record| record.map_or(Ok(()), &mut take))?;
    }
    Ok(())
}

/// Where the log ends according to the last record that has events.
pub fn last_record(dir: &Path) -> Result<Option<Head>, Error> {
    for (_, path) in segments(dir)?.into_iter().rev() {
        // The last line nearly always suffices; if it is torn or has only offsets, the whole segment is read.
        if let Some(head) = last_in(&path)?.and_then(|record| record.head()) {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// Where the log ends, for callers that cannot wait: only the end of the newest segment is read. `None` if that part holds
/// no whole record with events.
pub fn quick_end(dir: &Path) -> Result<Option<Head>, Error> {
    let Some((_, path)) = segments(dir)?.pop() else { return Ok(None) };
    let fail = |e| io_fault(&path, &e);
    let mut file = File::open(&path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(QUICK_BYTES))).map_err(fail)?;
    let mut tail = Vec::new();
    file.take(QUICK_BYTES).read_to_end(&mut tail).map_err(fail)?;
    let mut lines = tail.split_inclusive(|byte| *byte == b'\n').rev();
    Ok(lines.find_map(|line| decode(line)?.head()))
}

/// The last whole record with events in a segment.
pub(super) fn last_in(path: &Path) -> Result<Option<ShadowRecord>, Error> {
    let mut last = last_line(path)?.filter(|r| !r.events.is_empty());
    if last.is_some() {
        return Ok(last);
    }
    each_line(path, |_, record| {
        last = record.filter(|r| !r.events.is_empty()).or(last.take());
        Ok(())
    })?;
    Ok(last)
}

/// How much of a segment to keep before appending: up to the end of its last whole record.
pub(super) fn sound_length(path: &Path) -> Result<u64, Error> {
    if last_line(path)?.is_some() {
        return path.metadata().map(|m| m.len()).map_err(|e| io_fault(path, &e));
    }
    let mut end = 0;
    each_line(path, |at, record| {
        if record.is_some() {
            end = at;
        }
        Ok(())
    })?;
    Ok(end)
}

/// Passes the end offset of each line and its record, if it is one, to `take`.
fn each_line(path: &Path, mut take: impl FnMut(u64, Option<ShadowRecord>) -> Result<(), Error>) -> Result<(), Error> {
    let file = File::open(path).map_err(|e| io_fault(path, &e))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut at = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_RECORD_BYTES).read_until(b'\n', &mut line);
        match read.map_err(|e| io_fault(path, &e))? {
            0 => return Ok(()),
            n => at += n as u64,
        }
        take(at, decode(&line))?;
    }
}

/// The record in a file's last line, found from the end.
fn last_line(path: &Path) -> Result<Option<ShadowRecord>, Error> {
    let fail = |e| io_fault(path, &e);
    let mut file = File::open(path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    let mut start = len;
    let mut tail = Vec::new();
    while start > 0 && len - start < MAX_RECORD_BYTES {
        let step = BACK_STEP.max(len - start).min(start);
        start -= step;
        tail.resize(usize::try_from(len - start).unwrap_or(usize::MAX), 0);
        file.seek(SeekFrom::Start(start)).map_err(fail)?;
        match file.read_exact(&mut tail) {
            // Truncated while being read: there is no whole last line.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(fail)?,
        }
        let before_last = tail.len().saturating_sub(1);
        if let Some(newline) = tail[..before_last].iter().rposition(|b| *b == b'\n') {
            return Ok(decode(&tail[newline + 1..]));
        }
    }
    Ok(decode(&tail))
}
