//! Writes the plan: gives every item a valid id of its own, settles what comes before what, quotes the source's words, and
//! checks the result against the plan language itself. What the items are is decided by the readers of the formats.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Draft, EDGES_MAX, Format, ITEMS_MAX, ImportError, Imported, REMARKS_MAX, TEXT_MAX_BYTES, TITLE_MAX_BYTES,
    draft::{Item, Part, shown},
};
use crate::text::counted;
use crate::{
    duration,
    ids::{NAME_MAX_BYTES, check_name, name_from},
    plan::{self, Graph},
    text::{fold, one_line, sanitize},
};

/// Longest id made from a source's key: room for the number that makes it unique.
const ID_MAX_BYTES: usize = NAME_MAX_BYTES - 8;

/// Longest command: one line of a script, not a script.
const COMMAND_MAX_BYTES: usize = 1_000;

/// Words for an empty list: as an id they would be read as nothing.
const NOTHING: [&str; 3] = ["none", "nothing", "n/a"];

/// Writes a draft as a plan.
pub(super) fn plan(format: Format, mut draft: Draft) -> Result<Imported, ImportError> {
    let count = draft.items.len();
    if count > ITEMS_MAX {
        return Err(ImportError::TooMany { what: "tasks", count, max: ITEMS_MAX });
    }
    if count == 0 {
        let left = draft.remarks.first().map_or(String::new(), |remark| format!(" ({remark})"));
        return Err(ImportError::Empty(left));
    }
    let ids = ids(&mut draft);
    let mut blockers = blockers(&mut draft, &ids)?;
    break_circles(&mut draft, &ids, &mut blockers);
    let waves = waves(&mut draft, &ids, &blockers);
    let text = document(format, &mut draft, &ids, &blockers, &waves);
    let parsed = plan::parse("plan", text.as_bytes());
    if let Some(problem) = parsed.errors().next() {
        return Err(ImportError::Unusable(format!("line {}: {}", problem.line, problem.message)));
    }
    let tasks = parsed.plan.map_or(0, |plan| plan.tasks.len());
    if tasks != count {
        return Err(ImportError::Unusable(format!(
            "{} of {} became {}",
            counted(count, "item", "items"),
            format.name(),
            counted(tasks, "task", "tasks")
        )));
    }
    let done = draft.items.iter().filter(|item| item.done).count();
    let checks = draft.items.iter().map(|item| item.accept.len()).sum();
    let mut remarks = draft.remarks;
    let more = remarks.len().saturating_sub(REMARKS_MAX);
    remarks.truncate(REMARKS_MAX);
    if more > 0 {
        remarks.push(format!("and {more} more of this kind"));
    }
    Ok(Imported { text, tasks, done, checks, remarks })
}

/// A valid id for every item, no two alike.
fn ids(draft: &mut Draft) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = Vec::with_capacity(draft.items.len());
    let mut renamed = Vec::new();
    for (position, item) in draft.items.iter().enumerate() {
        let wished = item.id.trim();
        let mut id = match check_name(wished) {
            Ok(()) => wished.to_owned(),
            Err(_) => name_from(wished).unwrap_or_else(|| format!("T{}", position + 1)),
        };
        id.truncate(ID_MAX_BYTES);
        if NOTHING.iter().any(|word| word.eq_ignore_ascii_case(&id)) {
            id = format!("T-{id}");
        }
        if used.contains(&id) {
            let number = next.entry(id.clone()).or_insert(2);
            while used.contains(&format!("{id}-{number}")) {
                *number += 1;
            }
            id = format!("{id}-{number}");
        }
        if id != wished && !wished.is_empty() {
            renamed.push(format!("{} is called `{id}` here", shown(wished)));
        }
        used.insert(id.clone());
        ids.push(id);
    }
    renamed.into_iter().for_each(|remark| draft.remark(remark));
    ids
}

/// The items that come before each, by position. Groups are replaced by their members; missing keys get a remark.
fn blockers(draft: &mut Draft, ids: &[String]) -> Result<Vec<Vec<usize>>, ImportError> {
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, item) in draft.items.iter().enumerate() {
        positions.entry(item.key.as_str()).or_insert(position);
    }
    let mut remarks = Vec::new();
    let mut all = Vec::with_capacity(ids.len());
    let mut edges = 0;
    for (position, item) in draft.items.iter().enumerate() {
        let mut found = BTreeSet::new();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = item.after.iter().rev().map(String::as_str).collect();
        while let Some(key) = open.pop() {
            if !seen.insert(key) {
                continue;
            }
            edges += 1;
            if edges > EDGES_MAX {
                return Err(ImportError::TooMany { what: "dependencies", count: edges, max: EDGES_MAX });
            }
            let here = &ids[position];
            if let Some(blocker) = positions.get(key) {
                if *blocker == position {
                    remarks.push(format!("`{here}` waits for itself in the source: left out"));
                } else {
                    found.insert(*blocker);
                }
            } else if let Some(members) = draft.groups.get(key) {
                open.extend(members.iter().rev().map(String::as_str).filter(|member| *member != item.key));
            } else if draft.left_out.contains(key) {
                remarks.push(format!("`{here}` waits for {} in the source, which was left out", shown(key)));
            } else {
                remarks.push(format!("`{here}` waits for {} in the source, which does not exist", shown(key)));
            }
        }
        all.push(found.into_iter().collect());
    }
    remarks.into_iter().for_each(|remark| draft.remark(remark));
    Ok(all)
}

/// Removes the dependencies that close a cycle, each with a remark: follows them and drops every one that leads back to the
/// current path.
fn break_circles(draft: &mut Draft, ids: &[String], blockers: &mut [Vec<usize>]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Closed,
    }
    let mut marks = vec![Mark::New; blockers.len()];
    for start in 0..blockers.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut path = vec![(start, 0)];
        while let Some((task, next)) = path.last_mut() {
            let Some(blocker) = blockers[*task].get(*next).copied() else {
                marks[*task] = Mark::Closed;
                path.pop();
                continue;
            };
            match marks[blocker] {
                Mark::Closed => *next += 1,
                Mark::New => {
                    *next += 1;
                    marks[blocker] = Mark::Open;
                    path.push((blocker, 0));
                }
                Mark::Open => {
                    let (task, next) = (*task, *next);
                    blockers[task].remove(next);
                    let from = path.iter().position(|(on, _)| *on == blocker).unwrap_or(0);
                    let circle: Vec<&str> =
                        path[from..].iter().map(|(on, _)| *on).chain([blocker]).map(|on| ids[on].as_str()).collect();
                    let shown = one_line(&circle.join(" → "), 400);
                    draft.remark(format!(
                        "a cycle in the source: {shown}; `{}` does not wait for `{}` here",
                        ids[task], ids[blocker]
                    ));
                }
            }
        }
    }
}

/// The wave of each item; `None` if the format has none. No item is in an earlier wave than what it waits for.
fn waves(draft: &mut Draft, ids: &[String], blockers: &[Vec<usize>]) -> Vec<Option<u32>> {
    if draft.items.iter().all(|item| item.wave.is_none()) {
        return vec![None; ids.len()];
    }
    let mut waves: Vec<u32> = draft.items.iter().map(|item| item.wave.unwrap_or(1)).collect();
    for task in Graph::from_blockers(blockers.to_vec()).order() {
        let latest = blockers[task].iter().map(|blocker| waves[*blocker]).max().unwrap_or(0);
        if latest > waves[task] {
            draft.remark(format!(
                "`{}` waits for a task of a later stage: it is in wave {latest} instead of {}",
                ids[task], waves[task]
            ));
            waves[task] = latest;
        }
    }
    waves.into_iter().map(Some).collect()
}

fn document(
    format: Format,
    draft: &mut Draft,
    ids: &[String],
    blockers: &[Vec<usize>],
    waves: &[Option<u32>],
) -> String {
    let mut out = String::new();
    let title = heading(&draft.title, "Imported plan");
    if let Some(name) = name_from(&title) {
        out.push_str(&format!("---\nplan: \"{}\"\n---\n", name.to_lowercase()));
    }
    out.push_str(&format!(
        "# {title}\n\nImported from {}. What is quoted are the source's own words.\n",
        format.name()
    ));
    let mut cut = Vec::new();
    if quoted(&mut out, &draft.goal) {
        cut.push("the context");
    }
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|task| waves[*task]);
    let mut wave = None;
    for task in order {
        if waves[task] != wave {
            wave = waves[task];
            wave.iter().for_each(|wave| out.push_str(&format!("\n## Wave {wave}\n")));
        }
        let names: Vec<&str> = blockers[task].iter().map(|blocker| ids[*blocker].as_str()).collect();
        if write_item(&mut out, &draft.items[task], &ids[task], &names) {
            cut.push(ids[task].as_str());
        }
    }
    if !cut.is_empty() {
        draft.remark(format!(
            "texts longer than {TEXT_MAX_BYTES} bytes were cut in: {}",
            one_line(&cut.join(", "), 400)
        ));
    }
    out
}

/// Writes one task; returns whether its text was cut.
fn write_item(out: &mut String, item: &Item, id: &str, blockers: &[&str]) -> bool {
    let title = heading(&item.title, "(no title)");
    out.push_str(&format!("\n### {id}: {title}\n"));
    let artifacts: Vec<String> = item.artifacts.iter().filter_map(|path| listed(path)).collect();
    let reading: Vec<String> = item.reading.iter().filter_map(|path| listed(path)).collect();
    let keys = [
        ("done", item.done.then(|| "yes".to_owned())),
        ("blocked by", (!blockers.is_empty()).then(|| blockers.join(", "))),
        ("artifacts", (!artifacts.is_empty()).then(|| artifacts.join(", "))),
        ("reading", (!reading.is_empty()).then(|| reading.join(", "))),
        ("timeout", item.timeout_ms.filter(|ms| *ms > 0).map(duration::format)),
        ("priority", (item.priority != 0).then(|| item.priority.to_string())),
    ];
    for (key, value) in &keys {
        value.iter().for_each(|value| out.push_str(&format!("- {key}: {value}\n")));
    }
    for command in item.accept.iter().filter_map(|command| check(command)) {
        out.push_str(&format!("- accept: {command}\n"));
    }
    let whole = Part { label: "", text: item.title.clone() };
    let said: Vec<Part> = match item.parts.as_slice() {
        // A shortened title is repeated below in full, and a task without text repeats its title.
        [] => vec![whole],
        parts if title.ends_with('…') => std::iter::once(whole).chain(parts.iter().cloned()).collect(),
        parts => parts.to_vec(),
    };
    quoted(out, &said)
}

/// The source's own words as Markdown quotes: whatever is in a quote, the plan itself does not say it. Returns whether a
/// part was cut.
fn quoted(out: &mut String, parts: &[Part]) -> bool {
    let mut cut = false;
    for part in parts {
        let text = clean(&part.text);
        let text = text.trim_matches('\n').trim_end();
        let folded = fold(text, TEXT_MAX_BYTES);
        cut |= folded.len() != text.len();
        out.push('\n');
        match part.label {
            "" => {}
            label if folded.contains('\n') => out.push_str(&format!("{label}:\n\n")),
            label => {
                out.push_str(&format!("> {label}: {folded}\n"));
                continue;
            }
        }
        if text.is_empty() {
            out.push_str("> (no text)\n");
        }
        for line in folded.lines() {
            let line = line.trim_end();
            out.push_str(if line.is_empty() { ">" } else { "> " });
            out.push_str(line);
            out.push('\n');
        }
    }
    cut
}

/// A command as the value of a key: in as many backticks as it takes.
fn check(command: &str) -> Option<String> {
    let command = one_line(command, COMMAND_MAX_BYTES);
    let longest = command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let pad = if command.starts_with('`') || command.ends_with('`') { " " } else { "" };
    (!command.is_empty() && !command.ends_with('…')).then(|| format!("{ticks}{pad}{command}{pad}{ticks}"))
}

/// Harmless text whose only line ends are `\n`: Markdown treats a lone carriage return as one too.
fn clean(text: &str) -> String {
    sanitize(&text.replace("\r\n", "\n").replace('\r', "\n")).into_owned()
}

/// A text fit to be a heading's: one line, and without the number signs at its end that would close it.
fn heading(text: &str, fallback: &str) -> String {
    let line = one_line(text, TITLE_MAX_BYTES);
    let mut words: Vec<&str> = line.split(' ').collect();
    while words.last().is_some_and(|word| word.chars().all(|c| c == '#')) {
        words.pop();
    }
    match words.join(" ") {
        title if title.is_empty() => fallback.to_owned(),
        title => title,
    }
}

/// A path as one entry of a list; `None` if it cannot be written as one.
fn listed(path: &str) -> Option<String> {
    let path = path.trim().trim_start_matches("./");
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    let inside = !path.starts_with(['/', '-', '.']) || path.starts_with('.') && !path.starts_with("..");
    let names = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    let word = !NOTHING.iter().any(|word| word.eq_ignore_ascii_case(path));
    (inside && names && word && !path.is_empty() && path.chars().all(plain)).then(|| path.to_owned())
}
