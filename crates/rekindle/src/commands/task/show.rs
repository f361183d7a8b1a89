//! `rekindle task list` and `rekindle task show`.

use clap::Args;
use rekindle_core::review::{GivenVerdict, Rework, Stage, Verdict};
use rekindle_core::view::{TaskRow, ToldRow};
use serde::Serialize;

use crate::commands::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::picture::{Picture, standing};
use crate::story;
use crate::ui::{Align, Table, Tone, harmless, one_line, stamp};

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The task
    task: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A task in a list, for programs.
#[derive(Serialize)]
struct LineJson {
    id: String,
    title: String,
    state: String,
    epoch: u64,
}

/// Lists tasks: an agent's own, or the run's.
pub(super) fn list(args: &ListArgs, context: &Context) -> Result<Exit> {
    if let Some(agent) = context.agent() {
        let tasks = agent.tasks()?.into_iter();
        let lines = tasks.map(|task| {
            let (id, title, state, epoch) = (task.id.to_string(), task.title, task.state, task.epoch.0);
            Line { word: state.replace('_', " "), tone: Tone::of_state(&state), id, title, state, epoch, waits: None }
        });
        return print(args, lines.collect(), None, context);
    }
    let view = context.view()?;
    let run = view.chosen(args.run.as_deref())?;
    let coordinator = view.coordinator()?.map(|owner| owner.map_or(0, |owner| owner.pid));
    let picture = Picture::of_rows(&run, coordinator)?;
    let lines = picture.tasks.iter().map(|task| {
        let stands = standing::of(&picture, task);
        Line {
            id: task.id.to_string(),
            title: task.title.clone(),
            state: task.state.clone(),
            epoch: task.epoch.0,
            word: stands.word.to_owned(),
            tone: stands.tone,
            waits: stands.note.filter(|_| picture.waits_for(&task.id).is_some()),
        }
    });
    print(args, lines.collect(), Some(picture.counts().words()), context)
}

/// A task in a list, for people and for programs.
struct Line {
    id: String,
    title: String,
    state: String,
    epoch: u64,
    word: String,
    tone: Tone,
    /// What it waits for, in words.
    waits: Option<String>,
}

fn print(args: &ListArgs, lines: Vec<Line>, counts: Option<String>, context: &Context) -> Result<Exit> {
    if args.json {
        let json = |line: &Line| LineJson {
            id: line.id.clone(),
            title: line.title.clone(),
            state: line.state.clone(),
            epoch: line.epoch,
        };
        context.ui.json(&lines.iter().map(json).collect::<Vec<_>>())?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&[("TASK", Align::Left), ("STATE", Align::Left), ("TITLE", Align::Left)]);
    for line in lines {
        let waits = line.waits.map(|waits| format!(" ({waits})")).unwrap_or_default();
        table.row([
            (line.id, Some(Tone::Strong)),
            (line.word, Some(line.tone)),
            (format!("{}{waits}", line.title), None),
        ]);
    }
    context.ui.line(&table.render(context.ui.paint(), context.ui.width()))?;
    counts.map_or(Ok(()), |counts| context.ui.line(&counts))?;
    Ok(Exit::Success)
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let task = view.the_run()?.task(&args.task)?;
    if args.json {
        context.ui.json(&task)?;
        return Ok(Exit::Success);
    }
    let attempts = view.the_run()?.attempts()?;
    let last =
        attempts.into_iter().filter(|attempt| attempt.tasks.contains(&task.id)).max_by_key(|attempt| attempt.attempt);
    for (name, value) in facts(&task, last.and_then(|attempt| attempt.last_words)) {
        let name = context.ui.paint().tone(Tone::Dim, &format!("{name:>12}"));
        context.ui.line(&format!("{name}  {}", one_line(&value)))?;
    }
    let evidence = task.evidence.as_ref().map(story::of_checks).unwrap_or_default();
    for line in evidence {
        context.ui.line(&format!("{:14}{}", "", harmless(&line)))?;
    }
    Ok(Exit::Success)
}

fn facts(task: &TaskRow, last_words: Option<String>) -> Vec<(&'static str, String)> {
    let text = |value: Option<String>| value.unwrap_or_default();
    let blockers: Vec<&str> = task.blocked_by.iter().map(AsRef::as_ref).collect();
    let parts: Vec<&str> = task.parts.iter().map(AsRef::as_ref).collect();
    let checkpoint = task.checkpoint.as_ref();
    let mut facts = vec![
        ("task", format!("{} {}", task.id, task.title)),
        ("state", task.doubt().map_or(task.state.clone(), |(mark, _)| format!("{} ({mark})", task.state))),
        ("decided", task.decided().unwrap_or_default().to_owned()),
        ("reason", text(task.reason.clone())),
        ("result", text(task.result.clone())),
        ("attempts", format!("{} of {}", task.attempts, task.attempt_limit)),
        ("last cause", text(task.cause.clone())),
        ("last words", text(last_words)),
        ("agent", text(task.agent.as_ref().map(ToString::to_string))),
        ("wave", task.wave.to_string()),
        ("epoch", task.epoch.to_string()),
        ("blocked by", blockers.join(", ")),
        ("part of", text(task.parent.as_ref().map(ToString::to_string))),
        ("parts", parts.join(", ")),
        ("environments", task.environments.join(", ")),
        ("stage", stage(task).to_owned()),
        ("sent back", text(task.rework.as_ref().map(sent_back))),
        ("merged", text(task.merged.clone())),
        ("started", text(task.started_at.map(stamp))),
        ("ended", text(task.ended_at.map(stamp))),
        ("not before", text(task.not_before.map(stamp))),
        ("checkpoint", text(checkpoint.map(|checkpoint| checkpoint.status.clone()))),
        ("done", checkpoint.map(|checkpoint| checkpoint.completed.join("; ")).unwrap_or_default()),
        ("left", checkpoint.map(|checkpoint| checkpoint.remaining.join("; ")).unwrap_or_default()),
    ];
    facts.extend(task.told.iter().map(|told| ("told", told_words(told))));
    facts.extend(task.verdicts.iter().map(|given| ("verdict", verdict(given))));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// A message to its agent, with how it was delivered.
fn told_words(told: &ToldRow) -> String {
    let text = if told.given_back { "what you changed while you held it" } else { &told.text };
    format!("message {}: {text} ({})", told.number, told.standing())
}

/// The stage that an open task is in; none for an ended one.
fn stage(task: &TaskRow) -> &'static str {
    match (task.ended_at, task.stage) {
        (Some(_), _) => "",
        (None, Stage::Implement) => "implement",
        (None, Stage::Review) => "review",
        (None, Stage::Audit) => "audit",
    }
}

fn sent_back(rework: &Rework) -> String {
    format!("by {}: {}", story::protocol::sent_by(rework), rework.findings.issues.join("; "))
}

fn verdict(given: &GivenVerdict) -> String {
    let decided = match given.verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Blocked => "blocked",
    };
    let issues = if given.findings.issues.is_empty() {
        String::new()
    } else {
        format!(": {}", given.findings.issues.join("; "))
    };
    format!("{} {decided}{issues}", given.role)
}
