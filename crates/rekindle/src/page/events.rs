//! The event log: compact, full or as JSON, filtered by category, task and words, newest first or last, page by page.

use maud::{Markup, html};
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use super::Visit;
use super::frame::Frame;
use super::parts::{self, moment, task_link};
use super::table::{self, Column, Line};
use crate::error::Result;
use crate::picture::history;
use crate::story;
use crate::ui::{one_line, stamp};
use crate::view::RunView;

/// Events on one page.
const PAGE: usize = 100;

/// Events read at once while looking for those that fit.
const WINDOW: u64 = 2_048;

/// Most events read for one page: a filter that matches nothing must not read a store of millions on every refresh.
const LOOKED_AT_MAX: u64 = 200_000;

const CATEGORIES: [(&str, &str); 6] = [
    ("", "all"),
    ("trouble", "trouble and recovery"),
    ("task", "tasks"),
    ("agent", "agents"),
    ("question", "questions"),
    ("run", "the run"),
];

/// Columns of the list.
const COLUMNS: [Column; 6] =
    [("No.", ""), ("Time", "when"), ("What", "state"), ("Task", ""), ("Agent", ""), ("In words", "why")];

const VIEWS: [(&str, &str); 3] = [("", "compact"), ("full", "full"), ("json", "JSON")];
const ORDERS: [(&str, &str); 2] = [("", "newest first"), ("old", "oldest first")];

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let oldest_first = visit.asked("order") == Some("old");
    let newest = visit.picture()?.seq;
    let place = visit.asked("from").and_then(|from| from.parse::<u64>().ok());
    let from = place.unwrap_or(if oldest_first { 0 } else { newest + 1 });
    let found = visit.read(|run| {
        let wanted = |event: &StoredEvent| fits(visit, event);
        if oldest_first { forward(run, from, newest, wanted) } else { backward(run, from, wanted) }
    })?;
    let body = html! {
        h1 { "Events" }
        (filter(visit))
        (list(visit, &found.events))
        @if found.events.is_empty() { p.dim { "No event matches." } }
        (paging(visit, place.is_some(), found.next))
    };
    Ok(Frame::new("Events", body))
}

struct MatchingEvents {
    events: Vec<StoredEvent>,
    /// Where the next page begins.
    next: Option<u64>,
}

fn forward(
    run: &RunView<'_>,
    after: u64,
    newest: u64,
    wanted: impl Fn(&StoredEvent) -> bool,
) -> Result<MatchingEvents> {
    let (mut events, mut after, start) = (Vec::new(), after, after);
    while after < newest && after - start < LOOKED_AT_MAX {
        for event in run.events_after(after, usize::try_from(WINDOW).unwrap_or(usize::MAX))? {
            if wanted(&event) {
                if events.len() == PAGE {
                    let next = events.last().map(|event: &StoredEvent| event.seq);
                    return Ok(MatchingEvents { events, next });
                }
                events.push(event);
            }
        }
        after += WINDOW;
    }
    Ok(MatchingEvents { events, next: (after < newest).then_some(after) })
}

fn backward(run: &RunView<'_>, before: u64, wanted: impl Fn(&StoredEvent) -> bool) -> Result<MatchingEvents> {
    let (mut events, mut before, start) = (Vec::new(), before, before);
    while before > 1 && start - before < LOOKED_AT_MAX {
        let after = before.saturating_sub(WINDOW + 1);
        let window = run.events_after(after, usize::try_from(before - 1 - after).unwrap_or(usize::MAX))?;
        for event in window.into_iter().rev().filter(&wanted) {
            if events.len() == PAGE {
                let next = events.last().map(|event: &StoredEvent| event.seq);
                return Ok(MatchingEvents { events, next });
            }
            events.push(event);
        }
        before = after + 1;
    }
    Ok(MatchingEvents { events, next: (before > 1).then_some(before) })
}

fn fits(visit: &Visit<'_>, event: &StoredEvent) -> bool {
    let of_category = visit.asked("category").is_none_or(|category| match category {
        "trouble" => {
            story::body(event).as_ref().and_then(history::mark_kind).is_some_and(|kind| kind != history::MarkKind::Done)
        }
        category => category_of(&event.kind) == category,
    });
    let of_task = visit.asked("task").is_none_or(|task| event.task.as_deref() == Some(task));
    let words = || {
        visit.asked("q").is_none_or(|words| {
            let whom = format!("{} {}", event.task.as_deref().unwrap_or(""), event.agent.as_deref().unwrap_or(""));
            let text = format!("{} {} {whom} {}", event.kind, story::tell(event).text, event.details).to_lowercase();
            words.to_lowercase().split_whitespace().all(|word| text.contains(word))
        })
    };
    of_category && of_task && words()
}

/// The category of an event, by the first word of its kind.
fn category_of(kind: &str) -> &'static str {
    match kind.split('_').next().unwrap_or_default() {
        "task" | "checks" | "checkpoint" | "split" | "verdict" | "workflow" | "diff" | "merge" => "task",
        "question" | "person" => "question",
        "run" | "coordinator" | "session" | "wave" | "plan" | "starts" | "state" | "branch" | "gate" | "breaker" => {
            "run"
        }
        _ => "agent",
    }
}

fn filter(visit: &Visit<'_>) -> Markup {
    let choose = |name: &str, label: &str, choices: &[(&str, &str)]| {
        let now = visit.asked(name).unwrap_or_default().to_owned();
        html! {
            label { (label) " " select name=(name) {
                @for (value, word) in choices { option value=(value) selected[*value == now] { (word) } }
            } }
        }
    };
    html! {
        form.filter method="get" action="/events" role="search" data-live="" {
            @if let Some(run) = visit.ways.run() { input type="hidden" name="run" value=(run); }
            label { span.sr { "Filter events" } input type="search" name="q" value=(visit.asked("q").unwrap_or_default()) placeholder="words" autocomplete="off" data-keep=""; }
            label { "task " input.short type="text" name="task" value=(visit.asked("task").unwrap_or_default()) autocomplete="off" data-keep=""; }
            (choose("category", "about", &CATEGORIES))
            (choose("view", "as", &VIEWS))
            (choose("order", "", &ORDERS))
            noscript { button type="submit" { "Show" } }
            a.button href=(visit.ways.to("/api/events/download")) download="events.jsonl" { "Download" }
        }
    }
}

fn list(visit: &Visit<'_>, events: &[StoredEvent]) -> Markup {
    let view = visit.asked("view").unwrap_or_default();
    let line = |event: &StoredEvent| {
        let told = story::tell(event);
        let verb = format!("verb {}", parts::class(told.tone));
        let words = html! {
            (one_line(&told.text))
            @if view == "full" { (evidence(event)) }
            @if view == "json" { (parts::code(&json(event), "event as JSON")) }
        };
        let cells = vec![
            Some(html! { span.num { (event.seq) } }),
            Some(moment(Time(event.time_ms))),
            Some(html! { span class=(verb) title=(one_line(&event.kind)) { (told.verb) } }),
            event.task.as_ref().map(|task| task_link(&visit.ways, task)),
            event.agent.as_deref().map(|agent| html! { (one_line(agent)) }),
            Some(words),
        ];
        Line::new(event.seq, cells)
    };
    let lines: Vec<Line> = events.iter().map(line).collect();
    table::table("Events", "Events of the run", "events", &COLUMNS, &lines)
}

fn evidence(event: &StoredEvent) -> Markup {
    let lines = story::body(event).map(|body| story::evidence(&body)).unwrap_or_default();
    html! { @if !lines.is_empty() { ul.evidence { @for line in lines { li { (one_line(&line)) } } } } }
}

/// An event as JSON, formatted for reading.
fn json(event: &StoredEvent) -> String {
    let value = serde_json::json!({
        "seq": event.seq, "time": stamp(Time(event.time_ms)), "run": event.run, "kind": event.kind, "agent": event.agent,
        "task": event.task, "epoch": event.epoch,
        "details": serde_json::from_str::<serde_json::Value>(&event.details).unwrap_or_default(),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

fn paging(visit: &Visit<'_>, is_later: bool, next: Option<u64>) -> Markup {
    let to = |from: &str| {
        let names = ["q", "task", "category", "view", "order"];
        let mut query: Vec<(&str, &str)> =
            names.iter().map(|name| (*name, visit.asked(name).unwrap_or_default())).collect();
        query.push(("from", from));
        visit.ways.with("/events", &query)
    };
    html! {
        nav.paging aria-label="More events" {
            @if is_later { a.button href=(to("")) { "First page" } }
            @if let Some(next) = next { a.button rel="next" href=(to(&next.to_string())) { "Next page" } }
        }
    }
}
