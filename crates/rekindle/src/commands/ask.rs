//! `rekindle ask`: an agent's question to a person.

use clap::Args;
use rekindle_core::report::Report;
use rekindle_engine::control::wire::Response;

use super::Context;
use crate::client::agent::{Outcome, task_or_own, unexpected};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Ask a person (for agents)
///
/// The task waits for the answer; everything else continues. Prints the question's number, or with --wait the answer.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle ask \"which database?\" --option PostgreSQL --option SQLite --wait\n  rekindle ask \"may I drop the table?\" --task T3 --context \"it holds 12 rows\""
)]
pub(crate) struct AskArgs {
    /// The question
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The task that waits for the answer [default: your first task]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// An answer to choose from (repeatable)
    #[arg(long = "option", value_name = "TEXT", allow_hyphen_values = true)]
    options: Vec<String>,
    /// What a person needs to know to answer
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    context: String,
    /// Wait for the answer and print it
    #[arg(long)]
    wait: bool,
}

pub(crate) fn run(args: &AskArgs, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        return Err(CliError::usage("only an agent can ask: REKINDLE_TOKEN is not set")
            .hint("note a decision instead: rekindle note TEXT"));
    };
    let report = Report::Ask {
        task: task_or_own(args.task.as_deref())?,
        text: args.text.clone(),
        options: args.options.clone(),
        context: args.context.clone(),
    };
    if args.wait {
        let answer = agent.ask_and_wait(&report)?;
        context.ui.line(&answer)?;
        return Ok(Exit::Success);
    }
    let outcome = agent.report(&report)?;
    context.say_kept(&outcome);
    match outcome {
        Outcome::Answered(Response::Asked { question } | Response::Answered { question, .. }) => {
            context.ui.line(&question.to_string())?
        }
        Outcome::Answered(answer) => return Err(unexpected(&answer)),
        Outcome::Kept(_) => {}
    }
    Ok(Exit::Success)
}
