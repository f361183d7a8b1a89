//! What a resumed session will contain, determined by resuming transcripts that were cut after every line: a call whose
//! result is in the transcript is kept; one without a result is dropped silently, even from among several calls of one
//! answer. A result is printed up to 300 ms before it is in the transcript.

use rekindle_core::activity::History;
use serde_json::Value;

use super::stream;
use crate::agents::fields;
use crate::agents::history::{Calls, Record};

/// Reads an attempt's part of a transcript.
pub fn history(record: &Record<'_>) -> History {
    let mut calls = Calls::default();
    let mut prompted = false;
    for line in record.values().filter(|line| line["isSidechain"].as_bool() != Some(true)) {
        let content = &line["message"]["content"];
        match fields::text(&line, "type") {
            Some("assistant") => parts(content).for_each(|part| {
                if let Some(id) = fields::text(part, "id").filter(|_| part["type"] == "tool_use") {
                    calls.begun(id, fields::text(part, "name").unwrap_or_default(), &stream::input(&part["input"]));
                }
            }),
            Some("user") => {
                parts(content).filter_map(|part| fields::text(part, "tool_use_id")).for_each(|id| calls.answered(id));
                let words = content.is_string() || parts(content).any(|part| part["type"] == "text");
                prompted |= words && line["isMeta"].as_bool() != Some(true);
            }
            _ => {}
        }
    }
    History::Read { held: calls.into_held(), prompted, whole: record.whole }
}

fn parts(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}
