//! What happened in a story, in short lines: all of it as one hash, the last part in words.

use std::collections::VecDeque;
use std::fmt::Write;

/// Lines kept: enough to see what led to a broken invariant, few enough to read.
const KEPT: usize = 40;

/// The lines of a story.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    aloud: bool,
    spoken: Vec<String>,
}

impl Trace {
    /// A trace; `aloud` keeps every line.
    pub fn new(aloud: bool) -> Self {
        // The offset basis of FNV-1a.
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::new(), aloud, spoken: Vec::new() }
    }

    /// Adds a line.
    pub fn say(&mut self, at_ms: u64, text: std::fmt::Arguments<'_>) {
        // The buffer of the dropped line is reused.
        let mut line = if self.lines.len() == KEPT { self.lines.pop_front() } else { None }.unwrap_or_default();
        line.clear();
        write!(line, "{:>10}.{:03} {text}", at_ms / 1_000, at_ms % 1_000).expect("a text takes everything");
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.aloud {
            self.spoken.push(line.clone());
        }
        self.lines.push_back(line);
    }

    /// The hash over every line so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// All lines if they were kept, else the last ones.
    pub fn into_lines(self) -> Vec<String> {
        if self.aloud { self.spoken } else { self.lines.into() }
    }
}
