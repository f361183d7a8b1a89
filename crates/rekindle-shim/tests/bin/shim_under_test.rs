//! The one binary's hidden subcommands, and nothing else: what the tests start as a shim.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    match arguments.get(1).and_then(|command| command.to_str()) {
        Some(rekindle_shim::SHIM_COMMAND) => rekindle_shim::shim_main(Path::new(&arguments[2])),
        Some(rekindle_shim::STUB_COMMAND) => rekindle_shim::stub_main(Path::new(&arguments[2])),
        _ => ExitCode::from(2),
    }
}
