//! `rekindle pause` and `rekindle stop`: the run rests, nothing is lost.

use clap::Args;
use rekindle_core::event::PauseReason;
use rekindle_core::input::Order;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;

/// Pause the run: agents are asked for a checkpoint and stopped, `rekindle resume` goes on
#[derive(Debug, Args)]
pub struct PauseArgs {}

/// Pause the run at once: agents are stopped without grace, `rekindle resume` goes on
#[derive(Debug, Args)]
pub struct StopArgs {}

/// Pauses.
pub fn run(_args: &PauseArgs, context: &Context) -> Result<Exit> {
    order(context, PauseReason::Operator)
}

/// Pauses at once.
pub fn stop(_args: &StopArgs, context: &Context) -> Result<Exit> {
    order(context, PauseReason::Stop)
}

fn order(context: &Context, reason: PauseReason) -> Result<Exit> {
    context.order(&Order::Pause(reason), "pausing; go on with: rekindle resume")
}
