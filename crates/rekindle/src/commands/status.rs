//! `rekindle status`: the state of the run. Its JSON is in `contract`.

mod one;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use rekindle_core::ids::TaskId;
use rekindle_core::size;
use rekindle_core::team::Class;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, QuestionRow, TaskRow};
use rekindle_engine::clean;

use super::Context;
use crate::caps;
use crate::contract::status::{for_programs, pid_of, shown_agents};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::lost;
use crate::picture::{Picture, result, standing};
use crate::ui::{Align, Table, Tone, dollars, elapsed, near_time, one_line, short_count, zone_line};
use crate::waits;

/// Narrowest terminal on which agents' usage gets its own columns.
const USED_MIN_WIDTH: usize = 100;

/// From this size on, a person may want to know how to free space.
const LARGE_BYTES: u64 = 512 << 20;

/// Show the state of the run, its tasks and its agents
///
/// With task ids, only these tasks: what each waits for, every attempt, and the last output of an agent that crashed or failed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle status\n  rekindle status T3\n  rekindle status --json | jq '.tasks[] | select(.state == \"failed\")'"
)]
pub(crate) struct StatusArgs {
    /// Tasks [default: all]
    tasks: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show every attempt, not only the newest of each agent
    #[arg(long)]
    all: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

pub(crate) fn run(args: &StatusArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = match &args.run {
        Some(_) => Some(view.chosen(args.run.as_deref())?),
        None => view.run()?,
    };
    let wanted: Vec<TaskId> = match &run {
        Some(run) => args.tasks.iter().map(|name| Ok(run.task(name)?.id)).collect::<Result<_>>()?,
        None if args.tasks.is_empty() => Vec::new(),
        None => return Err(view.no_run()),
    };
    if args.json {
        let mut json = for_programs(&context.project, Some(&view), run.as_ref(), args.all)?;
        json.keep(&wanted);
        context.ui.json(&json)?;
        return Ok(Exit::Success);
    }
    let Some(run) = run else {
        context.ui.say("there is no run yet");
        ask(view.lost()?.iter(), context);
        return Ok(Exit::Success);
    };
    let mut picture = Picture::of_rows(&run, pid_of(view.coordinator()?.as_ref()))?;
    picture.questions.splice(0..0, view.lost()?);
    picture.result = result::of(&context.project, &picture.run, &picture.tasks).map(Arc::new);
    if wanted.is_empty() {
        let agents = shown_agents(&picture, args.all);
        show(&picture, &agents, context)?;
        // What enforces caps is of interest only while agents are running.
        if agents.iter().any(|agent| agent.ended_at.is_none()) {
            context.ui.say(&caps::words(&view.caps(&agents)));
        }
    }
    if let Some(lack) = view.polling() {
        context.ui.warn(&lack.reason);
        context.ui.hint(&lack.hint);
    }
    for id in &wanted {
        one::show(&picture, id, context)?;
    }
    context.ui.say(&disk_words(&context.project.state_dir));
    if let Some(removed) = &picture.removed {
        context.ui.say(removed);
    }
    if !wanted.is_empty() || has_times(&picture) {
        context.ui.say(&zone_line(picture.now));
    }
    Ok(Exit::Success)
}

/// How much disk space the state takes, in words.
pub(crate) fn disk_words(state_dir: &Path) -> String {
    let used = clean::used(state_dir);
    let at_least = if used.whole { "" } else { "more than " };
    let advice = if used.bytes >= LARGE_BYTES { "; free what is old: rekindle clean" } else { "" };
    format!("the state takes {at_least}{} of disk{advice}", size::format(used.bytes))
}

/// Whether something is shown with the time at which it ends.
fn has_times(picture: &Picture) -> bool {
    let ahead = |until: Option<Time>| until.is_some_and(|until| until > picture.now);
    ahead(picture.run.resumes_at) || picture.run.waits.iter().any(|wait| ahead(wait.until))
}

/// Whether a run is in progress although no coordinator is running.
fn is_interrupted(picture: &Picture) -> bool {
    picture.coordinator.is_none() && matches!(picture.run.state.as_str(), "created" | "running" | "pausing" | "waiting")
}

fn show(picture: &Picture, agents: &[AttemptRow], context: &Context) -> Result<()> {
    let (ui, paint, now) = (&context.ui, context.ui.paint(), picture.now);
    let run = &picture.run;
    let (state, tone) = match is_interrupted(picture) {
        true => ("interrupted", Tone::Warning),
        false => (run.state.as_str(), Tone::of_state(&run.state)),
    };
    let state = paint.tone(tone, state);
    let took = elapsed(picture.until().since_ms(run.started_at));
    let who = match picture.coordinator {
        Some(0) => ", coordinator starting".to_owned(),
        Some(pid) => format!(", coordinator {pid}"),
        None => String::new(),
    };
    ui.line(&format!("{}: {state}, {}, {took}{who}", one_line(&run.plan), picture.counts().words()))?;
    let resumes = run.resumes_at.filter(|until| run.state == "waiting" && *until > now);
    let resumes =
        resumes.map(|until| format!("resumes in {} ({})", elapsed(until.since_ms(now)), near_time(until, now)));
    let interrupted = is_interrupted(picture).then(|| waits::interrupted(run));
    let gates = run.waits.iter().filter(|wait| wait.until.is_none_or(|until| until > now));
    let gates = gates.map(|wait| waits::waiting(wait, now));
    for line in interrupted.into_iter().chain(resumes).chain(waits::held_line(run)).chain(gates) {
        ui.line(&paint.tone(Tone::Warning, &one_line(&line)))?;
    }
    for (warns, line) in waits::budgets(run, now) {
        let tone = if warns { Tone::Warning } else { Tone::Dim };
        ui.line(&paint.tone(tone, &one_line(&line)))?;
    }
    ui.line("")?;
    ui.line(&task_table(picture).render(paint, ui.width()))?;
    let agents = agent_table(agents, now, ui.width());
    if !agents.is_empty() {
        ui.line("")?;
        ui.line(&agents.render(paint, ui.width()))?;
    }
    for (nth, line) in picture.result.iter().flat_map(|made| made.lines()).enumerate() {
        let label = if nth == 0 { "\nresult  " } else { "        " };
        ui.line(&format!("{label}{line}"))?;
    }
    advise(picture, context);
    Ok(())
}

fn task_table(picture: &Picture) -> Table {
    let mut table = Table::new(&[
        ("TASK", Align::Left),
        ("STATE", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("WAVE", Align::Right),
        ("TIME", Align::Right),
        ("AGENT", Align::Left),
        ("TITLE", Align::Left),
    ]);
    for (depth, task) in parts_below(&picture.tasks) {
        let stands = standing::of(picture, task);
        let time =
            task.started_at.map(|start| elapsed(task.ended_at.unwrap_or_else(|| picture.until()).since_ms(start)));
        let note = stands.note.filter(|_| stands.word != "in progress").map(|note| format!(" ({note})"));
        table.row([
            (format!("{}{}", "↳ ".repeat(depth), task.id), Some(Tone::Strong)),
            (stands.word.to_owned(), Some(stands.tone)),
            (format!("{}/{}", task.attempts, task.attempt_limit), None),
            (task.wave.to_string(), None),
            (time.unwrap_or_default(), None),
            (task.agent.as_ref().map(ToString::to_string).unwrap_or_default(), None),
            (format!("{}{}", task.title, note.unwrap_or_default()), None),
        ]);
    }
    table
}

/// Tasks in the plan's order, each part below the task it belongs to, with its depth.
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
    // What no agent reports, and what there is no room for, gets no column.
    let told = |cell: Cell| width >= USED_MIN_WIDTH && agents.iter().any(|row| !cell(row).is_empty());
    let used: [(&str, Cell); 3] = [("CONTEXT", context_cell), ("TOKENS", tokens_cell), ("COST", cost_cell)];
    let used: Vec<_> = used.into_iter().filter(|(_, cell)| told(*cell)).collect();
    let before = [("AGENT", Align::Left), ("STATE", Align::Left), ("ATTEMPT", Align::Right), ("PID", Align::Right)];
    let mut columns: Vec<(&'static str, Align)> = before.to_vec();
    columns.push(("TIME", Align::Right));
    columns.extend(used.iter().map(|(name, _)| (*name, Align::Right)));
    columns.extend([("ROLE", Align::Left), ("TASK", Align::Left)]);
    let mut table = Table::new(&columns);
    for agent in agents {
        let lives = agent.ended_at.is_none();
        let task = agent.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let cause = agent.cause.as_ref().map(|cause| format!(" ({})", cause.replace('_', " "))).unwrap_or_default();
        let mut cells = vec![
            (agent.name.to_string(), Some(Tone::Strong)),
            (standing(agent), Some(Tone::of_state(&agent.state))),
            (agent.number().map(|number| number.to_string()).unwrap_or_default(), None),
            (agent.pid.filter(|_| lives).map(|pid| pid.to_string()).unwrap_or_default(), None),
            (elapsed(agent.ended_at.unwrap_or(now).since_ms(agent.started_at)), None),
        ];
        cells.extend(used.iter().map(|(_, cell)| (cell(agent), None)));
        cells.extend([(agent.role.to_string(), None), (format!("{task}{cause}"), None)]);
        table.row(cells);
    }
    table
}

/// Its state, or its classification if that is out of the ordinary.
fn standing(agent: &AttemptRow) -> String {
    match agent.class.filter(|class| *class != Class::Working && agent.state == "running") {
        Some(class) => class.name().to_owned(),
        None => agent.state.clone(),
    }
}

/// How full its context is, and how often it was compacted.
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

/// Prints the questions to a person.
fn ask<'a>(questions: impl Iterator<Item = &'a QuestionRow>, context: &Context) {
    for question in questions {
        let text = one_line(&question.text);
        context.ui.say(&format!("question {} from {}: {text}", question.id, question.agent));
        let answer = if question.id == lost::QUESTION { "forget, or restore" } else { "TEXT" };
        context.ui.hint(&format!("rekindle answer {} {answer}", question.id));
    }
}

/// Prints what a person could do now.
fn advise(picture: &Picture, context: &Context) {
    let ui = &context.ui;
    ask(picture.open_questions(), context);
    if picture.run.plan_changed {
        ui.warn("the plan file has changed since this run started; the run keeps the plan it started with");
    }
    if picture.coordinator.is_none() && picture.run.state == "paused" {
        ui.hint("continue: rekindle resume");
    }
    if let Some(failed) = picture.tasks.iter().find(|task| task.state == "failed") {
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
        let plain = "AGENT STATE ATTEMPT PID TIME ROLE TASK";
        assert_eq!(heading(&[row(serde_json::Value::Null, 0)], 120), plain);
        assert_eq!(heading(std::slice::from_ref(&told), 80), plain);
        assert_eq!(heading(&[told], 120), "AGENT STATE ATTEMPT PID TIME TOKENS ROLE TASK");
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
