//! `rekindle heartbeat`: an agent shows that it is alive during long quiet work.

use clap::Args;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Send a heartbeat (for agents)
///
/// Output, CPU time and reports are signs of life by themselves; send a heartbeat during work that shows none of them.
#[derive(Debug, Args)]
pub(crate) struct HeartbeatArgs {}

pub(crate) fn run(_args: &HeartbeatArgs, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        return Err(CliError::usage("only an agent can send a heartbeat: REKINDLE_TOKEN is not set"));
    };
    if !agent.heartbeat()? {
        context.ui.say("no coordinator is running: no heartbeat is needed");
    }
    Ok(Exit::Success)
}
