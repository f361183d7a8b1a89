//! What the run used, by agent and by task. Tokens and dollars are the agents' own figures; if a program reports none,
//! nothing is guessed.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rekindle_core::view::AttemptRow;

use super::{task_link, words};
use crate::picture::Picture;
use crate::report::Report;
use crate::ui::{dollars, elapsed, short_count};
use crate::view::Costs;

/// What one agent used over all its attempts.
#[derive(Default)]
struct Used {
    attempts: usize,
    worked_ms: u64,
    input: u64,
    output: u64,
    cached: u64,
    cost_usd: Option<f64>,
    compactions: u32,
}

impl Used {
    fn add(&mut self, attempt: &AttemptRow, picture: &Picture) {
        self.attempts += 1;
        let until = attempt.ended_at.unwrap_or(picture.until());
        self.worked_ms = self.worked_ms.saturating_add(until.since_ms(attempt.started_at));
        self.compactions = self.compactions.saturating_add(attempt.compactions);
        let Some(measure) = attempt.measure else { return };
        self.input = self.input.saturating_add(measure.usage.input_tokens);
        self.output = self.output.saturating_add(measure.usage.output_tokens);
        self.cached = self.cached.saturating_add(measure.usage.cached_tokens);
        if let Some(cost) = attempt.cost_usd() {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

pub(super) fn tables(report: &Report, picture: &Picture) -> Markup {
    let mut agents: BTreeMap<(&str, &str, &str), Used> = BTreeMap::new();
    let mut all = Used::default();
    for attempt in &picture.attempts {
        let key = (attempt.name.as_str(), attempt.cli.as_str(), attempt.model.as_deref().unwrap_or_default());
        agents.entry(key).or_default().add(attempt, picture);
        all.add(attempt, picture);
    }
    let known = all.input + all.output + all.cached > 0 || all.cost_usd.is_some();
    html! {
        h2 { "Cost" }
        @if !known { p.dim { "The agents of this run did not say what they used." } }
        div.wide { table {
            thead { tr { th { "Agent" } th { "Runs" } th.number { "Attempts" } th.number { "Time" } th.number { "In" } th.number { "Out" } th.number { "Cached" } th.number { "Compactions" } th.number { "Cost" } } }
            tbody {
                @for ((name, cli, model), used) in &agents {
                    tr { td { (words(name)) } td { (words(cli)) " " (words(model)) } (cells(used)) }
                }
                tr { th { "All" } th {} (cells(&all)) }
            }
        } }
        (groups(&report.costs))
        @if known {
            h4 { "By task" }
            p.dim { "An attempt that held several tasks counts in full for each. \"By rekindle\" are the tokens that its prompts and messages added." }
            div.wide { table {
                thead { tr { th { "Task" } th { "Title" } th.number { "Tokens" } th.number { "Tokens by rekindle" } th.number { "Cost" } } }
                tbody { @for task in &report.tasks {
                    tr {
                        td { (task_link(task.row.id.as_str())) } td { (words(&task.row.title)) }
                        td.number { (short_count(task.spent.tokens)) } td.number { (short_count(task.spent.own_tokens)) }
                        td.number { (task.spent.cost_usd.map(dollars).unwrap_or_default()) }
                    }
                } }
            } }
        }
    }
}

fn cells(used: &Used) -> Markup {
    html! {
        td.number { (used.attempts) } td.number { (elapsed(used.worked_ms)) }
        td.number { (short_count(used.input)) } td.number { (short_count(used.output)) } td.number { (short_count(used.cached)) }
        td.number { (used.compactions) } td.number { (used.cost_usd.map(dollars).unwrap_or_default()) }
    }
}

fn groups(costs: &Costs) -> Markup {
    let tables = [("By model", &costs.by_model), ("Attempts that did not complete, by cause", &costs.by_retry_cause)];
    html! {
        @if costs.is_known() {
            @if let Some(each) = costs.usd_per_proven_task {
                p { (dollars(each)) " for each of " (costs.proven_tasks) " proven tasks." }
            }
            @for (title, groups) in tables.into_iter().filter(|(_, groups)| !groups.is_empty()) {
                h4 { (title) }
                div.wide { table {
                    thead { tr { th {} th.number { "Attempts" } th.number { "Tokens" } th.number { "Cost" } } }
                    tbody { @for (name, group) in groups {
                        tr {
                            td { (words(&name.replace('_', " "))) } td.number { (group.attempts) }
                            td.number { (short_count(group.tokens)) }
                            td.number { (group.cost_usd.map(dollars).unwrap_or_default()) }
                        }
                    } }
                } }
            }
        }
    }
}
