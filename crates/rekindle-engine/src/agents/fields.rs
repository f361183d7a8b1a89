//! Fields of JSON that somebody else wrote: what is not there or is of another kind is simply not there.

use rekindle_core::time::Time;
use serde_json::Value;

pub fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A field that is a number, cut to a whole one; less than nothing is not there.
pub fn number(value: &Value, name: &str) -> Option<u64> {
    let field = value.get(name)?;
    field.as_u64().or_else(|| field.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// A field that is a list; empty where there is none.
pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The words in a tool's output: a string, or the texts of a list of parts.
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

/// A moment that is given in seconds since 1970; nothing where it is out of every reasonable range.
pub fn time_of_seconds(seconds: u64) -> Option<Time> {
    i64::try_from(seconds).ok()?.checked_mul(1000).map(Time)
}
