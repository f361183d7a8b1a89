//! The transcript of a session: where it is, and what its lines mean.
//!
//! It is the only source for compactions, the context, what one attempt has used, and the class of a failure. Its totals are
//! those of the whole thread; those of the turn are the attempt's own, because one process runs one turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_core::activity::{Activity, Problem, Usage};
use rekindle_core::time::Time;
use serde_json::Value;

use super::super::fields;

/// Turns of one process that are kept apart; there is one, and never more than a few.
const MAX_TURNS: usize = 64;

/// Directories that are searched for a session whose id does not contain its day.
const MAX_DAYS: usize = 4_000;

/// What is known of one attempt from its transcript.
#[derive(Default)]
pub struct Rollout {
    /// Whether any of its lines was seen: it will then also report how a failed turn failed.
    pub seen: bool,
    /// The model, once it is reported.
    pub model: Option<String>,
    /// The class of the failure that ended the turn, with its text.
    pub failure: Option<(Problem, String)>,
    pub failures: u32,
    turns: BTreeMap<String, Usage>,
    context: Option<(u64, Option<u64>)>,
    windows: Vec<(f64, Option<Time>)>,
    /// The current answer is the summary of a compaction.
    summary: bool,
    /// Two lines report each compaction: how many more of the first kind have come than of the second.
    unpaired: i64,
}

impl Rollout {
    /// What the attempt has used, if the transcript has reported it.
    pub fn used(&self) -> Option<Usage> {
        let add = |mut sum: Usage, turn: &Usage| {
            sum.input_tokens = sum.input_tokens.saturating_add(turn.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(turn.output_tokens);
            sum.cached_tokens = sum.cached_tokens.saturating_add(turn.cached_tokens);
            sum
        };
        (!self.turns.is_empty()).then(|| self.turns.values().fold(Usage::default(), add))
    }

    /// When the limit is lifted: the latest reset of the windows that are used up.
    pub fn resets_at(&self) -> Option<Time> {
        self.windows.iter().filter(|(used, _)| *used >= 100.0).filter_map(|(_, resets)| *resets).max()
    }

    pub fn line(&mut self, value: &Value) -> Vec<Activity> {
        self.seen = true;
        let payload = &value["payload"];
        match fields::text(value, "type") {
            Some("compacted") => self.compacted(1),
            Some("token_usage_record") => self.answered(payload),
            Some("turn_context") => {
                self.model = fields::text(payload, "model").map(str::to_owned).or(self.model.take());
                Vec::new()
            }
            Some("response_item") => {
                self.summary |= value["metadata"]["compaction_output"].as_bool() == Some(true);
                Vec::new()
            }
            Some("event_msg") => self.event(payload),
            _ => Vec::new(),
        }
    }

    fn event(&mut self, payload: &Value) -> Vec<Activity> {
        match fields::text(payload, "type") {
            Some("token_count") => self.counted(payload),
            Some("item_completed") if fields::text(&payload["item"], "type") == Some("ContextCompaction") => {
                self.compacted(-1)
            }
            Some("task_started") => {
                self.failure = None;
                Vec::new()
            }
            Some("task_complete") => {
                if let Some(text) = fields::text(&payload["error"], "message") {
                    self.failure = Some((class(&payload["error"]), text.to_owned()));
                    self.failures = self.failures.saturating_add(1);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Two lines report one compaction: the first to arrive counts, its counterpart does not.
    fn compacted(&mut self, kind: i64) -> Vec<Activity> {
        let is_counterpart = self.unpaired.signum() == -kind;
        self.unpaired = self.unpaired.saturating_add(kind);
        if is_counterpart {
            return Vec::new();
        }
        // This program cannot be asked for a compaction while it runs.
        vec![Activity::Compacted { automatic: Some(true) }]
    }

    fn answered(&mut self, payload: &Value) -> Vec<Activity> {
        let mut activities = Vec::new();
        if !std::mem::take(&mut self.summary) {
            activities.push(Activity::Turn);
        }
        let turn = fields::text(payload, "turn_id").unwrap_or_default();
        if self.turns.len() < MAX_TURNS || self.turns.contains_key(turn) {
            self.turns.insert(turn.to_owned(), usage(&payload["turn_token_usage"]));
        }
        activities.extend(self.used().map(Activity::Used));
        activities
    }

    fn counted(&mut self, payload: &Value) -> Vec<Activity> {
        self.limits(&payload["rate_limits"]);
        let info = &payload["info"];
        let Some(used) = fields::number(&info["last_token_usage"], "total_tokens") else { return Vec::new() };
        let context = (used, fields::number(info, "model_context_window"));
        if self.context == Some(context) {
            return Vec::new();
        }
        self.context = Some(context);
        vec![Activity::Context { used: context.0, window: context.1 }]
    }

    fn limits(&mut self, limits: &Value) {
        let told = |name: &str| {
            let window = limits.get(name)?;
            let used = window.get("used_percent")?.as_f64()?;
            Some((used, fields::number(window, "resets_at").and_then(fields::time_of_seconds)))
        };
        let windows: Vec<_> = ["primary", "secondary"].into_iter().filter_map(told).collect();
        if !windows.is_empty() {
            self.windows = windows;
        }
    }
}

/// Tokens as counted by this program: cached tokens are included in the input tokens.
pub fn usage(told: &Value) -> Usage {
    let count = |name| fields::number(told, name).unwrap_or(0);
    let cached = count("cached_input_tokens");
    Usage {
        input_tokens: count("input_tokens").saturating_sub(cached),
        output_tokens: count("output_tokens"),
        cached_tokens: cached,
        cost_usd: None,
    }
}

/// The class of a failure: a name, or a name with the response status.
fn class(error: &Value) -> Problem {
    let info = &error["codex_error_info"];
    let (name, status) = match (info.as_str(), info.as_object().and_then(|map| map.iter().next())) {
        (Some(name), _) => (name, None),
        (None, Some((name, told))) => (name.as_str(), fields::number(told, "http_status_code")),
        (None, None) => return Problem::Other,
    };
    match (name, status) {
        ("usage_limit_exceeded", _) => Problem::UsageLimit,
        ("context_window_exceeded", _) => Problem::ContextFull,
        ("unauthorized", _) | (_, Some(401 | 403)) => Problem::Auth,
        ("server_overloaded" | "internal_server_error" | "rate_limit_exceeded", _) | (_, Some(429 | 500..)) => {
            Problem::Overloaded
        }
        ("http_connection_failed" | "response_stream_connection_failed" | "response_stream_disconnected", _) => {
            Problem::Network
        }
        ("response_too_many_failed_attempts", None) => Problem::Overloaded,
        _ => raw_class(error),
    }
}

/// A response that the program does not know is passed on unchanged, with its own code.
fn raw_class(error: &Value) -> Problem {
    let body = fields::text(error, "message").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let code = body.as_ref().and_then(|body| fields::text(&body["error"], "code"));
    match code {
        Some("context_length_exceeded") => Problem::ContextFull,
        _ => Problem::Other,
    }
}

/// The file of a session; it is in the directory of the local day on which the session started.
pub fn find(sessions: &Path, id: &str) -> Option<PathBuf> {
    if id.is_empty() || id.contains('/') {
        return None;
    }
    let ending = format!("-{id}.jsonl");
    match day_of(id) {
        // The directory's day is in the user's time zone: up to a day earlier or later.
        Some(day) => [day, day - 1, day + 1].into_iter().find_map(|day| in_day(&day_dir(sessions, day), &ending)),
        None => day_dirs(sessions).into_iter().find_map(|dir| in_day(&dir, &ending)),
    }
}

/// The day, counted since 1970, on which an id was made: ids of this kind start with the time in milliseconds.
fn day_of(id: &str) -> Option<i64> {
    let digits: String = id.chars().filter(|char| *char != '-').collect();
    if digits.len() != 32 || digits.as_bytes()[12] != b'7' {
        return None;
    }
    let ms = i64::from_str_radix(digits.get(..12)?, 16).ok()?;
    Some(ms / (24 * 60 * 60 * 1000))
}

/// `YYYY/MM/DD` of a day since 1970, by the rules of the calendar (years are counted from March, so that the leap day is last).
fn day_dir(sessions: &Path, day: i64) -> PathBuf {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    sessions.join(format!("{year:04}/{month:02}/{day:02}"))
}

fn in_day(dir: &Path, ending: &str) -> Option<PathBuf> {
    let names = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    names.into_iter().find(|path| path.to_string_lossy().ends_with(ending))
}

/// Every day's directory, the newest first.
fn day_dirs(sessions: &Path) -> Vec<PathBuf> {
    let below = |dirs: Vec<PathBuf>| -> Vec<PathBuf> {
        let entries = dirs.into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
        entries.flat_map(|entries| entries.flatten().map(|entry| entry.path())).take(MAX_DAYS).collect()
    };
    let mut days = below(below(below(vec![sessions.to_path_buf()])));
    days.sort_by(|a, b| b.cmp(a));
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_under_its_day() {
        let dir = tempfile::tempdir().expect("a directory");
        let id = "01a1de00-41ad-7ef0-a1be-2f2825168716";
        assert_eq!(find(dir.path(), id), None);
        for day in ["2026/11/14", "2026/11/15", "2026/11/16", "2026/01/02"] {
            std::fs::create_dir_all(dir.path().join(day)).expect("made");
        }
        let other =
            dir.path().join("2026/11/15/rollout-2026-11-15T06-58-41-01a1de00-41ad-7ef0-a1be-2f2825160000.jsonl");
        std::fs::File::create(other).expect("made");
        assert_eq!(find(dir.path(), id), None);
        for (day, id) in [("2026/11/14", id), ("2026/01/02", "no-uuid")] {
            let path = dir.path().join(day).join(format!("rollout-2026-11-14T23-58-41-{id}.jsonl"));
            std::fs::File::create(&path).expect("made");
            assert_eq!(find(dir.path(), id), Some(path));
        }
        assert_eq!(find(dir.path(), "../x"), None);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let shown = |day| day_dir(Path::new("/s"), day).to_string_lossy().into_owned();
        assert_eq!(shown(0), "/s/1970/01/01");
        assert_eq!(shown(59), "/s/1970/03/01");
        assert_eq!(shown(11_016), "/s/2000/02/29");
        assert_eq!(shown(20_772), "/s/2026/11/15");
        assert_eq!(day_of("01a1de00-41ad-7ef0-a1be-2f2825168716"), Some(20_772));
        assert_eq!(day_of("01a1de00-41ad-4ef0-a1be-2f2825168716"), None);
    }
}
