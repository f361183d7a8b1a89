//! `rekindle answer`: a person's answer to an agent's question.

use clap::Args;
use rekindle_core::ids::QuestionId;
use rekindle_core::input::Order;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Answer a question that an agent asked
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle questions\n  rekindle answer 3 \"use PostgreSQL\"\n  rekindle answer 3 2            the second of its options\n  rekindle answer 3 -- --help    a text that looks like an option"
)]
pub(crate) struct AnswerArgs {
    /// The question's number, as `rekindle questions` shows it
    id: u64,
    /// The answer, any text; the number of an option stands for its text
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub(crate) fn run(args: &AnswerArgs, context: &Context) -> Result<Exit> {
    if args.text.trim().is_empty() {
        return Err(CliError::usage("the answer is empty"));
    }
    let order = Order::Answer { id: QuestionId(args.id), text: args.text.clone() };
    context.order(&order, &format!("question {} is answered", args.id))
}
