//! spec-kit: `- [ ] T012 [P] [US1] text in path/file.py (depends on T010)` under headings of phases. Setup and foundation
//! come before the stories, the stories run side by side, what follows them comes after all of them.

use super::{
    Draft, Format, ImportError, Source,
    checklist::{self, Entry, Kind, labelled},
    draft::Item,
    malformed, only_file,
};

/// Characters that are stripped from a word before it is taken for a file: marks of the sentence around it.
const AROUND_PATH: [char; 9] = ['`', '.', ',', ';', ':', '(', ')', '\'', '"'];

/// A phase with what is known about it.
#[derive(Default)]
struct Phase {
    heading: String,
    goal: String,
    test: String,
    wave: u32,
    story: bool,
    /// The tasks that the next one without `[P]` comes after.
    before: Vec<String>,
    /// The tasks that the next ones with `[P]` come after.
    barrier: Vec<String>,
}

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let entries = checklist::read(only_file(source));
    let title = entries.iter().find(|entry| entry.kind == Kind::Heading(1));
    let title = title.map_or("", |entry| entry.text.trim_start_matches("Tasks:").trim());
    let mut draft = Draft::new(if title.is_empty() { source.title.as_str() } else { title });
    let mut phase = Phase { wave: 1, ..Phase::default() };
    let mut artifacts = 0;
    for entry in &entries {
        match entry.kind {
            Kind::Heading(2) => phase = enter(entry, &phase),
            Kind::Heading(_) => {}
            Kind::Item { done, .. } => match split(&entry.text) {
                Some(task) => {
                    let item = item(source, entry, &task, &mut phase, done);
                    artifacts += item.artifacts.len();
                    draft.items.push(item);
                }
                None => draft.remark(format!("left out, no task number: {}", super::draft::shown(&entry.text))),
            },
        }
    }
    if draft.items.is_empty() {
        return Err(malformed(Format::SpecKit, "no line like `- [ ] T001 text`"));
    }
    if artifacts > 0 {
        draft.remark(format!("{artifacts} artifacts were taken from words like `in src/x.rs`: check them"));
    }
    Ok(draft)
}

/// The phase of a heading: stories share one wave, everything else has one of its own.
fn enter(entry: &Entry, before: &Phase) -> Phase {
    let story = entry.text.contains("User Story") || entry.text.contains("(Priority: P");
    let empty = before.barrier.is_empty() && before.before.is_empty();
    let wave = if empty || (story && before.story) { before.wave } else { before.wave + 1 };
    Phase {
        heading: entry.text.clone(),
        goal: labelled(&entry.below, "Goal").unwrap_or_default(),
        test: labelled(&entry.below, "Independent Test").unwrap_or_default(),
        wave,
        story,
        ..Phase::default()
    }
}

struct Task<'a> {
    id: &'a str,
    parallel: bool,
    text: &'a str,
}

fn split(text: &str) -> Option<Task<'_>> {
    let (id, mut rest) = text.split_once(char::is_whitespace)?;
    let id = id.trim_end_matches([':', '.']);
    let digits = id.strip_prefix('T')?;
    let number = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parallel = false;
    rest = rest.trim_start();
    while let Some((mark, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let known = mark == "P" || mark.strip_prefix("US").is_some_and(|n| n.parse::<u32>().is_ok());
        if !known {
            break;
        }
        parallel |= mark == "P";
        rest = after.trim_start();
    }
    Some(Task { id, parallel, text: rest })
}

fn item(source: &Source, entry: &Entry, task: &Task<'_>, phase: &mut Phase, done: bool) -> Item {
    let mut item = Item {
        key: task.id.to_owned(),
        id: task.id.to_owned(),
        title: task.text.to_owned(),
        done,
        wave: Some(phase.wave),
        reading: source.reading.clone(),
        artifacts: artifact(task.text).into_iter().collect(),
        ..Item::default()
    };
    item.say("", &*entry.below);
    item.say("Phase", &*phase.heading);
    item.say("Goal of the phase", &*phase.goal);
    item.say("How the phase is tested", &*phase.test);
    if task.parallel {
        item.after.clone_from(&phase.barrier);
        phase.before.push(item.key.clone());
    } else {
        item.after.clone_from(&phase.before);
        phase.before = vec![item.key.clone()];
        phase.barrier.clone_from(&phase.before);
    }
    item.after.extend(depends_on(task.text));
    item
}

/// The ids of `(depends on T010, T011)`.
fn depends_on(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("(depends on ") else {
        return Vec::new();
    };
    let inside = rest.split(')').next().unwrap_or("");
    let words =
        inside.split(|c: char| c.is_whitespace() || c == ',').filter(|word| split(&format!("{word} x")).is_some());
    words.map(str::to_owned).collect()
}

/// The file of `… in path/file.ext`, if it is one: a word with a slash and an extension. A removal leaves no file.
fn artifact(text: &str) -> Option<String> {
    let first = text.split_whitespace().next().unwrap_or("").to_lowercase();
    if matches!(first.as_str(), "remove" | "delete" | "drop" | "run" | "verify") {
        return None;
    }
    let (_, rest) = text.rsplit_once(" in ")?;
    let word = rest.split_whitespace().next()?.trim_matches(AROUND_PATH);
    let (folder, file) = word.rsplit_once('/')?;
    let (stem, ending) = file.rsplit_once('.')?;
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    (plain && !folder.is_empty() && !stem.is_empty() && !ending.is_empty()).then(|| word.to_owned())
}
