//! Runs one command at a time and says which, how it went and how long it took. The times inform; nothing depends on them.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Why a chore stopped.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.0)
    }
}

/// The steps taken so far.
pub(crate) struct Steps {
    started: Instant,
    taken: Vec<(&'static str, f64)>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), taken: Vec::new() }
    }

    /// Runs a command in the repository's root; anything but success ends the chore.
    pub(crate) fn run(&mut self, name: &'static str, command: &mut Command) -> Result<(), Failure> {
        println!("==> {name}: {}", line(command));
        let started = Instant::now();
        run(command).map_err(|why| Failure::new(format!("{name}: {why}")))?;
        let seconds = started.elapsed().as_secs_f64();
        println!("==> {name}: ok, {seconds:.1} s");
        self.taken.push((name, seconds));
        Ok(())
    }

    /// Says how everything went; the last line is the verdict.
    pub(crate) fn close(self, command: &str, outcome: Result<(), Failure>) -> ExitCode {
        if self.taken.len() > 1 {
            println!();
            for (name, seconds) in &self.taken {
                println!("{:>12} [{seconds:7.1}s] {name}", "ok");
            }
        }
        let total = self.started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                println!("cargo xtask {command}: ok, steps taken: {}, {total:.1} s", self.taken.len());
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("{failure}");
                eprintln!("cargo xtask {command}: FAILED after {total:.1} s");
                ExitCode::FAILURE
            }
        }
    }
}

/// A cargo command in the repository's root, with the cargo that runs us.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The repository's root. Asked at run time: a copied `target/` would remember the place it was built in.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(manifest).join("..")
}

/// Runs a command until it ends; the error says how it ended.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", line(command))),
        Err(error) => Err(format!("cannot start `{}`: {error}", line(command))),
    }
}

/// A command as one would type it.
fn line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    std::iter::once(name)
        .chain(command.get_args().map(|argument| argument.to_string_lossy().into_owned()))
        .collect::<Vec<_>>()
        .join(" ")
}
