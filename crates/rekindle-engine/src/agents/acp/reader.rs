//! What the bridge's lines mean: the protocol's updates as received, the ends of turns, and errors.
//!
//! Messages arrive in chunks and are joined here. A call is shown when its input is known or it runs; some agents report
//! only its end.

use std::collections::VecDeque;

use rekindle_core::activity::{Activity, Call, Failure, Problem, Usage};
use serde_json::Value;

use super::super::{LineSource, Reader, fields};

/// Calls in progress that are remembered; parallel calls are few.
const OPEN_CALLS: usize = 64;

/// Longest message that is put together: a report, not a book.
const MESSAGE_MAX_BYTES: usize = 256 * 1024;

/// How one of the protocol's adapters marks a compaction: as a call of this kind and title.
const COMPACTION: (&str, &str) = ("think", "Compact conversation");

#[derive(Default)]
pub struct Lines {
    message: String,
    message_id: Option<String>,
    /// The final messages of turns that were followed by another prompt; the next end includes them.
    carried: String,
    open: VecDeque<OpenCall>,
    usage: Usage,
    /// The session was started by another attempt, so its total cost is not this attempt's.
    loaded: bool,
}

/// A call, as far as it has been reported.
#[derive(Clone, Debug, Default)]
struct OpenCall {
    id: String,
    kind: String,
    title: String,
    input: String,
    shown: bool,
}

impl Reader for Lines {
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity> {
        if source != LineSource::Out || !whole {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match fields::text(&value, "type") {
            Some("session") => match fields::text(&value, "id") {
                Some(id) => {
                    self.loaded = value["loaded"] == true;
                    let model = fields::text(&value, "model").map(str::to_owned);
                    vec![Activity::Session { id: id.to_owned(), model }]
                }
                None => Vec::new(),
            },
            Some("update") => self.update(&value["update"]),
            Some("refused") => {
                let what = fields::text(&value, "title").unwrap_or_default();
                vec![Activity::Said { text: format!("not allowed without `permissions = \"full\"`: {what}") }]
            }
            Some("turn") => self.turn(&value),
            Some("error") => self.error(&value),
            Some(_) => vec![Activity::Heartbeat],
            None => Vec::new(),
        }
    }

    /// If an agent ended in the middle of a message, the part so far counts as said.
    fn end(&mut self, _code: Option<i32>) -> Vec<Activity> {
        self.said()
    }
}

impl Lines {
    fn update(&mut self, update: &Value) -> Vec<Activity> {
        match fields::text(update, "sessionUpdate") {
            Some("agent_message_chunk") => self.chunk(update),
            Some("tool_call" | "tool_call_update") => {
                let mut activities = self.said();
                activities.extend(self.call(update));
                activities
            }
            Some("usage_update") => self.measured(update),
            Some("user_message_chunk") | None => Vec::new(),
            Some(_) => vec![Activity::Heartbeat],
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<Activity> {
        let id = fields::text(update, "messageId").map(str::to_owned);
        let mut activities = Vec::new();
        if id != self.message_id {
            activities = self.said();
        }
        self.message_id = id;
        let text = fields::text(&update["content"], "text").unwrap_or_default();
        if self.message.len() + text.len() <= MESSAGE_MAX_BYTES {
            self.message.push_str(text);
        }
        activities.push(Activity::Heartbeat);
        activities
    }

    /// Ends the current message.
    fn said(&mut self) -> Vec<Activity> {
        let text = std::mem::take(&mut self.message);
        self.message_id = None;
        if text.trim().is_empty() { Vec::new() } else { vec![Activity::Turn, Activity::Said { text }] }
    }

    fn call(&mut self, update: &Value) -> Vec<Activity> {
        let Some(id) = fields::text(update, "toolCallId") else { return Vec::new() };
        let at = self.open.iter().position(|known| known.id == id);
        let mut known = at
            .and_then(|at| self.open.remove(at))
            .unwrap_or_else(|| OpenCall { id: id.to_owned(), ..OpenCall::default() });
        known.learn(update);
        let status = fields::text(update, "status").unwrap_or_default();
        let ended = matches!(status, "completed" | "failed");
        let mut activities = Vec::new();
        let compaction = (known.kind.as_str(), known.title.as_str()) == COMPACTION;
        if !known.shown && (ended || status == "in_progress" || known.input_is_told()) {
            known.shown = true;
            match compaction {
                true => activities.push(Activity::Compacting),
                false => activities.extend([Activity::Turn, Activity::CallStarted(known.shown_as())]),
            }
        }
        match (ended, compaction) {
            (true, true) if status == "completed" => activities.push(Activity::Compacted { automatic: None }),
            (true, true) => {}
            (true, false) => activities.push(Activity::CallEnded {
                id: known.id.clone(),
                ok: status == "completed",
                output: output(update),
            }),
            (false, _) => {
                if self.open.len() == OPEN_CALLS {
                    self.open.pop_front();
                }
                self.open.push_back(known);
            }
        }
        if activities.is_empty() {
            activities.push(Activity::Heartbeat);
        }
        activities
    }

    fn measured(&mut self, update: &Value) -> Vec<Activity> {
        let mut activities = Vec::new();
        // A turn that came to nothing reports zero usage; the context is unchanged.
        if let Some(used) = fields::number(update, "used").filter(|used| *used > 0) {
            activities.push(Activity::Context { used, window: fields::number(update, "size") });
        }
        let cost = &update["cost"];
        if let Some(amount) =
            cost["amount"].as_f64().filter(|_| fields::text(cost, "currency") == Some("USD") && !self.loaded)
        {
            self.usage.cost_usd = Some(amount);
            activities.push(Activity::Used(self.usage));
        }
        activities
    }

    fn turn(&mut self, value: &Value) -> Vec<Activity> {
        let text = std::mem::take(&mut self.message);
        self.message_id = None;
        let mut activities = Vec::new();
        if !text.trim().is_empty() {
            activities.extend([Activity::Turn, Activity::Said { text: text.clone() }]);
        }
        if self.add(value) {
            activities.push(Activity::Used(self.usage));
        }
        let mut whole = std::mem::take(&mut self.carried);
        if !whole.is_empty() {
            whole.push('\n');
        }
        if whole.len() + text.len() <= MESSAGE_MAX_BYTES {
            whole.push_str(&text);
        }
        if value["more"] == true {
            self.carried = whole;
            activities.push(Activity::Heartbeat);
            return activities;
        }
        let ok = fields::text(value, "stop") == Some("end_turn");
        activities.push(Activity::Result { ok, text: Some(whole).filter(|text| !text.trim().is_empty()) });
        activities
    }

    /// Adds what a turn has used, if reported: in the protocol's own fields, or in the ones that preceded them.
    fn add(&mut self, value: &Value) -> bool {
        let (usage, quota) = (&value["usage"], &value["meta"]["quota"]["token_count"]);
        let told = |name: &str, before: &str| fields::number(usage, name).or_else(|| fields::number(quota, before));
        let counts = [
            told("inputTokens", "input_tokens"),
            told("outputTokens", "output_tokens"),
            told("cachedReadTokens", "cached_tokens"),
        ];
        let [input, output, cached] = counts.map(|count| count.unwrap_or(0));
        self.usage.input_tokens = self.usage.input_tokens.saturating_add(input);
        self.usage.output_tokens = self.usage.output_tokens.saturating_add(output);
        self.usage.cached_tokens = self.usage.cached_tokens.saturating_add(cached);
        counts.iter().any(|count| count.is_some_and(|count| count > 0))
    }

    fn error(&mut self, value: &Value) -> Vec<Activity> {
        let mut activities = self.said();
        let method = fields::text(value, "method").unwrap_or_default();
        let details = ["details", "message"].iter().find_map(|name| fields::text(&value["data"], name));
        let text = match (fields::text(value, "message").unwrap_or_default(), details) {
            (message, Some(details)) if details != message => format!("{message}: {details}"),
            (message, _) => message.to_owned(),
        };
        let problem = match method {
            "session/load" | "session/resume" => Problem::SessionGone,
            _ => class(value),
        };
        activities.push(Activity::Failed(Failure { problem, resets_at: None, text, runaway: false }));
        activities.push(Activity::Result { ok: false, text: None });
        activities
    }
}

impl OpenCall {
    fn learn(&mut self, update: &Value) {
        for (field, name) in [(&mut self.kind, "kind"), (&mut self.title, "title")] {
            // The first title names the tool; later ones its arguments.
            if let Some(text) = fields::text(update, name).filter(|_| field.is_empty()) {
                text.clone_into(field);
            }
        }
        let raw = &update["rawInput"];
        if let Some(command) = fields::text(raw, "command") {
            command.clone_into(&mut self.input);
        } else if let [_, ..] = fields::list(raw, "command") {
            let words: Vec<&str> = fields::list(raw, "command").iter().filter_map(Value::as_str).collect();
            self.input = words.join(" ");
        } else if raw.as_object().is_some_and(|given| !given.is_empty()) || raw.is_string() {
            self.input = raw.to_string();
        }
    }

    /// Whether it can be shown before it runs; without its command, a call would look like any other.
    fn input_is_told(&self) -> bool {
        let is_command = self.kind != "execute" || !self.input.starts_with('{');
        is_command && !self.input.is_empty()
    }

    fn shown_as(&self) -> Call {
        let plain = self.kind.is_empty() || self.kind == "other";
        let (tool, rest) = if plain { (&self.title, "") } else { (&self.kind, self.title.as_str()) };
        let input = if self.input.is_empty() { rest.to_owned() } else { self.input.clone() };
        // A call of unknown effect may change something: an agent that works must not be mistaken for one that does not.
        let acts = !matches!(self.kind.as_str(), "read" | "search" | "fetch" | "think" | "switch_mode");
        Call { id: self.id.clone(), tool: tool.clone(), input, acts }
    }
}

/// The result of a call: its text contents, else its raw output.
fn output(update: &Value) -> String {
    let words: Vec<&str> =
        fields::list(update, "content").iter().filter_map(|part| fields::text(&part["content"], "text")).collect();
    let terminal = fields::text(&update["_meta"]["terminal_output_delta"], "data");
    match (words.is_empty(), terminal, &update["rawOutput"]) {
        (false, ..) => words.join("\n"),
        (true, Some(printed), _) => printed.to_owned(),
        (true, None, Value::Null) => String::new(),
        (true, None, raw) => raw.to_string(),
    }
}

/// The class of an error, by its code and the fields of its data; never by its text.
fn class(error: &Value) -> Problem {
    let data = &error["data"];
    let status = ["statusCode", "status", "httpStatus"].iter().find_map(|name| fields::number(data, name));
    // One program answers with the HTTP status that it received itself.
    let code = error["code"].as_i64().unwrap_or(0);
    let status = status.or_else(|| u64::try_from(code).ok());
    match (code, status) {
        (-32_000, _) | (_, Some(401..=403)) => Problem::Auth,
        (_, Some(429 | 500..=599)) => Problem::Overloaded,
        _ => Problem::Other,
    }
}
