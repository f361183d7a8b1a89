//! `cargo xtask sim`: plays seeds and prints which broke an invariant, with the one command that plays it again.

#![expect(clippy::print_stdout, reason = "a developer's tool talks to its terminal")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rekindle_testkit::sim::{Options, Outcome, Plant, play};

/// Seeds played by default.
const SEEDS: u64 = 5_000;

/// Broken seeds shown whole before the rest gets a line each.
const SHOWN: usize = 3;

/// Longest description of what was broken in such a line.
const WHAT_CHARS: usize = 300;

/// Events that say a person steered.
const STEERED: [&str; 12] = [
    "plan_reloaded",
    "task_added",
    "task_edited",
    "told",
    "tell_delivered",
    "attached",
    "detached",
    "operator_completed",
    "task_skipped",
    "order_placed",
    "order_taken",
    "order_undone",
];

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
    let Played { broken, events, coordinators, drawn, told } = play_all(seeds.clone(), arguments.plant);
    for (seed, outcome) in broken.iter().take(SHOWN) {
        show(*seed, arguments.plant, outcome);
    }
    for (seed, outcome) in broken.iter().skip(SHOWN) {
        let Some(violation) = &outcome.violation else { continue };
        let what: String = violation.what.chars().take(WHAT_CHARS).collect();
        println!("seed {seed} breaks: {}: {what}", violation.invariant);
    }
    let drawn: Vec<String> = drawn.iter().map(|(what, times)| format!("{what} {times}")).collect();
    println!("drawn: {}", drawn.join(", "));
    let steered = STEERED.iter().map(|kind| format!("{kind} {}", told.get(*kind).copied().unwrap_or(0)));
    println!("taken: {}", steered.collect::<Vec<_>>().join(", "));
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} seeds from {}: {} broken, {events} events, {coordinators} coordinators, {seconds:.1} s",
        seeds.end - seeds.start,
        seeds.start,
        broken.len()
    );
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is kept of played seeds: a million of them must fit into memory.
#[derive(Default)]
struct Played {
    broken: BTreeMap<u64, Outcome>,
    events: u64,
    coordinators: u64,
    drawn: BTreeMap<&'static str, u64>,
    /// Events by their kind.
    told: BTreeMap<String, u64>,
}

impl Played {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.events += outcome.events;
        self.coordinators += u64::from(outcome.coordinators);
        for (what, times) in &outcome.drawn {
            *self.drawn.entry(what).or_default() += times;
        }
        for (kind, times) in &outcome.told {
            *self.told.entry(kind.clone()).or_default() += times;
        }
        if outcome.violation.is_some() {
            self.broken.insert(seed, outcome);
        }
    }
}

/// Plays seeds on every processor; each is independent.
fn play_all(seeds: Range<u64>, plant: Option<Plant>) -> Played {
    let next = AtomicU64::new(seeds.start);
    let played = Mutex::new(Played::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let outcome = play(Options { seed, plant, aloud: false });
                    played.lock().unwrap_or_else(PoisonError::into_inner).add(seed, outcome);
                }
            });
        }
    });
    played.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn show(seed: u64, plant: Option<Plant>, outcome: &Outcome) {
    let Some(violation) = &outcome.violation else { return };
    println!("{}", outcome.lines.join("\n"));
    println!("seed {seed} breaks: {}", violation.invariant);
    println!("  {}", violation.what);
    let planted = plant.map(|plant| format!(" --planted {}", plant.name())).unwrap_or_default();
    println!("again: cargo xtask sim --seed {seed}{planted}\n");
}
