//! What a session's state says, item by item, with the worth of each: the person's words first, then what tools and lists
//! report, then the assistant's own sentences until the room is full. Both the file for people and the text for the session
//! are made of these; `memory` fits them into the room.

use std::collections::BTreeSet;

use super::fact::{Outcome, TaskStatus};
use super::sentence::split;
use super::session::{Helper, Ran, Session, Task};
use super::worth;
use crate::memory::{Item, Layout, Section, compose};
use crate::text::{fold, one_line, sanitize, tail_bytes, truncate_bytes};

/// Longest message of the person that is shown word for word; a longer one is cut to its beginning and its end.
const PROMPT_BYTES: usize = 900;

/// The same where there is little room.
const PROMPT_SHORT_BYTES: usize = 240;

/// Percentage of the room that the person's messages get before everything else; older ones come after the findings.
const PROMPTS_PERCENT: usize = 40;

/// How an adapter says that a question was dismissed.
const NOT_ANSWERED: &str = "not answered";

/// Longest last words of the session that are shown whole.
const LAST_WORDS_BYTES: usize = 700;

/// How much less each next entry of a list is worth: lists share the room, and a long one does not push out the others.
/// After some twenty entries the rest takes turns with findings.
const STEP: u16 = 250;

/// The same for entries that matter less with every newer one: failed commands, effects, finished work.
const STEEP: u16 = 2_000;

/// Maximum bytes of the line with the files: the newest ones; git has the rest.
const FILES_BYTES: usize = 360;

/// The worth of the entry at this place of a list.
fn nth(first: u16, step: u16, place: usize) -> u16 {
    let less = u16::try_from(place).unwrap_or(u16::MAX).saturating_mul(step);
    first.saturating_sub(less).max(REST)
}

/// The worth of each kind of item. Findings are between [`FINDINGS`] and [`FIRST`]; what is below them fills the room they
/// leave.
const NOW: u16 = 60_000;
const WORDS: u16 = 50_000;
const OPEN: u16 = 45_000;
const KEPT: u16 = 42_000;
const FIRST: u16 = 40_000;
const FINDINGS: u16 = 10_000;
const REST: u16 = 5_000;

/// Everything that can be said about a session. `room` is the room for the whole text.
pub(super) fn items(session: &Session, room: usize) -> Vec<Item> {
    let mut items = Vec::new();
    items.extend(now(session));
    items.extend(prompts(session, room));
    items.extend(questions(session));
    items.extend(tasks(session));
    items.extend(helpers(session));
    items.extend(decisions(session));
    items.extend(effects(session));
    items.extend(failures(session));
    items.extend(files(session));
    items.extend(findings(session));
    items
}

/// The record behind a fence, within the room.
pub(super) fn record(items: &[Item], room: usize) -> String {
    compose(items, room, Layout { fenced: &|_| true, label: "the session's record" })
}

/// The lists for people, within the room.
pub(super) fn texts(session: &Session, room: usize) -> String {
    let record = record(&items(session, room), room);
    let mut out = String::new();
    for line in record.lines().filter_map(|line| line.strip_prefix("| ")) {
        // The fence's own mark and this blank line have the same length.
        out += if line.starts_with("## ") { "\n" } else { "- " };
        out += line;
        out += "\n";
    }
    truncate_bytes(&out, room).to_owned()
}

fn item(section: Section, worth: u16, text: impl Into<String>) -> Item {
    Item::new(section, worth, text)
}

/// What the session is in the middle of.
fn now(session: &Session) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |worth: u16, text: String| items.push(item(Section::Now, worth, text));
    for call in &session.open_calls {
        add(NOW, format!("was running, no end is known: `{}`: look what it did before you run it again", call.line));
    }
    for task in session.tasks.iter().filter(|task| task.status == TaskStatus::InProgress) {
        add(NOW, format!("in progress: task {} {}", task.id, one_line(&task.subject, 160)));
    }
    for todo in session.todos.iter().filter(|todo| todo.status == TaskStatus::InProgress) {
        add(NOW, format!("in progress: {}", one_line(&todo.text, 160)));
    }
    if let Some(limit) = &session.limit {
        add(NOW, format!("stopped by: {}", one_line(&limit.text, 200)));
    }
    if session.turn_open && !session.prompts.is_empty() {
        add(NOW, "the person waits for an answer to their last words".to_owned());
    }
    let last = last_words(session);
    if !last.is_empty() {
        let whole = format!("your last words: {}", one_line(&last, LAST_WORDS_BYTES));
        let end = split(&last).pop().map(|end| format!("your last words: … {}", one_line(end, 300)));
        let last = item(Section::Now, NOW, whole);
        items.push(match end {
            Some(end) => last.or_short(end),
            None => last,
        });
    }
    items
}

fn last_words(session: &Session) -> String {
    let said = session.said.iter().rfind(|said| said.by.is_none()).map(|said| said.text.as_str());
    let ended = Some(session.last_words.as_str()).filter(|words| !words.is_empty() && !session.turn_open);
    let text = ended.or(said).unwrap_or(&session.last_words);
    // The end is what the session continues from.
    tail_sentences(text, LAST_WORDS_BYTES)
}

/// The last sentences of a text that fit.
fn tail_sentences(text: &str, max: usize) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut left = max;
    for sentence in split(text).into_iter().rev() {
        match left.checked_sub(sentence.len() + 1) {
            Some(after) => left = after,
            None if kept.is_empty() => {}
            None => break,
        }
        kept.push(sentence);
    }
    kept.reverse();
    kept.join(" ")
}

/// The person's messages: the first and the newest come before all others.
fn prompts(session: &Session, room: usize) -> Vec<Item> {
    let count = session.prompts.len();
    let mut left = room * PROMPTS_PERCENT / 100;
    let mut worths = vec![REST + 2_000; count];
    for (rank, index) in std::iter::once(0).chain((1..count).rev()).enumerate().take(count) {
        let bytes = session.prompts[index].text.len().min(PROMPT_BYTES);
        let Some(after) = left.checked_sub(bytes) else { break };
        left = after;
        worths[index] = nth(WORDS, STEP, rank);
    }
    let show = |(prompt, worth): (&super::session::Prompt, u16)| {
        let text = flat(&prompt.text);
        let whole = item(Section::PersonsWords, worth, format!("\"{}\"", fold(&text, PROMPT_BYTES)));
        match text.len() > PROMPT_SHORT_BYTES {
            true => whole.or_short(format!("\"{}\"", fold(&text, PROMPT_SHORT_BYTES))),
            false => whole,
        }
    };
    session.prompts.iter().zip(worths).map(show).collect()
}

/// Text on one line, whole.
fn flat(text: &str) -> String {
    one_line(&sanitize(text), usize::MAX)
}

fn questions(session: &Session) -> Vec<Item> {
    let asked = session.open_questions().map(|question| one_line(&question.text, 300));
    let in_words = session.asked_in_words().map(|question| one_line(question, 300));
    let all: Vec<String> = asked.chain(in_words).collect();
    let count = all.len();
    let line = |(at, text): (usize, String)| item(Section::Questions, nth(OPEN, STEP, count - 1 - at), text);
    all.into_iter().enumerate().map(line).collect()
}

fn tasks(session: &Session) -> Vec<Item> {
    let listed = session.tasks.iter().filter(|task| task.status != TaskStatus::Deleted);
    let tasks = listed.map(|task| (task.status, task_line(task, 140)));
    let todos = session.todos.iter().map(|todo| {
        (todo.status, format!("[{}] {} ({})", mark(todo.status), one_line(&todo.text, 160), word(todo.status)))
    });
    let all: Vec<(TaskStatus, String)> = tasks.chain(todos).collect();
    let mut finished = all.iter().filter(|(status, _)| *status == TaskStatus::Completed).count();
    let mut open = 0;
    let line = |(status, text): (TaskStatus, String)| {
        let worth = match status {
            TaskStatus::InProgress => OPEN + 1,
            TaskStatus::Pending => {
                open += 1;
                nth(OPEN, STEP, open - 1)
            }
            TaskStatus::Completed | TaskStatus::Deleted => {
                finished = finished.saturating_sub(1);
                nth(FIRST, STEEP / 2, finished)
            }
        };
        item(Section::Status, worth, text)
    };
    all.into_iter().map(line).collect()
}

/// One task on a line, with what blocks it.
pub(super) fn task_line(task: &Task, max: usize) -> String {
    let mut line =
        format!("[{}] {}: {} ({}", mark(task.status), task.id, one_line(&task.subject, max), word(task.status));
    if let Some(owner) = &task.owner {
        line += &format!(", {}", one_line(owner, 40));
    }
    if !task.blocked_by.is_empty() {
        line += &format!(", blocked by {}", one_line(&task.blocked_by.join(", "), 80));
    }
    line + ")"
}

fn mark(status: TaskStatus) -> char {
    match status {
        TaskStatus::Completed => 'x',
        TaskStatus::InProgress => '>',
        TaskStatus::Pending | TaskStatus::Deleted => ' ',
    }
}

/// The word for a task's state.
pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Deleted => "deleted",
    }
}

fn helpers(session: &Session) -> Vec<Item> {
    let count = session.helpers.len();
    let line = |(at, helper): (usize, &Helper)| {
        let worth = match helper.outcome {
            None | Some(Outcome::Lost) => nth(OPEN, STEP, count - 1 - at),
            Some(_) => nth(FIRST, STEEP / 2, count - 1 - at),
        };
        let long = item(Section::Helpers, worth, helper_line(helper, 300, 260));
        long.or_short(helper_line(helper, 80, 80))
    };
    session.helpers.iter().enumerate().map(line).collect()
}

fn helper_line(helper: &Helper, told: usize, said: usize) -> String {
    let plain = helper.kind.is_empty() || helper.kind == helper.name;
    let kind = if plain { String::new() } else { format!(" ({})", one_line(&helper.kind, 40)) };
    let name = format!("{}{kind}", one_line(&helper.name, 80));
    let told = |share: usize| match helper.prompt.is_empty() {
        true => String::new(),
        false => format!("; told: \"{}\"", one_line(&helper.prompt, told / share)),
    };
    let words = one_line(&helper.words, said);
    let said = if words.is_empty() { String::new() } else { format!(": \"{words}\"") };
    match helper.outcome {
        None => format!("{name}: had not ended{}", told(1)),
        Some(Outcome::Idle) => format!("{name}: idle{said}{}", told(3)),
        Some(Outcome::Finished) => format!("{name}: finished{said}{}", told(4)),
        Some(Outcome::Failed) => format!("{name}: FAILED{said}{}", told(2)),
        Some(Outcome::Lost) => format!("{name}: its process ended before it did{said}{}", told(1)),
        Some(Outcome::Stopped) => format!("{name}: stopped{said}{}", told(2)),
    }
}

/// A helper's name, by its id.
fn name_of(session: &Session, id: &str) -> String {
    let helper = session.helpers.iter().rfind(|helper| helper.id.as_deref() == Some(id));
    one_line(helper.map_or(id, |helper| &helper.name), 60)
}

/// What was noted on purpose, and what the person answered.
fn decisions(session: &Session) -> Vec<Item> {
    let mut items: Vec<(u64, Item)> = Vec::new();
    for note in &session.notes {
        let text = format!("noted: {}", one_line(&note.text, 400));
        items.push((note.at, item(Section::Decisions, KEPT, text)));
    }
    for question in &session.questions {
        if let Some(answer) = question.answer.as_ref().filter(|answer| !answer.starts_with(NOT_ANSWERED)) {
            let text =
                format!("asked \"{}\", the person said \"{}\"", one_line(&question.text, 160), one_line(answer, 160));
            items.push((question.at, item(Section::Answers, KEPT, text)));
        }
    }
    items.sort_by_key(|(at, _)| *at);
    let count = items.len();
    let older = |(at, (_, item)): (usize, (u64, Item))| Item { worth: nth(KEPT, STEP, count - 1 - at), ..item };
    items.into_iter().enumerate().map(older).collect()
}

fn effects(session: &Session) -> Vec<Item> {
    let mut lines = BTreeSet::new();
    let done = session.commands.iter().filter(|ran| ran.failure.is_none());
    // The newest run of a line represents all of them.
    let ran: Vec<&Ran> = done.rev().filter(|ran| lines.insert(ran.line.clone())).collect();
    let line = |(rank, ran): (usize, &&Ran)| {
        let printed = one_line(tail_bytes(&ran.printed, 50), 50);
        let printed = if printed.is_empty() { String::new() } else { format!(" → {printed}") };
        let worth = nth(FIRST, STEEP / 2, rank);
        let whole = item(Section::Done, worth, format!("ran `{}`{printed}", one_line(&ran.line, 100)));
        whole.or_short(format!("ran `{}`", one_line(&ran.line, 80)))
    };
    let mut items: Vec<Item> = ran.iter().enumerate().map(line).collect();
    items.reverse();
    items
}

fn failures(session: &Session) -> Vec<Item> {
    let failed: Vec<(&Ran, &String)> =
        session.commands.iter().filter_map(|ran| Some((ran, ran.failure.as_ref()?))).collect();
    let line = |(rank, (ran, why)): (usize, &(&Ran, &String))| {
        let worth = nth(FIRST, STEEP, rank);
        // Programs say why they stopped at the end.
        let why = one_line(tail_bytes(why, 90), 90);
        item(Section::Failures, worth, format!("`{}`: {why}", one_line(&ran.line, 80)))
    };
    let mut items: Vec<Item> = failed.iter().rev().enumerate().map(line).collect();
    items.reverse();
    items
}

/// The files that were written, on one line.
fn files(session: &Session) -> Option<Item> {
    let mut line = String::new();
    for (count, file) in session.files.iter().rev().enumerate() {
        let by = file.by.as_ref().map(|by| format!(" (by {})", name_of(session, by))).unwrap_or_default();
        let next = format!("{}{by}", one_line(&file.path, 160));
        if line.len() + next.len() > FILES_BYTES {
            line += &format!(" and {} before", session.files.len() - count);
            break;
        }
        if !line.is_empty() {
            line += ", ";
        }
        line += &next;
    }
    (!line.is_empty()).then(|| item(Section::Files, FIRST, format!("changed, the newest first: {line}")))
}

/// The assistant's own sentences in order; the best are kept if room is short.
fn findings(session: &Session) -> Vec<Item> {
    // What was said last is under Now.
    let last = session.said.iter().rposition(|said| said.by.is_none());
    let shown = last_words(session);
    let sentences: Vec<worth::Sentence<'_>> = worth::sentences(session)
        .into_iter()
        .filter(|sentence| Some(sentence.message) != last || !shown.contains(sentence.text))
        .collect();
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by_key(|index| (sentences[*index].score, *index));
    let mut worths = vec![FINDINGS; sentences.len()];
    for (rank, index) in order.into_iter().enumerate() {
        // Spread over the whole range, so that the worst of them come after the tails of the lists.
        let share = usize::from(FIRST - FINDINGS) * rank / sentences.len();
        worths[index] = FINDINGS + u16::try_from(share).unwrap_or_default();
    }
    let line = |(sentence, worth): (worth::Sentence<'_>, u16)| {
        let by = session.said[sentence.message].by.as_ref();
        let by = by.map(|by| format!("{}: ", name_of(session, by))).unwrap_or_default();
        item(Section::Findings, worth, format!("{by}{}", one_line(sentence.text, 420)))
    };
    sentences.into_iter().zip(worths).map(line).collect()
}
