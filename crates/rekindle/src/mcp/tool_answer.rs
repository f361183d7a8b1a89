//! What a tool answers: the same in words and in fields. The words are in a field as well, because some programs show their
//! model only one of the two.

use rekindle_core::ids::TaskId;
use rekindle_core::report::Evidence;
use rekindle_core::text;
use rekindle_core::text::counted;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use crate::story;
use crate::ui::harmless;

/// Longest output of one check in an answer: a failing test's last screens, and little of the agent's context.
const OUTPUT_MAX_BYTES: usize = 6 * 1024;

/// Checks reported in full; in a plan with more, most of them pass.
const CHECKS_TOLD: usize = 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolAnswer {
    pub ok: bool,
    /// Whether the model has to do something about it before it continues.
    pub error: bool,
    pub message: String,
    pub fields: JsonObject,
}

impl ToolAnswer {
    pub(super) fn good(message: String) -> Self {
        Self { ok: true, error: false, message, fields: JsonObject::new() }
    }

    /// It was not done; the message says what to do.
    pub(super) fn wrong(message: String) -> Self {
        Self { ok: false, error: true, message, fields: JsonObject::new() }
    }

    /// The same answer with one more field.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut fields = self.fields;
        let message = harmless(&self.message);
        fields.insert("ok".to_owned(), json!(self.ok));
        fields.insert("message".to_owned(), json!(message));
        let words = vec![ContentBlock::text(message)];
        let mut result = if self.error { CallToolResult::error(words) } else { CallToolResult::success(words) };
        result.structured_content = Some(Value::Object(fields));
        result
    }
}

/// A claim that is not proven: what failed, its output, and what to do.
pub(super) fn evidence(task: &TaskId, seen: &Evidence) -> ToolAnswer {
    let mut seen = seen.clone();
    for check in &mut seen.checks {
        check.output = text::fold(&check.output, OUTPUT_MAX_BYTES).into_owned();
    }
    let left_out = seen.checks.len().saturating_sub(CHECKS_TOLD);
    let complaint = seen.complaint();
    // Failing ones first: they are what has to be read.
    seen.checks.sort_by_key(|check| check.passed);
    seen.checks.truncate(CHECKS_TOLD);
    let mut lines = story::of_checks(&seen);
    if left_out > 0 {
        lines.push(format!("and {}", counted(left_out, "more check", "more checks")));
    }
    let message = format!(
        "task {task} is not complete: {complaint}\n\n{}\n\nRepair it, then call `task_done` for {task} again.",
        lines.join("\n")
    );
    ToolAnswer::wrong(message)
        .with("checks", json!(seen.checks))
        .with("missing_artifacts", json!(seen.missing_artifacts))
}
