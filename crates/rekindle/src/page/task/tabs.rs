//! The contents of the tabs of a task's page: its story, checks, diff, brief and log.

use std::io::Read;

use maud::{Markup, html};
use rekindle_core::report::{CheckResult, Evidence, Origin};
use rekindle_core::review::{GivenVerdict, Verdict};
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;

use crate::error::Result;
use crate::page::Visit;
use crate::page::parts::{self, moment};
use crate::picture::Picture;
use crate::picture::diff::{self, FileDiff, LineKind};
use crate::story::{self, chapters};
use crate::ui::{Tone, elapsed, one_line};

/// How much of a brief is shown.
const BRIEF_MAX_BYTES: u64 = 256 * 1024;

/// Chapters that are shown, newest last: the events' page has all.
const CHAPTERS_MAX: usize = 300;

/// Lines of a file's diff that are shown at once; a person opens the rest in git.
const DIFF_LINES_MAX: usize = 2_000;

/// Lines of a whole diff that are shown: the page has to stay light.
const ALL_LINES_MAX: usize = 6_000;

/// Every decision about the task.
pub(super) fn why(visit: &Visit<'_>, task: &TaskRow) -> Result<Markup> {
    let all = visit.read(|run| chapters::of(run, task.id.as_str()))?;
    let skipped = all.len().saturating_sub(CHAPTERS_MAX);
    Ok(html! {
        p.dim {
            "Every decision about this task, oldest first. The same in a terminal: " (parts::command(&format!("rekindle why {}", task.id)))
            " " a href=(visit.ways.with("/events", &[("task", task.id.as_str())])) { "Its events" }
        }
        @if all.is_empty() { p { "Nothing was decided about it yet." } }
        @if skipped > 0 { p.dim { (counted(skipped, "earlier one is", "earlier ones are")) " left out here." } }
        ol.story { @for chapter in &all[skipped..] {
            @let told = story::tell(&chapter.event);
            li data-key=(chapter.event.seq) {
                (moment(Time(chapter.event.time_ms))) " "
                span class=(format!("verb {}", parts::class(told.tone))) { (told.verb) } " "
                span.text { (one_line(&told.text)) }
                @if let Some(cause) = chapter.cause { " " span.dim { "cause " (cause) } }
                @if !chapter.shown.is_empty() { ul.evidence { @for line in &chapter.shown { li { (one_line(line)) } } } }
            }
        } }
    })
}

/// The results of the checks, and what reviewers said.
pub(super) fn checks(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Result<Markup> {
    let task = visit.read(|run| Ok(run.with_outputs(task.clone())))?;
    Ok(html! {
        @match &task.evidence {
            Some(evidence) => (evidence_of(evidence)),
            None => p.dim { "No check has run yet." },
        }
        @if let Some(rework) = &task.rework {
            h2 { "Sent back" }
            ul.evidence { @for issue in &rework.findings.issues { li { (one_line(issue)) } } }
            @if !rework.context.is_empty() { (parts::code(&rework.context, "what its agent is told")) }
        }
        @if !task.verdicts.is_empty() {
            h2 { "Verdicts" }
            ol.story { @for verdict in &task.verdicts { (verdict_of(picture, &task, verdict)) } }
        }
    })
}

fn evidence_of(evidence: &Evidence) -> Markup {
    html! {
        @for check in &evidence.checks { (check_of(check, None)) }
        @for seen in &evidence.health { (check_of(&seen.check, seen.origin)) }
        @for artifact in &evidence.missing_artifacts {
            p { (parts::pill("✖", "missing", Tone::Error)) " " code { (one_line(artifact)) } }
        }
        @if evidence.checks.is_empty() && evidence.missing_artifacts.is_empty() && evidence.health.is_empty() {
            p.dim { "The plan names no check: it is done on its agent's word." }
        }
    }
}

fn check_of(check: &CheckResult, origin: Option<Origin>) -> Markup {
    let (symbol, tone) = if check.passed { ("✔", Tone::Good) } else { ("✖", Tone::Error) };
    let word = check.outcome();
    let since = origin.map(|origin| match origin {
        Origin::Before => "failed before the work began",
        Origin::Introduced => "passed before the work began",
        Origin::Uncertain => "it is not known since when",
    });
    html! {
        article.check {
            p {
                (parts::pill(symbol, &word, tone)) " " (parts::command(&check.command)) " " span.dim {
                    (elapsed(check.took_ms))
                    @if let Some(environment) = &check.environment { " in " (one_line(environment)) }
                    @if let Some(since) = since { ", " (since) }
                }
            }
            @if !check.output.trim().is_empty() { details open[!check.passed] { summary { "Output" } (parts::code(&check.output, "output of the check")) } }
        }
    }
}

fn verdict_of(picture: &Picture, task: &TaskRow, given: &GivenVerdict) -> Markup {
    let (symbol, word, tone) = match given.verdict {
        Verdict::Pass => ("✔", "pass", Tone::Good),
        Verdict::Fail => ("✖", "fail", Tone::Error),
        Verdict::Blocked => ("‖", "blocked", Tone::Warning),
    };
    html! {
        li {
            (parts::pill(symbol, word, tone)) " " span.dim { (given.role) " in attempt " (picture.number_of(&task.id, given.attempt)) }
            ul.evidence {
                @for issue in &given.findings.issues { li { span.t-error { "issue " } (one_line(issue)) } }
                @for required in &given.findings.required { li { span.t-warn { "required " } (one_line(required)) } }
                @for passed in &given.findings.passed { li { span.t-good { "good " } (one_line(passed)) } }
            }
        }
    }
}

pub(super) fn diff(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Result<Markup> {
    let Some(diff) = diff::of(&visit.site.project, picture, task)? else {
        return Ok(
            html! { p.dim { "There is nothing to compare: no git here, or git shows no change by this task." } },
        );
    };
    let (added, removed) = diff.files.iter().fold((0, 0), |(add, cut), file| (add + file.added, cut + file.removed));
    let mut left = ALL_LINES_MAX;
    let mut shown = Vec::new();
    for (at, file) in diff.files.iter().enumerate() {
        let many = file.lines.len().min(DIFF_LINES_MAX).min(left);
        left -= many;
        shown.push(file_of(at, file, many));
    }
    Ok(html! {
        p { strong { (counted(diff.files.len(), "file", "files")) " " } span.t-good { "+" (added) } " " span.t-error { "−" (removed) } " " span.dim { (diff.place) } }
        ul.files {
            @for (at, file) in diff.files.iter().enumerate() {
                li { a href=(format!("#file-{at}")) { (file.path) } " " span.t-good.num { "+" (file.added) } " " span.t-error.num { "−" (file.removed) } }
            }
            @for name in &diff.new_files { li { (name) " " span.dim { "new, not in git yet" } } }
        }
        @for file in shown { (file) }
        @if diff.cut { p.banner { "There is more than is shown here." } }
    })
}

fn file_of(at: usize, file: &FileDiff, many: usize) -> Markup {
    html! {
        details.file open id=(format!("file-{at}")) {
            summary { code { (file.path) } @if let Some(note) = &file.note { " " span.dim { (note) } } (parts::copy(&file.path)) }
            div.diff tabindex="0" role="region" aria-label=(format!("changes of {}", file.path)) {
                @for line in &file.lines[..many] {
                    @let class = match line.kind { LineKind::Hunk => "hunk", LineKind::Added => "add", LineKind::Removed => "del", LineKind::Same => "" };
                    div class=(class) { span.sign { (line.kind.sign()) } (line.text) }
                }
                @if many < file.lines.len() { div.hunk { (counted(file.lines.len() - many, "more line", "more lines")) } }
            }
        }
    }
}

/// The brief of the newest attempt.
pub(super) fn brief(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let briefs = picture.attempts_of(&task.id).rev().filter_map(|attempt| {
        let bundle = visit.site.project.state_dir.join("attempts").join(format!("{:08}", attempt.attempt.0));
        let file = std::fs::File::open(bundle.join(rekindle_shim::bundle::PROMPT)).ok()?;
        let mut bytes = Vec::new();
        file.take(BRIEF_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        (!bytes.is_empty()).then(|| (attempt, String::from_utf8_lossy(&bytes).into_owned()))
    });
    match briefs.take(1).next() {
        Some((attempt, text)) => html! {
            p.dim { "What attempt " (picture.number_of(&task.id, attempt.attempt)) " (" (one_line(attempt.name.as_str())) ") was told." }
            (parts::code(&text, "brief"))
        },
        None => html! { p.dim { "There is no brief: no attempt has started, or it was removed." } },
    }
}

/// The log of the newest attempt.
pub(super) fn log(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Result<Markup> {
    let Some(attempt) = picture.attempts_of(&task.id).next_back() else {
        return Ok(html! { p.dim { "No agent has worked on it yet." } });
    };
    let lines = visit.read(|run| run.lines_of(attempt.attempt, 0, 200))?;
    Ok(html! {
        p { "Attempt " (picture.number_of(&task.id, attempt.attempt)) ", " (one_line(attempt.name.as_str())) " " a href=(visit.ways.log(attempt.attempt)) { "on its own page" } }
        (crate::page::log::viewer(visit, attempt, 0, &lines))
    })
}
