//! `cargo xtask …`: every chore of this repository under one name. It decides which commands run and in which order; `tools`
//! handles what a command needs on the machine, `step` runs and reports it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool talks to its terminal")]

mod campaign;
mod step;
mod tools;

use std::process::{Command, ExitCode};

use step::{Failure, Steps, cargo};

/// Seeds the simulator runs unless told otherwise: enough for each kind of fault to meet each other kind many times,
/// few enough for a minute or two of CI.
const DEFAULT_SEEDS: &str = "2000";

/// Clippy's configuration for shipped code, stricter than the one for everything.
const SHIPPED_CLIPPY: &str = ".config/clippy-shipped";

/// The crates that end up in the binary.
const SHIPPED: &[&str] = &["rekindle", "rekindle-core", "rekindle-engine", "rekindle-shim"];

const HELP: &str = "\
usage: cargo xtask <command> [arguments]

  ci              everything below but campaign, bench, demo and screenshots, as CI runs it
  fmt [--check]   format the code
  lint            clippy and rustdoc, every warning an error
  tidy            the house rules: sizes, names, imports, banned calls
  deny            licences, banned crates and sources of all dependencies
  test [args]     every test; arguments go to the runner, e.g. a name
  agents [args]   the tests with the real coding agents: --latest with the newest that npm
                  gives by name instead of the pinned ones, --full with the long campaigns,
                  names for some of them
  sim [args]      the simulator: --seeds N (default 2000), --seed S for one
  campaign        --hours N: kills, damage, power cuts, refusals and simulated faults in turns
                  until the time is over, written up in docs/proof.md; --only kill,power for
                  some of them. Needs root and loop devices for the power cuts
  bench [args]    benchmarks: the table of ratios, then criterion's; with arguments only the
                  ratios: --quick, or areas by name (transition, death, …)
  demo [args]     the demonstration, from a debug build
  screenshots     the README's pictures anew, into docs/images

Missing tools are installed on the way.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let mut steps = Steps::new();
    let outcome = match command {
        "ci" => ci(&mut steps),
        "fmt" => fmt(&mut steps, rest),
        "lint" => lint(&mut steps),
        "tidy" => tidy(&mut steps),
        "deny" => deny(&mut steps, rest),
        "test" => test(&mut steps, rest, &[]),
        "agents" => agents(&mut steps, rest),
        "sim" => sim(&mut steps, rest),
        "bench" => bench(&mut steps, rest),
        "campaign" => campaign::run(&mut steps, rest),
        "demo" => steps.run("demo", cargo(["run", "-p", "rekindle", "--", "demo"]).args(rest)),
        "screenshots" => screenshots(&mut steps),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => Err(Failure::new(format!("no command `{other}`\nhint: cargo xtask help"))),
    };
    steps.close(command, outcome)
}

/// Cheap and informative steps first, so that a mistake is reported before the long ones start.
fn ci(steps: &mut Steps) -> Result<(), Failure> {
    fmt(steps, &["--check".to_owned()])?;
    lint(steps)?;
    tidy(steps)?;
    deny(steps, &[])?;
    // Leaves out what has just been run as a separate step.
    test(steps, &[], &["-E", "not binary(tidy)"])?;
    sim(steps, &[])
}

fn fmt(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    tools::rustup_component("rustfmt", "fmt")?;
    steps.run("fmt", cargo(["fmt", "--all"]).args(rest))
}

fn lint(steps: &mut Steps) -> Result<(), Failure> {
    tools::rustup_component("clippy", "clippy")?;
    let deny = ["--", "-D", "warnings"];
    steps.run("clippy", cargo(["clippy", "--workspace", "--all-targets"]).args(deny))?;
    // Again without tests: shipped code may not do what tests may (write a file, pause a poll).
    let packages = SHIPPED.iter().flat_map(|name| ["-p", name]);
    steps.run(
        "clippy, shipped code",
        cargo(["clippy", "--lib", "--bins"])
            .args(packages)
            .args(deny)
            .env("CLIPPY_CONF_DIR", step::root().join(SHIPPED_CLIPPY)),
    )?;
    steps.run(
        "rustdoc",
        cargo(["doc", "--workspace", "--no-deps", "--document-private-items"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn tidy(steps: &mut Steps) -> Result<(), Failure> {
    // For the whole workspace, as in `test`: the choice of packages decides the features, and other features cause a
    // rebuild.
    steps.run("tidy", &mut cargo(["test", "--quiet", "--workspace", "--test", "tidy"]))
}

/// Advisories are left out by default: their database is fetched from the network, and a run must not depend on it.
fn deny(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    tools::cargo_tool("deny", "cargo-deny")?;
    let checks = if rest.is_empty() { vec!["licenses", "bans", "sources"] } else { Vec::new() };
    steps.run("deny", cargo(["deny", "--workspace", "check"]).args(checks).args(rest))
}

/// `chosen` is only for nextest; without nextest the few tests that it would leave out run again.
fn test(steps: &mut Steps, rest: &[String], chosen: &[&str]) -> Result<(), Failure> {
    tools::programs_under_test()?;
    // Tests start the real program and the fakes, and find them in their own directory. The whole workspace is built, as
    // below: with another choice of packages cargo picks other features and builds dependencies twice.
    steps.run("build the programs under test", &mut cargo(["build", "--workspace", "--bins"]))?;
    if tools::has_nextest() {
        steps.run("test", cargo(["nextest", "run", "--workspace"]).args(chosen).args(rest))?;
    } else {
        // Building nextest takes longer than all the tests; cargo's own runner runs the same ones.
        println!("cargo-nextest is not installed: using cargo test");
        let targets = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
        steps.run("test", cargo(targets).args(rest))?;
    }
    if rest.is_empty() {
        steps.run("documentation tests", &mut cargo(["test", "--workspace", "--doc"]))?;
    }
    Ok(())
}

/// The tests with the real coding agents. Pinned versions are the default: what CI runs must not change on its own.
fn agents(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    let (flags, names): (Vec<&String>, Vec<&String>) = rest.iter().partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| !["--latest", "--full"].contains(&flag.as_str())) {
        return Err(Failure::new(format!(
            "no option `{unknown}`\nhint: cargo xtask agents [--latest] [--full] [NAME…]"
        )));
    }
    let is_set = |wanted: &str| flags.iter().any(|flag| *flag == wanted);
    tools::programs_under_test()?;
    steps.run("build the programs under test", &mut cargo(["build", "--workspace", "--bins"]))?;
    let mut tests = if tools::has_nextest() {
        cargo(["nextest", "run", "--workspace", "--no-fail-fast", "--test", "agents"])
    } else {
        cargo(["test", "--workspace", "--no-fail-fast", "--test", "agents", "--"])
    };
    if is_set("--latest") {
        let own = std::env::current_exe().map_err(|error| Failure::new(format!("where is this program? {error}")))?;
        // Next to the pinned ones, where the tests look for them.
        let target = own.ancestors().nth(2).unwrap_or(&own);
        steps.run("install the newest agents", Command::new(own.with_file_name("agents-latest")).arg(target))?;
        tests.env("REKINDLE_AGENTS_LATEST", "1");
    }
    if is_set("--full") {
        if tools::has_nextest() {
            tests.args(["--profile", "campaign"]);
        }
        tests.env("REKINDLE_AGENTS_FULL", "1");
    }
    steps.run("the real coding agents", tests.args(names))
}

/// Makes the screenshots of a run in a temporary directory, in `top`, in the dashboard and in the report.
fn screenshots(steps: &mut Steps) -> Result<(), Failure> {
    tools::programs_under_test()?;
    steps.run("build the program", &mut cargo(["build", "-p", "rekindle"]))?;
    let picture = ["run", "-p", "rekindle-testkit", "--bin", "screenshots", "--", "docs/images"];
    steps.run("screenshots", &mut cargo(picture))
}

/// Benchmarks the program that users get: the same build that `cargo build --release` makes.
fn bench(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    tools::programs_under_test()?;
    steps.run("build the program", &mut cargo(["build", "--release", "--locked", "-p", "rekindle"]))?;
    let ratios = ["bench", "-p", "rekindle-testkit", "--bench", "ratios", "--"];
    steps.run("ratios to the machine's limits", cargo(ratios).args(rest))?;
    if rest.is_empty() {
        steps.run("hot paths alone", &mut cargo(["bench", "-p", "rekindle-testkit", "--bench", "durable"]))?;
    }
    Ok(())
}

fn sim(steps: &mut Steps, rest: &[String]) -> Result<(), Failure> {
    let chosen = rest.iter().any(|argument| argument.starts_with("--seed"));
    let default = if chosen { Vec::new() } else { vec!["--seeds", DEFAULT_SEEDS] };
    // With everything else, as in `test`, and started from this program's directory: alone it would be built a second time.
    steps.run("build the simulator", &mut cargo(["build", "--workspace", "--bins"]))?;
    let own = std::env::current_exe().map_err(|error| Failure::new(format!("where is this program? {error}")))?;
    steps.run("sim", Command::new(own.with_file_name("sim")).args(default).args(rest).current_dir(step::root()))
}
