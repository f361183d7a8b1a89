//! beads: one issue per line. Dependencies that block become `blocked by`, parents become groups, the rest is left out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Draft, Format, ImportError, Source,
    draft::Item,
    json::{ids, list, status, text},
    malformed, only_file,
};

/// Types of issues that are not work.
const NO_WORK: [&str; 5] = ["message", "gate", "molecule", "event", "decision"];

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

/// How much longer than estimated a task may take: an estimate is not a limit.
const ESTIMATE_FACTOR: u64 = 2;

/// Longest estimate that becomes a limit: a week.
const ESTIMATE_MAX_MINUTES: u64 = 7 * 24 * 60;

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let issues = issues(only_file(source))?;
    let mut draft = Draft::new(&*source.title);
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for issue in &issues {
        for dependency in list(issue, "dependencies") {
            if status(dependency, "type") == "parent_child" {
                children.entry(text(dependency, "depends_on_id")).or_default().push(text(issue, "id"));
            }
        }
    }
    let by_id: BTreeMap<String, &Value> = issues.iter().map(|issue| (text(issue, "id"), issue)).collect();
    let mut other_links = 0;
    for issue in &issues {
        let id = text(issue, "id");
        let kind = status(issue, "issue_type");
        let state = status(issue, "status");
        if NO_WORK.contains(&kind.as_str()) || matches!(state.as_str(), "pinned" | "hooked" | "deferred" | "tombstone")
        {
            let why = if NO_WORK.contains(&kind.as_str()) { kind } else { state };
            draft.leave_out(&id, &text(issue, "title"), &format!("it is {}", super::draft::shown(&why)));
            continue;
        }
        if children.contains_key(&id) {
            draft.groups.insert(id.clone(), children[&id].clone());
            continue;
        }
        let item = item(issue, &id, state == "closed", &by_id, &mut other_links);
        draft.items.push(item);
    }
    if other_links > 0 {
        draft.remark(format!("{other_links} links that block nothing (related, discovered-from …) were left out"));
    }
    Ok(draft)
}

fn issues(text: &str) -> Result<Vec<Value>, ImportError> {
    let mut issues = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |why: String| malformed(Format::Beads, format!("line {}: {why}", number + 1));
        let value: Value = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        if !value.is_object() || self::text(&value, "id").is_empty() {
            return Err(bad("no issue with an id".to_owned()));
        }
        issues.push(value);
    }
    Ok(issues)
}

fn item(issue: &Value, id: &str, done: bool, all: &BTreeMap<String, &Value>, other_links: &mut usize) -> Item {
    let priority = issue.get("priority").and_then(Value::as_i64).unwrap_or(2);
    let estimate = issue.get("estimated_minutes").and_then(Value::as_u64).filter(|n| *n <= ESTIMATE_MAX_MINUTES);
    let mut item = Item {
        key: id.to_owned(),
        id: id.to_owned(),
        title: text(issue, "title"),
        done,
        // In beads 0 is the highest priority and 2 the default; here higher goes first and 0 is the default.
        priority: 2 - priority.clamp(0, 4),
        timeout_ms: estimate.map(|minutes| minutes * ESTIMATE_FACTOR * MINUTE_MS),
        ..Item::default()
    };
    item.say("", text(issue, "description"));
    item.say("Design", text(issue, "design"));
    item.say("What must hold", text(issue, "acceptance_criteria"));
    item.say("Notes", text(issue, "notes"));
    item.say("Labels", ids(issue, "labels").join(", "));
    // What blocks a parent blocks its children too, however far down.
    let mut above = vec![issue];
    let mut seen = BTreeSet::from([id.to_owned()]);
    while let Some(issue) = above.pop() {
        for dependency in list(issue, "dependencies") {
            let on = text(dependency, "depends_on_id");
            match status(dependency, "type").as_str() {
                "blocks" | "waits_for" | "conditional_blocks" => item.after.push(on),
                "parent_child" => {
                    if let Some(parent) = all.get(&on).filter(|_| seen.insert(on)) {
                        item.say("Part of", format!("{} {}", text(parent, "id"), text(parent, "title")));
                        above.push(parent);
                    }
                }
                _ => *other_links += 1,
            }
        }
    }
    item
}
