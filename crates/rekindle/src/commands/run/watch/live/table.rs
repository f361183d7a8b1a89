//! The contents of the live table: how far the run is, what needs a person and what to type, what is waited for and how
//! long, and which agents are running. It fits the terminal: columns are left out by weight, rows from the end.

use std::collections::BTreeMap;

use rekindle_core::ids::AgentName;
use rekindle_core::view::AttemptRow;

use crate::picture::Picture;
use crate::picture::history::MarkKind;
use crate::picture::standing::{self, Urgency};
use crate::ui::{Tone, cut, dollars, elapsed, near_time, one_line, width_of};
use crate::waits;

/// The last words of agents that run.
pub(super) type Said = BTreeMap<AgentName, String>;

/// Cells of the progress bar on a wide terminal.
const BAR_CELLS: usize = 24;

/// Cells of a context gauge.
const GAUGE_CELLS: usize = 5;

/// How many questions, failures and waits of each kind are shown: the rest is a number.
const OF_A_KIND: usize = 3;

/// Widest column of a task's id or an agent's name.
const NAME_MAX: usize = 20;

/// Narrowest space that is worth an agent's last words.
const WORDS_MIN: usize = 12;

/// A row: its head has a tone, the rest has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub tone: Tone,
    /// The part that is seen first.
    pub head: String,
    pub rest: String,
}

impl Row {
    fn new(tone: Tone, head: impl Into<String>, rest: impl Into<String>) -> Self {
        Self { tone, head: head.into(), rest: rest.into() }
    }
}

/// The rows for a terminal of this size, the most important first.
pub(super) fn rows(picture: &Picture, said: &Said, columns: usize, most: usize) -> Vec<Row> {
    let mut rows = vec![progress(picture, columns)];
    rows.extend(questions(picture, columns));
    rows.extend(failures(picture));
    rows.extend(waits(picture));
    rows.extend(retries(picture));
    let room = most.saturating_sub(rows.len());
    rows.extend(agents(picture, said, columns, room));
    rows.truncate(most);
    rows
}

/// The title of the terminal's window.
pub(super) fn title(picture: &Picture) -> String {
    let counts = picture.counts();
    let asks = picture.open_questions().count();
    let asks = if asks > 0 { format!("{asks} asks you · ") } else { String::new() };
    let failed = if counts.failed > 0 { format!("{} failed · ", counts.failed) } else { String::new() };
    format!("{asks}{failed}{} {} · rekindle", counts.progress(), cut(&one_line(&picture.run.title), 60))
}

/// How far the run is. The less important parts are left out if they do not fit.
fn progress(picture: &Picture, columns: usize) -> Row {
    let counts = picture.counts();
    let cells = BAR_CELLS.min(columns / 4);
    let filled = counts.filled(cells);
    let bar = format!("  {}{}", "█".repeat(filled), "░".repeat(cells - filled));
    let working = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).count();
    let some = |count: u64, word: &str| (count > 0).then(|| format!("{count} {word}"));
    let spent = picture.spent();
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let asks = number(picture.open_questions().count());
    // In display order, each with its weight: the lowest is left out first.
    let parts = [
        (9, Some(format!("{} complete", counts.progress()))),
        (8, some(number(counts.failed), "failed")),
        (1, some(number(counts.skipped), "skipped")),
        (7, some(asks, if asks == 1 { "asks you" } else { "ask you" })),
        (5, some(number(working), "running")),
        (4, some(picture.history.count(MarkKind::Recovery), "recovered")),
        (3, Some(picture.run.state.clone())),
        (6, Some(elapsed(picture.now.since_ms(picture.run.started_at)))),
        (2, spent.cost_usd.map(dollars)),
    ];
    let mut parts: Vec<(u8, String)> = parts.into_iter().filter_map(|(weight, text)| Some((weight, text?))).collect();
    let room = columns.saturating_sub(width_of(&bar) + 1);
    loop {
        let text = parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" · ");
        let least = parts.iter().map(|(weight, _)| *weight).min();
        if width_of(&text) <= room || parts.len() <= 1 {
            return Row::new(if counts.failed > 0 { Tone::Warning } else { Tone::Good }, bar, format!(" {text}"));
        }
        parts.retain(|(weight, _)| Some(*weight) != least);
    }
}

/// Questions with what to type, which is never truncated: it gets its own row if it would not fit.
fn questions(picture: &Picture, columns: usize) -> Vec<Row> {
    let open: Vec<_> = picture.open_questions().collect();
    let mut rows = Vec::new();
    for question in open.iter().take(OF_A_KIND) {
        let head = format!("  ? {} asks: ", question.task);
        let options: Vec<String> = question.options.iter().map(|option| one_line(option)).collect();
        let options = if options.is_empty() { String::new() } else { format!(" ({})", options.join(" / ")) };
        let words = format!("{}{options}", one_line(&question.text));
        let answer = format!("rekindle answer {} TEXT", question.id);
        if width_of(&head) + width_of(&words) + width_of(&answer) + 3 <= columns {
            rows.push(Row::new(Tone::Warning, head, format!("{words} · {answer}")));
        } else {
            rows.push(Row::new(Tone::Warning, head, words));
            rows.push(Row::new(Tone::Hint, format!("    {answer}"), ""));
        }
    }
    if open.len() > OF_A_KIND {
        rows.push(Row::new(Tone::Warning, format!("  ? {} more: rekindle questions", open.len() - OF_A_KIND), ""));
    }
    rows
}

fn failures(picture: &Picture) -> Vec<Row> {
    let failed: Vec<_> = picture.tasks.iter().filter(|task| task.state == "failed").collect();
    let shown = failed.iter().take(OF_A_KIND).map(|task| {
        let reason = task.reason.as_deref().map(one_line).unwrap_or_default();
        Row::new(Tone::Error, format!("  ✖ {} failed", task.id), format!(" · rekindle why {} · {reason}", task.id))
    });
    let mut rows: Vec<Row> = shown.collect();
    if failed.len() > OF_A_KIND {
        rows.push(Row::new(Tone::Error, format!("  ✖ {} more failed", failed.len() - OF_A_KIND), ""));
    }
    rows
}

/// What the whole run, or an account, waits for.
fn waits(picture: &Picture) -> Vec<Row> {
    let now = picture.now;
    let mut rows = Vec::new();
    let resumes = picture.run.resumes_at.filter(|until| picture.run.state == "waiting" && *until > now);
    if let Some(until) = resumes {
        let rest = format!(" in {} ({})", elapsed(until.since_ms(now)), near_time(until, now));
        rows.push(Row::new(Tone::Warning, "  ‖ resumes", rest));
    }
    if let Some(held) = waits::held_line(&picture.run) {
        rows.push(Row::new(Tone::Warning, "  ‖ ", one_line(&held)));
    }
    for (_, line) in waits::budgets(&picture.run, now).into_iter().filter(|(warns, _)| *warns) {
        rows.push(Row::new(Tone::Warning, "  ‖ ", one_line(&line)));
    }
    let waiting = picture.run.waits.iter().filter(|wait| wait.until.is_none_or(|until| until > now));
    for wait in waiting.take(OF_A_KIND) {
        let line = waits::waiting(wait, now);
        rows.push(Row::new(Tone::Warning, "  ‖ ", one_line(&line)));
    }
    rows
}

/// Tasks whose next attempt has a time.
fn retries(picture: &Picture) -> Vec<Row> {
    let mut next: Vec<_> = picture
        .tasks
        .iter()
        .filter(|task| standing::urgency(picture, task) == Urgency::Waiting)
        .filter_map(|task| Some((task.not_before.filter(|until| *until > picture.now)?, task)))
        .collect();
    next.sort_by_key(|(until, _)| *until);
    let shown = next.iter().take(OF_A_KIND).map(|(until, task)| {
        let last =
            task.cause.as_deref().map(|cause| format!(" · last: {}", cause.replace('_', " "))).unwrap_or_default();
        let wait = elapsed(until.since_ms(picture.now));
        let rest = format!(" next attempt in {wait} · {} of {} used{last}", task.attempts, task.attempt_limit);
        Row::new(Tone::Warning, format!("  ↻ {}", task.id), rest)
    });
    shown.collect()
}

/// The running agents, the oldest first.
fn agents(picture: &Picture, said: &Said, columns: usize, room: usize) -> Vec<Row> {
    let running: Vec<&AttemptRow> = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).collect();
    let shown = if running.len() > room { room.saturating_sub(1) } else { running.len() };
    let widest = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0).min(NAME_MAX);
    let tasks = widest(&mut running.iter().map(|agent| agent.task.as_ref().map_or(0, |task| width_of(task.as_str()))));
    let names = widest(&mut running.iter().map(|agent| width_of(agent.name.as_str())));
    let measured = running.iter().any(|agent| agent.measure.and_then(|measure| measure.remaining_percent()).is_some());
    let mut rows: Vec<Row> = Vec::new();
    for agent in running.iter().take(shown) {
        let task = agent.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let took = elapsed(picture.now.since_ms(agent.started_at));
        let head = format!("  ▶ {} {:<11}", pad(&task, tasks), word(picture, agent));
        let mut rest = format!(" {took:>7}");
        let left = |rest: &str| columns.saturating_sub(width_of(&head) + width_of(rest) + 1);
        let gauge = measured.then(|| gauge(agent, columns));
        for part in gauge.into_iter().chain([pad(agent.name.as_str(), names)]) {
            if width_of(&part) <= left(&rest) {
                rest.push_str(&format!(" {part}"));
            }
        }
        if let Some(words) = said.get(&agent.name).filter(|_| left(&rest) >= WORDS_MIN) {
            rest.push_str(&format!(" {}", cut(words, left(&rest))));
        }
        rows.push(Row::new(Tone::Active, head, rest.trim_end()));
    }
    if shown < running.len() && room > 0 {
        rows.push(Row::new(Tone::Dim, format!("  … and {} more running", running.len() - shown), ""));
    }
    rows
}

/// The state of an agent, in the words that every view uses.
fn word(picture: &Picture, agent: &AttemptRow) -> &'static str {
    let task = agent.task.as_ref().and_then(|task| picture.task(task.as_str()));
    match agent.state.as_str() {
        "starting" => "starting",
        "stopping" => "stopping",
        "exited" => "exited",
        _ => task.map_or("idle", |task| standing::of(picture, task).word),
    }
}

/// How full a context is: cells and percent, or the percent alone on a narrow terminal.
fn gauge(agent: &AttemptRow, columns: usize) -> String {
    let used =
        agent.measure.and_then(|measure| measure.remaining_percent()).map(|left| 100 - usize::from(left.min(100)));
    let wide = columns >= 100;
    let Some(used) = used else { return " ".repeat(if wide { GAUGE_CELLS + 5 } else { 4 }) };
    let filled = (used * GAUGE_CELLS).div_ceil(100);
    let cells = format!("{}{} ", "▓".repeat(filled), "░".repeat(GAUGE_CELLS - filled));
    format!("{}{used:>3}%", if wide { cells } else { String::new() })
}

fn pad(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let missing = width.saturating_sub(width_of(&text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests;
