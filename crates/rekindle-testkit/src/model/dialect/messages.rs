//! Anthropic Messages, as Claude Code uses it. After a broken stream it requests the answer again in one piece, so both
//! forms are there.

use serde_json::{Value, json};

use super::{Encoded, Meaning, SERVER, calls, conversation, event, events, halves, instructed, json as at_once, names};
use crate::model::asked::{Api, Asked, Purpose};
use crate::model::script::{Act, Answer};

/// Marks of a compaction in the last message, or before a reminder that newer programs append to it.
const SUMMARY: [&str; 2] =
    ["CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary of the conversation"];

pub(super) fn understand(body: &Value) -> Meaning {
    let mut meaning = Meaning {
        api: Some(Api::Messages),
        purpose: Purpose::Main,
        stream: body["stream"] == true,
        messages: instructed(&body["system"], conversation(&body["messages"], "content", "user")),
        tools: names(&body["tools"], |tool| &tool["name"]),
    };
    let last = || meaning.messages.iter().rev().take(2);
    if SUMMARY.iter().any(|mark| last().any(|message| message.text.contains(mark))) {
        meaning.purpose = Purpose::Compaction;
    } else if meaning.tools.is_empty() {
        meaning.purpose = Purpose::Side;
    }
    meaning
}

pub(super) fn encode(answer: &Answer, number: u64, asked: &Asked) -> Encoded {
    let model = asked.body["model"].as_str().unwrap_or("fake-model");
    let blocks: Vec<Value> = answer.acts.iter().enumerate().map(|(place, act)| block(act, number, place)).collect();
    let reason = if calls(answer) { "tool_use" } else { "end_turn" };
    let (tokens, cached) = (answer.tokens, answer.tokens.cached);
    let usage = |output: u64| {
        json!({
            "input_tokens": tokens.input.saturating_sub(cached), "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0, "output_tokens": output,
        })
    };
    let message = |content: Value, reason: Value, output: u64| {
        json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": usage(output),
        })
    };
    if !asked.stream {
        return at_once(message(json!(blocks), json!(reason), tokens.output));
    }
    let say = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        event(Some(kind), &data)
    };
    let mut said = vec![say("message_start", json!({ "message": message(json!([]), Value::Null, 1) }))];
    for (index, block) in blocks.iter().enumerate() {
        let (empty, deltas) = unfold(block);
        said.push(say("content_block_start", json!({ "index": index, "content_block": empty })));
        said.extend(
            deltas.into_iter().map(|delta| say("content_block_delta", json!({ "index": index, "delta": delta }))),
        );
        said.push(say("content_block_stop", json!({ "index": index })));
    }
    let delta = json!({ "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage(tokens.output) });
    said.push(say("message_delta", delta));
    said.push(say("message_stop", json!({})));
    events(said)
}

fn block(act: &Act, number: u64, place: usize) -> Value {
    let (tool, input) = match act {
        Act::Say(text) => return json!({ "type": "text", "text": text }),
        Act::Shell(command) => ("Bash".to_owned(), json!({ "command": command, "description": "Works on the task" })),
        Act::Report { tool, args } => (format!("mcp__{SERVER}__{tool}"), args.clone()),
        Act::Call { tool, args } => (tool.clone(), args.clone()),
    };
    json!({ "type": "tool_use", "id": format!("toolu_{number}_{place}"), "name": tool, "input": input })
}

/// A block as it begins in a stream, and the additions to it.
fn unfold(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    match block["text"].as_str() {
        Some(text) => {
            empty["text"] = json!("");
            (empty, halves(text).map(|text| json!({ "type": "text_delta", "text": text })).to_vec())
        }
        None => {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            (empty, vec![json!({ "type": "input_json_delta", "partial_json": input })])
        }
    }
}
