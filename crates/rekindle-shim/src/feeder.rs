//! The agent's standard input in mode `lines`: whole lines, in order, each id once.
//!
//! A line is acknowledged when its last byte is in the pipe and not before; a caller that repeats it afterwards, or while it
//! waits, learns that it is a duplicate. A torn line would end a stream session for good, so writing a line starts only when
//! the line is here whole, and nothing is put between its parts.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::wire::{Refusal, Reply};

/// A caller, as the server numbers them.
pub(crate) type Caller = u64;

/// Bytes accepted and not yet written: two of the longest lines.
const QUEUE_MAX_BYTES: usize = 2 * crate::wire::LINE_MAX_BYTES;

/// Lines accepted and not yet written.
const QUEUE_MAX_LINES: usize = 1024;

/// Line ids remembered for one agent; no conversation has this many turns.
const NAMES_MAX: usize = 100_000;

/// Longest line id: it is an id, not a text.
const NAME_MAX_BYTES: usize = 128;

struct Frame {
    id: String,
    bytes: Vec<u8>,
    written: usize,
    /// The callers that wait for an answer, and whether each repeated the line.
    waiting: Vec<(Caller, bool)>,
}

/// The writing end of the agent's standard input.
pub(crate) struct Feeder {
    pipe: Option<OwnedFd>,
    queue: VecDeque<Frame>,
    queued_bytes: usize,
    names: BTreeSet<String>,
    closing: bool,
}

impl Feeder {
    /// A feeder over a non-blocking pipe, or without one in the other modes.
    pub(crate) fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe, queue: VecDeque::new(), queued_bytes: 0, names: BTreeSet::new(), closing: false }
    }

    /// Puts the first line into the input of a newly started agent; no caller waits for an answer to it.
    pub(crate) fn preload(&mut self, id: &str, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.queued_bytes += bytes.len();
        self.names.insert(id.to_owned());
        self.queue.push_back(Frame { id: id.to_owned(), bytes, written: 0, waiting: Vec::new() });
    }

    /// Accepts a line, or answers at once.
    pub(crate) fn offer(&mut self, caller: Caller, id: &str, line: &str) -> Option<Reply> {
        if id.is_empty() || id.len() > NAME_MAX_BYTES || line.contains(['\n', '\r']) {
            return Some(Reply::Refused { why: Refusal::BadLine });
        }
        if self.names.contains(id) {
            if let Some(frame) = self.queue.iter_mut().find(|frame| frame.id == id) {
                frame.waiting.push((caller, true));
                return None;
            }
            return Some(Reply::Duplicate { id: id.to_owned() });
        }
        if self.pipe.is_none() || self.closing {
            return Some(Reply::Refused { why: Refusal::StdinClosed });
        }
        let full = self.queue.len() >= QUEUE_MAX_LINES || self.names.len() >= NAMES_MAX;
        if full || self.queued_bytes + line.len() > QUEUE_MAX_BYTES {
            return Some(Reply::Refused { why: Refusal::Busy });
        }
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.queued_bytes += bytes.len();
        self.names.insert(id.to_owned());
        self.queue.push_back(Frame { id: id.to_owned(), bytes, written: 0, waiting: vec![(caller, false)] });
        None
    }

    /// Closes the input after the accepted lines; returns whether there was an open input.
    pub(crate) fn close(&mut self) -> bool {
        let open = self.pipe.is_some() && !self.closing;
        self.closing = true;
        open
    }

    /// Lines still waiting.
    pub(crate) fn pending(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    /// The pipe, while there is something to write.
    pub(crate) fn wants(&self) -> Option<BorrowedFd<'_>> {
        if self.queue.is_empty() { None } else { self.pipe.as_ref().map(AsFd::as_fd) }
    }

    /// Writes what the pipe accepts and returns the replies for the lines it wrote.
    pub(crate) fn pump(&mut self) -> Vec<(Caller, Reply)> {
        let mut answers = Vec::new();
        while let (Some(pipe), Some(frame)) = (&self.pipe, self.queue.front_mut()) {
            match rustix::io::write(pipe, &frame.bytes[frame.written..]) {
                Ok(n) => frame.written += n,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                // The agent closed its end: nothing more can ever arrive.
                Err(_) => self.pipe = None,
            }
            if self.queue.front().is_some_and(|frame| frame.written == frame.bytes.len()) {
                self.finish_front(&mut answers);
            }
        }
        if self.pipe.is_none() {
            self.refuse_all(&mut answers);
        }
        if self.closing && self.queue.is_empty() {
            self.pipe = None;
        }
        answers
    }

    fn finish_front(&mut self, answers: &mut Vec<(Caller, Reply)>) {
        let Some(frame) = self.queue.pop_front() else {
            return;
        };
        self.queued_bytes -= frame.bytes.len();
        for (caller, repeated) in frame.waiting {
            let id = frame.id.clone();
            answers.push((caller, if repeated { Reply::Duplicate { id } } else { Reply::Written { id } }));
        }
    }

    fn refuse_all(&mut self, answers: &mut Vec<(Caller, Reply)>) {
        for frame in self.queue.drain(..) {
            // The line was never delivered, so a later repetition must not pass for a duplicate.
            self.names.remove(&frame.id);
            let refused = |(caller, _)| (caller, Reply::Refused { why: Refusal::StdinClosed });
            answers.extend(frame.waiting.into_iter().map(refused));
        }
        self.queued_bytes = 0;
    }
}

#[cfg(test)]
#[path = "feeder/tests.rs"]
mod tests;
