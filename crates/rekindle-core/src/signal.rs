//! Signal lines in the output of agents that have no other way to report: what counts as one, and what it says.
//!
//! The scanner is fed whole lines in order and is itself plain data: stored with the offset it has reached, it continues
//! after a restart as if nothing had happened. Whether a report is believed is decided elsewhere.

mod block;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::report::Report;
use block::Block;

/// Longest block in bytes: a long result fits, and a program that prints key lines for ever costs no more than this.
pub const BLOCK_MAX_BYTES: usize = 64 * 1024;

/// Maximum number of key lines in one block: far more than the keys that exist, including list items.
pub const KEY_LINES_MAX: usize = 100;

/// What a block of lines said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A report that can be taken as it is.
    Report(Report),
    /// A signal that is known but does not report anything itself, or not yet.
    Other {
        name: String,
        /// The text after the colon.
        subject: String,
        /// The lines that followed, keys in lower case.
        keys: Vec<(String, String)>,
    },
}

/// The scanner. Feed it every complete line of one stream in order, then [`Signals::finish`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// The open code fence: nothing in it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    /// The signal whose key lines are being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<Block>,
}

/// An open code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fence {
    /// Backtick or tilde.
    mark: char,
    /// How many opened it; as many close it.
    length: usize,
}

impl Signals {
    /// A scanner at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, with or without its line end. Returns the signal that this line shows to be complete.
    #[must_use]
    pub fn line(&mut self, line: &str) -> Option<Signal> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(fence) = self.fence {
            if closes(fence, line) {
                self.fence = None;
            }
            return None;
        }
        if let Some(fence) = opens(line) {
            self.fence = Some(fence);
            return self.finish();
        }
        if let Some(next) = Block::begin(line) {
            let ended = self.finish();
            self.block = Some(next);
            return ended;
        }
        let belongs = self.block.as_mut().is_some_and(|block| block.take(line));
        if belongs { None } else { self.finish() }
    }

    /// Ends the block that is open: at the end of the stream, or when its agent has been silent for a while.
    #[must_use]
    pub fn finish(&mut self) -> Option<Signal> {
        self.block.take().map(Block::end)
    }

    /// Whether a signal waits for its key lines to end.
    pub fn is_open(&self) -> bool {
        self.block.is_some()
    }
}

/// A fence is indented by at most three blanks; the info string of a backtick fence has no backtick.
fn opens(line: &str) -> Option<Fence> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let length = text.len() - info.len();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Fence { mark, length })
}

fn closes(fence: Fence, line: &str) -> bool {
    opens(line).is_some_and(|end| {
        end.mark == fence.mark && end.length >= fence.length && line.trim().trim_start_matches(end.mark).is_empty()
    })
}

/// The task that a signal names, if it names one.
fn task_of(subject: &str) -> Option<TaskId> {
    TaskId::new(subject).ok()
}

#[cfg(test)]
mod tests;
