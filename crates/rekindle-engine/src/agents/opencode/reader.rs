//! What opencode's lines mean: its JSON output, which is silent while a tool runs or a retry is pending and does not mark
//! its end, and the lines of our plugin on standard error, which report the rest.
//!
//! The two are read independently, so nothing here depends on which of them comes first.

use std::collections::VecDeque;

use rekindle_core::activity::{Activity, Call, Failure, Problem, Usage};
use rekindle_core::time::Time;
use serde_json::Value;

use super::failure;
use crate::agents::foreign::plain;
use crate::agents::{LineSource, PLUGIN_MARK, Reader};

/// Answers in a row that broke off without an end, after which the program counts as running away: it would retry
/// immediately and for ever.
const BROKEN_MAX: u32 = 5;

/// A longer wait than this was requested by the provider: on its own the program waits half a minute at most.
const OWN_WAIT_MS: u64 = 60_000;

/// Calls remembered by their id; few run at once.
const REMEMBERED: usize = 128;

/// The tools that change files, run commands or let another agent do so.
const ACTING: [&str; 7] = ["bash", "edit", "write", "patch", "apply_patch", "multiedit", "task"];

#[derive(Default)]
pub(super) struct OpencodeReader {
    session: Option<String>,
    /// What was said since the last call.
    said: Vec<String>,
    /// The last step that has ended: its message and whether it ended the turn.
    last: Option<(String, bool)>,
    /// The message after which the agent was idle.
    idle: Option<String>,
    /// Calls whose start was reported, and those whose end was reported.
    begun: VecDeque<String>,
    ended: VecDeque<String>,
    used: Usage,
    context: Option<u64>,
    window: Option<u64>,
    broken: u32,
    runaway: bool,
    /// Compactions seen in the output and by the plugin, and those reported.
    compactions: [u32; 2],
    compacted: u32,
}

impl Reader for OpencodeReader {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        match source {
            LineSource::Out if whole => self.out(line),
            LineSource::Err if whole => self.err(line),
            _ => Vec::new(),
        }
    }

    fn end(&mut self, code: Option<i32>) -> Vec<Activity> {
        if code != Some(0) {
            return Vec::new();
        }
        // Without the plugin, only the exit shows which message was the last.
        self.last.take().map(|(_, ok)| self.result(ok)).into_iter().collect()
    }
}

impl OpencodeReader {
    fn out(&mut self, line: &str) -> Vec<Activity> {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let mut all = Vec::new();
        if let Some(id) = event["sessionID"].as_str() {
            self.found_session(id, &mut all);
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") if part.pointer("/metadata/compaction_continue") == Some(&Value::Bool(true)) => {
                // The last words were the summary, and the step that ended was the summary's.
                self.said.clear();
                self.last = None;
                self.found_compaction(0, &mut all);
            }
            Some("text") if part["synthetic"] != true => {
                let text = text(&part["text"]).trim();
                if !text.is_empty() {
                    self.said.push(text.to_owned());
                    all.push(Activity::Said { text: text.to_owned() });
                }
            }
            Some("tool_use") => self.tool_use(part, &mut all),
            Some("step_finish") => self.step_finish(part, &mut all),
            Some("error") => {
                self.last = None;
                all.push(Activity::Failed(failure::of(&event)));
            }
            _ => {}
        }
        all
    }

    fn tool_use(&mut self, part: &Value, all: &mut Vec<Activity>) {
        self.said.clear();
        let (id, state) = (text(&part["callID"]).to_owned(), &part["state"]);
        if !self.begun.contains(&id) {
            all.push(Activity::CallStarted(call(&id, text(&part["tool"]), &state["input"])));
            remember(&mut self.begun, &id);
        }
        remember(&mut self.ended, &id);
        let ok = state["status"] == "completed" && state.pointer("/metadata/exit").is_none_or(|exit| *exit == 0);
        let output = state["error"].as_str().unwrap_or_else(|| text(&state["output"])).to_owned();
        all.push(Activity::CallEnded { id, ok, output });
    }

    fn step_finish(&mut self, part: &Value, all: &mut Vec<Activity>) {
        let tokens = &part["tokens"];
        let count = |at: &str| tokens.pointer(at).and_then(Value::as_u64).unwrap_or(0);
        let reason = text(&part["reason"]);
        all.push(Activity::Turn);
        let used = &mut self.used;
        used.input_tokens = used.input_tokens.saturating_add(count("/input").saturating_add(count("/cache/write")));
        used.output_tokens = used.output_tokens.saturating_add(count("/output").saturating_add(count("/reasoning")));
        used.cached_tokens = used.cached_tokens.saturating_add(count("/cache/read"));
        let cost = part["cost"].as_f64().filter(|cost| cost.is_finite() && *cost > 0.0);
        if let Some(cost) = cost {
            used.cost_usd = Some(used.cost_usd.unwrap_or(0.0) + cost);
        }
        all.push(Activity::Used(*used));
        if let Some(total) = tokens["total"].as_u64().filter(|total| *total > 0) {
            self.context = Some(total);
            all.push(Activity::Context { used: total, window: self.window });
        }
        self.broken = if reason == "unknown" { self.broken.saturating_add(1) } else { 0 };
        if self.broken == BROKEN_MAX && !self.runaway {
            self.runaway = true;
            let text = format!("{BROKEN_MAX} answers in a row broke off, and it asks again without a pause");
            all.push(Activity::Failed(Failure { problem: Problem::Overloaded, resets_at: None, text, runaway: true }));
        }
        self.last = Some((text(&part["messageID"]).to_owned(), reason == "stop"));
        self.check_idle(all);
    }

    fn err(&mut self, line: &str) -> Vec<Activity> {
        let mut all = Vec::new();
        let Some(said) = line.strip_prefix(PLUGIN_MARK) else {
            if self.session.is_none() && plain(line) == "Error: Session not found" {
                let text = plain(line);
                all.push(Activity::Failed(Failure {
                    problem: Problem::SessionGone,
                    resets_at: None,
                    text,
                    runaway: false,
                }));
            }
            return all;
        };
        let Ok(said) = serde_json::from_str::<Value>(said) else { return all };
        if let Some(id) = said["session"].as_str() {
            self.found_session(id, &mut all);
        }
        if let Some(id) = said.pointer("/call/id").and_then(Value::as_str) {
            self.call_begun(id, &said["call"], &mut all);
        }
        if said["retry"].is_object() {
            retry(&said["retry"], &mut all);
        }
        if said["compacting"] == true {
            all.push(Activity::Compacting);
        }
        if said["compacted"] == true {
            self.found_compaction(1, &mut all);
        }
        if let Some(window) = said["window"].as_u64() {
            self.window = Some(window);
            all.extend(self.context.map(|used| Activity::Context { used, window: Some(window) }));
        }
        if let Some(message) = said["idle"].as_str() {
            self.idle = Some(message.to_owned());
            self.check_idle(&mut all);
        }
        all
    }

    fn found_session(&mut self, id: &str, all: &mut Vec<Activity>) {
        if self.session.as_deref() != Some(id) {
            self.session = Some(id.to_owned());
            all.push(Activity::Session { id: id.to_owned(), model: None });
        }
    }

    /// The output and the plugin both report compactions, but the output not all of them.
    fn found_compaction(&mut self, teller: usize, all: &mut Vec<Activity>) {
        if let Some(count) = self.compactions.get_mut(teller) {
            *count += 1;
        }
        let known = self.compactions.into_iter().max().unwrap_or(0);
        if known > self.compacted {
            self.compacted = known;
            all.push(Activity::Compacted { automatic: Some(true) });
        }
    }

    fn call_begun(&mut self, id: &str, said: &Value, all: &mut Vec<Activity>) {
        let id = id.to_owned();
        if self.begun.contains(&id) || self.ended.contains(&id) {
            return;
        }
        remember(&mut self.begun, &id);
        let input = text(&said["input"]);
        // A truncated input is no longer JSON and is shown as it is.
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        all.push(Activity::CallStarted(call(&id, text(&said["tool"]), &input)));
    }

    fn check_idle(&mut self, all: &mut Vec<Activity>) {
        let idle = self.idle.as_deref();
        if let Some((_, ok)) = self.last.take_if(|(message, _)| Some(message.as_str()) == idle) {
            all.push(self.result(ok));
        }
    }

    fn result(&mut self, ok: bool) -> Activity {
        let said = std::mem::take(&mut self.said);
        Activity::Result { ok, text: Some(said.join("\n\n")).filter(|text| !text.is_empty()) }
    }
}

fn retry(said: &Value, all: &mut Vec<Activity>) {
    let words = text(&said["text"]).to_owned();
    let wait =
        said["next"].as_i64().zip(said["now"].as_i64()).map(|(next, now)| (Time(next), Time(next).since_ms(Time(now))));
    all.push(Activity::Retrying { problem: None, text: words.clone() });
    if let Some((next, wait)) = wait
        && wait > OWN_WAIT_MS
    {
        // It would sleep silently until then, and lose the wait when it is stopped.
        let failure = Failure { problem: Problem::UsageLimit, resets_at: Some(next), text: words, runaway: true };
        all.push(Activity::Failed(failure));
    }
}

fn remember(ids: &mut VecDeque<String>, id: &str) {
    if ids.len() == REMEMBERED {
        ids.pop_front();
    }
    ids.push_back(id.to_owned());
}

fn call(id: &str, tool: &str, input: &Value) -> Call {
    let words = match (input["command"].as_str(), input.as_str()) {
        (Some(command), _) if tool == "bash" => command.to_owned(),
        (_, Some(cut)) => cut.to_owned(),
        _ => input.to_string(),
    };
    Call { id: id.to_owned(), tool: tool.to_owned(), input: words, acts: ACTING.contains(&tool) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
