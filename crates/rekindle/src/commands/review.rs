//! `rekindle review`: the verdict of the agent that criticises a task's work, and what critics have learned to look at.

use clap::{Args, Subcommand};
use rekindle_core::input::Order;
use rekindle_core::review::{FocusArea, Verdict, focus_areas};
use rekindle_core::role::Role;
use rekindle_core::text::counted;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store;
use serde::Serialize;

use super::Context;
use super::verdict::{VerdictArgs, give};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::one_line;

/// Report the verdict of a review (for critics), or show what critics must look for
///
/// A verdict exits with 0 when it is accepted, with 1 and the reason when it is refused.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle review pass T1\n  rekindle review fail T1 --issues \"errors are swallowed\" --required \"return them\" --passed \"names, tests\"\n  rekindle review focus --reset"
)]
pub(crate) struct ReviewArgs {
    #[command(subcommand)]
    command: ReviewCommand,
}

#[derive(Debug, Subcommand)]
enum ReviewCommand {
    /// Accept the work
    Pass(VerdictArgs),
    /// Send the work back to its developer
    Fail(VerdictArgs),
    Focus(FocusArgs),
}

/// Show what critics are told to look for: problems that they missed and auditors found
#[derive(Debug, Args)]
struct FocusArgs {
    /// Forget them
    #[arg(long, conflicts_with = "json")]
    reset: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was learned, for programs.
#[derive(Serialize)]
struct FocusJson {
    schema_version: u32,
    disagreements: usize,
    focus: Vec<FocusArea>,
}

pub(crate) fn run(args: &ReviewArgs, context: &Context) -> Result<Exit> {
    match &args.command {
        ReviewCommand::Pass(given) => give(given, Role::Critic, Verdict::Pass, context),
        ReviewCommand::Fail(given) => give(given, Role::Critic, Verdict::Fail, context),
        ReviewCommand::Focus(args) if args.reset => {
            context.order(&Order::ForgetFocus, "what was learned from disagreements is forgotten")
        }
        ReviewCommand::Focus(args) => focus(args, context),
    }
}

fn focus(args: &FocusArgs, context: &Context) -> Result<Exit> {
    let learned = learned(context)?;
    if args.json {
        context.ui.json(&learned)?;
        return Ok(Exit::Success);
    }
    if learned.focus.is_empty() {
        context.ui.say("critics have no additional focus areas");
    }
    for area in &learned.focus {
        context.ui.line(&format!("{} (missed {})", area.category, counted(area.misses, "time", "times")))?;
        for example in &area.examples {
            context.ui.line(&format!("   - {}", one_line(example)))?;
        }
    }
    if !learned.focus.is_empty() {
        context.ui.hint("forget them: rekindle review focus --reset");
    }
    Ok(Exit::Success)
}

fn learned(context: &Context) -> Result<FocusJson> {
    let dir = StateDir::open(&context.project.state_dir)?;
    let history = match store::reader(&dir)? {
        None => Vec::new(),
        Some(reader) => {
            let loaded = driver::load(reader.as_ref());
            loaded.map_err(|error| CliError::internal("the state cannot be read").because(&error))?.0.disagreements
        }
    };
    Ok(FocusJson { schema_version: 1, disagreements: history.len(), focus: focus_areas(&history) })
}
