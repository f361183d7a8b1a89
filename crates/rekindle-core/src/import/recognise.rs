//! Which format a file has: by its location, else by its content. Only says what is clear; the rest is asked.

use serde_json::Value;

use super::{
    Format,
    checklist::{self, Kind, numbered},
};

/// The format of a file, if it can be recognised.
pub fn recognise(path: &str, text: &str) -> Option<Format> {
    let path = format!("/{}", path.replace('\\', "/"));
    let places = [
        ("/.taskmaster/", Format::TaskMaster),
        ("/.beads/", Format::Beads),
        ("/openspec/changes/", Format::OpenSpec),
        ("/.kiro/specs/", Format::Kiro),
    ];
    let placed = places.iter().find(|(place, _)| path.contains(place)).map(|(_, format)| *format);
    placed.or_else(|| by_json(text)).or_else(|| by_checklist(text))
}

fn by_json(text: &str) -> Option<Format> {
    let is_issue = |value: &Value| value.get("id").is_some_and(Value::is_string) && value.get("title").is_some();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let has_tasks = |value: &Value| value.get("tasks").is_some_and(Value::is_array);
        return match &value {
            Value::Array(items) => {
                let numbered = |item: &Value| item.get("number").is_some() && item.get("title").is_some();
                items.first().is_some_and(numbered).then_some(Format::GitHub)
            }
            Value::Object(fields) if has_tasks(&value) || fields.values().any(has_tasks) => Some(Format::TaskMaster),
            Value::Object(fields) if fields.contains_key("subject") => Some(Format::TaskFiles),
            Value::Object(_) if is_issue(&value) => Some(Format::Beads),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
        };
    }
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let value: Value = serde_json::from_str(first).ok()?;
    is_issue(&value).then_some(Format::Beads)
}

fn by_checklist(text: &str) -> Option<Format> {
    let (mut section, mut first) = (false, None);
    for entry in checklist::read(text) {
        match entry.kind {
            Kind::Heading(2) => section |= numbered(&entry.text).is_some(),
            Kind::Heading(_) => {}
            Kind::Item { .. } => {
                let word = entry.text.split_whitespace().next().unwrap_or("");
                let digits = word.strip_prefix('T').unwrap_or("");
                if digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Some(Format::SpecKit);
                }
                first = first.or_else(|| numbered(&entry.text).map(|(number, _)| number.contains('.')));
            }
        }
    }
    match (section, first) {
        (true, Some(true)) => Some(Format::OpenSpec),
        (false, Some(false)) => Some(Format::Kiro),
        _ => None,
    }
}
