//! The overview: the state of the run, what failed and what needs a person first, then what happened and every task.

use maud::{Markup, html};
use rekindle_core::ids::TaskId;
use rekindle_core::view::{AttemptRow, TaskRow};

use super::frame::{Frame, run_state};
use super::parts::{self, copy, cost, moment, span, task_link, tokens};
use super::table::{self, Column, Line};
use super::{Visit, acting};
use crate::acts::{Act, Addition};
use crate::drawing::{self, Links};
use crate::error::Result;
use crate::picture::Picture;
use crate::picture::history::MarkKind;
use crate::picture::result::{Next, SEE, TAKE};
use crate::picture::standing::{self, Urgency};
use crate::ui::one_line;
use crate::waits;

/// Columns of the list of tasks.
const COLUMNS: [Column; 10] = [
    ("Task", ""),
    ("Title", "title"),
    ("State", "state"),
    ("Why", "why"),
    ("Agent", ""),
    ("Attempts", "r"),
    ("Context", ""),
    ("Time", "r"),
    ("Tokens", "r"),
    ("Cost", "r"),
];

/// News in the list; the events' page has all.
const NEWS_SHOWN: usize = 12;

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let picture = visit.picture()?;
    let body = html! {
        h1.run-title { (one_line(&picture.run.title)) " " span.dim.small { "run " (one_line(&picture.run.id)) (copy(&picture.run.id)) } }
        (strip(picture))
        div.acts {
            (acting::button(visit, picture, &Act::Pause, "Pause the run…"))
            (acting::button(visit, picture, &Act::Resume, "Resume the run…"))
            (acting::button(visit, picture, &Act::Add(Addition::default()), "Add a task…"))
        }
        (acting::waiting(visit, picture, false))
        (result(picture))
        (failed(visit, picture))
        (inbox(visit, picture))
        section #timeline aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" }
            (drawing::timeline(picture, Links::Pages))
        }
        (recent(visit, picture))
        (tasks(visit, picture))
        section #graph aria-labelledby="graph-title" {
            h2 #graph-title { "Dependencies" }
            (drawing::graph(picture, Links::Pages))
        }
    };
    Ok(Frame::new("Overview", body))
}

/// Everything at a glance.
fn strip(picture: &Picture) -> Markup {
    let counts = picture.counts();
    let running = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).count();
    let asks = picture.open_questions().count();
    let recoveries = picture.history.count(MarkKind::Recovery);
    let crashes = picture.history.count(MarkKind::Crash) + picture.history.count(MarkKind::Hang);
    let spent = picture.spent();
    let ended = picture.run.ended_at.is_some() || picture.coordinator.is_none();
    let until = ended.then(|| picture.until());
    html! {
        dl.strip aria-label="The run at a glance" {
            div { dt { "State" } dd { (run_state(picture)) } }
            div { dt { "Complete" } dd {
                strong.num { (counts.progress()) }
                progress max=(counts.all.max(1)) value=(counts.complete) aria-label="tasks complete" {}
            } }
            div { dt { "Agents" } dd { strong.num { (running) } " running" } }
            div { dt { "Asks" } dd { strong.num.t-warn[asks > 0] { (asks) } @if asks > 0 { " " a href="#inbox" { "answer" } } } }
            div { dt { "Failed" } dd { strong.num.t-error[counts.failed > 0] { (counts.failed) } } }
            div { dt { "Recoveries" } dd { strong.num.t-hint[recoveries > 0] { (recoveries) } @if crashes > 0 { span.dim { " after " (crashes) @if crashes == 1 { " crash" } @else { " crashes" } } } } }
            div { dt { "Time" } dd { (span(picture.run.started_at, until, picture.now)) } }
            @if spent.tokens > 0 { div { dt { "Tokens" } dd { (tokens(Some(&spent))) } } }
            @if spent.cost_usd.is_some() { div { dt { "Cost" } dd { (cost(Some(&spent))) } } }
        }
        @for (warns, line) in waits::budgets(&picture.run, picture.now) {
            p.t-warn[warns].dim[!warns] { (one_line(&line)) }
        }
        @if picture.coordinator.is_none() && picture.run.ended_at.is_none() {
            p.banner { "No coordinator is running. Continue the run: " (parts::command("rekindle resume")) }
        }
    }
}

/// What the run made, and what to type to take it.
fn result(picture: &Picture) -> Markup {
    let Some(made) = &picture.result else { return html! {} };
    html! {
        section #result aria-labelledby="result-title" {
            h2 #result-title { "Result" }
            p { (made.headline()) }
            @if let Some(doubt) = made.doubt() { p.t-warn { (doubt) } }
            @match made.next() {
                Next::Landed(words) => { p.t-good { (words) } },
                Next::Take => { p { "See it: " (parts::command(SEE)) " Take it: " (parts::command(TAKE)) } },
                Next::Nothing => {},
            }
        }
    }
}

fn failed(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let failed: Vec<&TaskRow> = picture.tasks.iter().filter(|task| task.state == "failed").collect();
    if failed.is_empty() {
        return html! {};
    }
    let again = Act::RetryFailed(failed.iter().map(|task| task.id.clone()).collect::<Vec<TaskId>>());
    html! {
        section #failed aria-labelledby="failed-title" {
            h2 #failed-title { "What failed, and why" }
            ul.cards { @for task in &failed { (failed_card(visit, picture, task)) } }
            // A single one has its own button.
            @if failed.len() > 1 { div.acts { (acting::button(visit, picture, &again, "Retry what failed…")) } }
        }
    }
}

/// A task that failed: why, what its check and its agent said last, and what can be done about it.
fn failed_card(visit: &Visit<'_>, picture: &Picture, task: &TaskRow) -> Markup {
    let check = task.evidence.iter().flat_map(|evidence| &evidence.checks).find(|check| !check.passed);
    let last = picture.attempts_of(&task.id).next_back();
    let lines =
        picture.outputs.get(&task.id).map(|output| output.shown().collect::<Vec<_>>().join("\n")).unwrap_or_default();
    html! {
        li.card.t-edge-error data-key=(task.id) {
            div.card-head {
                (parts::stands(&standing::of(picture, task))) (task_link(&visit.ways, task.id.as_str()))
                strong.card-title { (one_line(&task.title)) }
                div.card-acts {
                    (acting::button(visit, picture, &Act::Retry(task.id.clone()), "Retry…"))
                    (acting::button(visit, picture, &Act::Skip(task.id.clone()), "Skip…"))
                }
            }
            p.card-why { (task.reason.as_deref().map(one_line).unwrap_or_default()) }
            @if let Some(check) = check {
                (parts::code(&format!("$ {}\n{}", check.command, check.output), "output of the check that failed"))
            }
            @if let Some(attempt) = last.filter(|_| !lines.is_empty()) {
                details.tail open {
                    summary { "The end of its log" }
                    (parts::code(&lines, "end of its log"))
                    p { a href=(visit.ways.log(attempt.attempt)) { "The whole log" } }
                }
            }
        }
    }
}

fn inbox(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let open: Vec<_> = picture.open_questions().collect();
    if open.is_empty() {
        return html! {};
    }
    html! {
        section #inbox aria-labelledby="inbox-title" {
            h2 #inbox-title { "Questions to you " span.badge { (open.len()) } }
            @for question in open { (acting::question(visit, question)) }
        }
    }
}

/// Crashes, limits and recoveries, newest first, so that they stand out.
fn recent(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let news = &picture.history.news;
    if news.is_empty() {
        return html! {};
    }
    html! {
        section #recent aria-labelledby="recent-title" {
            h2 #recent-title { "What happened" }
            ol.news {
                @for news in news.iter().rev().take(NEWS_SHOWN) {
                    li.recovery[news.kind == MarkKind::Recovery] data-key=(news.seq) {
                        (moment(news.time)) " " (parts::mark(news.kind)) " "
                        @if let Some(task) = &news.task { (task_link(&visit.ways, task)) " " }
                        span.dim { (news.agent.as_deref().map(one_line).unwrap_or_default()) }
                        " " span.text { (one_line(&news.text)) }
                    }
                }
            }
            @if news.len() > NEWS_SHOWN { p { a href=(visit.ways.with("/events", &[("category", "trouble")])) { "All of it" } } }
        }
    }
}

fn tasks(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let filter = visit.asked("q").unwrap_or_default();
    let by_need = visit.asked("sort") == Some("need");
    let mut rows: Vec<(&TaskRow, standing::Standing)> =
        picture.tasks.iter().map(|task| (task, standing::of(picture, task))).collect();
    rows.retain(|(task, standing)| fits(picture, filter, task, standing));
    if by_need {
        rows.sort_by_key(|(task, _)| standing::urgency(picture, task));
    }
    let spent = picture.spent_by_task();
    let lines: Vec<Line> =
        rows.iter().map(|(task, standing)| row(visit, picture, task, standing, spent.get(&task.id))).collect();
    html! {
        section #tasks aria-labelledby="tasks-title" {
            div.head {
                h2 #tasks-title { "Tasks" }
                form.filter method="get" role="search" data-live="" {
                    @if let Some(run) = visit.ways.run() { input type="hidden" name="run" value=(run); }
                    label { span.sr { "Filter tasks" } input type="search" name="q" value=(filter) placeholder="filter: words, !not" autocomplete="off" data-keep=""; }
                    label { "by " select name="sort" { option value="" selected[!by_need] { "plan" } option value="need" selected[by_need] { "need" } } }
                    noscript { button type="submit" { "Filter" } }
                    span.dim role="status" { (rows.len()) " of " (picture.tasks.len()) }
                }
            }
            (table::table("Tasks", "Tasks, their states, and what each waits for", "tasks", &COLUMNS, &lines))
            @if rows.is_empty() { p.dim { "No task matches." } }
        }
    }
}

fn fits(picture: &Picture, filter: &str, task: &TaskRow, standing: &standing::Standing) -> bool {
    let agent = picture.at_work(&task.id).map(|attempt| attempt.name.to_string()).unwrap_or_default();
    parts::fits(filter, &format!("{} {} {} {agent}", task.id, task.title, standing.word))
}

fn row(
    visit: &Visit<'_>,
    picture: &Picture,
    task: &TaskRow,
    standing: &standing::Standing,
    spent: Option<&crate::view::Spent>,
) -> Line {
    let newest = picture.attempts_of(&task.id).next_back();
    let needs = standing::urgency(picture, task) == Urgency::NeedsYou;
    let until = task.ended_at.or_else(|| picture.coordinator.is_none().then(|| picture.until()));
    let planned = || task.agent.as_ref().map(|name| html! { span.dim { (one_line(name.as_str())) } });
    let agent =
        |attempt: &AttemptRow| html! { a href=(visit.ways.log(attempt.attempt)) { (one_line(attempt.name.as_str())) } };
    let cells = vec![
        Some(html! { (task_link(&visit.ways, task.id.as_str())) (copy(task.id.as_str())) }),
        Some(parts::title(&task.title)),
        Some(parts::stands(standing)),
        standing
            .note
            .as_ref()
            .map(|note| html! { span.line title=(one_line(note)) { (parts::note(picture, task, standing)) } }),
        newest.map(agent).or_else(planned),
        (task.attempts > 0).then(|| html! { span.num { (task.attempts) "/" (task.attempt_limit) } }),
        parts::context_cell(newest.and_then(|attempt| attempt.measure)),
        task.started_at.map(|from| span(from, until, picture.now)),
        parts::tokens_cell(spent),
        parts::cost_cell(spent),
    ];
    let class = if needs { "needs" } else { "" };
    Line { class, state: Some(task.state.clone()), ..Line::new(&task.id, cells) }
}
