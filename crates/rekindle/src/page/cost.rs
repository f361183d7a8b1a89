//! What was used: by task with its parts summed up, by agent, and by the kind of program.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rekindle_core::ids::TaskId;
use rekindle_core::view::{AttemptRow, TaskRow};

use super::Visit;
use super::frame::Frame;
use super::parts::{self, cost, task_link, tokens};
use crate::error::Result;
use crate::picture::Picture;
use crate::picture::standing;
use crate::ui::{one_line, short_count};
use crate::view::Spent;

/// How deep parts of parts are drawn in; deeper ones stand at this depth.
const DEPTH_MAX: usize = 4;

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let picture = visit.picture()?;
    let all = picture.spent();
    let body = html! {
        h1 { "Cost" }
        dl.strip aria-label="All together" {
            div { dt { "Tokens" } dd { (tokens(Some(&all))) } }
            div { dt { "Cost" } dd { (cost(Some(&all))) } }
            div { dt { "Attempts" } dd { strong.num { (picture.attempts.len()) } } }
        }
        p.dim { "As agents' programs tell it; a dash means that one does not say." }
        (by_task(visit, picture))
        (by("By agent", "agent", groups(picture, |attempt| attempt.name.to_string()), true))
        (by("By kind", "kind", groups(picture, |attempt| attempt.kind.clone()), false))
    };
    Ok(Frame::new("Cost", body))
}

fn by_task(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let own = picture.spent_by_task();
    let mut order = Vec::new();
    for task in picture.tasks.iter().filter(|task| task.parent.is_none()) {
        descend(picture, task, 0, &mut order);
    }
    html! {
        section #by-task aria-labelledby="by-task-title" {
            h2 #by-task-title { "By task" }
            div.scroll tabindex="0" role="region" aria-label="By task" {
                table.rows {
                    caption.sr { "Tokens and cost by task, the parts of a task in its sum" }
                    thead { tr {
                        th scope="col" { "Task" } th scope="col" { "Title" } th scope="col" { "State" }
                        th.r scope="col" { "Tries" } th.r scope="col" { "Tokens" } th.r scope="col" { "By rekindle" } th.r scope="col" { "Cost" }
                        th scope="col" { "Context" }
                    } }
                    tbody { @for (task, depth) in order {
                        @let spent = sum(picture, task, &own, 0);
                        @let newest = picture.attempts_of(&task.id).next_back();
                        tr data-key=(task.id) {
                            th scope="row" class=(format!("deep{depth}")) { (task_link(&visit.ways, task.id.as_str())) }
                            td.title { (one_line(&task.title)) }
                            td { (parts::stands(&standing::of(picture, task))) }
                            td.r { span.num { (picture.attempts_of(&task.id).count()) } }
                            td.r { (tokens(Some(&spent))) } td.r { span.num { (short_count(spent.own_tokens)) } }
                            td.r { (cost(Some(&spent))) }
                            td { (parts::context(newest.and_then(|attempt| attempt.measure))) }
                        }
                    } }
                }
            }
        }
    }
}

fn descend<'a>(picture: &'a Picture, task: &'a TaskRow, depth: usize, order: &mut Vec<(&'a TaskRow, usize)>) {
    order.push((task, depth.min(DEPTH_MAX)));
    if depth < picture.tasks.len() {
        for part in task.parts.iter().filter_map(|part| picture.task(part.as_str())) {
            descend(picture, part, depth + 1, order);
        }
    }
}

/// A task with all its parts.
fn sum(picture: &Picture, task: &TaskRow, own: &BTreeMap<TaskId, Spent>, depth: usize) -> Spent {
    let mut all = own.get(&task.id).copied().unwrap_or_default();
    for part in task.parts.iter().filter(|_| depth < DEPTH_MAX).filter_map(|part| picture.task(part.as_str())) {
        add(&mut all, sum(picture, part, own, depth + 1));
    }
    all
}

fn add(all: &mut Spent, more: Spent) {
    all.tokens = all.tokens.saturating_add(more.tokens);
    all.own_tokens = all.own_tokens.saturating_add(more.own_tokens);
    if let Some(cost) = more.cost_usd {
        all.cost_usd = Some(all.cost_usd.unwrap_or(0.0) + cost);
    }
}

struct Group<'a> {
    newest: &'a AttemptRow,
    spent: Spent,
    attempts: usize,
}

fn groups(picture: &Picture, key: impl Fn(&AttemptRow) -> String) -> BTreeMap<String, Group<'_>> {
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    for attempt in &picture.attempts {
        let group =
            groups.entry(key(attempt)).or_insert(Group { newest: attempt, spent: Spent::default(), attempts: 0 });
        (group.newest, group.attempts) = (attempt, group.attempts + 1);
        add(&mut group.spent, parts::spent(attempt));
    }
    groups
}

fn by(title: &str, what: &str, groups: BTreeMap<String, Group<'_>>, with_context: bool) -> Markup {
    html! {
        section aria-label=(title) {
            h2 { (title) }
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table.rows {
                    caption.sr { "Tokens and cost by " (what) }
                    thead { tr {
                        th scope="col" { (what) } th.r scope="col" { "Attempts" } th.r scope="col" { "Tokens" } th.r scope="col" { "Cost" }
                        @if with_context { th scope="col" { "Context" } }
                    } }
                    tbody { @for (name, group) in groups {
                        tr data-key=(one_line(&name)) {
                            th scope="row" { (one_line(&name)) }
                            td.r { span.num { (group.attempts) } } td.r { (tokens(Some(&group.spent))) } td.r { (cost(Some(&group.spent))) }
                            @if with_context { td { (parts::context(group.newest.measure)) } }
                        }
                    } }
                }
            }
        }
    }
}
