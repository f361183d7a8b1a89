//! How each provider refuses: status, header lines and body, with the fields that programs read the reason and the reset from.

use serde_json::{Value, json};

use super::{Body, Encoded, event, events, typed};
use crate::model::asked::Api;
use crate::model::script::Fail;
use crate::model::wire::Lines;

/// The token count reported as too many, and the limit.
const TOO_LONG: (u64, u64) = (210_000, 200_000);

pub(super) fn encode(api: Api, fail: &Fail, resets_at: Option<u64>, now_s: u64) -> Encoded {
    let resets_at = resets_at.unwrap_or(now_s);
    let (status, lines, body) = match (api, fail) {
        (_, Fail::Raw { status, headers, body }) => {
            let mut lines = typed("application/json");
            lines.extend(headers.iter().cloned());
            return Encoded { status: *status, headers: lines, body: Body::Whole(body.clone()) };
        }
        (Api::Responses, Fail::ContextFull) => return failed_response(),
        (Api::Messages, fail) => messages(fail, resets_at),
        (Api::Responses, fail) => responses(fail, resets_at, now_s),
        (Api::Chat, fail) => chat(fail, resets_at, now_s),
        (Api::Gemini, fail) => gemini(fail),
    };
    let mut headers = typed("application/json");
    headers.extend(lines);
    Encoded { status, headers, body: Body::Whole(body.to_string()) }
}

type Refusal = (u16, Lines, Value);

fn lines<const N: usize>(lines: [(&str, String); N]) -> Lines {
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn retry_after(seconds: u64) -> Lines {
    lines([("retry-after", seconds.to_string())])
}

fn messages(fail: &Fail, resets_at: u64) -> Refusal {
    let error = |kind: &str, text: &str| json!({ "type": "error", "error": { "type": kind, "message": text } });
    match fail {
        Fail::UsageLimit { .. } => {
            let limit = lines([
                ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-reset", resets_at.to_string()),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
                ("anthropic-ratelimit-unified-overage-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-overage-disabled-reason", "org_level_disabled".to_owned()),
            ]);
            (429, limit, error("rate_limit_error", "This request would exceed your account's rate limit."))
        }
        Fail::RateLimit { retry_after_s } => {
            (429, retry_after(*retry_after_s), error("rate_limit_error", "Number of requests exceeds your rate limit."))
        }
        Fail::Overloaded => (529, Lines::new(), error("overloaded_error", "Overloaded")),
        Fail::Server | Fail::Raw { .. } => (500, Lines::new(), error("api_error", "Internal server error")),
        Fail::Auth => (401, Lines::new(), error("authentication_error", "invalid x-api-key")),
        Fail::ContextFull => {
            let (many, most) = TOO_LONG;
            let text = format!("prompt is too long: {many} tokens > {most} maximum");
            (400, Lines::new(), error("invalid_request_error", &text))
        }
    }
}

fn responses(fail: &Fail, resets_at: u64, now_s: u64) -> Refusal {
    let error =
        |kind: &str, code: &str, text: &str| json!({ "error": { "type": kind, "code": code, "message": text } });
    match fail {
        Fail::UsageLimit { .. } => {
            let window = lines([
                ("x-codex-primary-used-percent", "100".to_owned()),
                ("x-codex-primary-window-minutes", "300".to_owned()),
                ("x-codex-primary-reset-at", resets_at.to_string()),
            ]);
            let left = resets_at.saturating_sub(now_s);
            let body = json!({ "error": {
                "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
                "resets_at": resets_at, "resets_in_seconds": left,
            } });
            (429, window, body)
        }
        Fail::RateLimit { retry_after_s } => {
            (429, retry_after(*retry_after_s), error("requests", "rate_limit_exceeded", "Rate limit reached"))
        }
        Fail::Overloaded => {
            (503, Lines::new(), error("server_error", "server_is_overloaded", "The server is overloaded"))
        }
        Fail::Auth => {
            (401, Lines::new(), error("invalid_request_error", "invalid_api_key", "Incorrect API key provided"))
        }
        Fail::Server | Fail::ContextFull | Fail::Raw { .. } => {
            (500, Lines::new(), error("server_error", "server_error", "The server had an error"))
        }
    }
}

/// A conversation that is too long is reported in the stream.
fn failed_response() -> Encoded {
    let error = json!({
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    });
    let created = json!({ "type": "response.created", "response": { "id": "resp_failed" } });
    let failed =
        json!({ "type": "response.failed", "response": { "id": "resp_failed", "status": "failed", "error": error } });
    events(vec![event(Some("response.created"), &created), event(Some("response.failed"), &failed)])
}

fn chat(fail: &Fail, resets_at: u64, now_s: u64) -> Refusal {
    let error =
        |kind: &str, code: &str, text: &str| json!({ "error": { "message": text, "type": kind, "code": code } });
    match fail {
        Fail::UsageLimit { .. } => {
            let left = resets_at.saturating_sub(now_s).max(1);
            let text = "You exceeded your current quota, please check your plan and billing details.";
            (429, retry_after(left), error("insufficient_quota", "insufficient_quota", text))
        }
        Fail::RateLimit { retry_after_s } => {
            (429, retry_after(*retry_after_s), error("rate_limit_error", "rate_limit_exceeded", "Rate limit reached"))
        }
        Fail::Overloaded => (503, Lines::new(), error("server_error", "overloaded", "The server is overloaded")),
        Fail::Server | Fail::Raw { .. } => {
            (500, Lines::new(), error("server_error", "server_error", "The server had an error"))
        }
        Fail::Auth => {
            (401, Lines::new(), error("invalid_request_error", "invalid_api_key", "Incorrect API key provided"))
        }
        Fail::ContextFull => {
            let (many, most) = TOO_LONG;
            let text = format!(
                "This model's maximum context length is {most} tokens. However, your messages resulted in {many} tokens."
            );
            (400, Lines::new(), error("invalid_request_error", "context_length_exceeded", &text))
        }
    }
}

fn gemini(fail: &Fail) -> Refusal {
    let error = |code: u16, status: &str, text: &str, details: Value| {
        (
            code,
            Lines::new(),
            json!({ "error": { "code": code, "message": text, "status": status, "details": details } }),
        )
    };
    let quota = |id: &str| {
        json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": id,
                "quotaDimensions": { "location": "global", "model": "gemini-2.5-pro" }, "quotaValue": "100",
            }],
        })
    };
    let exceeded = "You exceeded your current quota, please check your plan and billing details.";
    match fail {
        // It names no reset.
        Fail::UsageLimit { .. } => {
            let id = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
            error(429, "RESOURCE_EXHAUSTED", exceeded, json!([quota(id)]))
        }
        Fail::RateLimit { retry_after_s } => {
            let info = json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{retry_after_s}s"),
            });
            let id = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
            error(429, "RESOURCE_EXHAUSTED", exceeded, json!([quota(id), info]))
        }
        Fail::Overloaded => error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", json!([])),
        Fail::Server | Fail::Raw { .. } => error(500, "INTERNAL", "An internal error has occurred.", json!([])),
        Fail::Auth => error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", json!([])),
        Fail::ContextFull => {
            let (many, most) = TOO_LONG;
            let text = format!("The input token count ({many}) exceeds the maximum number of tokens allowed ({most}).");
            error(400, "INVALID_ARGUMENT", &text, json!([]))
        }
    }
}
