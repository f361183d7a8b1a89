//! The vocabulary that every program's hooks and transcripts are translated into: what happened in a session, in small
//! pieces that may be repeated. `session` adds them up.

use serde::{Deserialize, Serialize};

use crate::text::{fold, sanitize, truncate_bytes};

/// Longest text in a fact: a prompt or a summary may be long, a journal must stay small.
pub const TEXT_MAX_BYTES: usize = 8 << 10;

/// Longest message of the assistant in a fact: the beginning and the end of a longer one show what it is about.
pub const SAID_MAX_BYTES: usize = 4 << 10;

/// Longest line of a call: enough to see what it acts on.
pub const CALL_MAX_BYTES: usize = 300;

/// One line of a session's journal: what one hook reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds of the wall clock.
    pub at: u64,
    /// The hook's own name for the moment.
    #[serde(default)]
    pub event: String,
    /// What it reported. Facts from a later version are left out when an older one reads them.
    #[serde(default, deserialize_with = "known_facts", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// What the transcript reported since it was last read.
    #[serde(default, deserialize_with = "known_facts", skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Fact>,
}

/// Why a session's context began as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    New,
    Resumed,
    /// The same session with a compacted context.
    Compacted,
    /// The person wanted an empty context.
    Cleared,
}

/// The state of a task in the session's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    InProgress,
    /// Finished, according to the session.
    Completed,
    Deleted,
}

/// An entry of a list that is reported in full every time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    pub text: String,
    pub status: TaskStatus,
}

/// How a helper's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It gave its result.
    Finished,
    Failed,
    Stopped,
    /// It waits for more work.
    Idle,
    /// Its process ended before it did.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Fact {
    Begun {
        how: Beginning,
    },
    /// The program's process, as the engine describes it; opaque here.
    Process {
        id: serde_json::Value,
    },
    /// Where the program keeps the conversation.
    Transcript {
        path: String,
    },
    /// The transcript was read up to here; everything before that has been reported.
    ReadTo {
        /// Bytes from its beginning.
        offset: u64,
    },
    /// This session continues what an earlier one left.
    Inherits {
        session: String,
    },
    Prompt {
        /// As typed.
        text: String,
    },
    /// The assistant's words: one message. Earlier versions kept single lines of it here, with a field that is no longer
    /// read.
    Said {
        text: String,
        /// Which helper said it; `None` means the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// `rekindle note`.
    Noted {
        text: String,
    },
    /// A task of the session's list was made or changed; fields that are not given stay as they were.
    Task {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<TaskStatus>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// Tasks that must be finished before this one; added to those already known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocked_by: Vec<String>,
    },
    /// The whole list of a program that reports its list in full.
    Todos {
        /// The entries in order.
        items: Vec<Todo>,
    },
    /// A helper was called: a subagent, a teammate.
    HelperCalled {
        call: String,
        /// The helper's name, or its work in a few words.
        name: String,
        #[serde(default)]
        kind: String,
        /// What it was told to do.
        #[serde(default)]
        prompt: String,
    },
    /// A helper is running: the program gave it an id. If no call is given, it belongs to the oldest call of this kind
    /// without a helper.
    HelperRuns {
        /// The call's id, if the program gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        helper: String,
        #[serde(default)]
        kind: String,
    },
    HelperEnded {
        /// The call's id, if the program gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The helper's id, if the program gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        helper: Option<String>,
        outcome: Outcome,
        #[serde(default)]
        words: String,
    },
    FileChanged {
        path: String,
        /// Which helper did it; `None` means the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A plan was read or written.
    PlanFile {
        path: String,
    },
    /// A tool call started.
    Called {
        call: String,
        /// The tool and what it was given, on one line.
        line: String,
    },
    /// The end of a tool call that no other fact reports.
    Returned {
        call: String,
        #[serde(default)]
        failed: bool,
    },
    Command {
        call: String,
        line: String,
        /// What went wrong, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// The end of its output, if that shows what it did: the id of a commit, an address.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        printed: String,
        /// Which helper ran it; `None` means the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    Asked {
        call: String,
        /// The question, with its choices.
        text: String,
    },
    Answered {
        call: String,
        text: String,
    },
    /// The program is about to compact the context.
    Compacting,
    /// The program said that the context was compacted. A notice that comes twice for one compaction counts once.
    Compacted {
        /// The program's own summary, if it shows one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A usage limit or an outage stopped the session.
    Limit {
        /// The program's words.
        text: String,
    },
    /// How much is left, in percent; reported when a threshold is passed.
    Gauge {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u8>,
        /// Of the allowance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<u8>,
    },
    TurnEnded {
        #[serde(default)]
        words: String,
    },
    Ended {
        /// Whether the end was intended: the person asked for it, or there was nothing more to do.
        meant: bool,
        /// The program's word.
        #[serde(default)]
        reason: String,
    },
    ToldAgain {
        /// The compaction that it is for; 0 for a resumed or a new session.
        compaction: u32,
        /// Whether the whole plan was part of it.
        full: bool,
    },
}

/// Text in the form for a fact: harmless, trimmed, not longer than [`TEXT_MAX_BYTES`].
pub fn text(words: &str) -> String {
    bounded(words, TEXT_MAX_BYTES)
}

/// The same with another bound.
pub fn bounded(words: &str, max_bytes: usize) -> String {
    let clean = sanitize(truncate_bytes(words, max_bytes.saturating_mul(2)));
    truncate_bytes(clean.trim(), max_bytes).to_owned()
}

/// The fact that the assistant, or one of its helpers, said this; `None` for no words.
pub fn said(words: &str, by: Option<&str>) -> Option<Fact> {
    let clean = sanitize(truncate_bytes(words, TEXT_MAX_BYTES * 4));
    let text = fold(clean.trim(), SAID_MAX_BYTES).into_owned();
    (!text.is_empty()).then(|| Fact::Said { text, by: by.map(str::to_owned) })
}

/// The fact that a call began.
pub fn called(call: &str, line: &str) -> Fact {
    Fact::Called { call: bounded(call, CALL_MAX_BYTES), line: crate::text::one_line(line, CALL_MAX_BYTES) }
}

fn known_facts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Fact>, D::Error> {
    let values = Vec::<serde_json::Value>::deserialize(from)?;
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}
