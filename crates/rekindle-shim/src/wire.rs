//! The protocol of the socket: one JSON object per line, the handshake first, every request with its epoch.
//!
//! Nothing here reads or writes; the server and the client do.

use serde::{Deserialize, Serialize};

use crate::identity::ProcId;
use crate::ladder::Rung;

/// Longest line before the handshake: it holds ids and a nonce, nothing else.
pub const HELLO_MAX_BYTES: usize = 4 << 10;

/// Longest line after the handshake. Messages of 300 KB are ordinary, and JSON may double them.
pub const LINE_MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// Who is calling; must come first.
    Hello(Hello),
    Status {
        epoch: u64,
    },
    /// Climb a ladder; the spec's own when none is given. A ladder already being climbed is not restarted.
    Stop {
        epoch: u64,
        #[serde(default)]
        ladder: Option<Vec<Rung>>,
    },
    /// End the whole tree now.
    Kill {
        epoch: u64,
    },
    /// One line for the agent's standard input.
    Stdin {
        epoch: u64,
        /// The line's id; each id takes effect once.
        id: String,
        /// The line without its newline.
        line: String,
    },
    /// No more lines: the agent's standard input ends after those already accepted.
    CloseStdin {
        epoch: u64,
    },
}

impl Request {
    /// The epoch the caller speaks for.
    pub fn epoch(&self) -> u64 {
        match self {
            Self::Hello(hello) => hello.epoch,
            Self::Status { epoch }
            | Self::Stop { epoch, .. }
            | Self::Kill { epoch }
            | Self::Stdin { epoch, .. }
            | Self::CloseStdin { epoch } => *epoch,
        }
    }
}

/// The handshake, the same in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol version that the sender knows.
    pub version: u32,
    pub attempt: String,
    pub epoch: u64,
    /// The attempt's secret.
    pub nonce: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    Hello(Hello),
    Status(Status),
    /// It will be done.
    Accepted,
    /// The last byte of the line is in the agent's pipe.
    Written {
        /// The line's id.
        id: String,
    },
    /// A line with this id is already in the pipe; nothing was written again.
    Duplicate {
        /// The line's id.
        id: String,
    },
    Refused {
        /// The reason, for programs.
        why: Refusal,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The first line was not a handshake, or a later one was.
    HandshakeExpected,
    /// Attempt or nonce are not this bundle's.
    NotYours,
    /// This version of the protocol is not supported here.
    Version,
    /// The epoch is older than the spec's.
    StaleEpoch,
    /// The line is not a request.
    Malformed,
    /// The agent has no standard input for lines, or it is closed.
    StdinClosed,
    /// The line holds a line break, or its id is empty or too long.
    BadLine,
    /// Too much is waiting to be written; retry later.
    Busy,
}

/// The state of the held process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub agent: ProcId,
    /// How long it has run, without suspension.
    pub ran_ms: u64,
    /// A ladder is being climbed.
    pub stopping: bool,
    /// Lines accepted and not yet wholly in the pipe.
    pub stdin_pending: u32,
}

/// Compares secrets in a time that depends only on their length.
pub fn same_secret(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_is_fixed() {
        let request = Request::Stop { epoch: 2, ladder: None };
        assert_eq!(serde_json::to_string(&request).expect("json"), r#"{"type":"stop","epoch":2,"ladder":null}"#);
        let request: Request = serde_json::from_str(r#"{"type":"stop","epoch":2,"later_field":1}"#).expect("parse");
        assert_eq!(request, Request::Stop { epoch: 2, ladder: None });
        let reply = Reply::Refused { why: Refusal::StaleEpoch };
        assert_eq!(serde_json::to_string(&reply).expect("json"), r#"{"type":"refused","why":"stale_epoch"}"#);
    }

    #[test]
    fn secrets_differ_in_any_byte_and_in_length() {
        assert!(same_secret("abc", "abc"));
        assert!(!same_secret("abc", "abd"));
        assert!(!same_secret("abc", "ab"));
        assert!(!same_secret("", "a"));
    }
}
