//! What a resumed session will contain, determined by resuming rollouts that were cut after every line: a call is recorded
//! before it runs and stays; one without an output is answered with "aborted", even if it had finished.
//!
//! Output and rollout use different ids for a call, and list parallel calls in different orders, so commands are matched by
//! their text.

use std::collections::BTreeSet;

use rekindle_core::activity::{Entry, Held, History, Ledger};
use serde_json::Value;

use crate::agents::fields;
use crate::agents::history::{Calls, Record};

/// What an output says about a command that has not ended: it is not a result.
const STILL_RUNS: &str = "Process running with session ID";

/// Marks where the middle of a long input was left out.
const FOLDED: &str = "bytes folded …";

/// Leading letters of a long command that distinguish it from others.
const HEAD_CHARS: usize = 40;

/// Reads an attempt's part of a rollout.
pub fn history(record: &Record<'_>) -> History {
    let mut calls = Calls::default();
    let mut prompted = false;
    for line in record.values() {
        let payload = &line["payload"];
        let id = fields::text(payload, "call_id").unwrap_or_default();
        match (fields::text(&line, "type"), fields::text(payload, "type")) {
            (Some("response_item"), Some("function_call" | "custom_tool_call" | "local_shell_call")) => {
                calls.begun(id, fields::text(payload, "name").unwrap_or("shell"), &input(payload));
            }
            (Some("response_item"), Some("function_call_output" | "custom_tool_call_output"))
                if !payload["output"].to_string().contains(STILL_RUNS) =>
            {
                calls.answered(id);
            }
            (Some("event_msg"), Some("item_completed")) => prompted |= payload["item"]["type"] == "UserMessage",
            _ => {}
        }
    }
    History::Read { held: matched(calls.into_held(), record.ledger), prompted, whole: record.whole }
}

/// The calls with the stream's ids, where the stream reports them.
fn matched(mut held: Vec<Held>, ledger: &Ledger) -> Vec<Held> {
    let mut taken = BTreeSet::new();
    for call in &mut held {
        let free = |at: &usize| !taken.contains(at);
        // Exact matches first: a short command may be the end of a longer one.
        let equal = |(at, entry): &(usize, &Entry)| free(at) && command(&entry.call.input) == letters(&call.input);
        let same = |(at, entry): &(usize, &Entry)| free(at) && same(&entry.call.input, &call.input);
        let entries = || ledger.entries().enumerate();
        if let Some((at, entry)) = entries().find(equal).or_else(|| entries().find(same)) {
            taken.insert(at);
            call.id.clone_from(&entry.call.id);
        }
    }
    // The stream describes other tools differently from how they are called. Their results are recorded at once.
    let others = ledger.entries().enumerate().filter(|(at, entry)| !taken.contains(at) && entry.outcome.is_some());
    let others = others.filter(|(_, entry)| entry.call.tool != super::stream::SHELL);
    held.extend(others.map(|(_, entry)| Held {
        id: entry.call.id.clone(),
        tool: entry.call.tool.clone(),
        input: entry.call.input.clone(),
        answered: true,
    }));
    held
}

/// A call's input: the command itself, or its arguments as they are.
fn input(payload: &Value) -> String {
    let arguments = fields::text(payload, "arguments").or_else(|| fields::text(payload, "input")).unwrap_or_default();
    let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
    let list = |value: &Value| value.as_array().and_then(|words| words.last()?.as_str().map(str::to_owned));
    let command = fields::text(&parsed, "cmd").or_else(|| fields::text(&parsed, "command")).map(str::to_owned);
    command
        .or_else(|| list(&parsed["command"]))
        .or_else(|| list(&payload["action"]["command"]))
        .unwrap_or_else(|| arguments.to_owned())
}

/// Whether the stream's text describes this call: the stream quotes a command and puts its shell before it.
fn same(told: &str, input: &str) -> bool {
    let input = letters(input.split(FOLDED).last().unwrap_or(input));
    match told.split_once(FOLDED) {
        _ if input.is_empty() => false,
        None => letters(told).ends_with(&input),
        Some((head, tail)) => {
            let begins: String = input.chars().take(HEAD_CHARS).collect();
            input.ends_with(&letters(tail)) || letters(head).contains(&begins)
        }
    }
}

/// The command after the shell that the stream puts before it (`/bin/bash -lc 'ls'`), reduced to letters and digits.
fn command(told: &str) -> String {
    letters(told.split_once(" -lc ").map_or(told, |(_, command)| command))
}

fn letters(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric()).collect()
}
