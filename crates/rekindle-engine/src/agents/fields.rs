//! Fields of JSON that another program wrote: a missing field or one of another type counts as absent.

use rekindle_core::time::Time;
use serde_json::Value;

pub fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A numeric field, truncated to an integer; a negative number counts as absent.
pub fn number(value: &Value, name: &str) -> Option<u64> {
    let field = value.get(name)?;
    field.as_u64().or_else(|| field.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// A list field; empty if there is none.
pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text in a tool's output: a string, or the texts of a list of parts.
pub fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// A time given in seconds since 1970; `None` if it is outside every reasonable range.
pub fn time_of_seconds(seconds: u64) -> Option<Time> {
    i64::try_from(seconds).ok()?.checked_mul(1000).map(Time)
}
