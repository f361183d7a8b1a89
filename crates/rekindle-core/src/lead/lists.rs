//! What a session's state says, list by list, the most important first. Both the file for people and the text for the session
//! are made of these.

use std::collections::BTreeSet;

use super::fact::{Outcome, TaskStatus};
use super::session::{Helper, Ran, Said, Session, Task};
use super::statement::{Statement, constraints};
use crate::render::sections::{Item, Section};
use crate::text::{one_line, truncate_bytes};

/// Who is served first when room is left over: decisions, tasks, the person's words, effects, helpers, failures, now, questions,
/// files.
const LEFT_OVER_ORDER: [usize; 9] = [5, 3, 1, 6, 4, 7, 0, 2, 8];

/// Longest prompt that is shown word for word; of a longer one, what it wants kept to follows.
const PROMPT_BYTES: usize = 420;

/// How an adapter says that a question was put aside.
const NOT_ANSWERED: &str = "not answered";

/// Next steps that are shown: older ones were taken or dropped since.
const NEXT_SHOWN: usize = 4;

/// The lists within the room.
pub(super) fn texts(session: &Session, room: usize) -> String {
    let sections = [
        Section::new("Now", "points", now(session), 800).optional(),
        Section::new("The person's words", "prompts", prompts(session), 1_300).optional(),
        Section::new("Open questions", "questions", questions(session), 400).optional(),
        Section::new("Tasks", "tasks", tasks(session), 1_200).optional(),
        Section::new("Helpers", "helpers", helpers(session), 1_100).optional(),
        Section::new("Decisions and findings", "older ones", decisions(session), 1_300).optional(),
        Section::new("Done already, not to be done again", "older ones", effects(session), 700).optional(),
        Section::new("Commands that failed", "older ones", failures(session), 500).optional(),
        Section::new("Files changed", "files", files(session), 350).optional(),
    ];
    crate::render::sections::texts(&sections, &LEFT_OVER_ORDER, room)
}

fn item(weight: u8, text: &str) -> Item {
    Item { text: format!("- {text}\n"), weight }
}

/// What the session is in the middle of.
fn now(session: &Session) -> Vec<Item> {
    let mut items = Vec::new();
    for task in session.tasks.iter().filter(|task| task.status == TaskStatus::InProgress) {
        items.push(item(5, &format!("in progress: task {} {}", task.id, one_line(&task.subject, 160))));
    }
    for todo in session.todos.iter().filter(|todo| todo.status == TaskStatus::InProgress) {
        items.push(item(5, &format!("in progress: {}", one_line(&todo.text, 160))));
    }
    // The newest first: it is the one to take up.
    let next: Vec<&Said> = session.stated_since_prompt(Statement::Next).collect();
    for said in next.iter().rev().take(NEXT_SHOWN) {
        items.push(item(3, &format!("next, in your words: {}", one_line(&said.text, 300))));
    }
    if let Some(limit) = &session.limit {
        items.push(item(4, &format!("stopped by: {}", one_line(&limit.text, 200))));
    }
    if session.turn_open && !session.prompts.is_empty() {
        items.push(item(4, "the person waits for an answer to their last words"));
    } else if !session.last_words.is_empty() {
        items.push(item(2, &format!("your last words: {}", one_line(&session.last_words, 300))));
    }
    items
}

fn prompts(session: &Session) -> Vec<Item> {
    let last = session.prompts.len();
    let show = |(index, prompt): (usize, &super::session::Prompt)| {
        let shown = truncate_bytes(&prompt.text, PROMPT_BYTES);
        let mut text = one_line(&prompt.text, PROMPT_BYTES);
        if shown.len() < prompt.text.len() {
            let rest = constraints(&prompt.text[shown.len()..]).join(" / ");
            if !rest.is_empty() {
                text = format!("{text} [and it says: {}]", one_line(&rest, PROMPT_BYTES));
            }
        }
        let wanted = !constraints(&prompt.text).is_empty();
        let weight = match (index, last - index) {
            (0, _) | (_, 1) => 4,
            (_, 2) => 3,
            _ if wanted => 2,
            _ => 1,
        };
        item(weight, &format!("\"{text}\""))
    };
    session.prompts.iter().enumerate().map(show).collect()
}

fn questions(session: &Session) -> Vec<Item> {
    let asked = session.open_questions().map(|question| item(3, &one_line(&question.text, 300)));
    let said = session.stated_since_prompt(Statement::Question);
    asked.chain(said.map(|said| item(1, &one_line(&said.text, 250)))).collect()
}

fn tasks(session: &Session) -> Vec<Item> {
    let listed = session.tasks.iter().filter(|task| task.status != TaskStatus::Deleted);
    let tasks = listed.map(|task| item(weight(task.status), &task_line(task, 140)));
    let todos = session.todos.iter().map(|todo| {
        item(
            weight(todo.status),
            &format!("[{}] {} ({})", mark(todo.status), one_line(&todo.text, 160), word(todo.status)),
        )
    });
    tasks.chain(todos).collect()
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

/// The word for how a task stands.
pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Deleted => "deleted",
    }
}

fn weight(status: TaskStatus) -> u8 {
    match status {
        TaskStatus::InProgress => 3,
        TaskStatus::Pending => 2,
        TaskStatus::Completed => 1,
        TaskStatus::Deleted => 0,
    }
}

fn helpers(session: &Session) -> Vec<Item> {
    session.helpers.iter().map(helper).collect()
}

fn helper(helper: &Helper) -> Item {
    let plain = helper.kind.is_empty() || helper.kind == helper.name;
    let kind = if plain { String::new() } else { format!(" ({})", one_line(&helper.kind, 40)) };
    let name = format!("{}{kind}", one_line(&helper.name, 80));
    let told = |max: usize| match helper.prompt.is_empty() {
        true => String::new(),
        false => format!("; told: \"{}\"", one_line(&helper.prompt, max)),
    };
    let words = one_line(&helper.words, 260);
    let said = if words.is_empty() { String::new() } else { format!(": \"{words}\"") };
    match helper.outcome {
        None => item(3, &format!("{name}: had not ended{}", told(300))),
        Some(Outcome::Idle) => item(2, &format!("{name}: idle{said}{}", told(100))),
        Some(Outcome::Finished) => item(1, &format!("{name}: finished{said}{}", told(80))),
        Some(Outcome::Failed) => item(2, &format!("{name}: FAILED{said}{}", told(140))),
        Some(Outcome::Lost) => item(3, &format!("{name}: its process ended before it did{said}{}", told(300))),
        Some(Outcome::Stopped) => item(1, &format!("{name}: stopped{said}{}", told(140))),
    }
}

/// What a helper is called, by its id.
fn name_of(session: &Session, id: &str) -> String {
    let helper = session.helpers.iter().rfind(|helper| helper.id.as_deref() == Some(id));
    one_line(helper.map_or(id, |helper| &helper.name), 60)
}

fn decisions(session: &Session) -> Vec<Item> {
    let mut items: Vec<(u64, Item)> = Vec::new();
    for note in &session.notes {
        items.push((note.at, item(4, &format!("noted: {}", one_line(&note.text, 400)))));
    }
    for question in &session.questions {
        if let Some(answer) = question.answer.as_ref().filter(|answer| !answer.starts_with(NOT_ANSWERED)) {
            let text =
                format!("asked \"{}\", the person said \"{}\"", one_line(&question.text, 160), one_line(answer, 160));
            items.push((question.at, item(3, &text)));
        }
    }
    for said in session.said.iter().filter(|said| said.what == Statement::Decision) {
        let by = said.by.as_ref().map(|by| format!("{}: ", name_of(session, by))).unwrap_or_default();
        let explicit = said.text.to_lowercase().contains("deci");
        let weight = 1 + u8::from(explicit) - u8::from(said.by.is_some());
        items.push((said.at, item(weight, &format!("{by}{}", one_line(&said.text, 300)))));
    }
    items.sort_by_key(|(at, _)| *at);
    items.into_iter().map(|(_, item)| item).collect()
}

fn effects(session: &Session) -> Vec<Item> {
    let mut lines = BTreeSet::new();
    let done = session.commands.iter().filter(|ran| ran.failure.is_none());
    // The newest run of a line stands for all of them.
    let mut ran: Vec<&Ran> = done.rev().filter(|ran| lines.insert(ran.line.clone())).collect();
    ran.reverse();
    let commands = ran.into_iter().map(|ran| {
        let printed = one_line(&ran.printed, 120);
        let printed = if printed.is_empty() { String::new() } else { format!(" → {printed}") };
        (ran.at, item(2, &format!("ran `{}`{printed}", one_line(&ran.line, 160))))
    });
    let said = session.said.iter().filter(|said| said.what == Statement::Effect);
    let said = said.map(|said| {
        let by = said.by.as_ref().map(|by| format!("{}: ", name_of(session, by))).unwrap_or_default();
        (said.at, item(1, &format!("{by}{}", one_line(&said.text, 240))))
    });
    let mut items: Vec<(u64, Item)> = commands.chain(said).collect();
    items.sort_by_key(|(at, _)| *at);
    items.into_iter().map(|(_, item)| item).collect()
}

fn failures(session: &Session) -> Vec<Item> {
    let failed = session.commands.iter().filter_map(|ran| Some((ran, ran.failure.as_ref()?)));
    failed.map(|(ran, why)| item(1, &format!("`{}`: {}", one_line(&ran.line, 140), one_line(tail(why), 200)))).collect()
}

/// The end of a failure's text: programs say last why they stopped.
fn tail(text: &str) -> &str {
    /// Two lines' worth.
    const TAIL_BYTES: usize = 200;
    let from = text.len().saturating_sub(TAIL_BYTES);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[from..]
}

fn files(session: &Session) -> Vec<Item> {
    let line = |file: &super::session::Written| {
        let by = file.by.as_ref().map(|by| format!(" (by {})", name_of(session, by))).unwrap_or_default();
        item(u8::from(file.by.is_none()), &format!("{}{by}", one_line(&file.path, 160)))
    };
    session.files.iter().map(line).collect()
}
