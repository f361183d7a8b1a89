//! From the bytes of a spool to records, each once: where one ends, what is kept of it, and where to continue reading.
//!
//! A record ends at a newline; its identity is its offset. A line of any length is read in bounded memory: only its head is
//! kept. Text without a newline is not a record yet, so a write that was cut off is never mistaken for a complete one.

use std::borrow::Cow;

/// Bytes of a record that are kept for reading and for signals; the spool has the rest.
pub const RECORD_HEAD_BYTES: usize = 8 * 1024;

/// The same for agents whose lines must be parsed: several times the largest line that a program was seen to write.
pub const UNDERSTOOD_HEAD_BYTES: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub offset: u64,
    /// Its length without the newline.
    pub len: u64,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// The process ended before the newline came.
    pub torn: bool,
}

impl Record {
    /// Whether `head` contains all of it.
    pub fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.len
    }

    /// The head as text, without a trailing carriage return; invalid UTF-8 is shown as replacement characters.
    pub fn text(&self) -> Cow<'_, str> {
        let bytes = self.head.strip_suffix(b"\r").unwrap_or(&self.head);
        String::from_utf8_lossy(bytes)
    }
}

/// How far one spool has been read, and what is known about the current record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    start: u64,
    scanned: u64,
    head: Vec<u8>,
    head_max: usize,
}

impl Cursor {
    /// A cursor that continues at a stored offset.
    pub fn at(offset: u64) -> Self {
        Self { start: offset, scanned: offset, head: Vec::new(), head_max: RECORD_HEAD_BYTES }
    }

    /// The same, keeping up to this many bytes of a record.
    pub fn keeping(self, head_max: usize) -> Self {
        Self { head_max, ..self }
    }

    /// The same at another offset.
    pub fn moved_to(&self, offset: u64) -> Self {
        Self::at(offset).keeping(self.head_max)
    }

    /// The first byte that belongs to no record yet: this is stored with the records before it.
    pub fn next(&self) -> u64 {
        self.start
    }

    /// Where to continue reading.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Takes the bytes that follow and returns the records they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(at);
            self.keep(line);
            records.push(self.complete(false));
            self.scanned += 1;
            self.start = self.scanned;
            bytes = &rest[1..];
        }
        self.keep(bytes);
        records
    }

    /// The process has ended: the rest without a newline becomes a torn record.
    pub fn finish(&mut self) -> Option<Record> {
        if self.scanned == self.start {
            return None;
        }
        let record = self.complete(true);
        self.start = self.scanned;
        Some(record)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.head_max.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.scanned += bytes.len() as u64;
    }

    fn complete(&mut self, torn: bool) -> Record {
        Record { offset: self.start, len: self.scanned - self.start, head: std::mem::take(&mut self.head), torn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_the_same_however_the_bytes_arrive() {
        let mut spool = Vec::new();
        spool.extend_from_slice(b"first\n\n\x00\xff bad\nlast without end");
        spool.splice(6..6, std::iter::repeat_n(b'x', 100_000).chain([b'\n']));
        let mut whole = Cursor::at(0);
        let mut expected = whole.feed(&spool);
        expected.extend(whole.finish());
        for size in [1, 2, 3, 7, 64, 8191, 8192, 8193, 65_536] {
            let mut cursor = Cursor::at(0);
            let mut records: Vec<Record> = spool.chunks(size).flat_map(|chunk| cursor.feed(chunk)).collect();
            records.extend(cursor.finish());
            assert_eq!(records, expected, "chunks of {size}");
        }
        let total: u64 = expected.iter().map(|record| record.len + u64::from(!record.torn)).sum();
        assert_eq!(total, spool.len() as u64);
    }

    #[test]
    fn going_on_at_a_stored_offset_repeats_nothing() {
        let spool = b"one\ntwo\nthree\nfour";
        for cut in 0..=spool.len() {
            let mut first = Cursor::at(0);
            let mut records = first.feed(&spool[..cut]);
            let mut second = Cursor::at(first.next());
            records.extend(second.feed(&spool[usize::try_from(first.next()).expect("small")..]));
            records.extend(second.finish());
            let texts: Vec<String> = records.iter().map(|record| record.text().into_owned()).collect();
            assert_eq!(texts, ["one", "two", "three", "four"], "cut at {cut}");
        }
    }
}
