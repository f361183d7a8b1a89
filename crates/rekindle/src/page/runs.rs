//! Every run of the project, newest first.

use maud::html;
use rekindle_core::view::RunRow;

use super::Visit;
use super::frame::Frame;
use super::parts::{self, Ways, copy, span};
use crate::error::Result;
use crate::ui::{Tone, date_time, one_line, stamp};
use crate::view::View;

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let runs: Vec<RunRow> = match View::open(&visit.site.project) {
        Ok(view) => view.runs()?,
        Err(_) if visit.site.picture.is_none() => Vec::new(),
        Err(error) => return Err(error),
    };
    let now = rekindle_engine::clock::wall();
    let shown = visit.site.picture.as_ref().map(|picture| picture.run.id.as_str());
    let newest = runs.last().map(|row| row.id.clone());
    let body = html! {
        h1 { "Runs" }
        @if runs.is_empty() { p { "There is no run yet: " (parts::command("rekindle run plan.md")) } }
        div.scroll tabindex="0" role="region" aria-label="Runs" {
            table.rows {
                caption.sr { "Runs of this project, newest first" }
                thead { tr { @for name in ["Run", "Plan", "Outcome", "Began", "Took", "Resumed"] { th scope="col" { (name) } } } }
                tbody { @for run in runs.iter().rev() {
                    @let ways = Ways::of(Some(run.id.as_str()).filter(|id| Some(*id) != newest.as_deref()));
                    tr data-key=(run.id) aria-current=[(shown == Some(run.id.as_str())).then_some("true")] {
                        th scope="row" { a.id href=(ways.to("/")) { (one_line(&run.id)) } (copy(&run.id)) }
                        td.title { (one_line(&run.title)) }
                        td { (outcome(run)) }
                        td { time.num datetime=(stamp(run.started_at)) { (date_time(run.started_at)) } }
                        td { @if let Some(end) = run.ended_at { (span(run.started_at, Some(end), now)) } @else { span.dim { "–" } } }
                        td { span.num { (run.resumes) "×" } }
                    }
                } }
            }
        }
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
