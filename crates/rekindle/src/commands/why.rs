//! `rekindle why`: every decision about a task, with what it was made from.

use std::collections::BTreeSet;

use clap::Args;
use rekindle_core::cause::Cause;
use rekindle_core::event::Body;
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;
use rekindle_engine::store::StoredEvent;
use serde::Serialize;
use serde_json::Value;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::story;
use crate::ui::{Tone, clock_time, harmless, one_line, stamp};
use crate::view::View;

/// Tell every decision about a task with its evidence
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle why T3")]
pub struct WhyArgs {
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
    decisions: Vec<DecisionJson>,
}

#[derive(Serialize)]
struct DecisionJson {
    seq: u64,
    time: String,
    kind: String,
    agent: Option<String>,
    epoch: Option<u64>,
    text: String,
    cause: Option<&'static str>,
    strategy: Option<&'static str>,
    reason: Option<String>,
    evidence: Vec<String>,
    details: Value,
}

/// Tells it.
pub fn run(args: &WhyArgs, context: &Context) -> Result<Exit> {
    let view = View::open(&context.project)?;
    let run = view.the_run()?;
    let task = run.task(&args.task)?;
    let mut chapters = Vec::new();
    let mut about = About { task: &args.task, attempts: BTreeSet::new() };
    run.events(0, |event| {
        if let Some(body) = about.concerns(event) {
            chapters.push((event.clone(), body));
        }
        Ok(())
    })?;
    if args.json {
        context.ui.json(&WhyJson {
            schema_version: 1,
            task: task.id.as_str(),
            title: &task.title,
            state: &task.state,
            reason: task.reason.as_deref(),
            decisions: chapters.iter().map(|(event, body)| as_json(event, body)).collect(),
        })?;
    } else {
        heading(&task, context)?;
        for (event, body) in &chapters {
            show(event, body, context)?;
        }
        if chapters.is_empty() {
            context.ui.line("nothing was decided about it yet")?;
        }
    }
    Ok(Exit::Success)
}

/// Tells the events of one task from the rest: its own, and those of the attempts that held it.
struct About<'a> {
    task: &'a str,
    attempts: BTreeSet<AttemptId>,
}

impl About<'_> {
    fn concerns(&mut self, event: &StoredEvent) -> Option<Body> {
        let body = story::body(event)?;
        if let Body::Dispatched { attempt, tasks, .. } = &body {
            if tasks.iter().any(|task| task.as_str() == self.task) {
                self.attempts.insert(*attempt);
                return Some(body);
            }
            return None;
        }
        let own = event.task.as_deref().map(|task| task == self.task);
        let of_attempt = || attempt_of(&body).is_some_and(|attempt| self.attempts.contains(&attempt));
        // What names another task is that task's business, although the same agent holds both.
        own.unwrap_or_else(of_attempt).then_some(body)
    }
}

fn attempt_of(body: &Body) -> Option<AttemptId> {
    match body {
        Body::AgentStarted { attempt, .. }
        | Body::AgentAdopted { attempt, .. }
        | Body::OrphanAgentDetected { attempt, .. }
        | Body::RoleTimeout { attempt, .. }
        | Body::AgentHung { attempt, .. }
        | Body::StopOrdered { attempt, .. }
        | Body::AgentCrashed { attempt, .. }
        | Body::AttemptExited { attempt, .. }
        | Body::AttemptEnded { attempt, .. }
        | Body::ReportRefused { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

fn cause_of(body: &Body) -> Option<&Cause> {
    match body {
        Body::StopOrdered { cause, .. } | Body::AttemptEnded { cause, .. } | Body::TaskRequeued { cause, .. } => {
            Some(cause)
        }
        _ => None,
    }
}

fn strategy_of(body: &Body) -> Option<&'static str> {
    match body {
        // A `command` cannot take up its own session: what follows a first attempt is always a fresh one.
        Body::Dispatched { resumed: true, .. } => Some("fresh"),
        Body::Dispatched { .. } => Some("first"),
        _ => None,
    }
}

fn reason_of(body: &Body) -> Option<String> {
    match body {
        Body::Dispatched { reason, .. }
        | Body::TaskRequeued { reason, .. }
        | Body::TaskSkipped { reason }
        | Body::TaskReopened { reason, .. }
        | Body::TaskFailReported { reason, .. }
        | Body::ReportRefused { reason, .. } => Some(reason.clone()),
        Body::WorkflowFailed { reason, detail } => Some(format!("{reason}: {detail}")),
        _ => None,
    }
}

fn as_json(event: &StoredEvent, body: &Body) -> DecisionJson {
    DecisionJson {
        seq: event.seq,
        time: stamp(Time(event.time_ms)),
        kind: event.kind.clone(),
        agent: event.agent.clone(),
        epoch: event.epoch,
        text: story::tell(event).text,
        cause: cause_of(body).map(Cause::name),
        strategy: strategy_of(body),
        reason: reason_of(body),
        evidence: story::evidence(body),
        details: serde_json::from_str(&event.details).unwrap_or_default(),
    }
}

fn heading(task: &TaskRow, context: &Context) -> Result<()> {
    let paint = context.ui.paint();
    let state = paint.tone(Tone::of_state(&task.state), &task.state);
    let attempts = format!("{} of {} attempts", task.attempts, task.attempt_limit);
    context.ui.line(&format!("{} {}: {state}, {attempts}", task.id, one_line(&task.title)))?;
    match &task.reason {
        Some(reason) => context.ui.line(&one_line(reason)),
        None => Ok(()),
    }
}

fn show(event: &StoredEvent, body: &Body, context: &Context) -> Result<()> {
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
    for line in story::evidence(body) {
        let line = harmless(&line);
        context.ui.line(&format!("{:22}{}", "", paint.tone(Tone::Dim, line.trim_end())))?;
    }
    Ok(())
}
