//! Reading foreign JSON without trusting its shape: a field of another type counts as missing. Which fields there are is
//! decided by the formats.

use serde_json::Value;

/// A field as text; numbers too, since ids come as either.
pub(super) fn text(value: &Value, field: &str) -> String {
    value.get(field).map(as_text).unwrap_or_default()
}

/// A value as text; lists as one line each.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().map(|item| format!("- {}", as_text(item))).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Object(_) => String::new(),
    }
}

/// A field as a list; empty if it is not a list.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn ids(value: &Value, field: &str) -> Vec<String> {
    list(value, field).iter().map(as_text).filter(|id| !id.is_empty()).collect()
}

/// A status as one lower-case word.
pub(super) fn status(value: &Value, field: &str) -> String {
    text(value, field).trim().to_lowercase().replace('-', "_")
}
