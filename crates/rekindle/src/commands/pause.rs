//! `rekindle pause` and `rekindle stop`: the run stops for now, and nothing is lost.

use clap::Args;
use rekindle_core::event::PauseReason;
use rekindle_core::input::Order;
use rekindle_engine::coordinator::Coordinator;
use rekindle_engine::driver::Message;

use super::Context;
use super::run::coordinator_error;
use crate::client::orders::{self, Taken};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::view::View;

/// Pause the run after asking agents for a checkpoint; continue with `rekindle resume`
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {}

/// Pause the run at once, without giving agents time to finish; continue with `rekindle resume`
#[derive(Debug, Args)]
pub(crate) struct StopArgs {}

/// Pauses. Fails when there is no run, or it is over.
pub(crate) fn run(_args: &PauseArgs, context: &Context) -> Result<Exit> {
    order(context, PauseReason::Operator)
}

/// Pauses at once. Fails when there is no run, or it is over.
pub(crate) fn stop(_args: &StopArgs, context: &Context) -> Result<Exit> {
    order(context, PauseReason::Stop)
}

fn order(context: &Context, reason: PauseReason) -> Result<Exit> {
    let state = View::open(&context.project)?.the_run()?.row.state;
    match orders::give(&context.project, &Order::Pause(reason))? {
        Taken::Now | Taken::Placed(_) => context.ui.say("pausing; continue with: rekindle resume"),
        Taken::NobodyThere if matches!(state.as_str(), "created" | "running" | "pausing" | "waiting") => {
            return alone(context, reason);
        }
        Taken::NobodyThere if state != "paused" => return Err(CliError::refused("the run is finished")),
        Taken::Already | Taken::NobodyThere => context.ui.say("it is already paused; continue with: rekindle resume"),
    }
    Ok(Exit::Success)
}

/// No coordinator is running, but agents may be alive: this process adopts them, starts nothing, and stops them.
fn alone(context: &Context, reason: PauseReason) -> Result<Exit> {
    let Some(mut setup) = super::run::setup_of_unfinished(context)? else {
        return Err(CliError::refused("another process has just taken over the run").hint("try again: rekindle pause"));
    };
    setup.limits.max_agents = 0;
    let coordinator = Coordinator::open(setup).map_err(coordinator_error)?;
    let gone = |_| CliError::internal("the coordinator ended before it could be told to pause");
    coordinator.sender().send(Message::Pause(reason)).map_err(gone)?;
    coordinator.drive().map_err(coordinator_error)?;
    context.ui.say("paused: no coordinator was running, its agents are stopped; continue with: rekindle resume");
    Ok(Exit::Success)
}
