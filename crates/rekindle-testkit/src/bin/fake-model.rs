//! The fake model provider as a program, for trying a coding agent by hand. Usage: `fake-model SCRIPT.json [LOG.jsonl
//! [PORT]]`. Prints its address and answers until its standard input ends. The script defines what it answers.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use rekindle_testkit::model::{Script, Server};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a standard error the message is lost; the exit code remains.
            let _untold = writeln!(io::stderr(), "fake-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> io::Result<()> {
    let usage = || io::Error::other("usage: fake-model SCRIPT.json [LOG.jsonl [PORT]]");
    let script = std::fs::read(args.first().ok_or_else(usage)?)?;
    let script: Script = serde_json::from_slice(&script)?;
    let port = args.get(2).map_or(Ok(0), |port| port.parse()).map_err(|_| usage())?;
    let server = Server::start_on(port, script, args.get(1).map(Path::new))?;
    writeln!(io::stdout(), "{}", server.url())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
