//! What was used: by task including its parts, by agent, and by the kind of program.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rekindle_core::ids::TaskId;
use rekindle_core::view::{AttemptRow, TaskRow};

use super::Visit;
use super::frame::Frame;
use super::parts::{self, cost, task_link, tokens};
use super::table::{self, Column, Line};
use crate::error::Result;
use crate::picture::Picture;
use crate::picture::standing;
use crate::ui::{dollars, one_line, short_count};
use crate::view::{CostGroup, Costs, Spent};
use crate::waits;

/// How deep parts of parts are indented; deeper ones are shown at this depth.
const DEPTH_MAX: usize = 4;

/// Columns of the list by task.
const BY_TASK: [Column; 8] = [
    ("Task", ""),
    ("Title", "title"),
    ("State", "state"),
    ("Attempts", "r"),
    ("Tokens", "r"),
    ("Tokens by rekindle", "r"),
    ("Cost", "r"),
    ("Context", ""),
];

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let picture = visit.picture()?;
    let all = picture.spent();
    let costs = Costs::of(&picture.tasks, &picture.attempts);
    let body = html! {
        h1 { "Cost" }
        dl.strip aria-label="All together" {
            div { dt { "Tokens" } dd { (tokens(Some(&all))) } }
            div { dt { "Cost" } dd { (cost(Some(&all))) } }
            div { dt { "Attempts" } dd { strong.num { (picture.attempts.len()) } } }
            @if let Some(each) = costs.usd_per_proven_task { div { dt { "Per proven task" } dd { span.num { (dollars(each)) } } } }
            @else if let Some(each) = costs.tokens_per_proven_task { div { dt { "Per proven task" } dd { span.num { (short_count(each)) " tokens" } } } }
        }
        @for (warns, line) in waits::budgets(&picture.run, picture.now) {
            p.t-warn[warns].dim[!warns] { (one_line(&line)) }
        }
        p.dim { "As the agents' programs report it, or by your prices; a dash means that neither is known." }
        (by_task(visit, picture))
        (by("By agent", "Agent", groups(picture, |attempt| attempt.name.to_string()), true))
        (by("By kind", "Kind", groups(picture, |attempt| attempt.kind.clone()), false))
        (grouped("By model", "Model", &costs.by_model))
        (grouped("On attempts that did not complete", "Cause", &costs.by_retry_cause))
    };
    Ok(Frame::new("Cost", body))
}

fn by_task(visit: &Visit<'_>, picture: &Picture) -> Markup {
    let own = picture.spent_by_task();
    let mut order = Vec::new();
    for task in picture.tasks.iter().filter(|task| task.parent.is_none()) {
        descend(picture, task, 0, &mut order);
    }
    let line = |(task, depth): (&TaskRow, usize)| {
        let spent = sum(picture, task, &own, 0);
        let newest = picture.attempts_of(&task.id).next_back();
        let tries = picture.attempts_of(&task.id).count();
        let cells = vec![
            Some(html! { span class=(format!("deep{depth}")) { (task_link(&visit.ways, task.id.as_str())) } }),
            Some(parts::title(&task.title)),
            Some(parts::stands(&standing::of(picture, task))),
            (tries > 0).then(|| html! { span.num { (tries) } }),
            parts::tokens_cell(Some(&spent)),
            (spent.own_tokens > 0).then(|| html! { span.num { (short_count(spent.own_tokens)) } }),
            parts::cost_cell(Some(&spent)),
            parts::context_cell(newest.and_then(|attempt| attempt.measure)),
        ];
        Line::new(&task.id, cells)
    };
    let lines: Vec<Line> = order.into_iter().map(line).collect();
    html! {
        section #by-task aria-labelledby="by-task-title" {
            h2 #by-task-title { "By task" }
            (table::table("By task", "Tokens and cost by task, the parts of a task in its sum", "", &BY_TASK, &lines))
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

/// What a task and all its parts used.
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

fn by(title: &str, what: &'static str, groups: BTreeMap<String, Group<'_>>, with_context: bool) -> Markup {
    let line = |(name, group): (String, Group<'_>)| {
        let measure = group.newest.measure.filter(|_| with_context);
        let cells = vec![
            Some(html! { (one_line(&name)) }),
            Some(html! { span.num { (group.attempts) } }),
            parts::tokens_cell(Some(&group.spent)),
            parts::cost_cell(Some(&group.spent)),
            parts::context_cell(measure),
        ];
        Line::new(one_line(&name), cells)
    };
    let lines: Vec<Line> = groups.into_iter().map(line).collect();
    let columns = [(what, ""), ("Attempts", "r"), ("Tokens", "r"), ("Cost", "r"), ("Context", "")];
    html! {
        section aria-label=(title) {
            h2 { (title) }
            (table::table(title, &format!("Tokens and cost by {}", what.to_lowercase()), "", &columns, &lines))
        }
    }
}

fn grouped(title: &str, what: &'static str, groups: &BTreeMap<String, CostGroup>) -> Markup {
    let line = |(name, group): (&String, &CostGroup)| {
        let spent = Spent { tokens: group.tokens, cost_usd: group.cost_usd, own_tokens: 0 };
        let cells = vec![
            Some(html! { (one_line(&name.replace('_', " "))) }),
            Some(html! { span.num { (group.attempts) } }),
            parts::tokens_cell(Some(&spent)),
            parts::cost_cell(Some(&spent)),
        ];
        Line::new(one_line(name), cells)
    };
    let lines: Vec<Line> = groups.iter().map(line).collect();
    let columns = [(what, ""), ("Attempts", "r"), ("Tokens", "r"), ("Cost", "r")];
    html! {
        @if !lines.is_empty() {
            section aria-label=(title) {
                h2 { (title) }
                (table::table(title, &format!("Tokens and cost by {}", what.to_lowercase()), "", &columns, &lines))
            }
        }
    }
}
