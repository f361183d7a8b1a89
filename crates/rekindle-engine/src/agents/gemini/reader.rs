//! What Gemini CLI's lines mean: its `stream-json` output, the few lines of standard error that are its own, and its
//! transcript, the only source for compressions and for how full the context is.
//!
//! The three are read independently, so nothing here depends on which of them comes first.

use std::collections::BTreeSet;

use rekindle_core::activity::{Activity, Call, Failure, Problem, Usage};
use rekindle_core::time::Time;
use serde_json::{Value, json};

use super::SNAPSHOT;
use super::report::Report;
use crate::agents::foreign::plain;
use crate::agents::{LineSource, Reader};

/// The context window in tokens, as the program counts it: one number for all models except those named below.
const WINDOW: u64 = 1_048_576;

/// The smaller models, by the prefix of their name.
const SMALL: &str = "gemma-4-";

/// The context window of the smaller models.
const SMALL_WINDOW: u64 = 256_000;

/// A context at least this full, in percent, explains why a run ended without the model's answer.
const FULL_PERCENT: u64 = 80;

/// Prefix of the program's own message that the model loops; it then ends the run as a success.
const LOOP_DETECTED: &str = "Loop detected";

/// Prefix of a transcript line that replaces the history.
const REWRITTEN: &str = "{\"$set\":{\"messages\":";

/// Summaries remembered by their id, since a resumed session writes them again; a session has a handful.
const SUMMARIES_MAX: usize = 1024;

/// The tools that change files, run commands or let another agent do so.
const ACTING: [&str; 6] = ["run_shell_command", "write_file", "replace", "edit", "invoke_agent", "save_memory"];

#[derive(Default)]
pub(super) struct GeminiReader {
    /// When this process started, according to its first line; older entries in the transcript belong to another process.
    began: Option<String>,
    /// What was said since the last call.
    said: String,
    /// How much of it has been reported already.
    told: usize,
    /// A failure in prose whose kind is not known yet.
    unnamed: Option<String>,
    /// The message of the last error event.
    error: Option<String>,
    /// Whether a failure of known kind was reported.
    failed: bool,
    /// Whether the result line has arrived.
    ended: bool,
    /// The run ended without an answer, for a reason that only the context may reveal.
    unanswered: bool,
    /// What the program wrote to standard error about the failure.
    report: Report,
    /// Summaries of the transcript that were seen.
    summaries: BTreeSet<String>,
    /// Whether a message of this process was seen in the transcript, and whether a resumed history was.
    entries: bool,
    resumed: bool,
    /// The answer that was counted last: each is written again when its calls have ended.
    answer: Option<String>,
    /// The sum of the transcript's messages.
    used: Usage,
    /// How full the context was last, in percent.
    full: u64,
}

impl Reader for GeminiReader {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        match source {
            LineSource::Out if whole => self.out(line),
            LineSource::Err => self.err(line),
            LineSource::Transcript => self.transcript(line),
            LineSource::Out => Vec::new(),
        }
    }

    fn end(&mut self, code: Option<i32>) -> Vec<Activity> {
        let mut all = self.tell();
        if self.failed {
            return all;
        }
        let problem = code.and_then(|code| by_exit(code, self.began.is_some()));
        if let Some(problem) = problem {
            let text = self.unnamed.take().unwrap_or_else(|| self.report.last_words());
            self.fail(&mut all, problem, None, text);
        } else if self.began.is_some() && !self.ended {
            all.push(failed(Problem::Other, None, "it ended without its last line: it was cut off".into()));
        }
        all
    }
}

impl GeminiReader {
    fn out(&mut self, line: &str) -> Vec<Activity> {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match event["type"].as_str() {
            Some("init") => self.init(&event),
            Some("message") if event["role"] == "assistant" => {
                self.said.push_str(text(&event["content"]));
                Vec::new()
            }
            Some("tool_use") => {
                let mut all = self.tell();
                self.forget();
                all.push(Activity::CallStarted(call(&event)));
                all
            }
            Some("tool_result") => {
                let mut all = self.tell();
                self.forget();
                let ok = event["status"] == "success";
                let said = event.pointer("/error/message").filter(|_| !ok).unwrap_or(&event["output"]);
                let id = text(&event["tool_id"]).to_owned();
                all.push(Activity::CallEnded { id, ok, output: text(said).to_owned() });
                all
            }
            Some("error") => {
                let message = text(&event["message"]);
                self.error = Some(message.to_owned());
                if message.starts_with(LOOP_DETECTED) { vec![looping(message)] } else { Vec::new() }
            }
            Some("result") => self.result(&event),
            _ => Vec::new(),
        }
    }

    fn init(&mut self, event: &Value) -> Vec<Activity> {
        self.began = event["timestamp"].as_str().map(str::to_owned).or_else(|| Some(String::new()));
        let Some(id) = event["session_id"].as_str() else { return Vec::new() };
        vec![Activity::Session { id: id.to_owned(), model: event["model"].as_str().map(str::to_owned) }]
    }

    fn result(&mut self, event: &Value) -> Vec<Activity> {
        let mut all = self.tell();
        self.ended = true;
        all.extend(usage(&event["stats"]).map(Activity::Used));
        let said = std::mem::take(&mut self.said);
        self.told = 0;
        let ok = event["status"] == "success";
        if !ok {
            self.result_failed(event, &mut all);
        } else if said.trim().is_empty() && self.error.is_none() {
            // With a full context the program ends the run as a success without any output.
            self.unanswered = true;
            self.check_context(&mut all);
        }
        let ok = ok && !self.unanswered;
        all.push(Activity::Result { ok, text: Some(said).filter(|said| !said.trim().is_empty()) });
        all
    }

    fn result_failed(&mut self, event: &Value, all: &mut Vec<Activity>) {
        let message = event.pointer("/error/message").and_then(Value::as_str);
        let words = message.map(str::to_owned).or_else(|| self.error.clone()).unwrap_or_default();
        let body = message.and_then(|message| {
            let (from, to) = (message.find('{')?, message.rfind('}')?);
            serde_json::from_str::<Value>(message.get(from..=to)?).ok()
        });
        let named = match &body {
            Some(body) => by_body(body),
            None if message.is_none() => self.error.as_deref().and_then(by_constant),
            None => None,
        };
        if let Some(problem) = named {
            self.fail(all, problem, None, words);
        } else {
            self.unanswered = body.is_some_and(|body| status(&body) == Some(400));
            self.unnamed = Some(words);
            self.name_failure(all);
            self.check_context(all);
        }
    }

    fn err(&mut self, line: &str) -> Vec<Activity> {
        let mut all = Vec::new();
        if let Some(attempt) = super::report::attempt(line) {
            let problem = attempt.status.and_then(by_status);
            all.push(Activity::Retrying { problem, text: attempt.text });
        }
        if self.began.is_none()
            && let Some(problem) = before_start(line)
        {
            self.fail(&mut all, problem, None, plain(line));
        }
        self.report.line(line);
        self.name_failure(&mut all);
        all
    }

    /// The result describes a failure only in prose; its kind is in the report on standard error.
    fn name_failure(&mut self, all: &mut Vec<Activity>) {
        if self.failed || self.unnamed.is_none() {
            return;
        }
        let Some((problem, resets_at)) = self.report.verdict() else { return };
        let words = self.unnamed.take().unwrap_or_default();
        self.fail(all, problem, resets_at, words);
    }

    fn transcript(&mut self, line: &str) -> Vec<Activity> {
        let mut all = Vec::new();
        if line.starts_with(REWRITTEN) {
            self.rewritten(line, &mut all);
            return all;
        }
        let Ok(entry) = serde_json::from_str::<Value>(line) else { return all };
        self.entries |= entry["type"].is_string();
        if entry["type"] == "gemini" && entry["tokens"].is_object() {
            self.answered(&entry, &mut all);
        }
        all
    }

    /// The history was rewritten: after a compression, and when a session is resumed.
    fn rewritten(&mut self, line: &str, all: &mut Vec<Activity>) {
        let messages = match serde_json::from_str::<Value>(line) {
            Ok(entry) => entry.pointer("/$set/messages").and_then(Value::as_array).cloned().unwrap_or_default(),
            // The line exceeds what is kept of one: the summary is near its start.
            Err(_) => cut_off(line).into_iter().collect(),
        };
        // A history before the first message of this process, longer than the process's own first message, is the one that
        // it resumes.
        let resumed = !self.entries && !self.resumed && messages.len() > 1;
        self.resumed |= resumed;
        for message in messages.iter().filter(|message| message["type"] == "user" && is_summary(message)) {
            // A summary of an earlier process keeps its id when it is written again, but not always its time.
            if self.is_new_summary(message) && self.is_ours(message) && !resumed {
                all.push(Activity::Compacted { automatic: Some(true) });
            }
        }
    }

    fn answered(&mut self, entry: &Value, all: &mut Vec<Activity>) {
        let tokens = &entry["tokens"];
        let count = |name: &str| tokens[name].as_u64().unwrap_or(0);
        let window = if text(&entry["model"]).starts_with(SMALL) { SMALL_WINDOW } else { WINDOW };
        let used = count("input").saturating_add(count("output"));
        let id = entry["id"].as_str().map(str::to_owned);
        if id == self.answer {
            return;
        }
        self.answer = id;
        if self.is_ours(entry) {
            all.push(Activity::Turn);
            let sum = &mut self.used;
            sum.input_tokens = sum.input_tokens.saturating_add(count("input").saturating_sub(count("cached")));
            sum.cached_tokens = sum.cached_tokens.saturating_add(count("cached"));
            sum.output_tokens = sum.output_tokens.saturating_add(count("output").saturating_add(count("thoughts")));
            if !self.ended {
                // Not after the result: its own total includes more than the transcript shows.
                all.push(Activity::Used(self.used));
            }
        }
        self.full = used.saturating_mul(100) / window;
        all.push(Activity::Context { used, window: Some(window) });
        self.check_context(all);
    }

    fn check_context(&mut self, all: &mut Vec<Activity>) {
        if self.unanswered && !self.failed && self.full >= FULL_PERCENT {
            let words =
                self.unnamed.take().unwrap_or_else(|| "the context is full: it stopped without an answer".into());
            self.fail(all, Problem::ContextFull, None, words);
        }
    }

    /// Whether a message was written by this process; a resumed session's transcript begins with those of others.
    fn is_ours(&self, message: &Value) -> bool {
        // Both are UTC in one format, which sorts as text.
        self.began.as_deref().is_none_or(|began| text(&message["timestamp"]) >= began)
    }

    fn is_new_summary(&mut self, message: &Value) -> bool {
        if self.summaries.len() == SUMMARIES_MAX {
            self.summaries.pop_first();
        }
        self.summaries.insert(text(&message["id"]).to_owned())
    }

    /// Reports what was said and not yet reported.
    fn tell(&mut self) -> Vec<Activity> {
        let words = self.said.get(self.told..).unwrap_or_default().trim().to_owned();
        self.told = self.said.len();
        if words.is_empty() { Vec::new() } else { vec![Activity::Said { text: words }] }
    }

    fn forget(&mut self) {
        self.said.clear();
        self.told = 0;
    }

    fn fail(&mut self, all: &mut Vec<Activity>, problem: Problem, resets_at: Option<Time>, text: String) {
        if !self.failed {
            self.failed = true;
            all.push(failed(problem, resets_at, text));
        }
    }
}

fn failed(problem: Problem, resets_at: Option<Time>, text: String) -> Activity {
    Activity::Failed(Failure { problem, resets_at, text, runaway: false })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn call(event: &Value) -> Call {
    let tool = text(&event["tool_name"]).to_owned();
    let input = input(&tool, &event["parameters"]);
    Call { id: text(&event["tool_id"]).to_owned(), acts: ACTING.contains(&tool.as_str()), tool, input }
}

pub(super) fn input(tool: &str, arguments: &Value) -> String {
    match arguments["command"].as_str() {
        Some(command) if tool == "run_shell_command" => command.to_owned(),
        _ => arguments.to_string(),
    }
}

fn looping(message: &str) -> Activity {
    Activity::Failed(Failure { problem: Problem::Looping, resets_at: None, text: message.to_owned(), runaway: false })
}

fn usage(stats: &Value) -> Option<Usage> {
    let count = |name: &str| stats[name].as_u64();
    let sent = count("input_tokens")?;
    // Thoughts are only included in the total.
    let received = count("total_tokens").unwrap_or(0).saturating_sub(sent).max(count("output_tokens").unwrap_or(0));
    let cached = count("cached").unwrap_or(0);
    let fresh = count("input").unwrap_or_else(|| sent.saturating_sub(cached));
    Some(Usage { input_tokens: fresh, output_tokens: received, cached_tokens: cached, cost_usd: None })
}

/// Whether a message is the summary of a compression: the mark is at its start.
fn is_summary(message: &Value) -> bool {
    let first = message["content"].as_str().or_else(|| message.pointer("/content/0/text").and_then(Value::as_str));
    first.is_some_and(|text| text.contains(SNAPSHOT))
}

/// The summary in a truncated line, as far as it is needed.
fn cut_off(line: &str) -> Option<Value> {
    let before = line.get(..line.find(SNAPSHOT)?)?;
    let field = |name: &str| before.rsplit_once(&format!("\"{name}\":\""))?.1.split('"').next();
    Some(json!({"type": "user", "id": field("id")?, "timestamp": field("timestamp")?, "content": SNAPSHOT}))
}

fn status(body: &Value) -> Option<u64> {
    body.pointer("/error/code").and_then(Value::as_u64)
}

/// The problem according to a provider's own error object.
fn by_body(body: &Value) -> Option<Problem> {
    let details = body.pointer("/error/details").and_then(Value::as_array);
    let reason = |name: &str| details.is_some_and(|all| all.iter().any(|detail| detail["reason"] == name));
    if reason("API_KEY_INVALID") {
        return Some(Problem::Auth);
    }
    status(body).and_then(by_status)
}

/// The problem according to an HTTP status; 429 alone does not distinguish a used-up allowance from too many requests at
/// once.
pub(super) fn by_status(status: u64) -> Option<Problem> {
    match status {
        401..=403 => Some(Problem::Auth),
        408 | 429 | 500..=599 => Some(Problem::Overloaded),
        _ => None,
    }
}

/// The program's own two messages for an answer that broke off or came empty.
fn by_constant(message: &str) -> Option<Problem> {
    if message.starts_with("Model stream ended without a finish reason") {
        return Some(Problem::Network);
    }
    message.starts_with("The model returned an empty response").then_some(Problem::Overloaded)
}

/// The problem that the program reports on standard error instead of starting; only the program itself writes there at that
/// time.
fn before_start(line: &str) -> Option<Problem> {
    if line.starts_with("Error resuming session:") {
        return Some(Problem::SessionGone);
    }
    // Only a person can grant trust or log in.
    let person = ["GEMINI_CLI_TRUST_WORKSPACE", "Invalid auth method selected", "GEMINI_API_KEY environment variable"];
    person.iter().any(|words| line.contains(words)).then_some(Problem::Auth)
}

/// The problem according to an exit code: the program's own code, else the low byte of an HTTP status.
fn by_exit(code: i32, began: bool) -> Option<Problem> {
    match code {
        41 | 55 => Some(Problem::Auth),
        42 if !began => Some(Problem::SessionGone),
        145..=147 | 173 | 244..=248 => by_status(u64::try_from(code).ok()? + 256),
        _ => None,
    }
}
