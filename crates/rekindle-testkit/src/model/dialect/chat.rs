//! OpenAI chat completions, as opencode speaks them.

use serde_json::{Value, json};

use super::{Encoded, Meaning, SERVER, calls, event, events, halves, json as at_once, names, words};
use crate::model::asked::{Api, Asked, Message, Purpose};
use crate::model::script::{Act, Answer};

/// Marks of the program's own requests.
const TITLE: &str = "You are a title generator";
const SUMMARY: &str = "You are a context summarization agent";

pub(super) fn understand(body: &Value) -> Meaning {
    let list = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let message = |one: &Value| {
        // Content and calls are separate members.
        let mut rest = one.clone();
        rest["role"].take();
        Message { role: one["role"].as_str().unwrap_or_default().to_owned(), text: words(&rest) }
    };
    let mut meaning = Meaning {
        api: Some(Api::Chat),
        purpose: Purpose::Main,
        stream: body["stream"] == true,
        messages: list.iter().map(message).collect(),
        tools: names(&body["tools"], |tool| &tool["function"]["name"]),
    };
    if meaning.has(TITLE) {
        meaning.purpose = Purpose::Title;
    } else if meaning.has(SUMMARY) {
        meaning.purpose = Purpose::Compaction;
    }
    meaning
}

pub(super) fn encode(answer: &Answer, number: u64, asked: &Asked) -> Encoded {
    let model = asked.body["model"].as_str().unwrap_or("fake-model");
    let tokens = answer.tokens;
    let usage = json!({
        "prompt_tokens": tokens.input, "completion_tokens": tokens.output, "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cached },
    });
    let reason = if calls(answer) { "tool_calls" } else { "stop" };
    let called: Vec<Value> =
        answer.acts.iter().enumerate().filter_map(|(place, act)| call(act, number, place)).collect();
    let said: Vec<&str> = answer
        .acts
        .iter()
        .filter_map(|act| if let Act::Say(text) = act { Some(text.as_str()) } else { None })
        .collect();
    let said = said.join("\n");
    if !asked.stream {
        let message = json!({ "role": "assistant", "content": said, "tool_calls": called });
        return at_once(json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 0, "model": model,
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }], "usage": usage,
        }));
    }
    let chunk = |delta: Value, reason: Value, usage: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 0, "model": model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        });
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        event(None, &chunk)
    };
    let mut pieces = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null, Value::Null)];
    if !said.is_empty() {
        pieces.extend(halves(&said).map(|text| chunk(json!({ "content": text }), Value::Null, Value::Null)));
    }
    pieces.extend(called.into_iter().enumerate().map(|(index, mut call)| {
        call["index"] = json!(index);
        chunk(json!({ "tool_calls": [call] }), Value::Null, Value::Null)
    }));
    // The reason and the counts end it; the mark after them is only a convention.
    let last = chunk(json!({}), json!(reason), usage);
    pieces.push(format!("{last}data: [DONE]\n\n"));
    events(pieces)
}

fn call(act: &Act, number: u64, place: usize) -> Option<Value> {
    let (tool, args) = match act {
        Act::Say(_) => return None,
        Act::Shell(command) => ("bash".to_owned(), json!({ "command": command, "description": "Works on the task" })),
        Act::Report { tool, args } => (format!("{SERVER}_{tool}"), args.clone()),
        Act::Call { tool, args } => (tool.clone(), args.clone()),
    };
    let function = json!({ "name": tool, "arguments": args.to_string() });
    Some(json!({ "id": format!("call_{number}_{place}"), "type": "function", "function": function }))
}
