//! Installs the newest coding agents that the registry gives by name, beside the pinned ones, and says which versions they are.
//! `cargo xtask agents --latest` runs it before the tests.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool talks to its terminal")]

use std::path::Path;
use std::process::ExitCode;

use rekindle_testkit::installed::{Cli, Installed, LATEST_DIR};

fn main() -> ExitCode {
    let Some(target) = std::env::args_os().nth(1) else {
        eprintln!("usage: agents-latest TARGET_DIRECTORY");
        return ExitCode::FAILURE;
    };
    match Installed::latest(&Path::new(&target).join(LATEST_DIR)) {
        Ok(installed) => {
            for cli in Cli::ALL {
                println!("{:<10} {:<10} (pinned: {})", cli.name(), installed.version(cli), cli.version());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
