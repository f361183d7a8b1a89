//! The meaning of an opencode error event, by its fields: name, status, headers and the provider's own error object. Never
//! by prose.

use rekindle_core::activity::{Failure, Problem};
use rekindle_core::time::Time;
use serde_json::Value;

/// Codes and types of an error object that mean a used-up allowance.
const USED_UP: [&str; 8] = [
    "insufficient_quota",
    "usage_limit_reached",
    "usage_limit_exceeded",
    "quota_exceeded",
    "billing_hard_limit_reached",
    "FreeUsageLimitError",
    "GoUsageLimitError",
    "SubscriptionUsageLimitError",
];

/// Codes and types of an error object that mean overload or a fault on the provider's side.
const PASSING: [&str; 6] = [
    "server_error",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "internal_server_error",
];

/// Smaller reset times are not seconds since 1970 (this one is in 2001).
const SECONDS_MIN: i64 = 1_000_000_000;

/// The failure that an error event reports.
pub(super) fn of(event: &Value) -> Failure {
    let error = &event["error"];
    let data = &error["data"];
    let name = error["name"].as_str().unwrap_or_default();
    let message = data["message"].as_str().unwrap_or(name).to_owned();
    let body = data["responseBody"].as_str().unwrap_or(&message);
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let inner = if body["error"].is_object() { &body["error"] } else { &body };
    let is_one_of =
        |names: &[&str]| ["code", "type"].iter().any(|key| inner[*key].as_str().is_some_and(|it| names.contains(&it)));
    let resets_at = reset(event["timestamp"].as_i64(), &data["responseHeaders"], inner);
    let problem = match (name, data["statusCode"].as_u64()) {
        ("ContextOverflowError", _) => Problem::ContextFull,
        ("ProviderAuthError", _) | (_, Some(401..=403)) => Problem::Auth,
        (_, Some(429)) if resets_at.is_some() || is_one_of(&USED_UP) => Problem::UsageLimit,
        (_, Some(408 | 409 | 429 | 500..=599)) => Problem::Overloaded,
        (_, None) if is_one_of(&USED_UP) => Problem::UsageLimit,
        (_, None) if is_one_of(&PASSING) => Problem::Overloaded,
        ("APIError", None) if data["isRetryable"] == true => Problem::Network,
        _ => Problem::Other,
    };
    Failure { problem, resets_at: resets_at.filter(|_| problem == Problem::UsageLimit), text: message, runaway: false }
}

/// When the provider says that it accepts requests again.
fn reset(now: Option<i64>, headers: &Value, body: &Value) -> Option<Time> {
    let number = |value: &Value| {
        value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n| *n >= 0.0 && *n < 1e12)
    };
    #[expect(clippy::cast_possible_truncation, reason = "the number was bounded just above")]
    let ms = |value: &Value, factor: f64| number(value).map(|n| (n * factor) as i64);
    let from_now = |wait: i64| now.map(|now| Time(now.saturating_add(wait)));
    let at = |seconds: i64| (seconds >= SECONDS_MIN * 1000).then_some(Time(seconds));
    let waits = [
        ms(&headers["retry-after-ms"], 1.0),
        ms(&headers["retry-after"], 1000.0),
        ms(&body["resets_in_seconds"], 1000.0),
    ];
    let times = [ms(&headers["anthropic-ratelimit-unified-reset"], 1000.0), ms(&body["resets_at"], 1000.0)];
    let times = times.into_iter().flatten().find_map(at);
    times.or_else(|| waits.into_iter().flatten().find_map(from_now))
}
