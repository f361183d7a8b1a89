//! `rekindle why`: every decision about a task, with what it was made from.

use clap::Args;
use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;
use serde::Serialize;
use serde_json::Value;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::story;
use crate::story::chapters::{self, Chapter};
use crate::ui::{Tone, clock_time, harmless, one_line, stamp};

/// Show every decision about a task with its evidence
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle why T3")]
pub(crate) struct WhyArgs {
    /// The task
    task: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The story, for programs.
#[derive(Serialize)]
struct WhyJson<'a> {
    schema_version: u32,
    task: &'a str,
    title: &'a str,
    state: &'a str,
    reason: Option<&'a str>,
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
    let run = view.the_run()?;
    let task = run.task(&args.task)?;
    let chapters = chapters::of(&run, &args.task)?;
    if args.json {
        context.ui.json(&WhyJson {
            schema_version: 1,
            task: task.id.as_str(),
            title: &task.title,
            state: &task.state,
            reason: task.reason.as_deref(),
            by_operator: task.by_operator,
            decisions: chapters.into_iter().map(as_json).collect(),
        })?;
    } else {
        heading(&task, context)?;
        for chapter in &chapters {
            show(chapter, context)?;
        }
        if chapters.is_empty() {
            context.ui.line("nothing was decided about it yet")?;
        }
    }
    Ok(Exit::Success)
}

fn strategy_of(body: &Body) -> Option<&'static str> {
    match body {
        // Written before there was a choice: what followed a first attempt was always a fresh one.
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

fn as_json(chapter: Chapter) -> DecisionJson {
    let Chapter { event, body, .. } = &chapter;
    DecisionJson {
        seq: event.seq,
        time: stamp(Time(event.time_ms)),
        kind: event.kind.clone(),
        agent: event.agent.clone(),
        attempt: chapter.attempt.map(|attempt| attempt.0),
        epoch: event.epoch,
        text: story::tell(event).text,
        cause: chapter.cause,
        strategy: strategy_of(body),
        reason: reason_of(body),
        details: serde_json::from_str(&event.details).unwrap_or_default(),
        evidence: chapter.evidence,
    }
}

fn heading(task: &TaskRow, context: &Context) -> Result<()> {
    let paint = context.ui.paint();
    let state = paint.tone(Tone::of_state(&task.state), &task.state);
    let attempts = format!("{} of {} attempts", task.attempts, task.attempt_limit);
    context.ui.line(&format!("{} {}: {state}, {attempts}", task.id, one_line(&task.title)))?;
    if let Some(decided) = task.decided() {
        context.ui.line(decided)?;
    }
    match &task.reason {
        Some(reason) => context.ui.line(&one_line(reason)),
        None => Ok(()),
    }
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
    for line in &chapter.shown {
        let line = harmless(line);
        context.ui.line(&format!("{:22}{}", "", paint.tone(Tone::Dim, line.trim_end())))?;
    }
    Ok(())
}
