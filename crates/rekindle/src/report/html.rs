//! The report on a run as one HTML file that needs nothing but a browser: no network, no script. What failed and what waits
//! for a person comes first; then the pictures, every task's story, and what it cost.
//!
//! Everything that an agent or a plan said is made harmless and escaped: it is shown, but cannot format anything.

mod cost;
mod policy;
mod story;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rekindle_core::text::truncate_bytes;
use rekindle_core::time::Time;

use super::{Entry, List, Report, TaskReport};
use crate::drawing::{self, Links, class_of};
use crate::picture::history::MarkKind;
use crate::picture::{Picture, standing};
use crate::story::chapters::Newest;
use crate::ui::{Tone, date_time, dollars, elapsed, harmless, one_line, short_count, stamp, zone_line};

/// Most chapters of one task that are shown, the newest ones: a task that was retried for days has thousands.
pub(crate) const CHAPTERS_MAX: usize = 150;

/// Size limit for all tasks' stories together: a browser on a phone must still open the file.
const STORIES_MAX_BYTES: usize = 6 * 1024 * 1024;

/// Longest text of an agent or a plan in a line.
const WORDS_MAX_BYTES: usize = 2_000;

/// The style of the file, besides its drawings.
const CSS: &str = include_str!("html/report.css");

/// The account as a file.
pub(crate) fn render(report: &Report, picture: &Picture, told: &BTreeMap<&str, Newest>) -> String {
    let style = format!("{}{CSS}", drawing::CSS);
    let title = words(&report.run.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy::policy(&style));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · rekindle" }
                style { (PreEscaped(&style)) }
            }
            body { (body(report, picture, told)) }
        }
    };
    page.into_string()
}

fn body(report: &Report, picture: &Picture, told: &BTreeMap<&str, Newest>) -> Markup {
    html! {
        (head(report, picture))
        main {
            (troubles(report, picture))
            (asked(report))
            h2 { "Timeline" }
            (drawing::timeline(picture, Links::Anchors))
            h2 { "Dependencies" }
            (drawing::graph(picture, Links::Anchors))
            (tasks(report, picture))
            (entries("Recovered", &report.recoveries))
            (stories(report, picture, told))
            (answers(report))
            (entries("Disagreements", &report.disagreements))
            (entries("Decisions", &report.decisions))
            (entries("Alerts", &report.alerts))
            (files(report))
            (cost::tables(report, picture))
        }
        footer { "Made by rekindle from the store of run " code { (words(&report.run.id)) } ", up to " (moment(report.until)) "." }
    }
}

fn head(report: &Report, picture: &Picture) -> Markup {
    let (run, counts) = (&report.run, &report.counts);
    let open = counts.open();
    let (symbol, class) = match run.state.as_str() {
        "complete" => ("✔", "ok"),
        "failed" => ("✖", "bad"),
        _ => ("…", "active"),
    };
    let recovered = picture.history.count(MarkKind::Recovery);
    html! {
        header {
            h1 { span class=(class) { (symbol) " " (words(&run.state)) } " · " (words(&run.title)) }
            p.dim {
                "plan " code { (words(&run.plan)) } " · run " code { (words(&run.id)) } " · from " (moment(run.started_at))
                @if let Some(ended) = run.ended_at { " to " (moment(ended)) }
                " · " (zone_line(report.until))
                @if run.resumes > 0 { " · resumed " (run.resumes) "×" }
                @if run.plan_changed { " · the plan's file differs from the plan of this run" }
            }
            ul.facts {
                li { b { (counts.complete) } " of " (counts.all) " complete" }
                @if counts.failed > 0 { li.bad { b { (counts.failed) } " failed" } }
                @if counts.skipped > 0 { li { b { (counts.skipped) } " skipped" } }
                @if open > 0 { li { b { (open) } " open" } }
                li { b { (report.attempts) } @if report.attempts == 1 { " attempt" } @else { " attempts" } }
                li { b { (recovered) } @if recovered == 1 { " recovery" } @else { " recoveries" } }
                li { b { (elapsed(report.until.since_ms(run.started_at))) } " in all" }
                @if report.spent.tokens > 0 { li { b { (short_count(report.spent.tokens)) } " tokens" } }
                @if let Some(cost) = report.spent.cost_usd { li { b { (dollars(cost)) } } }
            }
            @for line in picture.result.iter().flat_map(|made| made.lines()) { p.dim { (words(&line)) } }
            @if run.ended_at.is_none() {
                p.active { "The run is not over" @if picture.coordinator.is_none() { ", and no coordinator is running" } "." }
            }
        }
    }
}

/// What failed, and why, before anything else.
fn troubles(report: &Report, picture: &Picture) -> Markup {
    let failed: Vec<&TaskReport> = report.tasks.iter().filter(|task| task.row.state == "failed").collect();
    let behind = |id: &str| {
        let waits = |task: &&TaskReport| task.row.blocked_by.iter().any(|before| before.as_str() == id);
        let open = |task: &&TaskReport| !matches!(task.row.state.as_str(), "complete" | "skipped" | "failed");
        report.tasks.iter().filter(waits).filter(open).count()
    };
    html! {
        @if !failed.is_empty() {
            h2 { "What failed" }
            @for task in failed {
                div.trouble {
                    p { span.bad { "✖ " } (task_link(task.row.id.as_str())) " " b { (words(&task.row.title)) } }
                    p { (words(task.row.reason.as_deref().unwrap_or("it failed"))) }
                    @if let Some(cause) = &task.row.cause { p.dim { "last cause: " (words(&cause.replace('_', " "))) } }
                    @match behind(task.row.id.as_str()) {
                        0 => {}
                        1 => p.warn { "1 task waits for it" }
                        many => p.warn { (many) " tasks wait for it" }
                    }
                    (story::failing(&task.row))
                    (story::printed(&task.row, picture))
                    p.dim { "look: " code { "rekindle why " (task.row.id) } " · try again: " code { "rekindle task retry " (task.row.id) } }
                }
            }
        }
    }
}

fn asked(report: &Report) -> Markup {
    let open: Vec<_> = report.questions.iter().filter(|question| question.answer.is_none()).collect();
    html! {
        @if !open.is_empty() {
            h2 { "What waits for you" }
            @for question in open {
                div.trouble.asks {
                    p { span.warn { "? " } (task_link(question.task.as_str())) " " (words(question.agent.as_str())) " asks: " b { (words(&question.text)) } }
                    @if !question.context.is_empty() { p { (words(&question.context)) } }
                    @if !question.options.is_empty() {
                        ul.list { @for option in &question.options { li { (words(option)) } } }
                    }
                    p.dim { "answer: " code { "rekindle answer " (question.id) " TEXT" } }
                }
            }
        }
    }
}

fn tasks(report: &Report, picture: &Picture) -> Markup {
    html! {
        h2 { "Tasks" }
        div.wide { table {
            thead { tr { th { "Task" } th { "State" } th { "Title" } th.number { "Attempts" } th.number { "Time" } th { "Agent" } th.number { "Used" } } }
            tbody { @for task in &report.tasks {
                @let stands = standing::of(picture, &task.row);
                tr {
                    td { (task_link(task.row.id.as_str())) }
                    td class=(class_of(stands.tone)) { (stands.symbol) " " (stands.word) }
                    td { (words(&task.row.title)) }
                    td.number { (task.row.attempts) "/" (task.row.attempt_limit) }
                    td.number { @if task.worked_ms > 0 { (elapsed(task.worked_ms)) } }
                    td { @if let Some(agent) = &task.row.agent { (words(agent.as_str())) } }
                    td.number { (spent(task.spent.tokens, task.spent.cost_usd)) }
                }
            } }
        } }
    }
}

fn stories(report: &Report, picture: &Picture, told: &BTreeMap<&str, Newest>) -> Markup {
    let none = Newest::default();
    let mut room = STORIES_MAX_BYTES;
    let mut sections = Vec::new();
    for task in &report.tasks {
        let newest = told.get(task.row.id.as_str()).unwrap_or(&none);
        let whole = story::section(task, picture, newest);
        let section = if whole.0.len() <= room { whole } else { story::without(task) };
        room = room.saturating_sub(section.0.len());
        sections.push(section);
    }
    html! {
        h2 { "Every task's story" }
        @for section in &sections { (section) }
    }
}

fn answers(report: &Report) -> Markup {
    let answered: Vec<_> = report.questions.iter().filter(|question| question.answer.is_some()).collect();
    html! {
        @if !answered.is_empty() {
            h2 { "Questions and answers" }
            ul.list { @for question in answered {
                li {
                    (task_link(question.task.as_str())) " " (words(question.agent.as_str())) " asked: " (words(&question.text))
                    p { "answer: " b { (words(question.answer.as_deref().unwrap_or_default())) } }
                }
            } }
        }
    }
}

fn entries(heading: &str, list: &List<Entry>) -> Markup {
    html! {
        @if !list.kept.is_empty() {
            h2 { (heading) }
            ul.list { @for entry in &list.kept {
                li {
                    (moment(entry.time)) " "
                    @match &entry.task { Some(task) => (task_link(task)), None => "run" }
                    @if let Some(agent) = &entry.agent { " " (words(agent)) }
                    ": " (words(&entry.text))
                }
            } }
            (more(list.more))
        }
    }
}

fn files(report: &Report) -> Markup {
    html! {
        @if !report.files.kept.is_empty() {
            h2 { "Files that agents named" }
            ul.list { @for file in &report.files.kept { li { code { (words(file)) } } } }
            (more(report.files.more))
        }
    }
}

fn more(count: usize) -> Markup {
    html! { @if count > 0 { p.dim { "… and " (count) " more, left out here" } } }
}

/// Untrusted text on one line, of a readable length.
fn words(text: &str) -> String {
    let line = one_line(text);
    let kept = truncate_bytes(&line, WORDS_MAX_BYTES);
    if kept.len() < line.len() { format!("{kept}…") } else { line }
}

/// The last lines of output, with a note if they are truncated.
fn output(text: &str, max_bytes: usize) -> String {
    let clean = harmless(text);
    let kept = rekindle_core::text::tail_bytes(clean.trim_end(), max_bytes);
    let cut = clean.trim_end().len() - kept.len();
    if cut > 0 { format!("… {cut} bytes before this are left out\n{kept}") } else { kept.to_owned() }
}

/// A link to a task's story, if its name can be a link.
fn task_link(id: &str) -> Markup {
    html! { a href={ "#task-" (id) } { (words(id)) } }
}

fn moment(time: Time) -> Markup {
    html! { time datetime=(stamp(time)) { (date_time(time)) } }
}

fn spent(tokens: u64, cost: Option<f64>) -> String {
    let tokens = (tokens > 0).then(|| short_count(tokens));
    tokens.into_iter().chain(cost.map(dollars)).collect::<Vec<_>>().join(" · ")
}

/// The class of something that passed or did not.
fn passed_class(passed: bool) -> &'static str {
    class_of(if passed { Tone::Good } else { Tone::Error })
}

#[cfg(test)]
mod tests {
    use rekindle_core::report::{CheckResult, Evidence};
    use rekindle_core::view::Counts;

    use super::*;
    use crate::picture::sample::{Script, task};
    use crate::view::Spent;

    /// A run of many tasks whose checks printed a lot.
    #[test]
    fn a_file_that_would_be_too_large_says_what_it_leaves_out() {
        let check = CheckResult {
            command: "make".to_owned(),
            passed: false,
            code: Some(1),
            timed_out: false,
            kept: None,
            took_ms: 5,
            output: "<line> of output & more\n".repeat(10_000),
            environment: None,
        };
        let evidence = Evidence { checks: vec![check], missing_artifacts: Vec::new(), health: Vec::new() };
        let row = |at: usize| {
            let mut row = task(&format!("t{at}"), "A task", "pending", &[]);
            row.evidence = Some(evidence.clone());
            row
        };
        let picture = Script::default().picture((0..600).map(row).collect(), 1_000);
        let report = Report {
            run: picture.run.clone(),
            until: picture.now,
            counts: Counts::of(&picture.tasks),
            tasks: picture.tasks.iter().cloned().map(bare).collect(),
            attempts: 0,
            recoveries: List::new(1),
            disagreements: List::new(1),
            decisions: List::new(1),
            alerts: List::new(1),
            questions: Vec::new(),
            files: List::new(1),
            result: None,
            spent: Spent::default(),
            costs: crate::view::Costs::default(),
            budgets: Vec::new(),
        };
        let page = render(&report, &picture, &BTreeMap::new());
        assert!(page.len() < STORIES_MAX_BYTES + 2 * 1024 * 1024, "{}", page.len());
        assert!(page.contains("bytes before this are left out") && page.contains("its story is left out"));
        assert_eq!(page.matches("<section id=\"task-").count(), 600, "every link leads somewhere");
    }

    fn bare(row: rekindle_core::view::TaskRow) -> TaskReport {
        let spent = Spent::default();
        TaskReport { row, worked_ms: 0, failures: Vec::new(), refused_claims: 0, cli: None, spent, output: None }
    }
}
