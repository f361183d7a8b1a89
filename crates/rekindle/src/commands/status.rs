//! `rekindle status`: the state of the run. Its JSON is in `contract`.

use clap::Args;
use rekindle_core::team::Class;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, TaskRow};
use rekindle_engine::clock;

use super::Context;
use crate::caps;
use crate::contract::status::{Shown, for_programs, open};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Align, Table, Tone, dollars, elapsed, one_line, short_count};
use crate::view::{Counts, RunView};

/// Narrowest terminal on which what agents have used gets columns of its own.
const USED_MIN_WIDTH: usize = 100;

/// Show the state of the run, its tasks and its agents
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle status\n  rekindle status --json | jq '.tasks[] | select(.state == \"failed\")'"
)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show every attempt, not only the newest of each agent
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &StatusArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = view.run()?;
    if args.json {
        context.ui.json(&for_programs(Some(&view), run.as_ref(), args.all)?)?;
        return Ok(Exit::Success);
    }
    let shown = Shown::read(run.as_ref(), args.all)?;
    let coordinator = view.coordinator()?;
    match run {
        Some(run) => {
            show(&run, &shown, coordinator.map(|owner| owner.map(|owner| owner.pid)), context)?;
            // What holds agents is of interest while there are some.
            if shown.agents.iter().any(|agent| agent.ended_at.is_none()) {
                context.ui.say(&caps::words(&view.caps(&shown.agents)));
            }
        }
        None => context.ui.say("there is no run yet"),
    }
    Ok(Exit::Success)
}

fn show(run: &RunView<'_>, shown: &Shown, coordinator: Option<Option<u32>>, context: &Context) -> Result<()> {
    let (ui, paint, now) = (&context.ui, context.ui.paint(), clock::wall());
    let counts = Counts::of(&shown.tasks);
    let state = paint.tone(Tone::of_state(&run.row.state), &run.row.state);
    let took = elapsed(run.until(now).since_ms(run.row.started_at));
    let who = match coordinator {
        Some(Some(pid)) => format!("coordinator {pid}"),
        Some(None) => "coordinator starting".to_owned(),
        None => "no coordinator".to_owned(),
    };
    let done = format!("{}/{} complete", counts.complete, counts.all);
    ui.line(&format!("{}: {state}, {done}, {took}, {who}", one_line(&run.row.plan)))?;
    if let Some(resumes) = run.resumes(now) {
        ui.line(&paint.tone(Tone::Warning, &resumes))?;
    }
    if let Some(held) = run.held() {
        ui.line(&paint.tone(Tone::Warning, &one_line(&held)))?;
    }
    for wait in run.waits(now) {
        ui.line(&paint.tone(Tone::Warning, &one_line(&wait)))?;
    }
    ui.line("")?;
    ui.line(&task_table(&shown.tasks, now).render(paint, ui.width()))?;
    let agents = agent_table(&shown.agents, now, ui.width());
    if !agents.is_empty() {
        ui.line("")?;
        ui.line(&agents.render(paint, ui.width()))?;
    }
    advise(run, shown, coordinator.is_some(), context);
    Ok(())
}

fn task_table(tasks: &[TaskRow], now: Time) -> Table {
    let mut table = Table::new(&[
        ("TASK", Align::Left),
        ("STATE", Align::Left),
        ("TRIES", Align::Right),
        ("WAVE", Align::Right),
        ("TIME", Align::Right),
        ("AGENT", Align::Left),
        ("TITLE", Align::Left),
    ]);
    for (depth, task) in parts_below(tasks) {
        let state = match (task.verifying, task.doubt()) {
            (true, _) => "verifying",
            (_, Some((mark, _))) => mark,
            _ => task.state.as_str(),
        };
        let time = task.started_at.map(|start| elapsed(task.ended_at.unwrap_or(now).since_ms(start)));
        let note = task.reason.as_ref().or(task.result.as_ref()).map(|note| format!(" ({note})"));
        table.row([
            (format!("{}{}", "↳ ".repeat(depth), task.id), Some(Tone::Strong)),
            (state.to_owned(), Some(Tone::of_state(state))),
            (format!("{}/{}", task.attempts, task.attempt_limit), None),
            (task.wave.to_string(), None),
            (time.unwrap_or_default(), None),
            (task.agent.as_ref().map(ToString::to_string).unwrap_or_default(), None),
            (format!("{}{}", task.title, note.unwrap_or_default()), None),
        ]);
    }
    table
}

/// Tasks in the plan's order, each part below the whole that it belongs to, with how deep it stands.
fn parts_below(tasks: &[TaskRow]) -> Vec<(usize, &TaskRow)> {
    fn add<'a>(tasks: &'a [TaskRow], task: &'a TaskRow, depth: usize, ordered: &mut Vec<(usize, &'a TaskRow)>) {
        ordered.push((depth, task));
        let parts = task.parts.iter().filter_map(|part| tasks.iter().find(|task| task.id == *part));
        parts.for_each(|part| add(tasks, part, depth + 1, ordered));
    }
    let mut ordered = Vec::new();
    for task in tasks.iter().filter(|task| task.parent.is_none()) {
        add(tasks, task, 0, &mut ordered);
    }
    ordered
}

/// What a column shows of an agent.
type Cell = fn(&AttemptRow) -> String;

fn agent_table(agents: &[AttemptRow], now: Time, width: usize) -> Table {
    // What nobody tells, and what there is no room for, gets no column.
    let told = |cell: Cell| width >= USED_MIN_WIDTH && agents.iter().any(|row| !cell(row).is_empty());
    let used: [(&str, Cell); 3] = [("CONTEXT", context_cell), ("TOKENS", tokens_cell), ("COST", cost_cell)];
    let used: Vec<_> = used.into_iter().filter(|(_, cell)| told(*cell)).collect();
    let before = [("AGENT", Align::Left), ("STATE", Align::Left), ("EPOCH", Align::Right), ("PID", Align::Right)];
    let mut columns: Vec<(&'static str, Align)> = before.to_vec();
    columns.push(("TIME", Align::Right));
    columns.extend(used.iter().map(|(name, _)| (*name, Align::Right)));
    columns.extend([("ROLE", Align::Left), ("TASK", Align::Left)]);
    let mut table = Table::new(&columns);
    for agent in agents {
        let lives = agent.ended_at.is_none();
        let task = agent.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let cause = agent.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        let mut cells = vec![
            (agent.name.to_string(), Some(Tone::Strong)),
            (standing(agent), Some(Tone::of_state(&agent.state))),
            (agent.epoch.to_string(), None),
            (agent.pid.filter(|_| lives).map(|pid| pid.to_string()).unwrap_or_default(), None),
            (elapsed(agent.ended_at.unwrap_or(now).since_ms(agent.started_at)), None),
        ];
        cells.extend(used.iter().map(|(_, cell)| (cell(agent), None)));
        cells.extend([(agent.role.to_string(), None), (format!("{task}{cause}"), None)]);
        table.row(cells);
    }
    table
}

/// Its state, or how it stands in the team where that is not the ordinary.
fn standing(agent: &AttemptRow) -> String {
    match agent.class.filter(|class| *class != Class::Working && agent.state == "running") {
        Some(class) => class.name().to_owned(),
        None => agent.state.clone(),
    }
}

/// How full its context is, and how often it was emptied.
fn context_cell(agent: &AttemptRow) -> String {
    let measure = agent.measure.unwrap_or_default();
    let full = measure.remaining_percent().map(|left| format!("{}%", 100 - left));
    let used = || measure.context_used.map(short_count);
    let compacted = (agent.compactions > 0).then(|| format!("+{}c", agent.compactions));
    [full.or_else(used), compacted].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn tokens_cell(agent: &AttemptRow) -> String {
    agent.measure.map(|measure| short_count(measure.usage.tokens())).unwrap_or_default()
}

fn cost_cell(agent: &AttemptRow) -> String {
    agent.measure.and_then(|measure| measure.usage.cost_usd).map(dollars).unwrap_or_default()
}

/// What a person could do now.
fn advise(run: &RunView<'_>, shown: &Shown, coordinated: bool, context: &Context) {
    let ui = &context.ui;
    for question in open(&shown.questions) {
        let text = one_line(&question.text);
        ui.say(&format!("question {} from {}: {text}", question.id, question.agent));
        ui.hint(&format!("rekindle answer {} TEXT", question.id));
    }
    if run.row.plan_changed {
        ui.warn("the plan file has changed since this run started; the run keeps the plan it started with");
    }
    if !coordinated && !matches!(run.row.state.as_str(), "complete" | "failed") {
        ui.hint("go on: rekindle resume");
    }
    if let Some(failed) = shown.tasks.iter().find(|task| task.state == "failed") {
        ui.hint(&format!("rekindle why {0}; then rekindle task retry {0} or rekindle task skip {0}", failed.id));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ui::Paint;

    fn row(measure: serde_json::Value, compactions: u32) -> AttemptRow {
        let row = json!({
            "attempt": 1, "name": "a", "cli": "c", "role": "developer", "state": "running", "tasks": ["T1"], "task": "T1",
            "epoch": 1, "started_at": 0, "measure": measure, "compactions": compactions,
        });
        serde_json::from_value(row).expect("a row")
    }

    #[test]
    fn what_agents_use_gets_columns_only_where_it_is_told_and_fits() {
        let heading = |rows: &[AttemptRow], width| {
            let table = agent_table(rows, Time(0), width).render(Paint::OFF, width);
            table.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let usage = json!({ "input_tokens": 5, "output_tokens": 1, "cached_tokens": 0, "cost_usd": null });
        let told = row(usage, 0);
        let plain = "AGENT STATE EPOCH PID TIME ROLE TASK";
        assert_eq!(heading(&[row(serde_json::Value::Null, 0)], 120), plain);
        assert_eq!(heading(std::slice::from_ref(&told), 80), plain);
        assert_eq!(heading(&[told], 120), "AGENT STATE EPOCH PID TIME TOKENS ROLE TASK");
    }

    #[test]
    fn a_context_is_shown_by_what_is_known_of_it() {
        let measure = |used, window| {
            json!({
                "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": null,
                "context_used": used, "context_window": window,
            })
        };
        assert_eq!(context_cell(&row(measure(Some(900), Some(1_000)), 2)), "90% +2c");
        assert_eq!(context_cell(&row(measure(Some(1_500), None), 0)), "1.5k");
        assert_eq!(context_cell(&row(measure(None, Some(1_000)), 0)), "");
    }
}
