//! The four APIs: what a request means and how an answer is written. Each file below is one API; what they share is here.
//!
//! The tool names are those of each program: one program uses each API here.

mod chat;
mod gemini;
mod messages;
mod refusal;
mod responses;

use std::collections::BTreeMap;

use serde_json::Value;

use super::asked::{Api, Asked, Message, Purpose};
use super::script::{Act, Answer, End, Picked};
use super::wire::Lines;

/// The MCP server whose tools `Act::Report` means.
const SERVER: &str = "rekindle";

/// What a request means.
#[derive(Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) api: Option<Api>,
    pub(super) purpose: Purpose,
    pub(super) stream: bool,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<String>,
}

impl Meaning {
    /// A request that is not for a model.
    fn other(api: Option<Api>) -> Self {
        Self { api, purpose: Purpose::Other, stream: false, messages: Vec::new(), tools: Vec::new() }
    }

    fn has(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.text.contains(text))
    }

    fn last_has(&self, text: &str) -> bool {
        self.messages.last().is_some_and(|message| message.text.contains(text))
    }
}

/// An answer, ready to send.
#[derive(Debug, PartialEq)]
pub(super) struct Encoded {
    pub(super) status: u16,
    pub(super) headers: Lines,
    pub(super) body: Body,
}

/// An answer's body.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    /// Sent at once.
    Whole(String),
    /// Event by event. At least two, of which the last alone ends the answer properly.
    Events(Vec<String>),
}

/// What a request means.
pub(super) fn understand(method: &str, path: &str, headers: &BTreeMap<String, String>, body: &Value) -> Meaning {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match path.rsplit('/').next().unwrap_or_default() {
        _ if method != "POST" => Meaning::other(None),
        "messages" => messages::understand(body),
        "count_tokens" => Meaning { purpose: Purpose::Count, ..messages::understand(body) },
        "responses" => responses::understand(headers, body),
        "completions" => chat::understand(body),
        verb => match verb.split_once(':') {
            Some((_, verb)) => gemini::understand(verb, query, body),
            None => Meaning::other(None),
        },
    }
}

/// Encodes an answer for the API of the request.
pub(super) fn encode(asked: &Asked, picked: &Picked, now_s: u64) -> Encoded {
    let Some(api) = asked.api else { return elsewhere(asked) };
    if let End::Fail(fail) = &picked.answer.end {
        return refusal::encode(api, fail, picked.resets_at, now_s);
    }
    let (answer, number) = (&picked.answer, asked.number);
    let mut encoded = match (api, asked.purpose) {
        (Api::Gemini, Purpose::Count) => json(serde_json::json!({ "totalTokens": answer.tokens.input })),
        (_, Purpose::Count) => json(serde_json::json!({ "input_tokens": answer.tokens.input })),
        (Api::Messages, _) => messages::encode(answer, number, asked),
        (Api::Responses, _) => responses::encode(answer, number, asked),
        (Api::Chat, _) => chat::encode(answer, number, asked),
        (Api::Gemini, _) => gemini::encode(answer, number, asked),
    };
    encoded.headers.extend(answer.headers.iter().cloned());
    encoded
}

/// The answer to a program that asks whether its command is still running; the script is not consulted for it.
pub(super) fn goes_on(asked: &Asked) -> Option<Answer> {
    if asked.api == Some(Api::Responses) { responses::goes_on(asked) } else { None }
}

/// Paths that belong to no API: a liveness check is answered, everything else is not found.
fn elsewhere(asked: &Asked) -> Encoded {
    let found = asked.method == "HEAD" || asked.path == "/";
    let body = if found { "{}" } else { r#"{"error":{"message":"not found"}}"# };
    Encoded {
        status: if found { 200 } else { 404 },
        headers: typed("application/json"),
        body: Body::Whole(body.to_owned()),
    }
}

fn json(body: Value) -> Encoded {
    Encoded { status: 200, headers: typed("application/json"), body: Body::Whole(body.to_string()) }
}

fn events(events: Vec<String>) -> Encoded {
    Encoded { status: 200, headers: typed("text/event-stream"), body: Body::Events(events) }
}

fn typed(kind: &str) -> Lines {
    vec![("content-type".to_owned(), kind.to_owned())]
}

/// An event of a stream, without a name or with one.
fn event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// A text in two pieces, so that there is a middle.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    [first, second]
}

/// Whether an answer calls a tool.
fn calls(answer: &Answer) -> bool {
    answer.acts.iter().any(|act| !matches!(act, Act::Say(_)))
}

/// Everything in a value that was written by a person or program, one per line: texts, calls with their arguments, results.
/// Ids, kinds and pictures are left out.
fn words(value: &Value) -> String {
    let mut found = Vec::new();
    gather(value, &mut found);
    found.join("\n")
}

/// Members that hold no text.
const NO_WORDS: &[&str] =
    &["type", "id", "tool_use_id", "call_id", "tool_call_id", "cache_control", "signature", "role", "status"];

fn gather(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|one| gather(one, found)),
        Value::Object(members) => {
            members
                .iter()
                .filter(|(name, _)| !NO_WORDS.contains(&name.as_str()))
                .for_each(|(_, one)| gather(one, found));
        }
        Value::Number(number) => found.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Messages from a list whose members have a role.
fn conversation(list: &Value, content: &str, nobody: &str) -> Vec<Message> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let message = |one: &Value| Message {
        role: one["role"].as_str().unwrap_or(nobody).to_owned(),
        text: if one[content].is_null() { words(one) } else { words(&one[content]) },
    };
    list.iter().map(message).collect()
}

/// Puts the instructions, if any, first.
fn instructed(instructions: &Value, mut messages: Vec<Message>) -> Vec<Message> {
    if !instructions.is_null() {
        messages.insert(0, Message { role: "system".to_owned(), text: words(instructions) });
    }
    messages
}

/// The names in a list of tools.
fn names<'a>(list: &'a Value, name: impl Fn(&'a Value) -> &'a Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|tool| name(tool).as_str().map(str::to_owned)).collect()
}
