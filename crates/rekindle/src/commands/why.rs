//! `rekindle why`: every decision about a task, with its evidence.

mod attempts;

use clap::Args;
use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::strategy::Strategy;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::{TaskRow, number_of};
use rekindle_engine::last_output;
use serde::Serialize;
use serde_json::Value;

use self::attempts::{Ends, is_folded};
use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::picture::output::TaskOutput;
use crate::picture::{Picture, standing};
use crate::story;
use crate::story::chapters::{self, Chapter};
use crate::ui::{Tone, clock_time, harmless, one_line, stamp, zone_line};
use crate::view::RunView;

/// Show every decision about a task with its evidence
///
/// One line for each attempt, with the last output of an agent that crashed or failed; then what was claimed, checked and asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle why T3\n  rekindle why T3 --all")]
pub(crate) struct WhyArgs {
    /// The task
    task: String,
    /// Show every step of every attempt
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// The story, for programs.
#[derive(Serialize)]
struct WhyJson<'a> {
    schema_version: u32,
    task: &'a str,
    title: &'a str,
    state: &'a str,
    reason: Option<&'a str>,
    /// What its agent printed before its last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a TaskOutput>,
    /// A person decided how it ended.
    by_operator: bool,
    decisions: Vec<DecisionJson>,
}

#[derive(Serialize)]
struct DecisionJson {
    seq: u64,
    time: String,
    kind: String,
    agent: Option<String>,
    attempt: Option<u64>,
    /// Which attempt at the task it is, counted from 1.
    number: Option<u32>,
    epoch: Option<u64>,
    text: String,
    cause: Option<&'static str>,
    strategy: Option<&'static str>,
    reason: Option<String>,
    evidence: Vec<String>,
    details: Value,
}

pub(crate) fn run(args: &WhyArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = view.chosen(args.run.as_deref())?;
    let task = run.task(&args.task)?;
    let chapters = chapters::of(&run, &args.task)?;
    let coordinator = view.coordinator()?.map(|owner| owner.map_or(0, |owner| owner.pid));
    let picture = Picture::of_rows(&run, coordinator)?;
    if args.json {
        let number = |attempt: AttemptId| number_of(&picture.attempts, &task.id, attempt);
        let decisions = chapters.into_iter().map(|chapter| {
            let number = chapter.attempt.and_then(number);
            as_json(chapter, number)
        });
        context.ui.json(&WhyJson {
            schema_version: 1,
            task: task.id.as_str(),
            title: &task.title,
            state: &task.state,
            reason: task.reason.as_deref(),
            output: picture.outputs.get(&task.id),
            by_operator: task.by_operator,
            decisions: decisions.collect(),
        })?;
        return Ok(Exit::Success);
    }
    heading(&picture, &task, context)?;
    let ends = Ends::of(&chapters);
    for chapter in &chapters {
        match &chapter.body {
            _ if args.all => show(chapter, context)?,
            Body::Attempt(AttemptEvent::Dispatched { attempt, .. }) => {
                attempt_line(
                    &run,
                    &picture,
                    &task,
                    chapter,
                    &ends.told(*attempt, Time(chapter.event.time_ms)),
                    context,
                )?;
            }
            body if is_folded(body) => {}
            _ => show(chapter, context)?,
        }
    }
    if chapters.is_empty() {
        context.ui.line("nothing was decided about it yet")?;
    }
    if let Some(removed) = &picture.removed {
        context.ui.say(removed);
    }
    context.ui.say(&zone_line(picture.now));
    Ok(Exit::Success)
}

/// An attempt in one line, and what its agent printed before it failed: all of it for the newest attempt, only the error for
/// others.
fn attempt_line(
    run: &RunView<'_>,
    picture: &Picture,
    task: &TaskRow,
    chapter: &Chapter,
    end: &str,
    context: &Context,
) -> Result<()> {
    let (ui, paint) = (&context.ui, context.ui.paint());
    let event = &chapter.event;
    let Some(attempt) = chapter.attempt else { return Ok(()) };
    let time = paint.tone(Tone::Dim, &clock_time(Time(event.time_ms)));
    let row = picture.attempt(attempt);
    let failed = row.is_some_and(last_output::has_failed);
    let tone = if failed { Tone::Error } else { Tone::Active };
    let verb = paint.tone(tone, &format!("{:>11}", format!("ATTEMPT {}", picture.number_of(&task.id, attempt))));
    let who = event.agent.as_deref().unwrap_or_default();
    ui.line(&format!("{time} {verb}  {}", one_line(&format!("{who} ({}): {end}", story::tell(event).text))))?;
    for line in story::evidence(&chapter.body) {
        below(&line, context)?;
    }
    let newest = picture.outputs.get(&task.id).filter(|output| output.attempt == attempt);
    let older = match row.filter(|_| failed && newest.is_none()) {
        Some(row) => run.last_output(row)?.and_then(|output| output.error.or(output.lines.last().cloned())),
        None => None,
    };
    let lines = newest.into_iter().flat_map(|output| output.shown()).map(str::to_owned).chain(older);
    lines.into_iter().try_for_each(|line| below(&format!("| {line}"), context))
}

fn below(line: &str, context: &Context) -> Result<()> {
    let line = harmless(line);
    context.ui.line(&format!("{:22}{}", "", context.ui.paint().tone(Tone::Dim, line.trim_end())))
}

fn strategy_of(body: &Body) -> Option<&'static str> {
    match body {
        // Events from before there was a choice: what followed a first attempt was always a fresh one.
        Body::Attempt(AttemptEvent::Dispatched { resumed: true, strategy: Strategy::First, .. }) => {
            Some(Strategy::Fresh.name())
        }
        Body::Attempt(AttemptEvent::Dispatched { strategy, .. }) => Some(strategy.name()),
        _ => None,
    }
}

fn reason_of(body: &Body) -> Option<String> {
    match body {
        Body::Attempt(AttemptEvent::Dispatched { reason, .. })
        | Body::Task(
            TaskEvent::TaskRequeued { reason, .. }
            | TaskEvent::TaskSkipped { reason }
            | TaskEvent::TaskReopened { reason, .. }
            | TaskEvent::TaskFailReported { reason, .. },
        )
        | Body::Attempt(AttemptEvent::ReportRefused { reason, .. }) => Some(reason.clone()),
        Body::Task(TaskEvent::WorkflowFailed { reason, detail }) => Some(format!("{reason}: {detail}")),
        _ => None,
    }
}

fn as_json(chapter: Chapter, number: Option<u32>) -> DecisionJson {
    let Chapter { event, body, .. } = &chapter;
    DecisionJson {
        seq: event.seq,
        time: stamp(Time(event.time_ms)),
        kind: event.kind.clone(),
        agent: event.agent.clone(),
        attempt: chapter.attempt.map(|attempt| attempt.0),
        number,
        epoch: event.epoch,
        text: story::tell(event).text,
        cause: chapter.cause,
        strategy: strategy_of(body),
        reason: reason_of(body),
        details: serde_json::from_str(&event.details).unwrap_or_default(),
        evidence: chapter.evidence,
    }
}

fn heading(picture: &Picture, task: &TaskRow, context: &Context) -> Result<()> {
    let stands = standing::of(picture, task);
    let state = context.ui.paint().tone(stands.tone, stands.word);
    let attempts = format!("{} of {} used", task.attempts, counted(task.attempt_limit, "attempt", "attempts"));
    context.ui.line(&format!("{} {}: {state}, {attempts}", task.id, one_line(&task.title)))?;
    if let Some(decided) = task.decided() {
        context.ui.line(decided)?;
    }
    let ended = matches!(task.state.as_str(), "complete" | "skipped" | "failed");
    let why = task.reason.clone().filter(|_| ended).or_else(|| picture.waits_for(&task.id).and(stands.note));
    why.map_or(Ok(()), |why| context.ui.line(&one_line(&why)))
}

fn show(chapter: &Chapter, context: &Context) -> Result<()> {
    let event = &chapter.event;
    let paint = context.ui.paint();
    let told = story::tell(event);
    let time = paint.tone(Tone::Dim, &clock_time(Time(event.time_ms)));
    let verb = paint.tone(told.tone, &format!("{:>11}", told.verb));
    let whom = match (&event.agent, event.epoch) {
        (Some(agent), Some(epoch)) => format!("{agent} (epoch {epoch}): "),
        (Some(agent), None) => format!("{agent}: "),
        _ => String::new(),
    };
    context.ui.line(&format!("{time} {verb}  {whom}{}", one_line(&told.text)))?;
    chapter.shown.iter().try_for_each(|line| below(line, context))
}
