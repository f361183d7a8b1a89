//! One task's story in the report: its state, its attempts, what its checks and reviewers said, and every decision.

use maud::{Markup, html};
use rekindle_core::last_words;
use rekindle_core::report::CheckResult;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;

use super::{moment, output, passed_class, spent, words};
use crate::drawing::class_of;
use crate::picture::history::Span;
use crate::picture::{Picture, standing};
use crate::report::TaskReport;
use crate::story::chapters::{Chapter, Newest};
use crate::story::tell;
use crate::ui::{cut, elapsed, harmless};
use crate::view::Spent;

/// How much of a check's output is shown: its end says what went wrong.
const OUTPUT_MAX_BYTES: usize = 16 * 1024;

/// Lines of evidence below a decision.
const EVIDENCE_MAX: usize = 30;

/// Longest line of evidence, in columns.
const EVIDENCE_COLUMNS: usize = 400;

pub(super) fn section(task: &TaskReport, picture: &Picture, newest: &Newest) -> Markup {
    let row = &task.row;
    let failed = row.state == "failed";
    html! {
        section id={ "task-" (row.id) } {
            (heading(row, picture))
            @if let Some(result) = &row.result { p { "Result: " (words(result)) } }
            @if let Some((mark, words)) = row.doubt() { p.warn { (mark) ": " (words) "." } }
            (attempts(row, picture))
            (checks(row))
            (printed(row, picture))
            (verdicts(row))
            @if let Some(rework) = &row.rework {
                h4 { "Sent back" }
                ul.list { @for issue in &rework.findings.issues { li { (words(issue)) } } }
            }
            @if !newest.chapters.is_empty() {
                details open[failed] {
                    summary { (newest.chapters.len()) " decisions and facts" }
                    @if newest.left_out > 0 {
                        p.dim { (counted(newest.left_out, "earlier one is", "earlier ones are")) " left out: " code { "rekindle why " (row.id) } }
                    }
                    ol.story { @for chapter in &newest.chapters { (told(chapter)) } }
                }
            }
        }
    }
}

/// The placeholder for the story of a task for which there is no room.
pub(super) fn without(task: &TaskReport) -> Markup {
    let row = &task.row;
    html! {
        section id={ "task-" (row.id) } {
            h3 { (row.id) " " (words(&row.title)) }
            p.dim { (words(&row.state.replace('_', " "))) "; its story is left out, the file would be too large: " code { "rekindle why " (row.id) } }
        }
    }
}

/// The checks that keep a task from being proven, with what they printed.
pub(super) fn failing(row: &TaskRow) -> Markup {
    let failing = row.evidence.iter().flat_map(|evidence| &evidence.checks).filter(|check| !check.passed);
    let missing = row.evidence.iter().flat_map(|evidence| &evidence.missing_artifacts);
    html! {
        @for check in failing { (shown(check)) }
        @for artifact in missing { p.bad { "✖ " code { (words(artifact)) } " is not there" } }
    }
}

fn heading(row: &TaskRow, picture: &Picture) -> Markup {
    let stands = standing::of(picture, row);
    let said = row.result.as_deref().map(crate::ui::one_line);
    html! {
        h3 {
            span class=(class_of(stands.tone)) { (stands.symbol) " " (row.id) }
            " " (words(&row.title)) " "
            span class=(class_of(stands.tone)) { "(" (stands.word) ")" }
        }
        p.dim {
            (row.attempts) " of " (counted(row.attempt_limit, "attempt", "attempts"))
            @if !row.blocked_by.is_empty() {
                " · after "
                @for (at, before) in row.blocked_by.iter().enumerate() { @if at > 0 { ", " } (super::task_link(before.as_str())) }
            }
            @if let Some(parent) = &row.parent { " · part of " (super::task_link(parent.as_str())) }
            @if row.compactions > 0 { " · " (row.compactions) " compactions" }
            @if let Some(commit) = &row.merged { " · merged as " code { (words(commit)) } }
            @if let Some(note) = stands.note.filter(|note| row.state != "blocked" && said.as_ref() != Some(note)) { " · " (words(&note)) }
        }
    }
}

fn attempts(row: &TaskRow, picture: &Picture) -> Markup {
    let spans = picture.history.of(&row.id);
    html! {
        @if !spans.is_empty() {
            div.wide { table {
                thead { tr { th { "Attempt" } th { "Agent" } th { "Begun" } th.number { "Started in" } th.number { "Worked" } th { "Ended" } th { "What happened to it" } th.number { "Used" } } }
                tbody { @for span in spans { (attempt(span, picture)) } }
            } }
        }
    }
}

fn attempt(span: &Span, picture: &Picture) -> Markup {
    let end = span.ended_at.unwrap_or(picture.until()).max(span.begun_at);
    let runs = span.runs_at.map(|runs| runs.clamp(span.begun_at, end));
    let row = picture.attempt(span.attempt);
    let model = row.and_then(|row| row.model.as_deref());
    let used = row.map(|row| Spent::by_all(std::slice::from_ref(row))).unwrap_or_default();
    let outcome = span.outcome.as_deref().unwrap_or("running").replace('_', " ");
    html! {
        tr {
            td { (span.number) " (" (span.role) ")" }
            td { (words(&span.agent)) " (" (words(&span.cli)) @if let Some(model) = model { ", " (words(model)) } ")" }
            td { (moment(span.begun_at)) }
            td.number { @if let Some(runs) = runs { (elapsed(runs.since_ms(span.begun_at))) } }
            td.number { @if let Some(runs) = runs { (elapsed(end.since_ms(runs))) } }
            td { (words(&last_words::with(&outcome, row.and_then(|row| row.last_words.as_deref())))) }
            td {
                @for mark in &span.marks {
                    span class=(class_of(mark.kind.tone())) title=(words(&mark.text)) { (mark.kind.symbol()) " " (mark.kind.name()) } " "
                }
                @if span.more_marks > 0 { "and " (span.more_marks) " more" }
            }
            td.number { (spent(used.tokens, used.cost_usd)) }
        }
    }
}

/// What its agent printed before it failed last.
pub(super) fn printed(row: &TaskRow, picture: &Picture) -> Markup {
    let Some(output) = picture.outputs.get(&row.id) else { return html! {} };
    html! {
        h4 { (words(&output.heading())) }
        pre { @for line in output.shown() { (words(line)) "\n" } }
    }
}

fn checks(row: &TaskRow) -> Markup {
    let Some(evidence) = &row.evidence else { return html! {} };
    let health = evidence.health.iter().map(|seen| &seen.check).filter(|check| !check.passed);
    html! {
        @if !evidence.checks.is_empty() || !evidence.missing_artifacts.is_empty() {
            h4 { "Checks" }
            @for check in evidence.checks.iter().chain(health) { (shown(check)) }
            @for artifact in &evidence.missing_artifacts { p.bad { "✖ " code { (words(artifact)) } " is not there" } }
        }
    }
}

/// A check with its output; the output of a passing one is collapsed.
fn shown(check: &CheckResult) -> Markup {
    let how = check.outcome();
    let symbol = if check.passed { "✔" } else { "✖" };
    let printed = output(&check.output, OUTPUT_MAX_BYTES);
    let place = check.environment.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    let line = html! {
        span class=(passed_class(check.passed)) { (symbol) } " " code { (words(&check.command)) } " " (how) (words(&place)) " after " (elapsed(check.took_ms))
    };
    html! {
        @if printed.trim().is_empty() { p { (line) } }
        @else { details open[!check.passed] { summary { (line) } pre { (printed) } } }
    }
}

fn verdicts(row: &TaskRow) -> Markup {
    html! {
        @if !row.verdicts.is_empty() {
            h4 { "Verdicts" }
            ul.list { @for given in &row.verdicts {
                li {
                    b { (given.role) ": " (words(&format!("{:?}", given.verdict).to_lowercase())) }
                    @if !given.findings.issues.is_empty() { ul.list { @for issue in &given.findings.issues { li { (words(issue)) } } } }
                }
            } }
        }
    }
}

fn told(chapter: &Chapter) -> Markup {
    let told = tell(&chapter.event);
    let lines: Vec<String> =
        chapter.shown.iter().take(EVIDENCE_MAX).map(|line| cut(harmless(line).trim_end(), EVIDENCE_COLUMNS)).collect();
    let more = chapter.shown.len().saturating_sub(EVIDENCE_MAX);
    html! {
        li {
            (moment(Time(chapter.event.time_ms))) " "
            b class=(class_of(told.tone)) { (told.verb) } " "
            @if let Some(agent) = &chapter.event.agent { span.dim { (words(agent)) ": " } }
            (words(&told.text))
            @if !lines.is_empty() { pre { (lines.join("\n")) @if more > 0 { "\n… " (counted(more, "more line", "more lines")) } } }
        }
    }
}
