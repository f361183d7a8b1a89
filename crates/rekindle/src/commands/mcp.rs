//! `rekindle mcp`: the tools that an agent reports with, served over its standard input and output.

use std::path::PathBuf;

use clap::Args;

use super::Context;
use crate::client::{Agent, AttemptVariables};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::mcp;

/// Serve an agent's tools over the Model Context Protocol (for agents)
///
/// Speaks MCP on standard input and output and exits when its input ends. rekindle configures it for the agents it starts;
/// there is nothing to set up.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The attempt's directory, which identifies the agent [default: REKINDLE_TOKEN identifies it]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,

    /// Offer one tool that stands for all of them: fewer tokens in every request
    #[arg(long)]
    one_tool: bool,
}

/// Serves until the input ends.
pub(crate) fn run(args: &McpArgs, context: &Context) -> Result<Exit> {
    let told = AttemptVariables::of(args.bundle.as_deref());
    let Some(agent) = Agent::told(&told, &context.project.state_dir) else {
        return Err(CliError::usage("only an agent has tools: neither REKINDLE_TOKEN nor --bundle identifies one")
            .hint("start agents with a plan: rekindle run plan.md"));
    };
    let served =
        mcp::Served { role: told.role(), again: told.tried_before(), own: told.tasks(), in_one: args.one_tool };
    mcp::serve(agent.with_tools(), served)?;
    Ok(Exit::Success)
}
