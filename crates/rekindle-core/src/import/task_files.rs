//! A folder with one JSON file per task (`subject`, `description`, `blocks`, `blockedBy`, `status`), as an agent keeps its own
//! task list.

use serde_json::Value;

use super::{
    Draft, Format, ImportError, Source,
    draft::Item,
    json::{ids, status, text},
    malformed,
};

/// Reads the files of one list.
pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let mut draft = Draft::new(&*source.title);
    let mut tasks: Vec<Value> = Vec::new();
    for file in &source.files {
        let bad = |why: String| malformed(Format::TaskFiles, format!("{}: {why}", super::draft::shown(&file.path)));
        let value: Value = serde_json::from_str(&file.text).map_err(|error| bad(error.to_string()))?;
        if text(&value, "subject").is_empty() {
            return Err(bad("no `subject`".to_owned()));
        }
        tasks.push(value);
    }
    // The names are numbers: `10` comes after `9`.
    tasks.sort_by_key(|task| {
        let id = text(task, "id");
        (id.parse::<u64>().unwrap_or(u64::MAX), id)
    });
    for task in &tasks {
        let (id, subject) = (text(task, "id"), text(task, "subject"));
        let state = status(task, "status");
        if matches!(state.as_str(), "deleted" | "cancelled") {
            draft.leave_out(&id, &subject, &format!("it is {state}"));
            continue;
        }
        let mut item = Item {
            id: if id.parse::<u64>().is_ok() { format!("T{id}") } else { id.clone() },
            title: subject,
            done: state == "completed",
            after: ids(task, "blockedBy"),
            key: id,
            ..Item::default()
        };
        item.say("", text(task, "description"));
        draft.items.push(item);
    }
    // `blocks` says the same from the other side; one may have been written without the other.
    for task in &tasks {
        let id = text(task, "id");
        for blocked in ids(task, "blocks") {
            match draft.items.iter_mut().find(|item| item.key == blocked) {
                Some(item) if !item.after.contains(&id) => item.after.push(id.clone()),
                Some(_) => {}
                None if draft.left_out.contains(&blocked) => {}
                None => draft.remark(format!(
                    "{} blocks {} in the source, which does not exist",
                    super::draft::shown(&id),
                    super::draft::shown(&blocked)
                )),
            }
        }
    }
    Ok(draft)
}
