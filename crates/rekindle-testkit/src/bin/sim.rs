//! `cargo xtask sim`: plays seeds, says which broke an invariant and the one command that plays it again.

#![expect(clippy::print_stdout, reason = "a developer's tool talks to its terminal")]

use std::process::ExitCode;
use std::time::Instant;

use rekindle_testkit::sim::{Options, Outcome, Plant, play};

/// Seeds played unless told otherwise.
const SEEDS: u64 = 2_000;

/// Broken seeds shown before the rest is only counted.
const SHOWN: usize = 3;

const HELP: &str = "usage: sim [--seeds N] [--from S] | --seed S [--verbose]; with either: [--planted NAME]";

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    verbose: bool,
    plant: Option<Plant>,
}

fn main() -> ExitCode {
    let arguments = match read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(what) => {
            println!("error: {what}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match arguments.seed {
        Some(seed) => one(seed, &arguments),
        None => many(&arguments),
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = |name: &str| words.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match word.as_str() {
            "--seeds" => arguments.seeds = Some(number(value("--seeds")?)?),
            "--from" => arguments.from = number(value("--from")?)?,
            "--seed" => arguments.seed = Some(number(value("--seed")?)?),
            "--verbose" => arguments.verbose = true,
            "--planted" => {
                let name = value("--planted")?;
                let names = Plant::ALL.map(Plant::name).join(", ");
                arguments.plant = Some(Plant::named(&name).ok_or(format!("no plant `{name}`; there are {names}"))?);
            }
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(arguments)
}

fn one(seed: u64, arguments: &Arguments) -> ExitCode {
    let outcome = play(Options { seed, plant: arguments.plant, aloud: arguments.verbose });
    if arguments.verbose && outcome.violation.is_none() {
        println!("{}", outcome.lines.join("\n"));
    }
    if outcome.violation.is_some() {
        show(seed, arguments.plant, &outcome);
        return ExitCode::FAILURE;
    }
    println!(
        "seed {seed}: ok, {} happenings, {} events, {} coordinators, trace {:016x}",
        outcome.happenings, outcome.events, outcome.coordinators, outcome.hash
    );
    ExitCode::SUCCESS
}

fn many(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let seeds = arguments.from..arguments.from + arguments.seeds.unwrap_or(SEEDS);
    let (mut broken, mut events, mut coordinators) = (Vec::new(), 0, 0);
    for seed in seeds.clone() {
        let outcome = play(Options { seed, plant: arguments.plant, aloud: false });
        events += outcome.events;
        coordinators += u64::from(outcome.coordinators);
        if outcome.violation.is_some() {
            if broken.len() < SHOWN {
                show(seed, arguments.plant, &outcome);
            }
            broken.push(seed);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} seeds from {}: {} broken, {events} events, {coordinators} coordinators, {seconds:.1} s",
        seeds.end - seeds.start,
        seeds.start,
        broken.len()
    );
    if broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("broken: {broken:?}");
    ExitCode::FAILURE
}

fn show(seed: u64, plant: Option<Plant>, outcome: &Outcome) {
    let Some(violation) = &outcome.violation else { return };
    println!("{}", outcome.lines.join("\n"));
    println!("seed {seed} breaks: {}", violation.invariant);
    println!("  {}", violation.what);
    let planted = plant.map(|plant| format!(" --planted {}", plant.name())).unwrap_or_default();
    println!("again: cargo xtask sim --seed {seed}{planted}\n");
}
