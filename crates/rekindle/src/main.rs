//! rekindle: runs a plan with a fleet of coding agents and finishes it, whatever crashes.
//!
//! This crate shows and asks: the command line and every view. What follows from an order is decided in the core and
//! carried out by the engine.

// Nobody imports a program: `pub` here would only hide unused code.
#![deny(unreachable_pub)]

mod acp;
mod acts;
mod base64;
mod brought;
mod caps;
mod cli;
mod client;
mod commands;
mod config;
mod contract;
mod diagnostic;
mod drawing;
mod error;
mod exit_code;
mod lost;
mod mcp;
mod output_file;
mod page;
mod patience;
mod picture;
mod pinned;
mod plan_file;
mod project;
mod report;
#[deny(clippy::wildcard_enum_match_arm)]
mod store_flag;
mod story;
mod tui;
mod ui;
#[deny(clippy::wildcard_enum_match_arm)]
mod view;
mod waits;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A shim must have nothing but what it was given, so this comes before anything else.
    match cli::hidden() {
        Some(code) => code,
        None => cli::main().into(),
    }
}
