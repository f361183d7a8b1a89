//! A process that does one thing with a run's worktrees, so that tests can kill it at any call of git. Usage:
//! `git-worker REPO STATE RUN BRANCH OPERATION [KEY]`. It decides nothing about what should survive.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use rekindle_engine::git::{Place, Repo, Start, Work};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (repo, state, run, branch, operation, key) = match words[..] {
        [repo, state, run, branch, operation] => (repo, state, run, branch, operation, ""),
        [repo, state, run, branch, operation, key] => (repo, state, run, branch, operation, key),
        _ => return say("usage: git-worker REPO STATE RUN BRANCH OPERATION [KEY]"),
    };
    match act(Path::new(repo), Path::new(state), run, branch, operation, key) {
        Ok(said) => {
            say(&said);
            ExitCode::SUCCESS
        }
        Err(error) => say(&format!("error: {error}")),
    }
}

fn act(
    repo: &Path,
    state: &Path,
    run: &str,
    branch: &str,
    operation: &str,
    key: &str,
) -> rekindle_engine::git::Result<String> {
    let repo = Repo::of(repo)?;
    if operation == "begin" {
        return repo.begin(branch, run, Start::New).map(|base| format!("{base:?}"));
    }
    let work = Work::new(repo, state, run, branch)?;
    match operation {
        "workspace" => work.workspace(key).map(|done| format!("{done:?}")),
        "snapshot" => work.snapshot(Place::Own, key, 1, "end").map(|done| format!("{done:?}")),
        "shared" => work.snapshot(Place::Shared, key, 1, "end").map(|done| format!("{done:?}")),
        "accept" => work.accept(key, "accepted", None).map(|done| format!("{done:?}")),
        "remove" => work.remove(key, 1, "removed").map(|done| format!("{done:?}")),
        other => Ok(format!("error: {other} is no operation")),
    }
}

/// Prints a text; a reader that has stopped listening has killed us, or soon will.
fn say(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::FAILURE
}
