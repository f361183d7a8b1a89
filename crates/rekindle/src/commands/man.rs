//! `rekindle man`: a manual page for every command, made from its help text. Where pages are installed is up to whoever
//! installs them.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use rekindle_core::plan::nearest::nearest;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::output_file::{self, Existing};

/// Print a manual page, or write all of them
///
/// Without a command, prints the page of rekindle itself.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle man run | man -l -\n  rekindle man --out ~/.local/share/man/man1    then: man rekindle-run"
)]
pub(crate) struct ManArgs {
    /// The command, with its subcommand if it has one: `task done`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints or writes the pages of `program`, the whole command line.
pub(crate) fn run(args: &ManArgs, program: Command, context: &Context) -> Result<Exit> {
    let pages = pages(program)?;
    let Some(dir) = &args.out else {
        let words: Vec<&str> = std::iter::once("rekindle").chain(args.command.iter().map(String::as_str)).collect();
        let name = words.join("-");
        let page = pages.iter().find(|page| page.name == name);
        let page = page.ok_or_else(|| unknown(&args.command.join(" "), &pages))?;
        context.ui.raw(&page.text)?;
        return Ok(Exit::Success);
    };
    let failed = |error: std::io::Error| CliError::usage(format!("cannot make {}", dir.display())).because(&error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    for page in &pages {
        output_file::put(&dir.join(format!("{}.1", page.name)), &page.text, Existing::Replaced)?;
    }
    context.ui.say(&format!("wrote {} pages to {}", pages.len(), dir.display()));
    Ok(Exit::Success)
}

struct Page {
    /// The page's name, as it is looked up: `rekindle-task-done`.
    name: String,
    text: Vec<u8>,
}

fn unknown(words: &str, pages: &[Page]) -> CliError {
    let names: Vec<String> = pages
        .iter()
        .filter_map(|page| page.name.strip_prefix("rekindle-"))
        .map(|name| name.replace('-', " "))
        .collect();
    let hint = match nearest(words, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "list them: rekindle --help".to_owned(),
    };
    CliError::usage(format!("there is no command `{words}`")).hint(hint)
}

fn pages(program: Command) -> Result<Vec<Page>> {
    // The word `help` is a command of its own only at the terminal.
    let mut root = program.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, "rekindle", &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, name: &str, pages: &mut Vec<Page>) -> Result<()> {
    let mut text = Vec::new();
    let version = concat!("rekindle ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(version).manual("rekindle");
    let drawn = man.render(&mut text);
    drawn.map_err(|error| CliError::internal("cannot make a manual page").because(&error))?;
    pages.push(Page { name: name.to_owned(), text });
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        collect(inner, &format!("{name}-{}", inner.get_name()), pages)?;
    }
    Ok(())
}
