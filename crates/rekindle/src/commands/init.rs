//! `rekindle init`: a configuration and a plan that work as they are, as a starting point for the user's own.

mod found;
mod needs;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use clap::Args;
use rekindle_engine::agents::KINDS;

use super::Context;
use crate::config::FILE_NAME;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::plan_file::DEFAULT_PLAN;
use found::ProjectFacts;

/// The configuration; `{agents}`, `{agent}` and `{worktree}` are replaced.
const CONFIG: &str = include_str!("init/rekindle.toml");

/// The agent's table if no program was found or a command is given; `{command}` is replaced.
const COMMAND: &str = r#"# An agent is any program. It gets its prompt on standard input and in the file $REKINDLE_PROMPT_FILE, works in this
# directory, and reports with `rekindle task done TASK`. Add as many as you like and choose one per task with `cli: NAME`.
[agents.default]
kind = "command"
command = {command}
# env = { LANG = "C.UTF-8" }
"#;

/// The plan.
const PLAN: &str = include_str!("init/plan.md");

/// A shell script that stands in for an agent: it does what the example plan asks for, whatever task it is given.
const EXAMPLE_AGENT: &str = r#"["sh", "-c", '''
mkdir -p out
echo "hello from $REKINDLE_AGENT" > "out/$REKINDLE_TASK.txt"
rekindle task done "$REKINDLE_TASK" --result "wrote out/$REKINDLE_TASK.txt"
''']"#;

/// Write rekindle.toml and an example plan
///
/// Adds a table for every agent whose program is installed; if there is none, a shell script stands in for one. Proposes what a
/// worktree needs by the project's lock files. Existing files are left as they are.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle init && rekindle run plan.md\n  rekindle init --agent-command my-agent --non-interactive"
)]
pub(crate) struct InitArgs {
    /// The program to run as the agent, with its arguments; it gets its prompt on standard input
    #[arg(long, value_name = "WORD", num_args = 1.., allow_hyphen_values = true)]
    agent_command: Vec<String>,
}

/// Writes the missing files.
pub(crate) fn run(args: &InitArgs, context: &Context) -> Result<Exit> {
    let root = &context.project.root;
    let found = match args.agent_command.is_empty() {
        true => found::look(KINDS, root),
        false => Vec::new(),
    };
    let config = config(&args.agent_command, &found, &needs::section(root));
    let written =
        [write_new(&root.join(FILE_NAME), &config, context)?, write_new(&root.join(DEFAULT_PLAN), PLAN, context)?];
    if written[0] {
        tell(&found, context);
    }
    if written.contains(&true) {
        context.ui.hint(&format!("rekindle run {DEFAULT_PLAN}"));
    }
    Ok(Exit::Success)
}

fn config(agent_command: &[String], found: &[ProjectFacts], worktree: &str) -> String {
    let (agents, agent) = match found::first(found) {
        Some(first) => (found::tables(found), format!("agent = \"{}\"", first.kind)),
        None => {
            let command = match agent_command {
                [] => EXAMPLE_AGENT.to_owned(),
                words => toml_list(words),
            };
            (COMMAND.replace("{command}", &command), "# agent = \"default\"".to_owned())
        }
    };
    CONFIG.replace("{agent}", &format!("{agent:<24}")).replace("{agents}", &agents).replace("{worktree}", worktree)
}

/// Says what was found, and what keeps it from working.
fn tell(found: &[ProjectFacts], context: &Context) {
    for ProjectFacts { kind, examination } in found {
        let path = examination.program.as_deref().unwrap_or(Path::new(""));
        let login = examination.login.as_deref().unwrap_or("no login found");
        context.ui.say(&format!("found {kind}: {} ({login})", path.display()));
        if examination.login.is_none() && !examination.login_hint.is_empty() {
            context.ui.hint(&examination.login_hint);
        }
    }
    if !found.is_empty() {
        context.ui.hint(&format!("agents may do what their own settings allow; to let one do everything, set permissions = \"full\" in {FILE_NAME}"));
        context.ui.hint("check that they work: rekindle doctor");
    }
}

/// Writes a file that does not exist yet. If another process creates it at the same moment, that one wins.
fn write_new(path: &Path, text: &str, context: &Context) -> Result<bool> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => {
            context.ui.say(&format!("wrote {shown}"));
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            context.ui.say(&format!("{shown} already exists and is left as it is"));
            Ok(false)
        }
        Err(error) => Err(CliError::internal(format!("cannot write {shown}")).because(&error)),
    }
}

fn toml_list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| toml::Value::String(word.clone()).to_string()).collect();
    format!("[{}]", words.join(", "))
}
