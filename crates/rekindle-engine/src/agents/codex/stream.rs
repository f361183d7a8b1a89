//! What Codex's lines mean, with the help of its transcript.
//!
//! Its output reports the thread, the calls and the ends; what it omits is in `rollout`. The two are read side by side and
//! in no fixed order, so whatever needs both is reported as soon as both are known.

use std::collections::VecDeque;

use rekindle_core::activity::{Activity, Call, Failure, Problem};
use serde_json::Value;

use super::super::{LineSource, Reader, fields};
use super::rollout::{self, Rollout};

/// Calls whose start was reported and whose end was not; parallel calls are few.
const OPEN_CALLS: usize = 64;

/// Prefix of the lines that report another retry. No field distinguishes these from a final error.
const RETRY_MARK: &str = "Reconnecting";

/// Prefix of standard error when a session cannot be resumed: the request that failed.
const RESUME_MARK: &str = "Error: thread/resume";

/// The tool name used for a command.
pub(super) const SHELL: &str = "shell";

#[derive(Default)]
pub struct Stream {
    thread: Option<String>,
    model_told: Option<String>,
    open: VecDeque<String>,
    last_message: Option<String>,
    rollout: Rollout,
    /// Retries since the last answer.
    retries: u32,
    /// The turn has failed, with this text.
    failed: Option<String>,
    /// The class of the failure that was reported last.
    told: Option<Problem>,
}

impl Reader for Stream {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        if source == LineSource::Err {
            return self.complaint(line);
        }
        if !whole {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        if source == LineSource::Out {
            return self.event(&value);
        }
        let known = self.rollout.failures;
        let mut activities = self.rollout.line(&value);
        activities.extend(self.session());
        if self.rollout.failures != known {
            // A failure in the transcript is always reported, even if the output was read first, or is read again after a
            // restart.
            self.told = None;
            activities.extend(self.failure());
        }
        activities
    }

    fn end(&mut self, _code: Option<i32>) -> Vec<Activity> {
        // The process has ended: what the transcript has not reported so far will not come any more.
        self.rollout.seen = false;
        if self.told.is_some() { Vec::new() } else { self.failure() }
    }
}

impl Stream {
    fn event(&mut self, value: &Value) -> Vec<Activity> {
        let item = &value["item"];
        match fields::text(value, "type") {
            Some("thread.started") => {
                self.thread = fields::text(value, "thread_id").map(str::to_owned);
                self.model_told.clone_from(&self.rollout.model);
                let model = self.model_told.clone();
                self.thread.clone().map(|id| Activity::Session { id, model }).into_iter().collect()
            }
            Some("item.started") => self.started(item),
            Some("item.completed") => self.completed(item),
            Some("error") => self.error(value),
            Some("turn.completed") => self.turn_completed(value),
            Some("turn.failed") => {
                self.failed = fields::text(&value["error"], "message").map(str::to_owned).or(Some(String::new()));
                let mut activities = self.failure();
                activities.push(Activity::Result { ok: false, text: None });
                activities
            }
            Some(_) => vec![Activity::Heartbeat],
            None => Vec::new(),
        }
    }

    /// The model is named only in the transcript.
    fn session(&mut self) -> Option<Activity> {
        let id = self.thread.clone()?;
        if self.rollout.model.is_none() || self.model_told == self.rollout.model {
            return None;
        }
        self.model_told.clone_from(&self.rollout.model);
        Some(Activity::Session { id, model: self.model_told.clone() })
    }

    fn started(&mut self, item: &Value) -> Vec<Activity> {
        self.retries = 0;
        let Some(call) = call(item) else { return vec![Activity::Heartbeat] };
        if self.open.len() == OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back(call.id.clone());
        vec![Activity::CallStarted(call)]
    }

    fn completed(&mut self, item: &Value) -> Vec<Activity> {
        self.retries = 0;
        match fields::text(item, "type") {
            Some("agent_message") => {
                let text = fields::text(item, "text").unwrap_or_default().to_owned();
                self.last_message = Some(text.clone());
                vec![Activity::Said { text }]
            }
            // An item of this kind is a warning, never the end.
            Some("error") => {
                let text = fields::text(item, "message").unwrap_or_default();
                vec![Activity::Said { text: format!("warning: {text}") }]
            }
            _ => self.call_ended(item),
        }
    }

    fn call_ended(&mut self, item: &Value) -> Vec<Activity> {
        let Some(call) = call(item) else { return vec![Activity::Heartbeat] };
        let (id, (ok, output)) = (call.id.clone(), outcome(item));
        let mut activities = Vec::new();
        match self.open.iter().position(|open| *open == id) {
            Some(at) => drop(self.open.remove(at)),
            None => activities.push(Activity::CallStarted(call)),
        }
        activities.push(Activity::CallEnded { id, ok, output });
        activities
    }

    fn error(&mut self, value: &Value) -> Vec<Activity> {
        let text = fields::text(value, "message").unwrap_or_default();
        if !text.starts_with(RETRY_MARK) {
            // The text is repeated at the turn's end.
            return vec![Activity::Heartbeat];
        }
        self.retries = self.retries.saturating_add(1);
        vec![Activity::Retrying { problem: None, text: text.to_owned() }]
    }

    fn turn_completed(&mut self, value: &Value) -> Vec<Activity> {
        self.retries = 0;
        let mut activities = Vec::new();
        // These totals are those of the whole thread, including other attempts. They are right only for a thread without a
        // transcript, because such a thread cannot have been resumed.
        if !self.rollout.seen && value["usage"].is_object() {
            activities.push(Activity::Used(rollout::usage(&value["usage"])));
        }
        activities.push(Activity::Result { ok: true, text: self.last_message.take() });
        activities
    }

    /// The failure, reported once, and once more if the second source knows better.
    fn failure(&mut self) -> Vec<Activity> {
        let (class, text) = match (&self.rollout.failure, &self.failed) {
            (Some((class, text)), _) => (*class, text.clone()),
            // The transcript will tell more.
            (None, Some(_)) if self.rollout.seen => return Vec::new(),
            (None, Some(text)) => (Problem::Other, text.clone()),
            (None, None) => return Vec::new(),
        };
        // An error of unknown class after nothing but retries: the provider could not be reached.
        let problem = if class == Problem::Other && self.retries > 0 { Problem::Network } else { class };
        if self.told == Some(problem) || (problem == Problem::Other && self.told.is_some()) {
            return Vec::new();
        }
        self.told = Some(problem);
        let resets_at = if problem == Problem::UsageLimit { self.rollout.resets_at() } else { None };
        vec![Activity::Failed(Failure { problem, resets_at, text, runaway: false })]
    }

    fn complaint(&mut self, line: &str) -> Vec<Activity> {
        if self.thread.is_some() || self.told.is_some() || !line.starts_with(RESUME_MARK) {
            return Vec::new();
        }
        self.told = Some(Problem::SessionGone);
        let text = line.to_owned();
        vec![Activity::Failed(Failure { problem: Problem::SessionGone, resets_at: None, text, runaway: false })]
    }
}

fn call(item: &Value) -> Option<Call> {
    let id = fields::text(item, "id")?.to_owned();
    let (tool, input, acts) = match fields::text(item, "type")? {
        "command_execution" => (SHELL.to_owned(), fields::text(item, "command")?.to_owned(), true),
        "file_change" => ("patch".to_owned(), changes(item), true),
        "mcp_tool_call" => {
            let server = fields::text(item, "server")?;
            let tool = format!("mcp__{server}__{}", fields::text(item, "tool")?);
            // Reporting to rekindle is not work on the files.
            (tool, item["arguments"].to_string(), server != "rekindle")
        }
        "web_search" => ("web_search".to_owned(), fields::text(item, "query").unwrap_or_default().to_owned(), false),
        "collab_tool_call" => {
            let tool = fields::text(item, "tool")?.to_owned();
            (tool, fields::text(item, "prompt").unwrap_or_default().to_owned(), true)
        }
        _ => return None,
    };
    Some(Call { id, tool, input, acts })
}

fn changes(item: &Value) -> String {
    let change = |change: &Value| {
        let kind = fields::text(change, "kind").unwrap_or("change");
        Some(format!("{kind} {}", fields::text(change, "path")?))
    };
    fields::list(item, "changes").iter().filter_map(change).collect::<Vec<_>>().join(", ")
}

/// Whether a call succeeded, and what it returned.
fn outcome(item: &Value) -> (bool, String) {
    let status = fields::text(item, "status");
    let ok = !matches!(status, Some("failed" | "declined"));
    if let Some(output) = fields::text(item, "aggregated_output") {
        return (ok && item["exit_code"].as_i64().is_none_or(|code| code == 0), output.to_owned());
    }
    if let Some(error) = fields::text(&item["error"], "message") {
        return (false, error.to_owned());
    }
    if item["result"].is_object() {
        return (ok, fields::words(&item["result"]["content"]));
    }
    (ok, status.unwrap_or_default().to_owned())
}
