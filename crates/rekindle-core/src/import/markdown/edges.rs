//! What comes before what: what the document says, and where it says nothing, its own order. A task that is said to run in
//! parallel with others waits for what came before all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    choose::{Chosen, Origin},
    fields::{self, Field},
    mark,
    refer::{Name, Named, Names},
    tree::{Kind, Tree},
    words::{self, About},
};

/// Words in a sentence that are followed by the tasks that come first.
const BEFORE: [&str; 18] = [
    "depends on",
    "depend on",
    "blocked by",
    "blocked on",
    "needs",
    "requires",
    "after",
    "once",
    "waits for",
    "wait for",
    "builds on",
    "follows",
    "relies on",
    "prerequisite:",
    "when",
    "until",
    "based on",
    "uses the result of",
];

/// What the order of the tasks is, and what was assumed about it.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// For each task the positions of those before it.
    pub(super) after: Vec<BTreeSet<usize>>,
    pub(super) notes: Vec<(usize, String)>,
}

/// What one task says about its place.
#[derive(Debug, Clone, Default)]
struct Said {
    /// What it waits for, if it says so.
    after: Option<BTreeSet<usize>>,
    /// Said under a label, in brackets or in a column, not in passing.
    labelled: bool,
    parallel: bool,
}

/// Works out the order of the tasks.
pub(super) fn order(tree: &Tree<'_>, chosen: &Chosen, labels: &[Vec<Field>]) -> Order {
    let members = members(chosen);
    let groups = chosen.groups.iter().zip(&members).map(|(group, of)| (&group.mark, of.clone())).collect();
    let tasks = chosen.tasks.iter().map(|task| Name { mark: &task.mark, group: task.group }).collect();
    let names = Names::new(tasks, groups);
    let mut order = Order::default();
    let mut said: Vec<Said> =
        (0..chosen.tasks.len()).map(|at| own(tree, chosen, &labels[at], &names, at, &mut order)).collect();
    let outside = outside(tree, chosen);
    let beside = spoken(tree, chosen, &outside, &names, &members, &mut said);
    let labelled = said.iter().filter(|said| said.labelled).count();
    // If most tasks say something about order, the others wait for nothing; otherwise they wait for the one before.
    let others = said.len().saturating_sub(1).max(1);
    let told = labelled * 2 >= others && labelled > 1 || labelled > 0 && labelled >= others;
    let silent = said.iter().skip(1).filter(|said| said.after.is_none() && !said.parallel).count();
    if told && silent > 0 {
        order.notes.push((
            0,
            match silent {
                1 => "1 task says nothing about its order while the others do: it waits for nothing".to_owned(),
                _ => format!("{silent} tasks say nothing about their order while the others do: they wait for nothing"),
            },
        ));
    } else if !told && silent > 0 {
        order.notes.push((0, "tasks that say nothing about their order wait for the one before".to_owned()));
    }
    order.after = sequence(tree, chosen, &said, &names, told, &beside);
    order
}

/// The tasks of each group, including those of its subgroups.
fn members(chosen: &Chosen) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); chosen.groups.len()];
    for (index, task) in chosen.tasks.iter().enumerate() {
        let mut group = task.group;
        while let Some(of) = group {
            members[of].push(index);
            group = chosen.groups[of].parent;
        }
    }
    members
}

/// What a task says in its labels, its brackets and its text.
fn own(tree: &Tree<'_>, chosen: &Chosen, labels: &[Field], names: &Names<'_>, at: usize, order: &mut Order) -> Said {
    let task = &chosen.tasks[at];
    let mut said = Said { parallel: task.mark.parallel, ..Said::default() };
    let mut values: Vec<(usize, String)> = Vec::new();
    for field in labels {
        match field.about {
            About::After => values.push((field.line, with_items(tree, field))),
            About::Parallel => {
                let low = field.value.to_lowercase();
                said.parallel |= !(low.starts_with("no") || low.starts_with("false"));
            }
            About::Checks | About::Status | About::Detail => {}
        }
    }
    let node = tree.node(task.node);
    if let Origin::Row(row) = &task.origin {
        values.extend(row.after.iter().map(|after| (node.line, after.clone())));
    }
    values.extend(task.row_after.iter().map(|after| (node.line, after.clone())));
    let head = node.text.lines().next().unwrap_or("");
    for bracket in head.split(['(', '[']).skip(1).filter_map(|rest| rest.split([')', ']']).next()) {
        let low = bracket.to_lowercase();
        if mark::is_about_order(&low) {
            let value = low.split_once(' ').map_or("", |(_, rest)| rest);
            values.push((node.line, value.trim_start_matches("on ").trim_start_matches("by ").to_owned()));
        }
        said.parallel |= words::is_parallel(bracket);
    }
    for (line, value) in values {
        said.labelled = true;
        match names.value(&value, at) {
            Named::Nothing => {
                said.after.get_or_insert_default();
            }
            Named::Tasks(tasks) => said.after.get_or_insert_default().extend(tasks),
            Named::Unknown => {
                let shown = crate::text::one_line(&value, 60).replace('`', "'");
                order.notes.push((line, format!("`{shown}` names no task of this document; it stays in the text")));
            }
        }
    }
    if said.after.is_none() {
        let head = in_sentences(&[head], names, at);
        said.labelled |= !head.is_empty();
        let mut texts = vec![node.text.as_str()];
        let below = tree.below(task.node).into_iter().map(|below| tree.node(below));
        texts.extend(
            below
                .filter(|node| matches!(node.kind, Kind::Paragraph | Kind::Item { .. }))
                .map(|node| node.text.as_str()),
        );
        let found: BTreeSet<usize> = in_sentences(&texts, names, at).into_iter().chain(head).collect();
        if !found.is_empty() {
            said.after = Some(found);
        }
    }
    said
}

/// A label's value with the items below it.
fn with_items(tree: &Tree<'_>, field: &Field) -> String {
    let mut value = field.value.clone();
    for block in &field.blocks {
        let mut nodes = vec![*block];
        nodes.extend(tree.below(*block));
        for node in nodes.iter().map(|node| tree.node(*node)).filter(|node| !node.text.is_empty()) {
            if !matches!(node.kind, Kind::Code { .. }) {
                value.push_str(if value.is_empty() { "" } else { ", " });
                value.push_str(&node.text);
            }
        }
    }
    value
}

/// The tasks that sentences name as coming before a task.
fn in_sentences(texts: &[&str], names: &Names<'_>, at: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for text in texts {
        let joined = text.replace('\n', " ");
        for sentence in fields::pieces(&joined) {
            let low = sentence.to_lowercase();
            if low.len() != sentence.len() {
                continue;
            }
            for word in BEFORE {
                for (place, _) in low.match_indices(word) {
                    let alone = place == 0 || !low.as_bytes()[place - 1].is_ascii_alphanumeric();
                    let rest = sentence[place + word.len()..].trim_start_matches(':').trim_start();
                    // Only what directly follows the word counts: `after Task 2`, not `after lunch, before Task 2`.
                    let near: Vec<&str> = rest.split_whitespace().take(8).collect();
                    let first = near.first().map_or("", |word| word.trim_matches([',', '(', ')']));
                    let second = near.get(1).map_or("", |word| word.trim_matches([',', '(', ')']));
                    let starts = is_reference(first, second);
                    let finished = word != "when" || rest.to_lowercase().contains(" done");
                    if alone && starts && finished {
                        found.extend(names.sentence(&near.join(" "), at).into_iter().filter(|task| *task != at));
                    }
                }
            }
        }
    }
    found
}

/// Whether two words begin with the name of a task: `Task 2`, `#3`, `T4`, `tasks 1`.
fn is_reference(first: &str, second: &str) -> bool {
    let numbered = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let singular = first.to_lowercase();
    let ranked = words::rank(singular.trim_end_matches('s')).is_some() || singular == "stories";
    ranked && (numbered(second) || second.len() == 1)
        || first.starts_with('#') && numbered(first)
        || numbered(first) && first.starts_with(|c: char| c.is_ascii_alphabetic())
        || first.contains('.') && first.starts_with(|c: char| c.is_ascii_digit())
}

/// The texts that are in no task, each with the group that it is in.
fn outside<'t>(tree: &'t Tree<'_>, chosen: &Chosen) -> Vec<(usize, Option<usize>, &'t str)> {
    let mut inside: BTreeSet<usize> = BTreeSet::new();
    for task in &chosen.tasks {
        inside.insert(task.node);
        inside.extend(tree.below(task.node));
    }
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, group) in chosen.groups.iter().enumerate() {
        group_of.extend(tree.below(group.node).into_iter().map(|node| (node, index)));
        group_of.insert(group.node, index);
    }
    let texts = tree.below(0).into_iter().filter(|node| !inside.contains(node));
    let said = texts.filter(|node| !matches!(tree.node(*node).kind, Kind::Row(_)) && !tree.node(*node).text.is_empty());
    said.map(|node| (node, group_of.get(&node).copied(), tree.node(node).text.as_str())).collect()
}

/// Which groups run in parallel with the one before them.
struct Beside {
    all_groups: bool,
    groups: BTreeSet<usize>,
    /// What a group is said to wait for.
    after: BTreeMap<usize, Vec<usize>>,
}

/// Takes in what the document says about order outside of its tasks.
fn spoken(
    tree: &Tree<'_>,
    chosen: &Chosen,
    outside: &[(usize, Option<usize>, &str)],
    names: &Names<'_>,
    members: &[Vec<usize>],
    said: &mut [Said],
) -> Beside {
    let mut beside = Beside { all_groups: false, groups: BTreeSet::new(), after: BTreeMap::new() };
    let end = said.len();
    for (node, group, text) in outside {
        let code = matches!(tree.node(*node).kind, Kind::Code { .. });
        for line in text.lines() {
            arrows(line, names, said);
            if !code {
                depends(line, names, end, said);
            }
        }
        if code {
            continue;
        }
        let joined = text.replace('\n', " ");
        for sentence in joined.split(". ") {
            parallel_sentence(sentence, *group, chosen, names, members, said, &mut beside);
        }
    }
    for (index, group) in chosen.groups.iter().enumerate() {
        let head = tree.node(group.node);
        if group.mark.parallel {
            // `Phase 2 (parallel)`: its tasks run in parallel with each other.
            members[index].iter().for_each(|task| said[*task].parallel = true);
        }
        let low = head.text.to_lowercase();
        if words::says_parallel(&low)
            && !names.groups_in(&head.text[low.find("parallel").unwrap_or(0).min(head.text.len())..]).is_empty()
        {
            beside.groups.insert(index);
        }
        let own: Vec<usize> =
            tree.children(group.node).filter(|child| tree.node(*child).kind == Kind::Paragraph).collect();
        for text in own.iter().map(|child| tree.node(*child).text.to_lowercase()).chain([low]) {
            let place = BEFORE.iter().filter_map(|word| text.find(word).map(|at| at + word.len())).min();
            let tasks = place.map(|place| names.groups_in(&text[place..])).unwrap_or_default();
            if !tasks.is_empty() && !words::says_parallel(&text) {
                beside.after.insert(index, tasks.into_iter().filter(|task| !members[index].contains(task)).collect());
            }
        }
    }
    beside
}

/// `Tasks 2 and 3 can go in parallel`, `the phases are independent`, `all items here go in any order`.
fn parallel_sentence(
    sentence: &str,
    group: Option<usize>,
    chosen: &Chosen,
    names: &Names<'_>,
    members: &[Vec<usize>],
    said: &mut [Said],
    beside: &mut Beside,
) {
    if !words::says_parallel(sentence) {
        return;
    }
    let low = sentence.to_lowercase();
    let named = names.sentence(sentence, usize::MAX);
    let plural = [
        "areas",
        "phases",
        "tracks",
        "sections",
        "groups",
        "streams",
        "workstreams",
        "parts",
        "milestones",
        "epics",
        "lists",
        "teams",
        "columns",
        "stages",
        "blocks",
    ];
    let of_groups = low.split(|c: char| !c.is_alphanumeric()).any(|word| plural.contains(&word));
    if of_groups && names.groups_in(sentence).is_empty() {
        beside.all_groups = true;
    } else if !names.groups_in(sentence).is_empty() {
        let tasks = names.groups_in(sentence);
        let groups =
            (0..chosen.groups.len()).filter(|index| members[*index].first().is_some_and(|first| tasks.contains(first)));
        let mut groups: Vec<usize> = groups.collect();
        match group {
            Some(own) if groups.len() == 1 => {
                beside.groups.insert(own.max(groups[0]));
            }
            _ => beside.groups.extend(groups.drain(..).skip(1)),
        }
    } else if named.len() > 1 {
        named.iter().for_each(|task| said[*task].parallel = true);
    } else if let Some(group) = group {
        members[group].iter().for_each(|task| said[*task].parallel = true);
    } else if ["task", "item", "step", "these", "everything", "they", "all ", "stories", "requirements", "below"]
        .iter()
        .any(|word| low.contains(word))
    {
        said.iter_mut().for_each(|said| said.parallel = true);
    }
}

/// `T1 -> T2 -> T3`, anywhere.
fn arrows(line: &str, names: &Names<'_>, said: &mut [Said]) {
    let line = line
        .replace("-->", "→")
        .replace("->", "→")
        .replace("=>", "→")
        .replace("──►", "→")
        .replace("─►", "→")
        .replace("──>", "→")
        .replace("─>", "→");
    if !line.contains('→') {
        return;
    }
    let sides: Vec<BTreeSet<usize>> = line
        .split('→')
        .map(|side| match names.value(side.split(['[', '{']).next().unwrap_or(side), usize::MAX) {
            Named::Tasks(tasks) => tasks.into_iter().collect(),
            Named::Nothing | Named::Unknown => BTreeSet::new(),
        })
        .collect();
    for pair in sides.windows(2) {
        for later in &pair[1] {
            let before = pair[0].iter().copied().filter(|task| task != later);
            if !pair[0].is_empty() {
                said[*later].after.get_or_insert_default().extend(before);
                said[*later].labelled = true;
            }
        }
        // A task that is only on the left waits for nothing of its own.
        for first in &pair[0] {
            if said[*first].after.is_none() {
                said[*first].after = Some(BTreeSet::new());
                said[*first].labelled = true;
            }
        }
    }
}

/// `Task 3 depends on Task 1 and 2`, `T2 blocks T3`, outside of any task.
fn depends(line: &str, names: &Names<'_>, end: usize, said: &mut [Said]) {
    let low = line.to_lowercase();
    if low.len() != line.len() {
        return;
    }
    for word in [" blocks ", " before ", " precedes "] {
        let Some(place) = low.find(word) else {
            continue;
        };
        let before = names.sentence(&line[..place], end);
        for task in names.sentence(&line[place + word.len()..], end).into_iter().filter(|_| !before.is_empty()) {
            said[task].after.get_or_insert_default().extend(before.iter().copied().filter(|other| *other != task));
            said[task].labelled = true;
        }
    }
    for word in [
        "depends on",
        "depend on",
        "blocked by",
        "needs",
        "requires",
        "comes after",
        "come after",
        "must wait for",
        "waits for",
        "after",
    ] {
        let Some(place) = low.find(word) else {
            continue;
        };
        let later = names.sentence(&line[..place], end);
        let before = names.sentence(&line[place + word.len()..], end);
        if !later.is_empty() && !before.is_empty() {
            for task in later {
                said[task].after.get_or_insert_default().extend(before.iter().copied().filter(|other| *other != task));
                said[task].labelled = true;
            }
            return;
        }
    }
}

/// Fills in what is not said from the order of the document.
fn sequence(
    tree: &Tree<'_>,
    chosen: &Chosen,
    said: &[Said],
    names: &Names<'_>,
    told: bool,
    beside: &Beside,
) -> Vec<BTreeSet<usize>> {
    let _ = (tree, names);
    let mut after = Vec::with_capacity(said.len());
    // What a task in sequence waits for, what a parallel task waits for, and the tasks that are parallel to each other now.
    let (mut before, mut barrier, mut open): (Vec<usize>, Vec<usize>, Vec<usize>) =
        (Vec::new(), Vec::new(), Vec::new());
    let mut at_start: Vec<usize> = Vec::new();
    let mut group = None;
    for (at, said) in said.iter().enumerate() {
        let here = chosen.tasks[at].group;
        if here != group || at == 0 {
            let ended: Vec<usize> = if open.is_empty() { before.clone() } else { open.clone() };
            let waits = here.and_then(|here| beside.after.get(&here));
            let alongside = here.is_some_and(|here| beside.groups.contains(&here));
            let start = match waits {
                Some(tasks) => last_of(tasks, &after),
                None if beside.all_groups && here.is_some() => Vec::new(),
                None if alongside => at_start.clone(),
                None => ended,
            };
            (before, barrier, open) = (start.clone(), start.clone(), Vec::new());
            at_start = start;
            group = here;
        }
        let silent: Vec<usize> = match () {
            () if told => Vec::new(),
            () if said.parallel => barrier.clone(),
            () if open.is_empty() => before.clone(),
            () => open.clone(),
        };
        after.push(said.after.clone().unwrap_or_else(|| silent.into_iter().collect()));
        if said.parallel {
            open.push(at);
        } else {
            (before, barrier, open) = (vec![at], vec![at], Vec::new());
        }
    }
    after
}

/// Those of some tasks that none of the others waits for.
fn last_of(tasks: &[usize], after: &[BTreeSet<usize>]) -> Vec<usize> {
    let waited = |task: &usize| tasks.iter().any(|other| after.get(*other).is_some_and(|before| before.contains(task)));
    tasks.iter().copied().filter(|task| !waited(task)).collect()
}
