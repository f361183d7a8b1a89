//! What Claude Code's lines mean. Its output reports everything; its transcript and its standard error add nothing.
//!
//! Facts that are easy to get wrong: one answer of the model is many lines with one message id; the usage on those lines is
//! that of the answer's start; `subtype` says "success" for failed requests too; a run may return more than one result.
//! Lines of sub-agents count only for what was used.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rekindle_core::activity::{Activity, Call, Failure, Problem, Usage};
use rekindle_core::time::Time;
use serde_json::Value;

use super::super::{LineSource, Reader, fields};

/// Answers that are remembered so that their later lines are recognised; lines of one answer are close together, and few
/// sub-agents run at once.
const RECENT_MESSAGES: usize = 128;

/// Models whose context window was reported; one program seldom uses more than two.
const MAX_MODELS: usize = 16;

/// The context window of this program's models unless reported otherwise.
const USUAL_WINDOW: u64 = 200_000;

/// The context window of the models whose name ends in `[1m]`.
const LARGE_WINDOW: u64 = 1_000_000;

/// Tools that only read or only note; every other tool may change something.
const READING: [&str; 17] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "WebFetch",
    "WebSearch",
    "ToolSearch",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskUpdate",
    "TodoWrite",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "ReportFindings",
];

/// The type that its lines give to an agent that it has started.
const AGENT_TASK: &str = "local_agent";

/// Running agents that are remembered; a program allows fewer.
const MAX_AGENTS: usize = 128;

/// The prefix of rekindle's own tools: reporting is not work on the files.
const OWN_TOOLS: &str = "mcp__rekindle__";

#[derive(Default)]
pub struct Stream {
    session: Option<(String, Option<String>)>,
    recent: VecDeque<String>,
    /// The usage reported by the last result.
    counted: Usage,
    /// The usage reported by the answers since then.
    since: Usage,
    windows: BTreeMap<String, u64>,
    context: Option<u64>,
    /// A rejected request said that the allowance is used up, and when it resets.
    rejected: Option<Option<Time>>,
    /// The class of the last failed request.
    error: Option<String>,
    /// Agents that it has started and that have not ended, by task id.
    agents: BTreeSet<String>,
}

impl Reader for Stream {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        if source != LineSource::Out || !whole {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match fields::text(&value, "type") {
            Some("system") => self.system(&value),
            Some("assistant") => self.assistant(&value),
            Some("user") => user(&value),
            Some("result") => self.result(&value),
            Some("rate_limit_event") => self.rate_limit(&value),
            Some(_) => vec![Activity::Heartbeat],
            None => Vec::new(),
        }
    }
}

impl Stream {
    fn system(&mut self, value: &Value) -> Vec<Activity> {
        match fields::text(value, "subtype") {
            Some("init") => self.session(value, fields::text(value, "model")),
            Some("model_fallback") => self.session(value, fields::text(value, "fallback_model")),
            Some("status") => status(value),
            Some("compact_boundary") if main_thread(value) => self.compacted(&value["compact_metadata"]),
            Some("api_retry") => self.retry(value),
            Some("task_started" | "task_updated" | "task_notification") => self.task(value),
            _ => vec![Activity::Heartbeat],
        }
    }

    /// The program retries on its own. After a used-up allowance it would wait for hours, but that wait is rekindle's job.
    fn retry(&self, value: &Value) -> Vec<Activity> {
        let mut activities = vec![retry(value)];
        if let Some(resets_at) = self.rejected.filter(|_| fields::number(value, "error_status") == Some(429)) {
            let text = "it reached its usage limit and would wait by itself".to_owned();
            activities.push(Activity::Failed(Failure { problem: Problem::UsageLimit, resets_at, text, runaway: true }));
        }
        activities
    }

    /// An agent of its own starts or ends. Background commands are ignored: a server that keeps running is not work to wait
    /// for.
    fn task(&mut self, value: &Value) -> Vec<Activity> {
        let Some(id) = fields::text(value, "task_id") else { return vec![Activity::Heartbeat] };
        let is_agent = fields::text(value, "task_type") == Some(AGENT_TASK);
        let changed = match fields::text(value, "subtype") {
            Some("task_started") if is_agent && self.agents.len() < MAX_AGENTS => self.agents.insert(id.to_owned()),
            // The agent is removed at its notification, not at its end: the next turn starts with the notification, and the
            // previous turn's result may come in between.
            Some("task_notification") => self.agents.remove(id),
            // An agent that its session stopped is not reported again.
            Some("task_updated") if matches!(fields::text(&value["patch"], "status"), Some("killed" | "stopped")) => {
                self.agents.remove(id)
            }
            _ => false,
        };
        if !changed {
            return vec![Activity::Heartbeat];
        }
        vec![Activity::Background { open: u32::try_from(self.agents.len()).unwrap_or(u32::MAX) }]
    }

    /// Every turn starts with the same lines; only changes are reported.
    fn session(&mut self, value: &Value, model: Option<&str>) -> Vec<Activity> {
        let Some(id) = fields::text(value, "session_id") else { return Vec::new() };
        let session = (id.to_owned(), model.map(str::to_owned));
        if self.session.as_ref() == Some(&session) {
            return vec![Activity::Heartbeat];
        }
        self.session = Some(session.clone());
        vec![Activity::Session { id: session.0, model: session.1 }]
    }

    fn compacted(&mut self, told: &Value) -> Vec<Activity> {
        let automatic = fields::text(told, "trigger").map(|trigger| trigger == "auto");
        let mut activities = vec![Activity::Compacted { automatic }];
        if let Some(used) = fields::number(told, "post_tokens") {
            self.context = Some(used);
            activities.push(Activity::Context { used, window: self.window() });
        }
        activities
    }

    fn assistant(&mut self, value: &Value) -> Vec<Activity> {
        let message = &value["message"];
        let main = main_thread(value);
        let failed = fields::text(value, "error");
        // The program's own message in place of an answer.
        if failed.is_some() || fields::text(message, "model") == Some("<synthetic>") {
            if main && failed.is_some() {
                self.error = failed.map(str::to_owned);
            }
            return vec![Activity::Heartbeat];
        }
        let mut activities = Vec::new();
        if self.is_new(fields::text(message, "id")) {
            if main {
                self.rejected = None;
                self.error = None;
                activities.push(Activity::Turn);
            }
            activities.extend(self.answered(&message["usage"], main));
        }
        if main {
            activities.extend(fields::list(message, "content").iter().filter_map(block));
        } else {
            activities.push(Activity::Heartbeat);
        }
        activities
    }

    fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id else { return false };
        if self.recent.iter().any(|recent| recent == id) {
            return false;
        }
        if self.recent.len() == RECENT_MESSAGES {
            self.recent.pop_front();
        }
        self.recent.push_back(id.to_owned());
        true
    }

    fn answered(&mut self, usage: &Value, main: bool) -> Vec<Activity> {
        let count = |name| fields::number(usage, name).unwrap_or(0);
        let fresh = count("input_tokens").saturating_add(count("cache_creation_input_tokens"));
        let cached = count("cache_read_input_tokens");
        self.since.input_tokens = self.since.input_tokens.saturating_add(fresh);
        self.since.cached_tokens = self.since.cached_tokens.saturating_add(cached);
        self.since.output_tokens = self.since.output_tokens.saturating_add(count("output_tokens"));
        let mut activities = vec![Activity::Used(self.used())];
        if main {
            let used = fresh.saturating_add(cached);
            self.context = Some(used);
            activities.push(Activity::Context { used, window: self.window() });
        }
        activities
    }

    fn used(&self) -> Usage {
        Usage {
            input_tokens: self.counted.input_tokens.saturating_add(self.since.input_tokens),
            output_tokens: self.counted.output_tokens.saturating_add(self.since.output_tokens),
            cached_tokens: self.counted.cached_tokens.saturating_add(self.since.cached_tokens),
            cost_usd: self.counted.cost_usd,
        }
    }

    /// The context window of the session's model: as a result reported it, else by its name.
    fn window(&self) -> Option<u64> {
        let model = self.session.as_ref()?.1.as_deref()?;
        let by_name = || match model {
            model if model.ends_with("[1m]") => Some(LARGE_WINDOW),
            model if model.contains("claude") => Some(USUAL_WINDOW),
            _ => None,
        };
        self.windows.get(model).copied().or_else(by_name)
    }

    fn rate_limit(&mut self, value: &Value) -> Vec<Activity> {
        let told = &value["rate_limit_info"];
        self.rejected = (fields::text(told, "status") == Some("rejected"))
            .then(|| fields::number(told, "resetsAt").and_then(fields::time_of_seconds));
        vec![Activity::Heartbeat]
    }

    fn result(&mut self, value: &Value) -> Vec<Activity> {
        let ok = value["is_error"].as_bool() == Some(false);
        let mut activities = self.totals(value);
        let text = fields::text(value, "result");
        if !ok && let Some(problem) = self.problem(value) {
            let errors: Vec<&str> = fields::list(value, "errors").iter().filter_map(Value::as_str).collect();
            let text = text.map_or_else(|| errors.join("; "), str::to_owned);
            let resets_at = if problem == Problem::UsageLimit { self.rejected.flatten() } else { None };
            activities.push(Activity::Failed(Failure { problem, resets_at, text, runaway: false }));
        }
        self.error = None;
        let text = text.filter(|_| ok).map(str::to_owned);
        activities.push(Activity::Result { ok, text });
        activities
    }

    /// A result reports what the whole process has used so far, including sub-agents and compactions.
    fn totals(&mut self, value: &Value) -> Vec<Activity> {
        let Some(models) = value["modelUsage"].as_object().filter(|models| !models.is_empty()) else {
            return Vec::new();
        };
        let mut total = Usage::default();
        let mut cost = value["total_cost_usd"].as_f64();
        let mut costs = 0.0;
        for (name, told) in models {
            let count = |field| fields::number(told, field).unwrap_or(0);
            let fresh = count("inputTokens").saturating_add(count("cacheCreationInputTokens"));
            total.input_tokens = total.input_tokens.saturating_add(fresh);
            total.cached_tokens = total.cached_tokens.saturating_add(count("cacheReadInputTokens"));
            total.output_tokens = total.output_tokens.saturating_add(count("outputTokens"));
            costs += told["costUSD"].as_f64().unwrap_or(0.0);
            if let Some(window) = fields::number(told, "contextWindow")
                && (self.windows.len() < MAX_MODELS || self.windows.contains_key(name))
            {
                self.windows.insert(name.clone(), window);
            }
        }
        // The sum that was written first may be older than the counts beside it.
        cost = cost.map(|cost| cost.max(costs));
        total.cost_usd = cost.filter(|cost| cost.is_finite());
        self.counted = total;
        self.since = Usage::default();
        let mut activities = vec![Activity::Used(total)];
        if let Some(used) = self.context {
            activities.push(Activity::Context { used, window: self.window() });
        }
        activities
    }

    fn problem(&self, value: &Value) -> Option<Problem> {
        match fields::text(value, "terminal_reason") {
            Some("blocking_limit" | "prompt_too_long") => return Some(Problem::ContextFull),
            Some("rapid_refill_breaker") => return Some(Problem::CompactionLoop),
            // It was stopped from outside, which is not a failure of its own.
            Some("aborted_tools" | "aborted_streaming") => return None,
            _ => {}
        }
        if fields::text(value, "subtype") == Some("error_during_execution") && self.session.is_none() {
            return Some(Problem::SessionGone);
        }
        let status = fields::number(value, "api_error_status");
        if status == Some(429) && self.rejected.is_some() {
            return Some(Problem::UsageLimit);
        }
        Some(class(self.error.as_deref(), status))
    }
}

/// The class of a failed request, by the program's own name for it and the response status.
fn class(error: Option<&str>, status: Option<u64>) -> Problem {
    match (error, status) {
        (Some("authentication_failed" | "billing_error"), _) | (_, Some(401 | 403)) => Problem::Auth,
        // Too large to be sent at all: only another session helps.
        (_, Some(413)) => Problem::ContextFull,
        (Some("server_error" | "unknown"), None) => Problem::Network,
        (Some("rate_limit" | "overloaded" | "server_error"), _) | (_, Some(429 | 500..)) => Problem::Overloaded,
        _ => Problem::Other,
    }
}

fn main_thread(value: &Value) -> bool {
    !value["parent_tool_use_id"].is_string()
}

fn status(value: &Value) -> Vec<Activity> {
    if fields::text(value, "status") == Some("compacting") {
        return vec![Activity::Compacting];
    }
    if fields::text(value, "compact_result") == Some("failed") {
        let why = fields::text(value, "compact_error").unwrap_or("no reason given");
        return vec![Activity::Retrying { problem: None, text: format!("the compaction failed: {why}") }];
    }
    vec![Activity::Heartbeat]
}

fn retry(value: &Value) -> Activity {
    let error = fields::text(value, "error");
    let status = fields::number(value, "error_status");
    let count = |name| fields::number(value, name).unwrap_or(0);
    let status_text = status.map(|status| format!(" ({status})")).unwrap_or_default();
    let text = format!(
        "{}{status_text}, try {} of {} in {} ms",
        error.unwrap_or("unknown"),
        count("attempt"),
        count("max_retries"),
        count("retry_delay_ms"),
    );
    Activity::Retrying { problem: Some(class(error, status)), text }
}

/// The results of tools; everything else with the user role was said by rekindle or the program itself.
fn user(value: &Value) -> Vec<Activity> {
    if !main_thread(value) {
        return vec![Activity::Heartbeat];
    }
    let ended = |block: &Value| {
        let id = fields::text(block, "tool_use_id")?.to_owned();
        let ok = block["is_error"].as_bool() != Some(true);
        Some(Activity::CallEnded { id, ok, output: fields::words(&block["content"]) })
    };
    fields::list(&value["message"], "content").iter().filter_map(ended).collect()
}

/// A part of an answer.
fn block(block: &Value) -> Option<Activity> {
    match fields::text(block, "type")? {
        "text" => {
            let text = fields::text(block, "text").filter(|text| !text.trim().is_empty())?;
            Some(Activity::Said { text: text.to_owned() })
        }
        "tool_use" => {
            let tool = fields::text(block, "name")?;
            let acts = !READING.contains(&tool) && !tool.starts_with(OWN_TOOLS);
            let input = input(&block["input"]);
            let id = fields::text(block, "id")?.to_owned();
            Some(Activity::CallStarted(Call { id, tool: tool.to_owned(), input, acts }))
        }
        _ => None,
    }
}

/// A tool's input, the most telling part first. A command's description is left out: it changes from one call of the same
/// command to the next.
pub(super) fn input(input: &Value) -> String {
    if let Some(command) = fields::text(input, "command") {
        return command.to_owned();
    }
    let Some((path, given)) = fields::text(input, "file_path").zip(input.as_object()) else {
        return input.to_string();
    };
    if given.len() == 1 {
        return path.to_owned();
    }
    let mut rest = given.clone();
    rest.remove("file_path");
    format!("{path} {}", Value::Object(rest))
}
