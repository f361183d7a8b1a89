//! One attempt's log. The script shows all of it and follows it; without one there is a window of lines with links to the others.

use maud::{Markup, html};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_core::view::AttemptRow;
use rekindle_engine::store::{StoredLine, Stream};

use super::Visit;
use super::frame::Frame;
use super::parts::{self, span, task_link};
use crate::error::{CliError, Result};
use crate::picture::Picture;
use crate::picture::lines::LineIndex;
use crate::ui::{clock_time, harmless, one_line};

/// Lines in the window for pages without a script.
const WINDOW: usize = 500;

pub(super) fn page(visit: &Visit<'_>, id: AttemptId) -> Result<Frame> {
    let picture = visit.picture()?;
    let Some(attempt) = picture.attempt(id) else {
        let message = format!("there is no attempt {} in this run", id.0);
        return Err(CliError::usage(message).hint("choose one from a task's page"));
    };
    let from = visit.asked("from").and_then(|from| from.parse::<usize>().ok()).map_or(0, |from| from.saturating_sub(1));
    let lines = window(visit, id, from)?;
    let body = html! {
        (head(visit, picture, attempt))
        (viewer(visit, attempt, from, &lines))
        noscript { (paging(visit, id, from, lines.len())) }
    };
    let title = format!("Log of {}, {}", attempt.name, numbered(picture, attempt));
    Ok(Frame::new(&title, body).at_most_every(1_000))
}

/// The attempt's number for the task that it is working on.
fn numbered(picture: &Picture, attempt: &AttemptRow) -> String {
    let number = attempt.task.as_ref().map(|task| picture.number_of(task, attempt.attempt));
    number.map_or_else(|| "attempt".to_owned(), |number| format!("attempt {number}"))
}

fn window(visit: &Visit<'_>, id: AttemptId, from: usize) -> Result<Vec<StoredLine>> {
    visit.read(|run| {
        if from == 0 {
            // The beginning is found without knowing the rest.
            return run.lines_of(id, 0, WINDOW);
        }
        let mut index = LineIndex::new(id);
        index.grow(run)?;
        index.window(run, from, WINDOW)
    })
}

fn head(visit: &Visit<'_>, picture: &Picture, attempt: &AttemptRow) -> Markup {
    html! {
        div.head {
            h1 {
                "Log of " (one_line(attempt.name.as_str())) " "
                span.dim.small { (numbered(picture, attempt)) ", " (one_line(&attempt.cli)) }
            }
            p.facts {
                @for task in &attempt.tasks { (task_link(&visit.ways, task.as_str())) " " }
                (parts::pill(if attempt.ended_at.is_none() { "▶" } else { "■" }, &attempt.state, crate::ui::Tone::of_state(&attempt.state)))
                " " (span(attempt.started_at, attempt.ended_at, picture.now))
                @if let Some(cause) = &attempt.cause { " " span.dim { (one_line(cause)) } }
            }
        }
    }
}

/// The log itself; its contents belong to the script once that runs.
pub(super) fn viewer(visit: &Visit<'_>, attempt: &AttemptRow, from: usize, lines: &[StoredLine]) -> Markup {
    let raw = visit.ways.to(&format!("/api/logs/{}/raw", attempt.attempt.0));
    html! {
        section.log aria-label="Log" data-log=(attempt.attempt.0) data-live-log=[attempt.ended_at.is_none().then_some("")] {
            div.tools data-keep="" {
                form.find role="search" hidden {
                    label { span.sr { "Search in this log" } input type="search" placeholder="search in this log" autocomplete="off"; }
                    button type="button" name="previous" aria-label="previous hit" { "↑" }
                    button type="button" name="next" aria-label="next hit" { "↓" }
                    output.dim {}
                }
                label { input type="checkbox" name="follow"; " follow" }
                label { input type="checkbox" name="wrap"; " wrap" }
                label { input type="checkbox" name="times" checked; " times" }
                span.dim.total {}
                a.button href=(raw) download=(format!("attempt-{}.log", attempt.attempt.0)) { "Raw" }
            }
            div.view tabindex="0" role="region" aria-label="Lines" data-keep="" {
                ol.lines { @for (at, line) in lines.iter().enumerate() { (one(from + at + 1, line)) } }
                @if lines.is_empty() { p.dim { (visit.picture().ok().and_then(|picture| picture.removed.clone()).unwrap_or_else(|| "No line yet.".to_owned())) } }
            }
            button.new type="button" hidden data-keep="" {}
        }
    }
}

fn one(number: usize, line: &StoredLine) -> Markup {
    let error = line.line.stream == Stream::Err;
    html! {
        li.row.err[error] id=(format!("L{number}")) {
            a.no href=(format!("#L{number}")) { (number) }
            span.at { (clock_time(Time(line.line.time_ms))) }
            span.mark { @if error { "err" } }
            span.text { (harmless(&line.line.text).replace('\n', " ")) @if line.line.torn { span.dim { " (torn)" } } }
        }
    }
}

fn paging(visit: &Visit<'_>, id: AttemptId, from: usize, shown: usize) -> Markup {
    let to = |from: usize| visit.ways.with(&format!("/logs/{}", id.0), &[("from", &(from + 1).to_string())]);
    html! {
        nav.paging aria-label="More lines" {
            @if from > 0 { a.button href=(to(from.saturating_sub(WINDOW))) { "Earlier lines" } }
            @if shown == WINDOW { a.button href=(to(from + WINDOW)) { "Later lines" } }
        }
    }
}
