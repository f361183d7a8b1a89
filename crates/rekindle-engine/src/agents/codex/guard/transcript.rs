//! The transcript of a session: the person's words, what the assistant stated, what its tools did, where the context was
//! compacted, and the limits that stopped it, which no hook reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::{self, Fact};
use serde_json::Value;

use super::super::super::fields;
use super::super::super::guard_adapter::Transcript;
use super::super::super::hook_events::{self, CallStage, Use};
use super::tools;

/// Unanswered calls that are kept: a turn has a few, and a call that was never answered was never carried out.
const MAX_OPEN: usize = 256;

/// The text that the program puts before the summary of a compaction when it passes it to the model.
const BEFORE_SUMMARY: &str = "assist with your own analysis:\n";

/// The notice of a helper's end, in the person's name.
const NOTICE: (&str, &str) = ("<subagent_notification>", "</subagent_notification>");

/// Prefixes of texts that the program writes in the person's name.
const OWN: [&str; 9] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<hook_prompt",
    "<goal_context>",
    "# AGENTS.md instructions for ",
    "Another language model started to solve this problem and produced a summary",
];

/// Failure classes that stop a session regardless of the request.
const LIMITS: [&str; 8] = [
    "usage_limit_exceeded",
    "rate_limit_exceeded",
    "server_overloaded",
    "internal_server_error",
    "unauthorized",
    "http_connection_failed",
    "response_stream_disconnected",
    "response_too_many_failed_attempts",
];

#[derive(Default)]
pub struct Lines {
    /// Calls that have no answer yet: the tool and its input.
    open: BTreeMap<String, (String, Value)>,
    /// Where the session works.
    dir: PathBuf,
}

impl Transcript for Lines {
    fn line(&mut self, line: &str) -> Vec<Fact> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Vec::new();
        };
        let payload = value.get("payload").unwrap_or(&Value::Null);
        match fields::text(&value, "type") {
            Some("session_meta" | "turn_context") => {
                if let Some(dir) = fields::text(payload, "cwd") {
                    self.dir = PathBuf::from(dir);
                }
                Vec::new()
            }
            Some("response_item") => self.item(&value, payload),
            Some("event_msg") => self.event(payload),
            Some("compacted") => {
                let message = fields::text(payload, "message").unwrap_or_default();
                let inner = message.split_once(BEFORE_SUMMARY).map_or(message, |(_, rest)| rest);
                vec![Fact::Compacted { summary: hook_events::summary(inner) }]
            }
            _ => Vec::new(),
        }
    }
}

impl Lines {
    fn item(&mut self, line: &Value, item: &Value) -> Vec<Fact> {
        match fields::text(item, "type") {
            Some("message") => message(line, item),
            Some("function_call") => {
                let arguments = fields::text(item, "arguments").unwrap_or_default();
                self.called(item, serde_json::from_str(arguments).unwrap_or_default())
            }
            Some("custom_tool_call") => self.called(item, item.get("input").cloned().unwrap_or_default()),
            Some("function_call_output" | "custom_tool_call_output") => self.answered(item),
            _ => Vec::new(),
        }
    }

    fn called(&mut self, item: &Value, input: Value) -> Vec<Fact> {
        let (Some(call), Some(name)) = (fields::text(item, "call_id"), fields::text(item, "name")) else {
            return Vec::new();
        };
        let group = fields::text(item, "namespace").filter(|group| group.starts_with("mcp__"));
        let tool = group.map_or_else(|| name.to_owned(), |group| format!("{group}__{name}"));
        let mut facts = self.facts(call, &tool, &input, CallStage::Called);
        facts.push(fact::called(call, &format!("{tool} {}", given(&input))));
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        self.open.insert(call.to_owned(), (tool, input));
        facts
    }

    fn answered(&mut self, item: &Value) -> Vec<Fact> {
        let Some(call) = fields::text(item, "call_id") else {
            return Vec::new();
        };
        let mut facts = match self.open.remove(call) {
            Some((tool, input)) => {
                self.facts(call, &tool, &input, CallStage::Answered(item.get("output").unwrap_or(&Value::Null)))
            }
            None => Vec::new(),
        };
        // The call's end is reported, whatever else it meant. A command reports more about itself.
        if !facts.iter().any(|fact| matches!(fact, Fact::Command { .. })) {
            facts.push(Fact::Returned { call: call.to_owned(), failed: false });
        }
        facts
    }

    fn event(&mut self, event: &Value) -> Vec<Fact> {
        match fields::text(event, "type") {
            Some("item_completed") => self.completed(event.get("item").unwrap_or(&Value::Null)),
            Some("task_complete") => limit(event).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The program's own record of a command or of changed files: it says how they ended, and precedes the answer.
    fn completed(&mut self, item: &Value) -> Vec<Fact> {
        let call = fields::text(item, "id").unwrap_or_default();
        match fields::text(item, "type") {
            Some("CommandExecution") => {
                self.open.remove(call);
                let words = fields::list(item, "command");
                let Some(line) = words.iter().filter_map(Value::as_str).next_back() else {
                    return Vec::new();
                };
                let printed = fields::text(item, "aggregated_output").unwrap_or_default();
                let code = item.get("exit_code").and_then(Value::as_i64);
                let failure = code.filter(|code| *code != 0).map(|code| format!("exit code {code}\n{printed}"));
                vec![self.used(call, "exec_command", &Value::Null, CallStage::Called).command(
                    line,
                    failure.as_deref(),
                    printed,
                )]
            }
            Some("FileChange") => {
                self.open.remove(call);
                let went = fields::text(item, "status") == Some("completed");
                let changes = item.get("changes").and_then(Value::as_object).filter(|_| went);
                let used = self.used(call, "apply_patch", &Value::Null, CallStage::Called);
                let moved = |change: &Value| fields::text(change, "move_path").map(str::to_owned);
                let paths = |(path, change): (&String, &Value)| [Some(path.clone()), moved(change)];
                let paths = changes.into_iter().flatten().flat_map(paths).flatten();
                paths.flat_map(|path| used.changed(&path)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn facts(&self, call: &str, tool: &str, input: &Value, stage: CallStage<'_>) -> Vec<Fact> {
        tools::facts(&self.used(call, tool, input, stage))
    }

    fn used<'a>(&'a self, call: &'a str, tool: &'a str, input: &'a Value, stage: CallStage<'a>) -> Use<'a> {
        Use { call, tool, input, stage, by: None, dir: Path::new(&self.dir) }
    }
}

/// The most telling part of a call's input.
fn given(input: &Value) -> String {
    let named = ["cmd", "command", "message"].into_iter().find_map(|name| input.get(name));
    match named.unwrap_or(input) {
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join(" "),
        input => input.to_string(),
    }
}

/// What a text in the place of the person's prompt means.
pub fn prompt(text: &str) -> Vec<Fact> {
    let text = text.trim();
    if text.is_empty() || OWN.iter().any(|own| text.starts_with(own)) {
        return Vec::new();
    }
    if let Some(rest) = text.strip_prefix(NOTICE.0) {
        let inner = rest.split_once(NOTICE.1).map_or(rest, |(inner, _)| inner);
        let notice: Value = serde_json::from_str(inner.trim()).unwrap_or_default();
        let helper = fields::text(&notice, "agent_path").or_else(|| fields::text(&notice, "agent_id"));
        let ended = helper.and_then(|helper| tools::ended(helper, notice.get("status")?));
        return ended.into_iter().collect();
    }
    vec![Fact::Prompt { text: fact::text(text) }]
}

fn message(line: &Value, item: &Value) -> Vec<Fact> {
    let is_summary = line.get("metadata").and_then(|about| about.get("compaction_output")).is_some();
    let words = item.get("content").map(fields::words).unwrap_or_default();
    match fields::text(item, "role") {
        Some("user") => prompt(&words),
        Some("assistant") if !is_summary => hook_events::said(&words, None),
        _ => Vec::new(),
    }
}

/// A turn that ended because of a limit or an outage. The class is a word, or the one field of an object.
fn limit(event: &Value) -> Option<Fact> {
    let error = event.get("error")?;
    let class = error.get("codex_error_info")?;
    let class = class.as_str().or_else(|| class.as_object()?.keys().next().map(String::as_str))?;
    let text = fact::text(fields::text(error, "message").unwrap_or(class));
    LIMITS.contains(&class).then_some(Fact::Limit { text })
}
