//! Task Master: `tasks.json` with tags, tasks and subtasks. A task with subtasks is a group; its dependencies apply to them.

use serde_json::Value;

use super::{
    Draft, Format, ImportError, Source,
    draft::Item,
    json::{as_text, ids, list, status, text},
    malformed, only_file,
};

/// The tag that is used if none is given.
const DEFAULT_TAG: &str = "master";

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let value: Value =
        serde_json::from_str(only_file(source)).map_err(|e| malformed(Format::TaskMaster, e.to_string()))?;
    let (tag, tasks, others) = tasks(&value, source.tag.as_deref())?;
    let mut draft = Draft::new(&*source.title);
    if !tag.is_empty() && tag != DEFAULT_TAG {
        draft.title = format!("{} {tag}", source.title);
    }
    for other in others {
        draft.remark(format!("left out: the tasks of the tag {}", super::draft::shown(other)));
    }
    for task in tasks {
        read_task(&mut draft, task, tasks);
    }
    Ok(draft)
}

/// The tasks of the tag that is meant, its name, and the names of the others.
fn tasks<'a>(value: &'a Value, wanted: Option<&str>) -> Result<(&'a str, &'a [Value], Vec<&'a str>), ImportError> {
    if value.get("tasks").is_some_and(Value::is_array) {
        return Ok(("", list(value, "tasks"), Vec::new()));
    }
    let object = value.as_object().ok_or_else(|| malformed(Format::TaskMaster, "it is not a JSON object"))?;
    let tags: Vec<&str> = object
        .iter()
        .filter(|(_, of)| of.get("tasks").is_some_and(Value::is_array))
        .map(|(tag, _)| tag.as_str())
        .collect();
    let named = || tags.iter().map(|tag| super::draft::shown(tag)).collect::<Vec<_>>().join(", ");
    let tag = match (wanted, tags.as_slice()) {
        (_, []) => return Err(malformed(Format::TaskMaster, "it has no `tasks`")),
        (Some(wanted), tags) => tags.iter().find(|tag| **tag == wanted).copied().ok_or_else(|| {
            ImportError::WhichTag { why: format!("there is no tag {}", super::draft::shown(wanted)), tags: named() }
        })?,
        (None, [only]) => only,
        (None, tags) => *tags
            .iter()
            .find(|tag| **tag == DEFAULT_TAG)
            .ok_or_else(|| ImportError::WhichTag { why: "the file has several tags".to_owned(), tags: named() })?,
    };
    let others = tags.into_iter().filter(|other| *other != tag).collect();
    Ok((tag, value.get(tag).map_or(&[], |of| list(of, "tasks")), others))
}

fn read_task(draft: &mut Draft, task: &Value, all: &[Value]) {
    let id = text(task, "id");
    let title = text(task, "title");
    let state = status(task, "status");
    let subtasks = list(task, "subtasks");
    if matches!(state.as_str(), "cancelled" | "deferred") {
        for subtask in subtasks {
            draft.left_out.insert(format!("{id}.{}", text(subtask, "id")));
        }
        draft.leave_out(&id, &title, &format!("it is {state}"));
        return;
    }
    let done = is_done(&state);
    if subtasks.is_empty() {
        let mut item = item(draft, task, &id, done);
        item.after = ids(task, "dependencies");
        draft.items.push(item);
        return;
    }
    let mut members = Vec::new();
    for subtask in subtasks {
        let own = text(subtask, "id");
        let key = format!("{id}.{own}");
        let state = status(subtask, "status");
        if matches!(state.as_str(), "cancelled" | "deferred") {
            draft.leave_out(&key, &text(subtask, "title"), &format!("it is {state}"));
            continue;
        }
        let mut item = item(draft, subtask, &key, done || is_done(&state));
        let siblings = ids(subtask, "dependencies").into_iter().map(|dependency| {
            let is_sibling = subtasks.iter().any(|other| text(other, "id") == dependency);
            let is_task = all.iter().any(|other| text(other, "id") == dependency);
            if is_sibling || (!dependency.contains('.') && !is_task) {
                format!("{id}.{dependency}")
            } else {
                dependency
            }
        });
        item.after = siblings.chain(ids(task, "dependencies")).collect();
        item.say("Part of", format!("{id} {title}\n{}", text(task, "description")));
        members.push(key);
        draft.items.push(item);
    }
    draft.groups.insert(id, members);
}

fn is_done(state: &str) -> bool {
    matches!(state, "done" | "completed")
}

fn item(draft: &mut Draft, task: &Value, key: &str, done: bool) -> Item {
    let mut item = Item {
        key: key.to_owned(),
        id: key.to_owned(),
        title: text(task, "title"),
        done,
        priority: match status(task, "priority").as_str() {
            "critical" => 2,
            "high" => 1,
            "low" => -1,
            _ => 0,
        },
        ..Item::default()
    };
    item.say("", text(task, "description"));
    item.say("Details", text(task, "details"));
    item.say("How to check it", text(task, "testStrategy"));
    item.say("What must hold", task.get("acceptanceCriteria").map(as_text).unwrap_or_default());
    for file in list(task, "relevantFiles") {
        let path = text(file, "path");
        match status(file, "action").as_str() {
            "create" | "modify" => item.artifacts.push(path),
            _ => item.reading.push(path),
        }
    }
    if status(task, "status") == "review" {
        draft.remark(format!("{} was in review there; it is open here", super::draft::shown(key)));
    }
    item
}
