//! Gemini generateContent, as Gemini CLI uses it. It requests its compaction in one piece, its conversation as a stream.

use serde_json::{Value, json};

use super::{Encoded, Meaning, SERVER, conversation, event, events, halves, instructed, json as at_once, words};
use crate::model::asked::{Api, Asked, Purpose};
use crate::model::script::{Act, Answer};

/// Text that both requests of a compaction contain.
const SUMMARY: &str = "state_snapshot";

pub(super) fn understand(verb: &str, query: &str, body: &Value) -> Meaning {
    let groups = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let declared = groups.iter().filter_map(|group| group["functionDeclarations"].as_array()).flatten();
    let mut meaning = Meaning {
        api: Some(Api::Gemini),
        purpose: Purpose::Main,
        stream: verb == "streamGenerateContent" || query.contains("alt=sse"),
        messages: instructed(&body["systemInstruction"], conversation(&body["contents"], "parts", "user")),
        tools: declared.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect(),
    };
    meaning.purpose = match verb {
        "countTokens" => Purpose::Count,
        _ if meaning.stream && !meaning.tools.is_empty() => Purpose::Main,
        // The conversation contains it too, once it was compacted; instructions do so only for the summary itself.
        _ if words(&body["systemInstruction"]).contains(SUMMARY) => Purpose::Compaction,
        _ => Purpose::Side,
    };
    meaning
}

pub(super) fn encode(answer: &Answer, number: u64, asked: &Asked) -> Encoded {
    let parts: Vec<Value> = answer.acts.iter().flat_map(part).collect();
    let tokens = answer.tokens;
    let usage = json!({
        "promptTokenCount": tokens.input, "candidatesTokenCount": tokens.output,
        "totalTokenCount": tokens.input + tokens.output, "cachedContentTokenCount": tokens.cached,
    });
    let response = |parts: &[Value], last: bool| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if last {
            candidate["finishReason"] = json!("STOP");
        }
        json!({
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model", "responseId": format!("r{number}"),
        })
    };
    if !asked.stream {
        return at_once(response(&parts, true));
    }
    let (mut pieces, last): (Vec<String>, _) = match parts.split_last() {
        Some((last, [])) => (vec![event(None, &response(&[json!({ "text": "" })], false))], vec![last.clone()]),
        Some((last, first)) => {
            let first = first.iter().map(|part| event(None, &response(std::slice::from_ref(part), false)));
            (first.collect(), vec![last.clone()])
        }
        None => (vec![event(None, &response(&[], false))], Vec::new()),
    };
    pieces.push(event(None, &response(&last, true)));
    events(pieces)
}

fn part(act: &Act) -> Vec<Value> {
    let (tool, args) = match act {
        Act::Say(text) => return halves(text).iter().map(|text| json!({ "text": text })).collect(),
        Act::Shell(command) => ("run_shell_command".to_owned(), json!({ "command": command })),
        Act::Report { tool, args } => (format!("mcp_{SERVER}_{tool}"), args.clone()),
        Act::Call { tool, args } => (tool.clone(), args.clone()),
    };
    vec![json!({ "functionCall": { "name": tool, "args": args } })]
}
