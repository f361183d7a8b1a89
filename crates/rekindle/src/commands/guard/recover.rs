//! `rekindle guard recover`: what a session would be told, for a person to read, to pipe into a new session, or to start one with.

use std::os::unix::process::CommandExt;

use clap::Args;
use rekindle_core::guard::when::{Occasion, Telling};
use rekindle_engine::agents::KINDS;
use rekindle_engine::guard::hook::LAUNCHED_VARIABLE;
use rekindle_engine::guard::journal;
use rekindle_engine::guard::recover::{Whom, compose};
use rekindle_engine::guard::sessions::{self, Known};

use crate::commands::{Context, hook};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Print what the last session here was doing, or start a new session with it
#[derive(Debug, Args)]
#[command(
    after_help = format!("Examples:\n  rekindle guard recover\n  rekindle guard recover | {} -p\n  rekindle guard recover --launch", super::example())
)]
pub(super) struct RecoverArgs {
    /// Start a new session of the same program with it
    #[arg(long)]
    launch: bool,
    /// Which session, as `rekindle guard status` names it [default: the most recent one]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Include the whole plan
    #[arg(long)]
    full: bool,
    /// Show its state after the first RECORDS records of its journal
    #[arg(long, value_name = "RECORDS", conflicts_with = "launch")]
    at: Option<u64>,
}

/// Prints the text, or becomes the new session.
pub(super) fn run(args: &RecoverArgs, context: &Context) -> Result<Exit> {
    let var = |name: &str| std::env::var(name).ok();
    let here =
        std::env::current_dir().map_err(|e| CliError::usage("the working directory cannot be read").because(&e))?;
    let places =
        hook::places(&here, &var).ok_or_else(|| CliError::usage("HOME is not set, so no session can be found"))?;
    let mut known = choose(sessions::all(&places.guard_dir), args.session.as_deref())?;
    if let Some(records) = args.at {
        let read = journal::session_after(&known.dir, records);
        known.session = read.map_err(|e| CliError::internal("the session's journal cannot be read").because(&e))?;
    }
    let unknown = || CliError::internal(format!("this version guards no program called {}", known.program()));
    let program = KINDS.of(known.program()).and_then(|kind| kind.about().guard_adapter).ok_or_else(unknown)?;
    let telling = Telling { occasion: Occasion::Asked, compaction: known.session.compactions(), full: args.full };
    let whom = Whom {
        program,
        session: &known.session,
        key: &known.key,
        session_dir: &known.dir,
        dir: &here,
        state_dir: &places.state_dir,
        room: usize::MAX,
    };
    let text = compose(&whom, telling, &var);
    if !args.launch {
        context.ui.line(text.trim_end())?;
        return Ok(Exit::Success);
    }
    if known.lives() {
        let problem = CliError::internal(format!("the session {} is still running", known.key));
        return Err(problem.hint("end it first, or print the text with `rekindle guard recover`"));
    }
    let words = program.launch(&text);
    let Some((name, arguments)) = words.split_first() else {
        return Err(unknown());
    };
    context.ui.flush()?;
    let failed = std::process::Command::new(name).args(arguments).env(LAUNCHED_VARIABLE, &known.key).exec();
    Err(CliError::internal(format!("{name} cannot be started")).because(&failed))
}

/// The session that is meant.
fn choose(all: Vec<Known>, name: Option<&str>) -> Result<Known> {
    let names: Vec<String> = all.iter().map(|known| known.key.clone()).collect();
    let found = all.into_iter().find(|known| match name {
        Some(name) => known.key == name || known.key.strip_prefix(known.program()).is_some_and(|id| &id[1..] == name),
        None => known.session.has_content(),
    });
    found.ok_or_else(|| match name {
        Some(name) => {
            let hint = if names.is_empty() {
                "there is none here".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            CliError::usage(format!("no session is called {name:?}")).hint(hint)
        }
        None => CliError::internal("no session is known here").hint(
            "type `rekindle guard install`, then use your agent as always; `rekindle guard status` shows what is known",
        ),
    })
}
