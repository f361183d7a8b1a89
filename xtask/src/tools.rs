//! What the chores need on the machine, and how it gets there. Decides only whether something is missing; versions are
//! those of the registry and the distribution.

use std::process::{Command, Stdio};

use crate::step::{Failure, cargo, run};

/// Makes sure that a cargo subcommand exists; builds it from the registry when it is missing.
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

/// Makes sure that a component of the toolchain is installed.
pub(crate) fn rustup_component(component: &str, subcommand: &str) -> Result<(), Failure> {
    if answers(cargo([subcommand, "--version"])) {
        return Ok(());
    }
    run(Command::new("rustup").args(["component", "add", component]))
        .map_err(|why| Failure::new(format!("{component} is missing: {why}\nhint: rustup component add {component}")))
}

/// A program that tests need besides the toolchain.
struct Program {
    /// The command.
    name: &'static str,
    /// The arguments that check whether it is installed.
    asked: &'static [&'static str],
    /// Debian's package.
    package: &'static str,
    /// What it is needed for.
    purpose: &'static str,
}

/// What tests need: strace kills the program at a chosen system call, a separate file system loses power, tmux is the
/// terminal of `top`, Chromium the browser of the dashboard, PostgreSQL the store of several hosts.
const PROGRAMS: &[Program] = &[
    Program { name: "strace", asked: &["--version"], package: "strace", purpose: "the crash tests" },
    Program { name: "mkfs.ext4", asked: &["-V"], package: "e2fsprogs", purpose: "the tests of power cuts" },
    Program { name: "tmux", asked: &["-V"], package: "tmux", purpose: "the tests of `rekindle top`" },
    Program { name: "chromium", asked: &["--version"], package: "chromium", purpose: "the tests of the dashboard" },
    Program {
        name: "chromedriver",
        asked: &["--version"],
        package: "chromium-driver",
        purpose: "the tests of the dashboard",
    },
    Program { name: "openssl", asked: &["version"], package: "openssl", purpose: "the tests of TLS to a database" },
    // Debian keeps the server's programs off the path.
    Program {
        name: "sh",
        asked: &["-c", "ls /usr/lib/postgresql/*/bin/initdb || command -v initdb"],
        package: "postgresql",
        purpose: "the tests of the store on PostgreSQL",
    },
];

/// Installs those that are missing. Only on Linux: elsewhere the tests that need them say so themselves.
pub(crate) fn programs_under_test() -> Result<(), Failure> {
    let is_missing = |program: &&Program| {
        let mut command = Command::new(program.name);
        command.args(program.asked);
        !answers(command)
    };
    let missing: Vec<&Program> = PROGRAMS.iter().filter(is_missing).collect();
    if !cfg!(target_os = "linux") || missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    let told = packages.join(" ");
    println!("==> missing: {told}; asking apt-get for them");
    let failed = |why| {
        let needs: Vec<String> =
            missing.iter().map(|program| format!("{} needs {}", program.purpose, program.package)).collect();
        Failure::new(format!(
            "{}, and it cannot be installed: {why}\nhint: sudo apt-get install {told}",
            needs.join("; ")
        ))
    };
    // Fails on its own for anyone but root; a fresh image has no package lists until the update.
    run(Command::new("apt-get").arg("update")).map_err(failed)?;
    run(Command::new("apt-get").args(["install", "-y", "--no-install-recommends"]).args(&packages)).map_err(failed)
}

fn answers(mut command: Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
