//! What the chores need on the machine, and how it gets there. Decides only whether something is missing; versions are
//! those of the registry and the distribution.

use std::process::{Command, Stdio};

use crate::step::{Failure, cargo, run};

/// A cargo subcommand, built from the registry when missing.
pub(crate) fn cargo_tool(subcommand: &str, package: &str) -> Result<(), Failure> {
    if answers(cargo([subcommand, "--version"])) {
        return Ok(());
    }
    println!("==> {package} is missing: building it from the registry, once, for a minute or two");
    // Unoptimised: it runs for seconds, and optimising it takes minutes.
    run(&mut cargo(["install", "--debug", package, "--locked"]))
        .map_err(|why| Failure::new(format!("{package} is missing and cannot be installed: {why}")))
}

/// Whether the faster test runner is there.
pub(crate) fn has_nextest() -> bool {
    answers(cargo(["nextest", "--version"]))
}

/// A component of the toolchain.
pub(crate) fn rustup_component(component: &str, subcommand: &str) -> Result<(), Failure> {
    if answers(cargo([subcommand, "--version"])) {
        return Ok(());
    }
    run(Command::new("rustup").args(["component", "add", component]))
        .map_err(|why| Failure::new(format!("{component} is missing: {why}\nhint: rustup component add {component}")))
}

/// strace, with which tests kill the program at a chosen system call. Only Linux has it, and only there it is asked for.
pub(crate) fn strace() -> Result<(), Failure> {
    let mut strace = Command::new("strace");
    strace.arg("--version");
    if !cfg!(target_os = "linux") || answers(strace) {
        return Ok(());
    }
    println!("==> strace is missing: asking apt-get for it");
    let missing = |why| {
        Failure::new(format!(
            "strace is missing, and the crash tests need it: {why}\nhint: sudo apt-get install strace"
        ))
    };
    // Fails by itself for anyone but root; a fresh image has no package lists until the update.
    run(Command::new("apt-get").arg("update")).map_err(missing)?;
    run(Command::new("apt-get").args(["install", "-y", "strace"])).map_err(missing)
}

fn answers(mut command: Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
