//! OpenAI Responses, as Codex uses it. Its shell tool stops waiting after a while and lets the model ask again; those
//! questions are answered here, so that a script sees one call and one result.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Encoded, Meaning, SERVER, event, events, halves, instructed, names, words};
use crate::model::asked::{Api, Asked, Message, Purpose};
use crate::model::script::{Act, Answer};

/// Beginning of the last message of a compaction.
const SUMMARY: &str = "You are performing a CONTEXT CHECKPOINT COMPACTION";

/// The one field of the answer in a request for a title.
const TITLE: &str = "/text/format/schema/properties/title";

/// Header with the purpose of a request.
const KIND_HEADER: &str = "x-codex-turn-metadata";

/// Comes before the number of a command that still runs.
const STILL_RUNS: &str = "Process running with session ID ";

/// How long the shell tool waits before it lets the model ask again: its longest.
const YIELD_MS: u64 = 30_000;

/// The tool that stands for all of rekindle's tools, if it is offered.
const IN_ONE: &str = "report";

pub(super) fn understand(headers: &BTreeMap<String, String>, body: &Value) -> Meaning {
    let kind = headers.get(KIND_HEADER).and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = input.iter().map(|item| Message {
        role: item["role"].as_str().or_else(|| item["type"].as_str()).unwrap_or_default().to_owned(),
        text: words(item),
    });
    let mut meaning = Meaning {
        api: Some(Api::Responses),
        purpose: Purpose::Main,
        stream: body["stream"] != false,
        messages: instructed(&body["instructions"], messages.collect()),
        tools: tools(&body["tools"]),
    };
    if kind["request_kind"] == "compaction" || meaning.last_has(SUMMARY) {
        meaning.purpose = Purpose::Compaction;
    } else if body.pointer(TITLE).is_some() {
        meaning.purpose = Purpose::Title;
    }
    meaning
}

fn tools(list: &Value) -> Vec<String> {
    let plain = names(list, |tool| &tool["name"]);
    let spaces =
        list.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter(|tool| tool["type"] == "namespace");
    let inside = spaces.flat_map(|space| {
        let name = space["name"].as_str().unwrap_or_default().to_owned();
        names(&space["tools"], |tool| &tool["name"]).into_iter().map(move |tool| format!("{name}.{tool}"))
    });
    plain.into_iter().chain(inside).collect()
}

/// Asks again for the result of a command that still runs.
pub(super) fn goes_on(asked: &Asked) -> Option<Answer> {
    let last = asked.messages.last().filter(|message| message.role == "function_call_output")?;
    let (_, rest) = last.text.split_once(STILL_RUNS)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let session: u64 = digits.parse().ok()?;
    let args = json!({ "session_id": session, "chars": "", "yield_time_ms": YIELD_MS });
    Some(Answer { acts: vec![Act::Call { tool: "write_stdin".to_owned(), args }], ..Answer::default() })
}

pub(super) fn encode(answer: &Answer, number: u64, asked: &Asked) -> Encoded {
    let id = format!("resp_{number}");
    let say = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        event(Some(kind), &data)
    };
    let mut said = vec![say("response.created", json!({ "response": { "id": id } }))];
    for (place, act) in answer.acts.iter().enumerate() {
        let item = item(act, number, place, asked);
        if let Act::Say(text) = act {
            let empty = json!({ "type": "message", "role": "assistant", "id": item["id"], "content": [] });
            said.push(say("response.output_item.added", json!({ "output_index": place, "item": empty })));
            said.extend(halves(text).map(|text| {
                let delta = json!({ "item_id": item["id"], "output_index": place, "content_index": 0, "delta": text });
                say("response.output_text.delta", delta)
            }));
        }
        said.push(say("response.output_item.done", json!({ "output_index": place, "item": item })));
    }
    let tokens = answer.tokens;
    let usage = json!({
        "input_tokens": tokens.input, "input_tokens_details": { "cached_tokens": tokens.cached },
        "output_tokens": tokens.output, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": tokens.input + tokens.output,
    });
    said.push(say("response.completed", json!({ "response": { "id": id, "usage": usage } })));
    events(said)
}

fn item(act: &Act, number: u64, place: usize, asked: &Asked) -> Value {
    let call = |name: &str, args: &Value| {
        json!({
            "type": "function_call", "id": format!("fc_{number}_{place}"), "call_id": format!("call_{number}_{place}"),
            "name": name, "arguments": args.to_string(),
        })
    };
    match act {
        Act::Say(text) => json!({
            "type": "message", "role": "assistant", "id": format!("msg_{number}_{place}"),
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Act::Shell(command) => call("exec_command", &json!({ "cmd": command, "yield_time_ms": YIELD_MS })),
        Act::Report { tool, args } => {
            let namespace = format!("mcp__{SERVER}");
            let mut item = match asked.tools.contains(&format!("{namespace}.{IN_ONE}")) {
                true => call(IN_ONE, &in_one(tool, args)),
                false => call(tool, args),
            };
            item["namespace"] = json!(namespace);
            item
        }
        Act::Call { tool, args } => match tool.split_once('.') {
            Some((namespace, tool)) => {
                let mut item = call(tool, args);
                item["namespace"] = json!(namespace);
                item
            }
            None => call(tool, args),
        },
    }
}

/// Converts the arguments of a tool for the tool that stands for all of them: its first text is `text`.
fn in_one(tool: &str, args: &Value) -> Value {
    let mut args = args.clone();
    let named = ["result", "reason", "status", "question", "decision"];
    if let Some(fields) = args.as_object_mut() {
        let text = named.iter().find_map(|name| fields.remove(*name)).unwrap_or_else(|| json!(""));
        fields.extend([("kind".to_owned(), json!(tool)), ("text".to_owned(), text)]);
    }
    args
}
