//! Parses a plan that is a checklist: one task per item, nested items before the item that contains them. Used only if no
//! heading is a task; otherwise, checklists are part of a task's text.

use std::{collections::BTreeMap, ops::Range};

use super::{
    bullets,
    draft::{Draft, Passage, draft, prose, warn_if_unproven},
    heading::{self, Split},
    keys::{self, Keys},
    outline::{Item, Outline},
    problem::{Problems, Span},
    values::{Piece, trimmed},
};
use crate::ids::TaskId;

/// Parses all items. Returns the tasks in order, and the parts of the text that they were made of.
pub(super) fn read(
    text: &str,
    outline: &Outline,
    waves: &[(usize, Option<u32>)],
    problems: &mut Problems,
) -> (Vec<Draft>, Vec<Range<usize>>) {
    let items: Vec<usize> = (0..outline.items.len()).filter(|index| is_task(&outline.items[*index])).collect();
    let ids = assign_ids(text, outline, &items, problems);
    let names: BTreeMap<usize, String> =
        items.iter().zip(&ids).map(|(item, (id, _))| (*item, id.to_string())).collect();
    let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (index, above) in tasks_above(outline).into_iter().enumerate() {
        if is_task(&outline.items[index]) {
            below.entry(above).or_default().push(index);
        }
    }
    let cuts_below = |item: Option<usize>| {
        let items = below.get(&item).map_or(&[][..], Vec::as_slice);
        items.iter().map(|index| whole_lines(text, &outline.items[*index].span)).collect::<Vec<_>>()
    };
    let mut drafts: Vec<Draft> = Vec::with_capacity(items.len());
    for (index, (id, title)) in items.iter().zip(ids) {
        let item = &outline.items[*index];
        let (keys, body) = keys_and_body(text, outline, item, cuts_below(Some(*index)), problems);
        let wave = keys.wave.map(|(wave, _)| wave).or_else(|| wave_at(waves, item.span.start));
        let place = Span::from(keys::first_line(text, &trimmed(text, item.text.clone())));
        let mut draft = draft(id, title, body, place, keys, wave);
        draft.task.done |= item.checkbox == Some(true);
        let nested = below.get(&Some(*index)).into_iter().flatten();
        draft
            .blockers
            .extend(nested.filter_map(|child| names.get(child)).map(|name| Piece { text: name.clone(), span: place }));
        if !draft.task.title.is_empty() {
            warn_if_unproven(&draft, problems);
        }
        drafts.push(draft);
    }
    (drafts, cuts_below(None))
}

fn is_task(item: &Item) -> bool {
    item.checkbox.is_some() && !item.quoted
}

/// For every item, the nearest item around it that is a task. Parents come before their children, so one pass is enough.
fn tasks_above(outline: &Outline) -> Vec<Option<usize>> {
    let mut above: Vec<Option<usize>> = Vec::with_capacity(outline.items.len());
    for item in &outline.items {
        let found =
            item.parent.and_then(|parent| if is_task(&outline.items[parent]) { Some(parent) } else { above[parent] });
        above.push(found);
    }
    above
}

/// An id and a title for every item: its own `ID: text`, else `T` and its position. A word without a digit that comes before
/// several items (`Backend: …`) is a heading in words, not an id.
fn assign_ids(text: &str, outline: &Outline, items: &[usize], problems: &mut Problems) -> Vec<(TaskId, String)> {
    let mut own = Vec::with_capacity(items.len());
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for index in items {
        let range = trimmed(text, outline.items[*index].text.clone());
        let written = text[range].split_whitespace().collect::<Vec<_>>().join(" ");
        let id = match heading::split(&written) {
            Split::Task { id, title } if !title.is_empty() => Some((id, title.to_owned())),
            Split::Task { .. } | Split::BadId { .. } | Split::NoColon => None,
        };
        if let Some((id, _)) = &id {
            *uses.entry(id.as_str().to_owned()).or_default() += 1;
        }
        own.push((id, written));
    }
    let is_label = |id: &TaskId| {
        let digits = id.as_str().chars().any(|c| c.is_ascii_digit());
        !digits && uses.get(id.as_str()).is_some_and(|count| *count > 1)
    };
    let mut number = 0;
    let mut ids = Vec::with_capacity(items.len());
    for (position, (id, written)) in own.into_iter().enumerate() {
        if written.is_empty() {
            let place = outline.items[items[position]].span.clone();
            problems
                .error("empty-task", keys::first_line(text, &place), "this item of the checklist is empty")
                .hint("say what to do behind the box");
        }
        if let Some((id, title)) = id.filter(|(id, _)| !is_label(id)) {
            ids.push((id, title));
            continue;
        }
        // Never back to a lower number: later items have higher ones, and the search stays linear.
        number = number.max(position) + 1;
        while uses.contains_key(&format!("T{number}")) {
            number += 1;
        }
        let id = TaskId::new(format!("T{number}")).expect("a letter and digits are a name");
        ids.push((id, written));
    }
    ids
}

/// What is inside an item below its first line: keys if the first list has a known one, and text. The tasks inside it are
/// cut out.
fn keys_and_body(
    text: &str,
    outline: &Outline,
    item: &Item,
    mut cuts: Vec<Range<usize>>,
    problems: &mut Problems,
) -> (Keys, String) {
    let first = item.lists.first().copied();
    let list = first.filter(|list| keys::has_known_key(text, outline, *list));
    let mut keys = Keys::default();
    if let Some(list) = list {
        let body;
        (keys, body) = bullets::read(text, outline, list, problems);
        let members = &outline.lists[list].items;
        let start = members.first().map(|first| outline.items[*first].span.start);
        let end = members.last().map(|last| outline.items[*last].span.end);
        if let (Some(start), Some(end)) = (start, end) {
            cuts.insert(0, start..body.unwrap_or(end));
        }
    }
    let from = item.text.end.max(item.span.start);
    let inside = Passage::from(from..item.span.end.max(from));
    let body = prose(text, &[inside], &cuts);
    (keys, dedent(&body))
}

/// Takes away the indentation that all lines share: it came from the item.
fn dedent(text: &str) -> String {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let shared = lines().map(|line| line.len() - line.trim_start_matches(' ').len()).min();
    let shared = shared.unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or("")).collect();
    lines.join("\n")
}

fn wave_at(waves: &[(usize, Option<u32>)], at: usize) -> Option<u32> {
    let after = waves.partition_point(|(start, _)| *start <= at);
    waves.get(after.checked_sub(1)?).and_then(|(_, wave)| *wave)
}

/// A range widened to the start of its line if only white space comes before it there, and narrowed by the blank lines after
/// it: they separate what stays.
fn whole_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let content_end = range.start + text[range.clone()].trim_end().len();
    let line_end = text[content_end..].find('\n').map_or(text.len(), |found| content_end + found + 1);
    let range = range.start..line_end.min(range.end);
    let before = text[..range.start].trim_end_matches([' ', '\t']);
    if before.is_empty() || before.ends_with('\n') {
        return before.len()..range.end;
    }
    range
}
