//! Documents as people and models write them: headings, lists, checklists and tables of tasks. Parses a document into a tree
//! of blocks, chooses the blocks that are tasks, and takes order, checks and completion from the text around them. What
//! belongs to no task is kept as the plan's context, so that nothing of the document is lost.

mod boxes;
mod checks;
mod choose;
mod edges;
mod fields;
mod mark;
mod refer;
mod table;
mod tree;
mod words;

use std::{collections::BTreeSet, ops::Range};

use super::{
    Draft, ImportError, Source,
    draft::{Item, Part, shown},
    only_file,
};
use crate::text::one_line;
use choose::{Chosen, Origin, TaskAt};
use fields::Field;
use tree::{Kind, Tree};
use words::About;

/// Longest note: it quotes a title, which may be as long as its author liked.
const NOTE_MAX_BYTES: usize = 400;

/// Maximum number of things that one remark names.
const PASSED_MAX: usize = 12;

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let text = only_file(source).replace("\r\n", "\n").replace('\r', "\n");
    let text = boxes::written_out(text.trim_start_matches('\u{feff}'));
    let tree = tree::read(&text);
    let mut chosen = choose::choose(&tree);
    let repeated = merge_repeated(&tree, &mut chosen);
    let labels: Vec<Vec<Field>> = chosen.tasks.iter().map(|task| fields::of(&tree, task.node)).collect();
    let order = edges::order(&tree, &chosen, &labels);
    let title = chosen.title.map(|title| mark::read(&tree.node(title).text, 0).title);
    let mut draft = Draft::new(title.filter(|title| !title.is_empty()).unwrap_or_else(|| source.title.clone()));
    let ids = ids(&chosen);
    let mut notes = std::mem::take(&mut chosen.notes);
    notes.extend(repeated);
    notes.extend(order.notes);
    for (at, task) in chosen.tasks.iter().enumerate() {
        let mut item = item(&tree, &chosen, task, &labels[at], &mut notes);
        item.key = format!("#{at}");
        item.id.clone_from(&ids[at]);
        item.after = order.after[at].iter().map(|before| format!("#{before}")).collect();
        draft.items.push(item);
    }
    group_checks(&tree, &chosen, &mut draft, &mut notes);
    draft.goal = context(&tree, &chosen);
    notes.sort();
    for (line, note) in notes {
        let note = one_line(&note, NOTE_MAX_BYTES);
        draft.remark(if line == 0 { note } else { format!("line {line}: {note}") });
    }
    groups(&tree, &chosen, &mut draft);
    passed(&chosen, &mut draft);
    Ok(draft)
}

/// A list or table that repeats tasks which have a heading of their own only adds what it says about them.
fn merge_repeated(tree: &Tree<'_>, chosen: &mut Chosen) -> Vec<(usize, String)> {
    let key = |task: &TaskAt| words::plain(&task.mark.title);
    let headings: Vec<(usize, String, String)> = chosen
        .tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.origin == Origin::Heading)
        .map(|(at, task)| (at, key(task), task.mark.label.clone()))
        .collect();
    let mut dropped = BTreeSet::new();
    let mut notes = Vec::new();
    for at in 0..chosen.tasks.len() {
        if chosen.tasks[at].origin == Origin::Heading {
            continue;
        }
        let (title, label) = (key(&chosen.tasks[at]), chosen.tasks[at].mark.label.clone());
        let same = |(_, other, other_label): &&(usize, String, String)| {
            *other == title
                || !label.is_empty()
                    && label == *other_label
                    && (other.starts_with(&title) || title.starts_with(other.as_str()))
        };
        let Some((of, ..)) = headings.iter().find(same) else {
            continue;
        };
        let done = chosen.tasks[at].mark.done;
        let parallel = chosen.tasks[at].mark.parallel;
        chosen.tasks[*of].mark.done |= done;
        chosen.tasks[*of].mark.parallel |= parallel;
        if let Origin::Row(row) = chosen.tasks[at].origin.clone()
            && row.after.is_some()
        {
            chosen.tasks[*of].row_after = row.after;
        }
        notes.push((
            tree.node(chosen.tasks[at].node).line,
            format!(
                "`{}` stands below as a task of its own; only its state was taken from here",
                chosen.tasks[at].mark.title
            ),
        ));
        dropped.insert(at);
    }
    let mut at = 0;
    chosen.tasks.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    notes
}

/// An id for every task: its own, else its number, with that of its group if numbers start again, else its position.
fn ids(chosen: &Chosen) -> Vec<String> {
    let named = |task: &TaskAt| !task.mark.label.is_empty();
    let all: Vec<&str> = chosen.tasks.iter().filter(|task| named(task)).map(|task| task.mark.label.as_str()).collect();
    let unique = all.iter().collect::<BTreeSet<_>>().len() == all.len();
    let count = |label: &str| all.iter().filter(|other| **other == label).count();
    let mut ids = Vec::new();
    for (at, task) in chosen.tasks.iter().enumerate() {
        let label = task.mark.label.as_str();
        let own = label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.len() > 1;
        let group = task.group.map(|group| chosen.groups[group].mark.label.as_str()).unwrap_or("");
        ids.push(match () {
            () if label.is_empty() || !unique && count(label) > 1 && group.is_empty() => format!("T{}", at + 1),
            () if own => label.to_owned(),
            () if count(label) > 1 && group.starts_with(|c: char| c.is_ascii_digit()) => format!("T{group}.{label}"),
            () => format!("T{label}"),
        });
    }
    // If two ids are the same, as from a list without numbers among numbered headings, all ids are by position.
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        let own = |task: &TaskAt| {
            task.mark.label.len() > 1
                && task.mark.label.starts_with(|c: char| c.is_ascii_alphabetic())
                && count(&task.mark.label) == 1
        };
        return chosen
            .tasks
            .iter()
            .enumerate()
            .map(|(at, task)| if own(task) { task.mark.label.clone() } else { format!("T{}", at + 1) })
            .collect();
    }
    ids
}

/// A task with its text, its checks and whether it is done.
fn item(tree: &Tree<'_>, chosen: &Chosen, task: &TaskAt, labels: &[Field], notes: &mut Vec<(usize, String)>) -> Item {
    let mut item = Item { title: task.mark.title.clone(), done: task.mark.done, ..Item::default() };
    let mut found = checks::Found::default();
    for field in labels {
        match field.about {
            About::Checks => checks::of_field(tree, field, &mut found),
            About::Status => item.done |= words::is_done(&field.value),
            About::After | About::Parallel | About::Detail => {}
        }
    }
    let line = tree.node(task.node).line;
    match &task.origin {
        Origin::Heading => {
            let boxes = tree
                .below(task.node)
                .into_iter()
                .filter_map(|below| if let Kind::Item { ticked, .. } = tree.node(below).kind { ticked } else { None });
            let boxes: Vec<bool> = boxes.collect();
            if !item.done && !boxes.is_empty() && boxes.iter().all(|ticked| *ticked) {
                item.done = true;
                notes.push((line, format!("all boxes of `{}` are ticked: it is done", item.title)));
            }
            item.say("", tree.body(task.node));
        }
        Origin::Item => {
            // `Do this — `make check``: the text after the dash says how to verify it.
            let behind = tree.node(task.node).text.rsplit_once(['—', '–']).map_or("", |(_, behind)| behind.trim());
            if behind.starts_with('`') && behind.ends_with('`') && behind.matches('`').count() == 2 {
                checks::in_text(behind, &mut found);
            }
            let whole = without_marker(&tree.whole(task.node));
            if whole.trim() != item.title {
                item.say("", whole);
            }
        }
        Origin::Row(row) => {
            row.checks.iter().for_each(|text| checks::in_text(text, &mut found));
            item.say("", &*row.text);
        }
    }
    let mut group = task.group;
    while let Some(of) = group {
        let text = group_text(tree, chosen, of);
        item.say("Part of", text);
        group = chosen.groups[of].parent;
    }
    for (command, why) in found.kept_as_text {
        notes.push((line, format!("{} is no check: {why}", shown(&command))));
    }
    item.accept = found.commands;
    item
}

/// An item without its bullet or number and its box.
fn without_marker(text: &str) -> String {
    let bare = text.trim_start();
    let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let bare = match digits.len() < bare.len() {
        true => digits.strip_prefix(['.', ')']).unwrap_or(bare),
        false => bare.strip_prefix(['-', '*', '+']).unwrap_or(bare),
    };
    let bare = bare.trim_start();
    ["[ ]", "[x]", "[X]"].iter().find_map(|mark| bare.strip_prefix(mark)).unwrap_or(bare).trim_start().to_owned()
}

/// What a group says before its first task and after its last: its title and its own text.
fn group_text(tree: &Tree<'_>, chosen: &Chosen, group: usize) -> String {
    let node = chosen.groups[group].node;
    let head = tree.node(node).text.lines().next().unwrap_or("").to_owned();
    let said: Vec<&str> = group_spans(tree, chosen, group)
        .into_iter()
        .map(|span| tree.source[span].trim())
        .filter(|text| !text.is_empty())
        .collect();
    std::iter::once(head.as_str()).chain(said).collect::<Vec<_>>().join("\n\n")
}

/// The parts of a group that are in none of its tasks and in none of its groups or headings.
fn group_spans(tree: &Tree<'_>, chosen: &Chosen, group: usize) -> Vec<Range<usize>> {
    let node = chosen.groups[group].node;
    let taken: BTreeSet<usize> =
        chosen.tasks.iter().map(|task| task.node).chain(chosen.groups.iter().map(|group| group.node)).collect();
    let own = tree.children(node).filter(|child| {
        let holds =
            |child: usize| taken.contains(&child) || tree.below(child).iter().any(|below| taken.contains(below));
        !holds(*child) && !tree.is_heading(*child)
    });
    own.map(|child| tree.node(child).span.clone()).collect()
}

/// The checks of a phase prove its last task.
fn group_checks(tree: &Tree<'_>, chosen: &Chosen, draft: &mut Draft, notes: &mut Vec<(usize, String)>) {
    let inside: BTreeSet<usize> =
        chosen.tasks.iter().flat_map(|task| std::iter::once(task.node).chain(tree.below(task.node))).collect();
    for (index, group) in chosen.groups.iter().enumerate() {
        let Some(last) = chosen.tasks.iter().rposition(|task| task.group == Some(index)) else {
            continue;
        };
        let mut found = checks::Found::default();
        for field in fields::of(tree, group.node) {
            let own = field.blocks.iter().all(|block| !inside.contains(block))
                && !chosen.tasks.iter().any(|task| covers(tree, task.node, field.line));
            if field.about == About::Checks && own {
                checks::of_field(tree, &field, &mut found);
            }
        }
        for command in found.commands {
            if draft.items.iter().any(|item| item.accept.contains(&command)) {
                continue;
            }
            notes.push((
                tree.node(group.node).line,
                format!(
                    "{} proves the whole of `{}`: it became a check of its last task",
                    shown(&command),
                    group.mark.title
                ),
            ));
            draft.items[last].accept.push(command);
        }
    }
}

fn covers(tree: &Tree<'_>, node: usize, line: usize) -> bool {
    let node_lines = tree.source[tree.node(node).span.clone()].lines().count();
    let first = tree.node(node).line;
    (first..first + node_lines.max(1)).contains(&line)
}

/// What is in no task and in no group: the plan's context, in the order of the document.
fn context(tree: &Tree<'_>, chosen: &Chosen) -> Vec<Part> {
    let mut cuts: Vec<Range<usize>> =
        chosen.tasks.iter().map(|task| whole_lines(tree.source, &tree.node(task.node).span)).collect();
    for (index, group) in chosen.groups.iter().enumerate() {
        let node = tree.node(group.node);
        cuts.push(whole_lines(tree.source, &(node.span.start..node.head_end)));
        cuts.extend(group_spans(tree, chosen, index));
    }
    if let Some(title) = chosen.title.map(|title| tree.node(title)) {
        cuts.push(title.span.start..title.head_end);
    }
    cuts.sort_by_key(|cut| (cut.start, cut.end));
    let mut parts = Vec::new();
    let mut at = 0;
    let mut keep = |range: Range<usize>| {
        let text = tree.source.get(range).unwrap_or("");
        let rules_only = text.lines().all(|line| {
            line.trim().is_empty() || line.trim().chars().all(|c| matches!(c, '-' | '*' | '_' | ' ' | '|' | ':'))
        });
        if !rules_only {
            parts.push(Part { label: "", text: text.trim_matches('\n').trim_end().to_owned() });
        }
    };
    for cut in cuts {
        if cut.start > at {
            keep(at..cut.start);
        }
        at = at.max(cut.end);
    }
    keep(at..tree.source.len());
    parts
}

/// A range with the rest of its first line, if only its bullet comes before it.
fn whole_lines(source: &str, range: &Range<usize>) -> Range<usize> {
    let line = source[..range.start].rfind('\n').map_or(0, |found| found + 1);
    let before = &source[line..range.start];
    if before.trim().is_empty() { line..range.end } else { range.clone() }
}

/// Names the headings and items that contain tasks: each could have been one itself.
fn groups(tree: &Tree<'_>, chosen: &Chosen, draft: &mut Draft) {
    let named = |group: &choose::GroupAt| format!("{} (line {})", shown(&group.mark.title), tree.node(group.node).line);
    let named: Vec<String> = chosen.groups.iter().map(named).collect();
    for named in named.chunks(PASSED_MAX) {
        draft.remark(format!("read as groups of tasks: {}", named.join(", ")));
    }
}

/// Names what could be taken for a task and was not.
fn passed(chosen: &Chosen, draft: &mut Draft) {
    let mut passed = chosen.passed.clone();
    passed.sort_by_key(|(first, last, _)| (*first, std::cmp::Reverse(*last)));
    let mut end = 0;
    let mut named = Vec::new();
    for (first, last, name) in passed {
        // What is inside something named needs no name of its own.
        if last > end {
            end = last;
            let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
            named.push(format!("{} ({lines})", shown(&name)));
        }
    }
    for named in named.chunks(PASSED_MAX) {
        draft.remark(format!("kept as context, not as tasks: {}", named.join(", ")));
    }
}
