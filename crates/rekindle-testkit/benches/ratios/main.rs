//! The ratios table: every goal of performance beside the limit of the machine, both taken in turns in one run.
//!
//! It owns the order of the areas and the table; each area has its own file. No figure here fails a build: machines are
//! shared and noisy, so the table is read by people. Usage, after `cargo build --release`:
//! `cargo bench -p rekindle-testkit --bench ratios -- [--quick] [AREA…]`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark talks to its terminal")]

mod adoption;
mod bed;
mod cold;
mod commands;
mod death;
mod fleet;
mod floor;
mod hooks;
mod ingest;
mod long_log;
mod long_run;
mod measure;
mod transitions;
mod views;

use std::process::ExitCode;

use measure::{Options, Row};

/// One area: its name on the command line, and what measures it.
type Area = (&'static str, fn(&Options) -> Vec<Row>);

/// Every area, the cheap ones first.
const AREAS: &[Area] = &[
    ("transition", transitions::one_at_a_time),
    ("concurrent", transitions::concurrent),
    ("ingest", ingest::lines),
    ("cold", cold::restart),
    ("cli", commands::start),
    ("hook", hooks::one),
    ("death", death::replacement),
    ("adoption", adoption::of_living_agents),
    ("fleet", fleet::of_writers),
    ("views", views::of_a_fleet),
    ("long", long_run::lived_and_shown),
];

fn main() -> ExitCode {
    // Cargo's own arguments (`--bench`) are not ours.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == views::LISTENERS) {
        return views::listeners(&arguments[1..]);
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let chosen: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = chosen.iter().find(|name| !AREAS.iter().any(|(known, _)| known == *name)) {
        let known: Vec<&str> = AREAS.iter().map(|(name, _)| *name).collect();
        eprintln!("no area `{unknown}`; there are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let options = Options { quick };
    println!("machine: {}", measure::machine());
    let mut rows = Vec::new();
    for (name, area) in AREAS {
        if chosen.is_empty() || chosen.iter().any(|wanted| wanted == name) {
            eprintln!("… {name}");
            let measured = area(&options);
            measured.iter().for_each(Row::tell);
            rows.extend(measured);
        }
    }
    let table = measure::table(&rows);
    println!("\n{table}");
    println!("machine: {}", measure::machine());
    match measure::save(&table) {
        Ok(path) => println!("written to {}", path.display()),
        Err(error) => eprintln!("the table could not be written: {error}"),
    }
    ExitCode::SUCCESS
}
