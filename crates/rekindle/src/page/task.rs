//! A task's page: its state, its attempts side by side, and tabs with its brief, checks, diff, story and log. Only the open
//! tab is read.

mod tabs;

use maud::{Markup, html};
use rekindle_core::view::{AttemptRow, TaskRow};

use super::frame::Frame;
use super::parts::{self, copy, span, task_link};
use super::{Visit, acting};
use crate::drawing::{self, Links};
use crate::error::{CliError, Result};
use crate::picture::Picture;
use crate::picture::history::{MarkKind, Span};
use crate::picture::standing;
use crate::ui::{harmless, one_line};

/// The tabs: the word in the address, the label, and the shortest time between two refreshes.
const TABS: [(&str, &str, u32); 6] = [
    ("", "Attempts", 250),
    ("why", "Why", 500),
    ("checks", "Checks", 500),
    ("diff", "Diff", 3_000),
    ("brief", "Brief", 3_000),
    ("log", "Log", 1_000),
];

pub(super) fn page(visit: &Visit<'_>, id: &str) -> Result<Frame> {
    let picture = visit.picture()?;
    let Some(task) = picture.task(id) else {
        let message = format!("there is no task `{}` in this run", one_line(id));
        return Err(CliError::usage(message).hint("choose one from the overview"));
    };
    let asked = visit.asked("tab").unwrap_or_default();
    let (tab, word, every) = TABS.iter().find(|(tab, ..)| *tab == asked).copied().unwrap_or(TABS[0]);
    let shown = match tab {
        "why" => tabs::why(visit, task)?,
        "checks" => tabs::checks(visit, picture, task)?,
        "diff" => tabs::diff(visit, picture, task)?,
        "brief" => tabs::brief(visit, picture, task),
        "log" => tabs::log(visit, picture, task)?,
        _ => attempts(visit, picture, task),
    };
    let body = html! {
        (head(visit, picture, task))
        nav.tabs aria-label="About this task" { ul { @for (name, label, _) in TABS {
            li { a href=(visit.ways.with(&format!("/tasks/{}", parts::encoded(id)), &[("tab", name)])) aria-current=[(name == tab).then_some("page")] { (label) } }
        } } }
        section #tab aria-label=(word) { (shown) }
    };
    Ok(Frame::new(&format!("{} {}", task.id, task.title), body).at_most_every(every))
}

fn head(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let (standing, note) = parts::standing_of(picture, task);
    let question = standing::question_of(picture, task);
    // The tasks that it waits for are linked directly after it.
    let linked = standing.note.as_deref().is_some_and(|note| note.starts_with("after ")) && !task.blocked_by.is_empty();
    html! {
        p.crumb { a href=(visit.ways.to("/")) { "Tasks" } " / " (one_line(task.id.as_str())) (copy(task.id.as_str())) }
        h1 #task-title data-task=(task.id) data-state=(task.state) { (one_line(&task.title)) }
        p.facts {
            (parts::stands(&standing)) " " @if !linked { span.note { (note) } }
            @if !task.blocked_by.is_empty() { " " span.dim { "after " } @for before in &task.blocked_by { (task_link(&visit.ways, before.as_str())) " " } }
            @if let Some(parent) = &task.parent { " " span.dim { "part of " } (task_link(&visit.ways, parent.as_str())) }
            @if !task.parts.is_empty() { " " span.dim { "parts " } @for part in &task.parts { (task_link(&visit.ways, part.as_str())) " " } }
        }
        (acting::menu(visit, picture, task))
        @if let Some(question) = question { (acting::question(visit, question)) }
        (acting::waiting(visit, picture, question.is_none()))
        (acting::tell(visit, picture, task))
        @if let Some(result) = task.result.as_deref().filter(|_| task.state == "complete") {
            details open { summary { "Result" } p.result { (harmless(result)) } }
        }
        @if let Some(checkpoint) = &task.checkpoint { (checkpoint_of(checkpoint)) }
        (parts::output(picture, task))
    }
}

fn checkpoint_of(checkpoint: &rekindle_core::report::Checkpoint) -> Markup {
    html! {
        details { summary { "Where its agent stood: " (one_line(&checkpoint.status)) }
            ul.evidence {
                @for item in &checkpoint.completed { li { span.t-good { "✔ done " } (one_line(item)) } }
                @for item in &checkpoint.remaining { li { span.dim { "· left " } (one_line(item)) } }
                @for file in &checkpoint.files { li { span.dim { "file " } code { (one_line(file)) } } }
            }
        }
    }
}

/// Attempts side by side: one column each.
fn attempts(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let all: Vec<&AttemptRow> = picture.attempts_of(&task.id).collect();
    if all.is_empty() {
        return html! { p.dim { "No agent has worked on it yet." } };
    }
    let spans = picture.history.of(&task.id);
    // A row in which no attempt has anything is left out.
    let each = |name: &str, show: &dyn Fn(&AttemptRow) -> Option<Markup>| {
        let cells: Vec<Option<Markup>> = all.iter().map(|attempt| show(attempt)).collect();
        html! { @if cells.iter().any(Option::is_some) { tr {
            th scope="row" { (name) }
            @for (cell, attempt) in cells.into_iter().zip(&all) { td data-label=(format!("#{}", picture.number_of(&task.id, attempt.attempt))) { @if let Some(cell) = cell { (cell) } @else { span.dim { "–" } } } }
        } } }
    };
    let plain = |text: &str| Some(html! { (one_line(text)) });
    let span_of = |attempt: &AttemptRow| spans.iter().rev().find(|span| span.attempt == attempt.attempt);
    let alone = Picture { tasks: vec![task.clone()], ..Picture::clone(picture) };
    html! {
        (drawing::timeline(&alone, Links::Pages))
        div.scroll.sides tabindex="0" role="region" aria-label="Attempts" {
            table.side {
                caption.sr { "Attempts at this task, one per column" }
                thead { tr { th scope="col" { span.sr { "What" } } @for attempt in &all {
                    th scope="col" data-key=(attempt.attempt.0) {
                        a href=(visit.ways.log(attempt.attempt)) { "attempt " (picture.number_of(&task.id, attempt.attempt)) }
                    }
                } } }
                tbody {
                    (each("State", &|attempt| Some(parts::pill(if attempt.ended_at.is_none() { "▶" } else { "■" }, &attempt.state, crate::ui::Tone::of_state(&attempt.state)))))
                    (each("Ended by", &|attempt| cause(attempt, span_of(attempt))))
                    (each("Last words", &|attempt| attempt.last_words.as_deref().and_then(plain)))
                    (each("Agent", &|attempt| plain(attempt.name.as_str())))
                    (each("Role", &|attempt| plain(&attempt.role.to_string())))
                    (each("Program", &|attempt| plain(&format!("{} ({})", attempt.cli, attempt.kind))))
                    (each("Model", &|attempt| attempt.model.as_deref().and_then(plain)))
                    (each("Strategy", &|attempt| plain(attempt.strategy.name())))
                    (each("Time", &|attempt| Some(span(attempt.started_at, attempt.ended_at, picture.now))))
                    (each("Tokens", &|attempt| parts::tokens_cell(Some(&parts::spent(attempt)))))
                    (each("Cost", &|attempt| parts::cost_cell(Some(&parts::spent(attempt)))))
                    (each("Context", &|attempt| parts::context_cell(attempt.measure)))
                    (each("Compactions", &|attempt| (attempt.compactions > 0).then(|| html! { span.num { (attempt.compactions) } })))
                    (each("Marks", &|attempt| marks(span_of(attempt))))
                    (each("Session", &|attempt| attempt.session_id.as_ref().map(|id| html! { code.cut { (one_line(id)) } (copy(id)) })))
                    (each("Log", &|attempt| Some(html! { a href=(visit.ways.log(attempt.attempt)) { "open" } })))
                }
            }
        }
    }
}

fn cause(attempt: &AttemptRow, span: Option<&Span>) -> Option<Markup> {
    let outcome = span.and_then(|span| span.outcome.as_deref());
    let said = outcome.or(attempt.cause.as_deref())?;
    Some(html! { (one_line(said).replace('_', " ")) })
}

fn marks(span: Option<&Span>) -> Option<Markup> {
    let marks = span.map(|span| span.marks.as_slice()).filter(|marks| !marks.is_empty())?;
    let kinds = MarkKind::ALL.iter().filter_map(|kind| {
        let many = marks.iter().filter(|mark| mark.kind == *kind).count();
        (many > 0).then_some((*kind, many))
    });
    Some(html! { @for (kind, many) in kinds { (parts::mark(kind)) @if many > 1 { " ×" (many) } " " } })
}
