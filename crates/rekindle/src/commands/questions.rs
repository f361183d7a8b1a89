//! `rekindle questions`: what agents want to know from a person.

use clap::Args;
use rekindle_core::view::QuestionRow;
use serde::Serialize;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::lost;
use crate::ui::{Tone, harmless, one_line, stamp};

/// Show the questions that agents have asked
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle questions\n  rekindle answer 3 \"use PostgreSQL\"")]
pub(crate) struct QuestionsArgs {
    /// Print all questions as a JSON list; the answer of an open question is null
    #[arg(long)]
    json: bool,
    /// Include answered questions; JSON always does
    #[arg(long)]
    all: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// A question, for programs.
#[derive(Serialize)]
struct QuestionJson<'a> {
    id: u64,
    task: &'a str,
    agent: &'a str,
    text: &'a str,
    options: &'a [String],
    context: &'a str,
    answer: Option<&'a str>,
    /// The channel that the answer came through, if not from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'static str>,
    asked_at: String,
}

pub(crate) fn run(args: &QuestionsArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = match &args.run {
        Some(name) => Some(view.run_named(name)?),
        None => view.run()?,
    };
    let mut questions = run.map(|run| run.questions()).transpose()?.unwrap_or_default();
    // Lost events concern the state directory as a whole, not an earlier run.
    if args.run.is_none() {
        questions.splice(0..0, view.lost()?);
    }
    questions.retain(|question| args.all || args.json || question.answer.is_none());
    if args.json {
        let json: Vec<_> = questions.iter().map(as_json).collect();
        context.ui.json(&json)?;
        return Ok(Exit::Success);
    }
    if questions.is_empty() {
        context.ui.say("no question is open");
    }
    for question in &questions {
        show(context, question)?;
    }
    Ok(Exit::Success)
}

fn as_json(question: &QuestionRow) -> QuestionJson<'_> {
    QuestionJson {
        id: question.id.0,
        task: question.task.as_str(),
        agent: question.agent.as_str(),
        text: &question.text,
        options: &question.options,
        context: &question.context,
        answer: question.answer.as_deref(),
        via: question.via.map(rekindle_core::phone::Via::name),
        asked_at: stamp(question.asked_at),
    }
}

fn show(context: &Context, question: &QuestionRow) -> Result<()> {
    let (ui, paint) = (&context.ui, context.ui.paint());
    let head = format!("{}  {} asks about {}:", question.id, question.agent, question.task);
    ui.line(&paint.tone(Tone::Strong, &head))?;
    for line in harmless(&question.text).lines() {
        ui.line(&format!("   {line}"))?;
    }
    for line in harmless(&question.context).lines() {
        ui.line(&format!("   {}", paint.tone(Tone::Dim, line)))?;
    }
    for (index, option) in question.options.iter().enumerate() {
        ui.line(&format!("   {}. {}", index + 1, one_line(option)))?;
    }
    match &question.answer {
        Some(answer) => ui.line(&format!("   answered: {}", one_line(answer))),
        None if question.id == lost::QUESTION => ui.line("   answer it: rekindle answer 0 forget, or restore"),
        None if question.options.is_empty() => ui.line(&format!("   answer it: rekindle answer {} TEXT", question.id)),
        None => ui.line(&format!("   answer it: rekindle answer {} NUMBER, or rekindle answer {0} TEXT", question.id)),
    }
}
