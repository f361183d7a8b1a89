//! `rekindle status`: how the run stands. Others script against its JSON.

use clap::Args;
use rekindle_core::report::{Checkpoint, Evidence};
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, QuestionRow, TaskRow};
use rekindle_engine::clock;
use serde::Serialize;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Align, Table, Tone, elapsed, one_line, stamp};
use crate::view::{Counts, RunView, View};

/// The version of the JSON; a field may be added under the same one, none removed or changed.
const SCHEMA_VERSION: u32 = 1;

/// Show how the run stands
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle status\n  rekindle status --json | jq '.tasks[] | select(.state == \"failed\")'"
)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show every attempt, not only the newest of each agent
    #[arg(long)]
    all: bool,
}

/// Everything, for programs.
#[derive(Serialize)]
struct StatusJson {
    schema_version: u32,
    run: Option<RunJson>,
    tasks: Vec<TaskJson>,
    agents: Vec<AgentJson>,
    questions: usize,
    coordinator: Option<CoordinatorJson>,
}

#[derive(Serialize)]
struct RunJson {
    id: String,
    plan: String,
    title: String,
    plan_path: String,
    state: String,
    started_at: String,
    ended_at: Option<String>,
    resumes: u32,
    plan_changed: bool,
    complete: usize,
    failed: usize,
    skipped: usize,
    total: usize,
}

#[derive(Serialize)]
struct TaskJson {
    id: String,
    title: String,
    state: String,
    attempts: u32,
    attempt_limit: u32,
    agent: Option<String>,
    wave: u32,
    cause: Option<String>,
    reason: Option<String>,
    result: Option<String>,
    unproven: bool,
    verifying: bool,
    epoch: u64,
    blocked_by: Vec<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    not_before: Option<String>,
    checkpoint: Option<Checkpoint>,
    evidence: Option<Evidence>,
}

#[derive(Serialize)]
struct AgentJson {
    name: String,
    kind: String,
    role: String,
    state: String,
    pid: Option<u32>,
    shim_pid: Option<u32>,
    task: Option<String>,
    tasks: Vec<String>,
    epoch: u64,
    attempt: u64,
    cli: String,
    started_at: String,
    ended_at: Option<String>,
    cause: Option<String>,
}

#[derive(Serialize)]
struct CoordinatorJson {
    pid: Option<u32>,
    since: Option<String>,
}

/// What is shown, read at one moment.
struct Shown {
    tasks: Vec<TaskRow>,
    agents: Vec<AttemptRow>,
    questions: Vec<QuestionRow>,
}

/// Shows it.
pub fn run(args: &StatusArgs, context: &Context) -> Result<Exit> {
    let view = View::open(&context.project)?;
    let run = view.run()?;
    let shown = match &run {
        Some(run) => Shown {
            tasks: run.tasks()?,
            agents: if args.all { run.attempts()? } else { run.agents()? },
            questions: run.questions()?,
        },
        None => Shown { tasks: Vec::new(), agents: Vec::new(), questions: Vec::new() },
    };
    let coordinator = view.coordinator()?;
    if args.json {
        let owner = coordinator.map(|owner| CoordinatorJson {
            pid: owner.as_ref().map(|owner| owner.pid),
            since: owner.as_ref().map(|owner| stamp(Time(owner.since_ms))),
        });
        context.ui.json(&StatusJson {
            schema_version: SCHEMA_VERSION,
            run: run.as_ref().map(|run| run_json(run, &shown.tasks)),
            questions: open(&shown.questions).count(),
            tasks: shown.tasks.into_iter().map(task_json).collect(),
            agents: shown.agents.into_iter().map(agent_json).collect(),
            coordinator: owner,
        })?;
        return Ok(Exit::Success);
    }
    match run {
        Some(run) => show(&run, &shown, coordinator.map(|owner| owner.map(|owner| owner.pid)), context)?,
        None => context.ui.say("there is no run yet"),
    }
    Ok(Exit::Success)
}

fn open(questions: &[QuestionRow]) -> impl Iterator<Item = &QuestionRow> {
    questions.iter().filter(|question| question.answer.is_none())
}

fn run_json(run: &RunView<'_>, tasks: &[TaskRow]) -> RunJson {
    let counts = Counts::of(tasks);
    let row = &run.row;
    RunJson {
        id: row.id.clone(),
        plan: row.plan.clone(),
        title: row.title.clone(),
        plan_path: row.plan_path.clone(),
        state: row.state.clone(),
        started_at: stamp(row.started_at),
        ended_at: row.ended_at.map(stamp),
        resumes: row.resumes,
        plan_changed: row.plan_changed,
        complete: counts.complete,
        failed: counts.failed,
        skipped: counts.skipped,
        total: counts.all,
    }
}

fn task_json(row: TaskRow) -> TaskJson {
    TaskJson {
        id: row.id.into(),
        title: row.title,
        state: row.state,
        attempts: row.attempts,
        attempt_limit: row.attempt_limit,
        agent: row.agent.map(Into::into),
        wave: row.wave,
        cause: row.cause,
        reason: row.reason,
        result: row.result,
        unproven: row.unproven,
        verifying: row.verifying,
        epoch: row.epoch.0,
        blocked_by: row.blocked_by.into_iter().map(Into::into).collect(),
        started_at: row.started_at.map(stamp),
        ended_at: row.ended_at.map(stamp),
        not_before: row.not_before.map(stamp),
        checkpoint: row.checkpoint,
        evidence: row.evidence,
    }
}

fn agent_json(row: AttemptRow) -> AgentJson {
    AgentJson {
        name: row.name.into(),
        // Every agent of this version is one.
        kind: rekindle_engine::agents::command::KIND.to_owned(),
        role: row.role.name().to_owned(),
        state: row.state,
        pid: row.pid,
        shim_pid: row.shim_pid,
        task: row.task.map(Into::into),
        tasks: row.tasks.into_iter().map(Into::into).collect(),
        epoch: row.epoch.0,
        attempt: row.attempt.0,
        cli: row.cli,
        started_at: stamp(row.started_at),
        ended_at: row.ended_at.map(stamp),
        cause: row.cause,
    }
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
    ui.line("")?;
    ui.line(&task_table(&shown.tasks, now).render(paint, ui.width()))?;
    let agents = agent_table(&shown.agents, now);
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
    for task in tasks {
        let state = match (task.verifying, task.unproven) {
            (true, _) => "verifying",
            (_, true) => "unproven",
            _ => task.state.as_str(),
        };
        let time = task.started_at.map(|start| elapsed(task.ended_at.unwrap_or(now).since_ms(start)));
        let note = task.reason.as_ref().or(task.result.as_ref()).map(|note| format!(" ({note})"));
        table.row([
            (task.id.to_string(), Some(Tone::Strong)),
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

fn agent_table(agents: &[AttemptRow], now: Time) -> Table {
    let mut table = Table::new(&[
        ("AGENT", Align::Left),
        ("STATE", Align::Left),
        ("EPOCH", Align::Right),
        ("PID", Align::Right),
        ("TIME", Align::Right),
        ("ROLE", Align::Left),
        ("TASK", Align::Left),
    ]);
    for agent in agents {
        let lives = agent.ended_at.is_none();
        let task = agent.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let cause = agent.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        table.row([
            (agent.name.to_string(), Some(Tone::Strong)),
            (agent.state.clone(), Some(Tone::of_state(&agent.state))),
            (agent.epoch.to_string(), None),
            (agent.pid.filter(|_| lives).map(|pid| pid.to_string()).unwrap_or_default(), None),
            (elapsed(agent.ended_at.unwrap_or(now).since_ms(agent.started_at)), None),
            (agent.role.to_string(), None),
            (format!("{task}{cause}"), None),
        ]);
    }
    table
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
        ui.warn("the plan's file differs from the plan of this run, which goes on with its own");
    }
    if !coordinated && !matches!(run.row.state.as_str(), "complete" | "failed") {
        ui.hint("go on: rekindle resume");
    }
    if let Some(failed) = shown.tasks.iter().find(|task| task.state == "failed") {
        ui.hint(&format!("rekindle why {0}; then rekindle task retry {0} or rekindle task skip {0}", failed.id));
    }
}
