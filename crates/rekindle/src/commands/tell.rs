//! `rekindle tell`: a person's message to the agent of a task.

use std::io::Read;

use clap::Args;
use rekindle_core::input::Order;
use rekindle_core::steering::TELL_MAX_BYTES;
use rekindle_core::view::{TaskRow, ToldRow};

use super::Context;
use crate::acts;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::{self, Ui};
use crate::view::task_id;

/// Send a message to a task's agent
///
/// A program that takes messages while it runs gets it now; any other with its next prompt. `rekindle why TASK` shows when and how
/// it was delivered.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle tell T3 \"use the v2 API, v1 is being removed\"\n  rekindle tell T3 - < review.txt\n  git diff | rekindle tell T3 -"
)]
pub(crate) struct TellArgs {
    /// The task
    task: String,
    /// The message; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
}

/// How often a message for a running agent is checked for its arrival before its state is shown as it is.
const LOOKS: u32 = 20;

/// Pause between two checks.
const LOOK_MS: u32 = 100;

/// Sends the message.
pub(crate) fn run(args: &TellArgs, context: &Context) -> Result<Exit> {
    let task = task_id(&args.task)?;
    let text = if args.text == "-" { from_input()? } else { args.text.clone() };
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty")
            .hint("write it after the task, or use - to read it from standard input"));
    }
    let before = newest(context, args)?.map_or(0, |told| told.number);
    let order = Order::Tell { task, text, key: acts::key_of_order() };
    crate::client::orders::give(&context.project, &order)?;
    let told = await_standing(context, args, before)?;
    say(&context.ui, args, told.as_ref());
    Ok(Exit::Success)
}

/// Standard input, as far as a message may be long: one byte more shows that it is too long.
fn from_input() -> Result<String> {
    let mut bytes = Vec::new();
    let most = (TELL_MAX_BYTES + 1) as u64 * 4;
    let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| CliError::usage("standard input cannot be read").because(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(context: &Context, args: &TellArgs) -> Result<TaskRow> {
    context.view()?.the_run()?.task(&args.task)
}

fn newest(context: &Context, args: &TellArgs) -> Result<Option<ToldRow>> {
    Ok(row(context, args)?.told.into_iter().rfind(|told| !told.given_back))
}

/// The message's state once a running agent has had a moment to take it.
fn await_standing(context: &Context, args: &TellArgs, before: u64) -> Result<Option<ToldRow>> {
    let mut told = newest(context, args)?.filter(|told| told.number > before);
    for _ in 0..LOOKS {
        let under_way = told.as_ref().is_some_and(|told| told.attempt.is_some() && told.how.is_none());
        if !under_way {
            break;
        }
        ui::pause(LOOK_MS);
        told = newest(context, args)?.filter(|told| told.number > before);
    }
    Ok(told)
}

fn say(ui: &Ui, args: &TellArgs, told: Option<&ToldRow>) {
    match told {
        Some(told) => ui.say(&format!("message {} for {}: {}", told.number, args.task, told.standing())),
        None => ui.say("told already"),
    }
}
