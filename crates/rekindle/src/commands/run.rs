//! `rekindle run`: checks everything before anything starts, then coordinates the run here, or attaches to the process that
//! already does.

mod background;
mod commands;
mod foreground;
mod git;
mod phone;
mod prepare;
pub(crate) mod watch;

use std::path::PathBuf;

use clap::Args;
use rekindle_engine::coordinator::Setup;

pub(crate) use foreground::coordinator_error;

use super::Context;
use crate::client::orders;
use crate::config::Flag;
use crate::error::Result;
use crate::exit_code::Exit;

/// Run a plan, or continue its unfinished run
///
/// Agents work under supervision and are replaced when they crash, hang or stop early. Ctrl-C pauses, a second Ctrl-C stops
/// at once; the same command continues later. Closing the terminal stops nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle run plan.md\n  rekindle run plan.md --detach && rekindle logs --follow\n  rekindle run plan.md --max-agents 8 --no-wait"
)]
pub(crate) struct RunArgs {
    /// The plan, a Markdown file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Start a new run even though the last one of this plan is finished
    #[arg(long)]
    pub again: bool,
    #[command(flatten)]
    pub options: RunOptions,
}

/// What `run` and `resume` have in common.
#[derive(Debug, Default, Args)]
pub(crate) struct RunOptions {
    /// Run in the background
    #[arg(long)]
    pub detach: bool,
    /// Exit with code 4 instead of waiting when every open task waits for a person or a usage reset
    #[arg(long)]
    pub no_wait: bool,
    /// Do not replace agents that fail
    #[arg(long)]
    pub no_recover: bool,
    /// Do not try the checks before the first agent starts
    #[arg(long)]
    pub no_preflight: bool,
    /// Run at most this many agents at once
    #[arg(long, value_name = "N")]
    pub max_agents: Option<String>,
    /// The agent for tasks that name none
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Continue although the log has lost the events of attempts that left files on disk
    #[arg(long)]
    pub forget_lost: bool,
    /// How progress is shown on standard error
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub progress: watch::Progress,
}

impl RunOptions {
    /// The options of the command line, as configuration.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let recover = self.no_recover.then(|| "false".to_owned());
        let preflight = self.no_preflight.then(|| "false".to_owned());
        let given = [
            ("run.preflight", "--no-preflight", preflight),
            ("run.max_agents", "--max-agents", self.max_agents.clone()),
            ("run.agent", "--agent", self.agent.clone()),
            ("run.recover", "--no-recover", recover),
        ];
        given.into_iter().filter_map(|(key, name, value)| Some(Flag { key, name, value: value? })).collect()
    }
}

pub(crate) fn run(args: &RunArgs, context: &Context) -> Result<Exit> {
    orders::refuse_own_agent(&context.project)?;
    go(prepare::for_plan(args, context)?, &args.options, context)
}

/// Continues the run of the state directory.
pub(crate) fn continue_run(options: &RunOptions, context: &Context) -> Result<Exit> {
    orders::refuse_own_agent(&context.project)?;
    go(prepare::for_resume(options, context)?, options, context)
}

/// What a coordinator of the unfinished run here needs; `None` when another process coordinates the run or it is over.
pub(crate) fn setup_of_unfinished(context: &Context) -> Result<Option<Setup>> {
    match prepare::for_resume(&RunOptions::default(), context)? {
        prepare::Prepared::Coordinate(setup) => Ok(Some(*setup)),
        _ => Ok(None),
    }
}

fn go(prepared: prepare::Prepared, options: &RunOptions, context: &Context) -> Result<Exit> {
    match prepared {
        prepare::Prepared::Told(exit) => Ok(exit),
        prepare::Prepared::Over(exit) => {
            watch::summary(context)?;
            Ok(exit)
        }
        prepare::Prepared::Attach if options.detach => {
            context.ui.say("it is already running in the background: rekindle status, rekindle logs --follow");
            Ok(Exit::Success)
        }
        prepare::Prepared::Attach => foreground::attach(options.progress, context),
        prepare::Prepared::RepairInBackground => background::start(context),
        prepare::Prepared::Coordinate(_) if options.detach => background::start(context),
        prepare::Prepared::Coordinate(setup) => {
            let alerts = setup.programs.alerts.clone();
            if options.no_wait {
                alerts.paused.nobody_waits();
            }
            let exit = foreground::coordinate(*setup, options.progress, context)?;
            if exit == Exit::Paused && alerts.paused.is_so() && !options.no_wait {
                return phone::wait_for_resume(&alerts, options, context);
            }
            phone::tell_if_left_paused(&alerts, context);
            Ok(exit)
        }
    }
}
