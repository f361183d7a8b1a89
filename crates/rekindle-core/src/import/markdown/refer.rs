//! Which tasks a text names: by number, id, range, group or title. Knows the tasks' names; what the naming means is
//! decided by the caller.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    mark::Mark,
    words::{self, Rank},
};

/// Words that name nothing.
const NOTHING: [&str; 12] =
    ["none", "nothing", "n/a", "na", "-", "–", "—", "no", "nil", "no dependencies", "no one", "nobody"];

/// Words that name everything before.
const ALL_BEFORE: [&str; 12] = [
    "all previous",
    "all of the above",
    "all above",
    "everything above",
    "all the above",
    "all earlier",
    "all prior",
    "all other tasks",
    "everything else",
    "everything before",
    "all tasks above",
    "all others",
];

/// Words that name the previous task.
const PREVIOUS: [&str; 7] =
    ["previous task", "previous step", "the previous", "previous", "task above", "the above", "step above"];

/// Shortest title, or part of one, by which a task is found.
const TITLE_MIN_CHARS: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Named {
    /// The text says that there is nothing.
    Nothing,
    Tasks(Vec<usize>),
    /// Something that is not a task here.
    Unknown,
}

pub(super) struct Name<'a> {
    pub(super) mark: &'a Mark,
    pub(super) group: Option<usize>,
}

pub(super) struct Names<'a> {
    tasks: Vec<Name<'a>>,
    labels: BTreeMap<String, Vec<usize>>,
    titles: Vec<String>,
    /// By label and by title, with the tasks of each.
    groups: Vec<(String, String, Vec<usize>)>,
}

impl<'a> Names<'a> {
    /// Takes the tasks in order, and each group with its tasks.
    pub(super) fn new(tasks: Vec<Name<'a>>, groups: Vec<(&Mark, Vec<usize>)>) -> Self {
        let mut labels: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, task) in tasks.iter().enumerate() {
            let key = label_key(&task.mark.label);
            if !key.is_empty() {
                labels.entry(key.clone()).or_default().push(index);
                // `T3` and `Task 3` name the same.
                let digits = key.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '-');
                if digits.len() < key.len() && !digits.is_empty() {
                    labels.entry(format!("~{digits}")).or_default().push(index);
                }
            }
        }
        let titles = tasks.iter().map(|task| words::plain(&task.mark.title)).collect();
        let groups =
            groups.into_iter().map(|(mark, of)| (label_key(&mark.label), words::plain(&mark.title), of)).collect();
        Names { tasks, labels, titles, groups }
    }

    /// What the value of a label names, for a task at a position.
    pub(super) fn value(&self, text: &str, at: usize) -> Named {
        let plain = text.trim().trim_matches(['.', '*', '_', '`', ' ', '(', ')']).to_lowercase();
        let first = plain.split([',', ';', '(']).next().unwrap_or("").trim();
        if plain.is_empty()
            || NOTHING.contains(&plain.as_str())
            || NOTHING.contains(&first)
            || plain.starts_with("none ")
            || plain.starts_with("nothing ")
            || plain.starts_with("no dependenc")
        {
            return Named::Nothing;
        }
        if ALL_BEFORE.iter().any(|words| plain.contains(words))
            || matches!(plain.as_str(), "all" | "everything" | "all tasks")
        {
            return Named::Tasks((0..at).collect());
        }
        let mut found = self.labelled(text, at, true);
        if found.is_empty() && PREVIOUS.iter().any(|words| plain.starts_with(words)) && at > 0 {
            found.insert(at - 1);
        }
        if found.is_empty() {
            found = self.titled(text, at);
        }
        found.remove(&at);
        if found.is_empty() { Named::Unknown } else { Named::Tasks(found.into_iter().collect()) }
    }

    /// The tasks that a sentence names by word and number, or by id; a bare number does not count.
    pub(super) fn sentence(&self, text: &str, at: usize) -> BTreeSet<usize> {
        let mut found = self.labelled(text, at, false);
        found.remove(&at);
        found
    }

    /// A group that a text names by word and number: its tasks.
    fn group(&self, label: &str) -> Option<&[usize]> {
        let key = label_key(label);
        self.groups.iter().find(|(of, _, tasks)| *of == key && !tasks.is_empty()).map(|(_, _, tasks)| tasks.as_slice())
    }

    /// The tasks of a group that a text names.
    pub(super) fn groups_in(&self, text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let words: Vec<&str> = tokens(text);
        for pair in words.windows(2) {
            if words::rank(pair[0].trim_end_matches('s')) == Some(Rank::Group) {
                found.extend(self.group(pair[1]).into_iter().flatten().copied());
            }
        }
        found
    }

    fn labelled(&self, text: &str, at: usize, bare: bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let words = tokens(text);
        let mut rank: Option<Rank> = None;
        let mut last: Option<usize> = None;
        let mut range = false;
        for word in words {
            let singular = word.to_lowercase();
            let singular = singular
                .strip_suffix("ies")
                .map_or_else(|| singular.trim_end_matches('s').to_owned(), |stem| format!("{stem}y"));
            if let Some(named) = words::rank(&singular) {
                rank = Some(named);
                continue;
            }
            if matches!(word, "-" | "–" | "—" | "to" | "through" | "until" | "bis") && last.is_some() {
                range = true;
                continue;
            }
            if matches!(word.to_lowercase().as_str(), "and" | "&" | "or" | "+" | "both") {
                continue;
            }
            let ends: Vec<&str> = match word.split_once(['–', '—']).or_else(|| {
                word.split_once('-').filter(|(a, b)| {
                    ends_in_digit(a)
                        && b.starts_with(|c: char| c.is_ascii_digit() || c == 'T')
                        && self.find(word, at).is_none()
                })
            }) {
                Some((from, to)) => vec![from, to],
                None => vec![word],
            };
            let spread = ends.len() == 2;
            let mut any = false;
            for end in ends {
                let coded = end.starts_with('#')
                    || end.contains('.')
                    || end.chars().any(|c| c.is_ascii_alphabetic()) && end.chars().any(|c| c.is_ascii_digit());
                if !(bare || rank.is_some() || coded) {
                    continue;
                }
                if rank == Some(Rank::Group)
                    && let Some(tasks) = self.group(end)
                {
                    found.extend(tasks);
                    any = true;
                    continue;
                }
                if let Some(index) = self.find(end, at).filter(|_| rank.is_some() || !is_word(end) || bare) {
                    if let (Some(from), true) = (last, range || spread && any) {
                        found.extend(from.min(index)..=from.max(index));
                    }
                    found.insert(index);
                    (last, any) = (Some(index), true);
                }
            }
            range = false;
            if !any {
                (rank, last) = (None, None);
            }
        }
        found
    }

    /// The task with a label: of the same group first, else the nearest before.
    fn find(&self, word: &str, at: usize) -> Option<usize> {
        let key = label_key(word);
        let digits = key.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '-');
        let letters = &key[..key.len() - digits.len()];
        let short = letters.is_empty() || matches!(letters.trim_end_matches('-'), "t" | "task" | "step" | "s");
        let found = self.labels.get(&key);
        let found = found.or_else(|| self.labels.get(digits).filter(|_| short && !digits.is_empty()));
        let found =
            found.or_else(|| self.labels.get(&format!("~{key}")).filter(|all| letters.is_empty() && all.len() == 1))?;
        let group = self.tasks.get(at).and_then(|task| task.group);
        let same = found.iter().find(|index| self.tasks[**index].group == group && **index != at);
        let before = found.iter().rev().find(|index| **index < at);
        same.or(before).or(found.first()).copied()
    }

    /// The tasks whose titles a text gives, whole or in part.
    fn titled(&self, text: &str, at: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for piece in text.split([',', ';', '\n', '+']).flat_map(|piece| piece.split(" and ")) {
            let plain = words::plain(piece);
            if plain.chars().count() < TITLE_MIN_CHARS {
                continue;
            }
            let exact = self.titles.iter().position(|title| *title == plain);
            let part = || {
                let mut matching =
                    (0..self.titles.len()).filter(|index| *index != at && overlaps(&self.titles[*index], &plain));
                matching.next().filter(|_| matching.next().is_none())
            };
            if let Some(index) = exact.or_else(part) {
                found.insert(index);
            } else if let Some((_, _, tasks)) =
                self.groups.iter().find(|(_, title, tasks)| *title == plain && !tasks.is_empty())
            {
                found.extend(tasks);
            }
        }
        found
    }
}

/// Whether one of two texts contains the other, word by word.
fn overlaps(title: &str, piece: &str) -> bool {
    let holds = |outer: &str, inner: &str| format!(" {outer} ").contains(&format!(" {inner} "));
    title.chars().count() >= TITLE_MIN_CHARS && (holds(title, piece) || holds(piece, title))
}

/// Words without the marks round them.
fn tokens(text: &str) -> Vec<&str> {
    let around = |c: char| {
        matches!(c, ',' | ';' | ':' | '.' | '(' | ')' | '[' | ']' | '*' | '`' | '"' | '\'' | '“' | '”' | '_' | '~')
    };
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '/'))
        .map(|word| word.trim_matches(around))
        .filter(|word| !word.is_empty())
        .collect()
}

fn ends_in_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether a word has letters only, so that it can be a label only by chance.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphabetic())
}

/// A label in the form for comparison: lower case, without number signs and leading zeros.
fn label_key(label: &str) -> String {
    let low = label.trim().trim_start_matches('#').trim_end_matches(['.', ')', ':']).to_lowercase().replace('_', "-");
    let letters = low.find(|c: char| c.is_ascii_digit()).unwrap_or(low.len());
    let (head, digits) = low.split_at(letters);
    let trimmed = digits.trim_start_matches('0');
    let digits = if trimmed.is_empty() || trimmed.starts_with('.') { digits } else { trimmed };
    format!("{head}{digits}")
}
