//! What a resumed session will contain, determined by resuming transcripts that were cut after every line: calls are
//! recorded only when all calls of an answer have ended, in one line with their results. Until then they are dropped,
//! although they have run.

use rekindle_core::activity::History;
use serde_json::Value;

use super::reader;
use crate::agents::fields;
use crate::agents::history::{Calls, Record};

/// Reads an attempt's part of a transcript.
pub(super) fn history(record: &Record<'_>) -> History {
    let mut calls = Calls::default();
    let mut prompted = false;
    for line in record.values() {
        // A separate line is what this attempt said; a rewritten history repeats what was said before.
        prompted |=
            line["type"] == "user" && fields::list(&line, "content").iter().any(|part| part["text"].is_string());
        let rewritten = line.pointer("/$set/messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for message in std::iter::once(&line).chain(rewritten) {
            for call in fields::list(message, "toolCalls") {
                let Some(id) = fields::text(call, "id") else { continue };
                let tool = fields::text(call, "name").unwrap_or_default();
                calls.begun(id, tool, &reader::input(tool, &call["args"]));
                if !fields::list(call, "result").is_empty() {
                    calls.answered(id);
                }
            }
        }
    }
    History::Read { held: calls.into_held(), prompted, whole: record.whole }
}
