//! `rekindle hook`: what a guarded program calls when something happens in a session. It reads one event, records it, and
//! prints what the session has to be told. Whatever goes wrong, it exits with 0 and writes a line to guard's own log: a hook
//! must never break anything.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rekindle_engine::agents::KINDS;
use rekindle_engine::guard::hook::{self, Places};
use rekindle_engine::guard::place;

use super::Context;
use crate::error::Result;
use crate::exit_code::Exit;
use crate::project::{Project, STATE_DIR_VARIABLE};

/// The subcommand; it is reached before anything else is set up, because it is called after every tool.
pub(crate) const COMMAND: &str = "hook";

/// Longest event that is read: a tool's result may be part of it.
const INPUT_MAX_BYTES: u64 = 64 << 20;

/// Largest log; a larger one is started anew.
const LOG_MAX_BYTES: u64 = 1 << 20;

/// Set for every agent that rekindle itself runs: rekindle knows about those already.
const TOKEN_VARIABLE: &str = "REKINDLE_TOKEN";

/// Record one hook event of a guarded session (called by the installed hooks)
#[derive(Debug, Args)]
#[command(
    after_help = "Reads the event as JSON from standard input, records it in the session's journal and always exits with 0.\n\
                        `rekindle guard install` writes the hooks that call it."
)]
pub(crate) struct HookArgs {
    #[arg(help = format!("The program that calls: {}", super::guard::kinds("or")))]
    cli: String,
}

/// Only for the help: [`main`] is reached first.
pub(crate) fn run(args: &HookArgs, _context: &Context) -> Result<Exit> {
    main(Some(&args.cli));
    Ok(Exit::Success)
}

/// Handles one event.
pub(crate) fn main(cli: Option<&str>) -> ExitCode {
    let var = |name: &str| std::env::var(name).ok();
    if std::env::var_os(TOKEN_VARIABLE).is_some() {
        return ExitCode::SUCCESS;
    }
    let mut log_dir = place::users(&var);
    if let Err(problem) = take_event(cli, &var, &mut log_dir) {
        log(log_dir.as_deref(), &problem);
    }
    ExitCode::SUCCESS
}

fn take_event(
    cli: Option<&str>,
    var: &dyn Fn(&str) -> Option<String>,
    log_dir: &mut Option<PathBuf>,
) -> std::result::Result<(), String> {
    let cli = cli.ok_or("the program's name is missing: rekindle hook CLI")?;
    let program = KINDS.of(cli).and_then(|kind| kind.about().guard_adapter);
    let program = program.ok_or_else(|| format!("this version guards no program called {cli:?}"))?;
    let mut input = Vec::new();
    if std::io::stdin().is_terminal() {
        return Err("called at a terminal, without an event".to_owned());
    }
    let read = std::io::stdin().lock().take(INPUT_MAX_BYTES).read_to_end(&mut input);
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    let event = serde_json::from_slice(&input).map_err(|error| format!("the event of {cli} is not JSON: {error}"))?;
    let Some(heard) = program.read_hook(&event, var) else {
        return Ok(());
    };
    let places = places(&heard.dir, var).ok_or("it cannot be kept: HOME is not set")?;
    *log_dir = Some(places.guard_dir.clone());
    let name = heard.event.clone();
    let mut out = std::io::stdout().lock();
    hook::run(program, heard, &places, var, &mut out).map_err(|error| format!("{name} of {cli} was not kept: {error}"))
}

/// The directories for a session in `dir`.
pub(crate) fn places(dir: &Path, var: &dyn Fn(&str) -> Option<String>) -> Option<Places> {
    let given = var(STATE_DIR_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let project = Project::from(dir, given.as_deref());
    let repository = dir.ancestors().find(|above| above.join(".git").exists());
    let guard_dir = place::of(&project.state_dir, repository.unwrap_or(dir), var)?;
    Some(Places { guard_dir, state_dir: project.state_dir })
}

/// Writes one line to guard's own log; if that fails too, nothing happens.
fn log(dir: Option<&Path>, problem: &str) {
    let Some(dir) = dir else { return };
    let now = rekindle_core::time::Time(i64::try_from(rekindle_shim::clock::wall_ms()).unwrap_or_default());
    let line = format!("{} {}\n", crate::ui::stamp(now), rekindle_core::text::one_line(problem, 400));
    let path = dir.join(place::LOG_FILE);
    let mut options = std::fs::OpenOptions::new();
    match path.metadata() {
        Ok(found) if found.len() > LOG_MAX_BYTES => options.write(true).truncate(true),
        Ok(_) => options.append(true),
        Err(_) => {
            drop(place::make(dir));
            options.create(true).append(true)
        }
    };
    if let Ok(mut file) = options.open(path) {
        drop(file.write_all(line.as_bytes()));
    }
}
