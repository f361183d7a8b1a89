//! Continues reading a session's transcript: whole lines from the last offset, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use rekindle_core::guard::fact::Fact;

use crate::agents::guard_adapter::GuardAdapter;

/// Longest line: a tool's result with a picture in it. A longer one is skipped.
const LINE_MAX_BYTES: usize = 16 << 20;

/// Most facts kept from one read: of a transcript that was never read before, the newest count.
const FACTS_MAX: usize = 4_000;

#[derive(Debug, Default)]
pub(super) struct Reading {
    /// What it reported, with the final offset; empty if there was nothing new.
    pub facts: Vec<Fact>,
    /// Whether the file is shorter than what was read of it before, or gone.
    pub missing: bool,
}

pub(super) fn read_on(program: &dyn GuardAdapter, path: &Path, from: u64) -> Reading {
    let Some(mut reader) = program.transcript_reader() else {
        return Reading::default();
    };
    let Ok(mut file) = File::open(path) else {
        // Reported once: from then on nothing can be missing.
        let facts = if from > 0 { vec![Fact::ReadTo { offset: 0 }] } else { Vec::new() };
        return Reading { facts, missing: from > 0 };
    };
    let length = file.metadata().map_or(0, |found| found.len());
    let missing = length < from;
    let from = if missing { 0 } else { from };
    if length == from || file.seek(SeekFrom::Start(from)).is_err() {
        return Reading { facts: Vec::new(), missing };
    }
    let mut facts = Vec::new();
    let mut at = from;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while let Ok(read) = whole_line(&mut lines, &mut line) {
        if read == 0 {
            break;
        }
        at += read;
        if let Ok(text) = std::str::from_utf8(&line) {
            facts.extend(reader.line(text));
        }
    }
    if at == from && !missing {
        return Reading { facts: Vec::new(), missing };
    }
    if facts.len() > FACTS_MAX {
        facts.drain(..facts.len() - FACTS_MAX);
    }
    if missing {
        facts.insert(0, Fact::ReadTo { offset: 0 });
    }
    facts.push(Fact::ReadTo { offset: at });
    Reading { facts, missing }
}

/// The next line, empty if it was too long; 0 at the end or if the last line has no end yet.
fn whole_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut read = 0_u64;
    loop {
        let buffer = lines.fill_buf()?;
        if buffer.is_empty() {
            return Ok(0);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = end.unwrap_or(buffer.len());
        if line.len() + part <= LINE_MAX_BYTES {
            line.extend_from_slice(&buffer[..part]);
        }
        let taken = end.map_or(part, |at| at + 1);
        let too_long = read + taken as u64 > LINE_MAX_BYTES as u64 + 1;
        lines.consume(taken);
        read += taken as u64;
        if end.is_some() {
            if too_long {
                line.clear();
            }
            return Ok(read);
        }
    }
}
