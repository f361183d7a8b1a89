//! `rekindle recover`: replace an agent by hand.

use clap::Args;
use rekindle_core::input::Order;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;

/// Replace an agent now: stop it if it is running, and give its tasks to a new agent with a full brief
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle status\n  rekindle recover T3\n  rekindle recover developer-T3")]
pub(crate) struct RecoverArgs {
    /// A task, or an agent's name as `rekindle status` shows it
    #[arg(value_name = "TASK|AGENT")]
    whose: String,
}

pub(crate) fn run(args: &RecoverArgs, context: &Context) -> Result<Exit> {
    // Checked first because only the view knows similar names.
    let view = context.view()?;
    let agent = view.the_run()?.agent_or_task(&args.whose)?;
    drop(view);
    let order = Order::Recover { agent: agent.to_string() };
    context.order(&order, &format!("{agent} is being replaced"))
}
