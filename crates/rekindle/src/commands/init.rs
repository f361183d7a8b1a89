//! `rekindle init`: a configuration and a plan that work as they are, to be changed into one's own.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use clap::Args;

use super::Context;
use crate::config::FILE_NAME;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::plan_file::DEFAULT_PLAN;

/// The configuration; `{command}` is replaced.
const CONFIG: &str = include_str!("init/rekindle.toml");

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
/// What is there already stays as it is.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle init && rekindle run plan.md\n  rekindle init --agent-command my-agent --non-interactive"
)]
pub struct InitArgs {
    /// The program to run as the agent, with its arguments; it is given its prompt on standard input
    #[arg(long, value_name = "WORD", num_args = 1.., allow_hyphen_values = true)]
    agent_command: Vec<String>,
}

/// Writes what is missing.
pub fn run(args: &InitArgs, context: &Context) -> Result<Exit> {
    let command = match args.agent_command.as_slice() {
        [] => EXAMPLE_AGENT.to_owned(),
        words => toml_list(words),
    };
    let root = &context.project.root;
    let config = CONFIG.replace("{command}", &command);
    let written =
        [write_new(&root.join(FILE_NAME), &config, context)?, write_new(&root.join(DEFAULT_PLAN), PLAN, context)?];
    if written.contains(&true) {
        context.ui.hint(&format!("rekindle run {DEFAULT_PLAN}"));
    }
    Ok(Exit::Success)
}

/// Writes a file that is not there yet. Whoever else makes it at the same moment wins.
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
            context.ui.say(&format!("{shown} is there already and stays as it is"));
            Ok(false)
        }
        Err(error) => Err(CliError::internal(format!("cannot write {shown}")).because(&error)),
    }
}

fn toml_list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| toml::Value::String(word.clone()).to_string()).collect();
    format!("[{}]", words.join(", "))
}
