//! Every run of the project, newest first.

use maud::html;
use rekindle_core::view::RunRow;

use super::Visit;
use super::frame::Frame;
use super::parts::{self, Ways, copy, span};
use super::table::{self, Column, Line};
use crate::error::Result;
use crate::ui::{Tone, date_time, one_line, stamp};
use crate::view::View;

/// Columns of the list.
const COLUMNS: [Column; 6] =
    [("Run", ""), ("Plan", "title"), ("Outcome", "state"), ("Began", ""), ("Took", "r"), ("Resumed", "r")];

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let runs: Vec<RunRow> = match View::open(&visit.site.project) {
        Ok(view) => view.runs()?,
        Err(_) if visit.site.picture.is_none() => Vec::new(),
        Err(error) => return Err(error),
    };
    let now = rekindle_engine::clock::wall();
    let shown = visit.site.picture.as_ref().map(|picture| picture.run.id.as_str());
    let newest = runs.last().map(|row| row.id.clone());
    let line = |run: &RunRow| {
        let ways = Ways::of(Some(run.id.as_str()).filter(|id| Some(*id) != newest.as_deref()));
        let cells = vec![
            Some(html! { a.id href=(ways.to("/")) { (one_line(&run.id)) } (copy(&run.id)) }),
            Some(parts::title(&run.title)),
            Some(outcome(run)),
            Some(html! { time.num datetime=(stamp(run.started_at)) { (date_time(run.started_at)) } }),
            run.ended_at.map(|end| span(run.started_at, Some(end), now)),
            (run.resumes > 0).then(|| html! { span.num { (run.resumes) "×" } }),
        ];
        Line { current: shown == Some(run.id.as_str()), ..Line::new(&run.id, cells) }
    };
    let lines: Vec<Line> = runs.iter().rev().map(line).collect();
    let body = html! {
        h1 { "Runs" }
        @if runs.is_empty() { p { "There is no run yet: " (parts::command("rekindle run plan.md")) } }
        @if !runs.is_empty() { (table::table("Runs", "Runs of this project, newest first", "", &COLUMNS, &lines)) }
    };
    Ok(Frame::new("Runs", body))
}

fn outcome(run: &RunRow) -> maud::Markup {
    let (symbol, tone) = match run.state.as_str() {
        "complete" => ("✔", Tone::Good),
        "failed" => ("✖", Tone::Error),
        "paused" | "pausing" | "waiting" => ("‖", Tone::Warning),
        _ => ("▶", Tone::Active),
    };
    parts::pill(symbol, &run.state, tone)
}
