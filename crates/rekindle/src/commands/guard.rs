//! `rekindle guard`: recovery for a session that a person leads. It routes to its subcommands and determines the place they
//! work on; the engine decides what is written where.

mod install;
mod recover;
mod status;
pub(crate) mod status_line;
mod uninstall;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use rekindle_engine::agents::hook_installer::{HookInstaller, Places, Scope};
use rekindle_engine::agents::{self, KINDS, Kinds, Place, Program};
use rekindle_engine::guard::install::Site;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// Where the machine's administrator keeps settings.
const SYSTEM: &str = "/etc";

/// Keep your own coding sessions on track through compactions, crashes and closed terminals
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    command: GuardCommand,
}

#[derive(Debug, Subcommand)]
enum GuardCommand {
    Install(install::InstallArgs),
    Status(status::StatusArgs),
    Recover(recover::RecoverArgs),
    Uninstall(uninstall::UninstallArgs),
}

pub(crate) fn run(args: &GuardArgs, context: &Context) -> Result<Exit> {
    match &args.command {
        GuardCommand::Install(args) => install::run(args, context),
        GuardCommand::Status(args) => status::run(args, context),
        GuardCommand::Recover(args) => recover::run(args, context),
        GuardCommand::Uninstall(args) => uninstall::run(args, context),
    }
}

/// Which programs.
#[derive(Debug, Args)]
struct Chosen {
    #[arg(long, value_name = "CLI", value_delimiter = ',', value_parser = parser(), hide_possible_values = true)]
    #[arg(help = format!("The program: {} (repeatable)", kinds("or")))]
    cli: Vec<String>,
}

fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(KINDS.hook_installers().map(|program| program.kind()))
}

/// The programs that take hooks, as a list in a sentence.
pub(crate) fn kinds(before_last: &str) -> String {
    let mut names: Vec<&str> = KINDS.hook_installers().map(|program| program.kind()).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} {before_last} {last}", names.join(", "))
}

/// The first of them, for an example.
fn example() -> &'static str {
    KINDS.hook_installers().next().map(|program| program.kind()).unwrap_or_default()
}

impl Chosen {
    /// The programs that were named; `None` when none was.
    fn named(&self) -> Option<Vec<&'static dyn HookInstaller>> {
        let named = KINDS.hook_installers().filter(|program| self.cli.iter().any(|kind| kind == program.kind()));
        (!self.cli.is_empty()).then(|| named.collect())
    }
}

/// Whose settings.
#[derive(Debug, Args)]
struct Whose {
    /// In the project's settings, for everybody who works in it
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// In your own settings, for all your projects
    #[arg(long)]
    user: bool,
}

/// What the engine has to know about where this was called.
struct Here {
    root: PathBuf,
    state: PathBuf,
    rekindle: PathBuf,
}

impl Here {
    fn find(context: &Context) -> Result<Self> {
        let own =
            std::env::current_exe().map_err(|e| CliError::internal("cannot find rekindle's own file").because(&e))?;
        let rekindle = lasting(&own, &context.project.root);
        Ok(Self { root: context.project.root.clone(), state: context.project.state_dir.clone(), rekindle })
    }

    fn on_site<T>(&self, work: impl FnOnce(&Site<'_>) -> T) -> T {
        let var = |name: &str| std::env::var(name).ok();
        let places = Places { root: &self.root, var: &var, system: Path::new(SYSTEM) };
        work(&Site { places, state: &self.state, rekindle: &self.rekindle })
    }
}

/// A path to this program that survives an update: the one on `PATH`, if it leads here, because package managers keep each
/// version in a folder of its own.
fn lasting(own: &Path, root: &Path) -> PathBuf {
    let found = find("rekindle", root).filter(|found| found.is_absolute());
    let same = |found: &PathBuf| found.canonicalize().ok() == own.canonicalize().ok();
    found.filter(same).unwrap_or_else(|| own.to_owned())
}

fn find(name: &str, root: &Path) -> Option<PathBuf> {
    agents::find_program(&Place { program: &Program::default(), workspace: root, bundle: root }, name)
}

/// Every program that is installed here.
pub(crate) fn installed(kinds: Kinds, root: &Path) -> Vec<&'static dyn HookInstaller> {
    let there = |program: &&dyn HookInstaller| program.about().program.is_some_and(|name| find(name, root).is_some());
    kinds.hook_installers().filter(there).collect()
}

/// A path as it is shown: relative to the project if it is inside.
fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// What a scope is called in a sentence.
fn whose(scope: Scope) -> &'static str {
    match scope {
        Scope::Local => "yours in this project",
        Scope::Project => "everybody's in this project",
        Scope::User => "yours everywhere",
    }
}
