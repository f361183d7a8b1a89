//! `rekindle why`: every decision about a task, with what it was made from.

mod trail;

use std::collections::BTreeSet;

use clap::Args;
use rekindle_core::cause::Cause;
use rekindle_core::event::Body;
use rekindle_core::ids::AttemptId;
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;
use rekindle_engine::store::StoredEvent;
use serde::Serialize;
use serde_json::Value;

use self::trail::Trail;
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
    attempt: Option<u64>,
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
    let mut teller = Teller { about: About { task: &args.task, attempts: BTreeSet::new() }, trail: Trail::default() };
    run.events(0, |event| {
        chapters.extend(teller.chapter(event));
        Ok(())
    })?;
    if args.json {
        context.ui.json(&WhyJson {
            schema_version: 1,
            task: task.id.as_str(),
            title: &task.title,
            state: &task.state,
            reason: task.reason.as_deref(),
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

/// One decision or fact about the task.
struct Chapter {
    event: StoredEvent,
    body: Body,
    attempt: Option<AttemptId>,
    cause: Option<&'static str>,
    /// What it rests on, with all that was seen of the attempt so far where that led to it.
    evidence: Vec<String>,
    /// The same for people, who have read above what was seen.
    shown: Vec<String>,
}

/// Goes through the log and keeps in mind what was seen of the attempt at hand.
struct Teller<'a> {
    about: About<'a>,
    trail: Trail,
}

impl Teller<'_> {
    fn chapter(&mut self, event: &StoredEvent) -> Option<Chapter> {
        let body = self.about.concerns(event)?;
        let starts = matches!(body, Body::Dispatched { .. });
        if !starts {
            self.trail.add(&body, Time(event.time_ms));
        }
        // Only what is made of them is a decision.
        if matches!(body, Body::AgentMeasured { .. } | Body::TurnEnded { .. }) {
            return None;
        }
        let own = story::evidence(&body);
        let seen = if Trail::leads_to(&body) { self.trail.lines() } else { Vec::new() };
        let evidence: Vec<String> = own.iter().chain(&seen).cloned().collect();
        let cause = cause_of(&body).map(Cause::name).or(self.trail.cause().filter(|_| starts));
        if starts {
            self.trail = Trail::default();
        }
        let attempt = story::attempt_of(&body).or(self.about.attempts.last().copied());
        let shown = if starts { evidence.clone() } else { own };
        Some(Chapter { event: event.clone(), body, attempt, cause, evidence, shown })
    }
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
        let of_attempt = || story::attempt_of(&body).is_some_and(|attempt| self.attempts.contains(&attempt));
        // What names another task is that task's business, although the same agent holds both.
        own.unwrap_or_else(of_attempt).then_some(body)
    }
}

fn cause_of(body: &Body) -> Option<&Cause> {
    match body {
        Body::StopOrdered { cause, .. }
        | Body::AttemptEnded { cause, .. }
        | Body::TaskRequeued { cause, .. }
        | Body::GateClosed(rekindle_core::event::GateClosed { cause, .. }) => Some(cause),
        _ => None,
    }
}

fn strategy_of(body: &Body) -> Option<&'static str> {
    match body {
        // Written before there was a choice: what followed a first attempt was always a fresh one.
        Body::Dispatched { resumed: true, strategy: Strategy::First, .. } => Some(Strategy::Fresh.name()),
        Body::Dispatched { strategy, .. } => Some(strategy.name()),
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
