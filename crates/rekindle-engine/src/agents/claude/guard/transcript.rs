//! The transcript of a session: the person's words, what the assistant stated, what its tools did, and where the context was
//! compacted.

use std::collections::BTreeMap;
use std::path::Path;

use rekindle_core::guard::fact::{self, Fact};
use serde_json::Value;

use super::super::super::fields;
use super::super::super::guard_adapter::Transcript;
use super::super::super::hook_events::{self, CallStage, Use};
use super::{prompt, tools};

/// Unanswered calls that are kept: a message has a few, and a call that was never answered was never carried out.
const MAX_OPEN: usize = 256;

/// The text around the summary of a compaction.
const SUMMARY: (&str, &str) = ("\nSummary:\n", "\n\nIf you need specific details from before compaction");

#[derive(Default)]
pub struct Lines {
    /// Calls that have no answer yet: the tool and its input.
    open: BTreeMap<String, (String, Value)>,
    /// Commands that run in the background.
    background: BTreeMap<String, Value>,
}

impl Transcript for Lines {
    fn line(&mut self, line: &str) -> Vec<Fact> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Vec::new();
        };
        let is = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
        // A helper's conversation is not the session's.
        if is("isSidechain") || value.get("agentId").is_some() {
            return Vec::new();
        }
        match fields::text(&value, "type") {
            Some("user") if is("isCompactSummary") => {
                let summary = hook_events::summary(inner_summary(&content_words(&value)));
                vec![Fact::Compacted { summary }]
            }
            Some("user") if is("isMeta") => Vec::new(),
            Some("user") => self.user(&value),
            Some("assistant") => self.assistant(&value),
            Some("system") if fields::text(&value, "subtype") == Some("compact_boundary") => {
                vec![Fact::Compacted { summary: None }]
            }
            Some("attachment") => self.attachment(&value),
            _ => Vec::new(),
        }
    }
}

impl Lines {
    /// How many calls are kept.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    fn user(&mut self, line: &Value) -> Vec<Fact> {
        let message = line.get("message").unwrap_or(&Value::Null);
        if let Some(text) = fields::text(message, "content") {
            return self.prompt(text);
        }
        let parts = fields::list(message, "content");
        let mut facts = Vec::new();
        let mut typed = Vec::new();
        for part in parts {
            match fields::text(part, "type") {
                Some("tool_result") => facts.extend(self.result(line, part)),
                // The program puts its additions to a person's words into separate parts.
                Some("text") => typed.extend(
                    fields::text(part, "text").filter(|text| !text.trim_start().starts_with('<') || parts.len() == 1),
                ),
                _ => {}
            }
        }
        if !typed.is_empty() {
            facts.extend(self.prompt(&typed.join("\n")));
        }
        facts
    }

    /// The person's words, or a notice that something in the background ended.
    fn prompt(&mut self, text: &str) -> Vec<Fact> {
        let mut facts = prompt::facts(text);
        if let Some((call, failure)) = prompt::background(text)
            && let (Some(input), Some(failure)) = (self.background.remove(&call), failure)
        {
            let stage = CallStage::Failed(&failure);
            let used = Use { call: &call, tool: "Bash", input: &input, stage, by: None, dir: Path::new("") };
            facts.extend(tools::facts(&used));
        }
        facts
    }

    /// What the person typed while the assistant worked.
    fn attachment(&mut self, line: &Value) -> Vec<Fact> {
        let Some(attachment) = line.get("attachment") else {
            return Vec::new();
        };
        if fields::text(attachment, "type") != Some("queued_command") {
            return Vec::new();
        }
        self.prompt(&attachment.get("prompt").map(fields::words).unwrap_or_default())
    }

    fn assistant(&mut self, line: &Value) -> Vec<Fact> {
        let message = line.get("message").unwrap_or(&Value::Null);
        // The program's own words about a failure.
        if fields::text(message, "model") == Some("<synthetic>") {
            return Vec::new();
        }
        let mut facts = Vec::new();
        for part in fields::list(message, "content") {
            match fields::text(part, "type") {
                Some("text") => facts.extend(hook_events::said(fields::text(part, "text").unwrap_or_default(), None)),
                Some("tool_use") => facts.extend(self.called(line, part)),
                _ => {}
            }
        }
        facts
    }

    fn called(&mut self, line: &Value, part: &Value) -> Vec<Fact> {
        let (Some(call), Some(tool)) = (fields::text(part, "id"), fields::text(part, "name")) else {
            return Vec::new();
        };
        let input = part.get("input").cloned().unwrap_or_default();
        let mut facts = facts(line, call, tool, &input, CallStage::Called);
        facts.push(fact::called(call, &format!("{tool} {}", given(&input))));
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        self.open.insert(call.to_owned(), (tool.to_owned(), input));
        facts
    }

    fn result(&mut self, line: &Value, part: &Value) -> Vec<Fact> {
        let Some(call) = fields::text(part, "tool_use_id") else {
            return Vec::new();
        };
        let failed = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let returned = Fact::Returned { call: call.to_owned(), failed };
        // The call was reported by an earlier read.
        let Some((tool, input)) = self.open.remove(call) else {
            return vec![returned];
        };
        let content = part.get("content").unwrap_or(&Value::Null);
        if failed {
            let mut facts = facts(line, call, &tool, &input, CallStage::Failed(&fields::words(content)));
            facts.push(returned);
            return facts;
        }
        let structured = line.get("toolUseResult").filter(|result| result.is_object());
        let answer = structured.unwrap_or(content);
        let mut facts = facts(line, call, &tool, &input, CallStage::Answered(answer));
        if !facts.iter().any(|fact| matches!(fact, Fact::Command { .. })) {
            facts.push(returned);
        }
        if answer.get("backgroundTaskId").is_some() {
            if self.background.len() >= MAX_OPEN {
                self.background.clear();
            }
            self.background.insert(call.to_owned(), input);
        }
        facts
    }
}

fn facts(line: &Value, call: &str, tool: &str, input: &Value, stage: CallStage<'_>) -> Vec<Fact> {
    let dir = Path::new(fields::text(line, "cwd").unwrap_or_default());
    tools::facts(&Use { call, tool, input, stage, by: None, dir })
}

/// The most telling part of a call's input: a command, a path, a pattern, or all of it.
fn given(input: &Value) -> String {
    let named = ["command", "file_path", "notebook_path", "pattern", "url", "query", "description"];
    named.into_iter().find_map(|name| fields::text(input, name)).map_or_else(|| input.to_string(), str::to_owned)
}

fn content_words(line: &Value) -> String {
    line.get("message").and_then(|message| message.get("content")).map(fields::words).unwrap_or_default()
}

fn inner_summary(text: &str) -> &str {
    let after = text.split_once(SUMMARY.0).map_or(text, |(_, rest)| rest);
    after.split_once(SUMMARY.1).map_or(after, |(before, _)| before)
}
