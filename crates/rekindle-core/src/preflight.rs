//! What a check says when it is run before any work is done: the one place that decides it, for a run and for `plan check
//! --try`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::plan::PlanTask;
use crate::report::CheckResult;

/// The shell's exit codes for a command that it cannot run, and for one that it does not find.
const CANNOT_EXECUTE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// A check to run before any work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryCheck {
    /// The first task of the plan that has it.
    pub task: TaskId,
    pub environment: Option<String>,
    pub command: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It passes before any work is done: passing later proves nothing.
    Passes,
    /// It fails, as it should.
    Fails,
    /// Its program is missing or cannot be run.
    CannotRun,
    /// It calls a project file that does not exist: the work may create it.
    MayCome,
    /// It took longer than the limit here: it can run.
    Slow,
}

/// The outcome of a check that was run before any work.
pub fn outcome(code: Option<i32>, timed_out: bool, output: &str) -> Outcome {
    match code {
        Some(0) => Outcome::Passes,
        _ if timed_out => Outcome::Slow,
        Some(CANNOT_EXECUTE) => Outcome::CannotRun,
        Some(NOT_FOUND) if missing(output).is_some_and(is_of_the_project) => Outcome::MayCome,
        Some(NOT_FOUND) => Outcome::CannotRun,
        _ => Outcome::Fails,
    }
}

impl Outcome {
    pub fn of(result: &CheckResult) -> Self {
        outcome(result.code, result.timed_out, &result.output)
    }
}

/// The program that a shell did not find, by its own words: `sh: 1: pytest: not found`, `bash: line 1: pytest: command not found`.
fn missing(output: &str) -> Option<&str> {
    let said = |line: &'_ str| -> Option<usize> {
        let end = line.trim_end();
        let before = end.strip_suffix(": command not found").or_else(|| end.strip_suffix(": not found"))?;
        Some(before.len())
    };
    let line = output.lines().rev().find(|line| said(line).is_some())?;
    let before = &line[..said(line)?];
    Some(before.rsplit(": ").next().unwrap_or(before).trim())
}

/// Whether the program belongs to the project: a relative path names a file that the work may create; a plain name is looked
/// up in the PATH.
fn is_of_the_project(program: &str) -> bool {
    program.contains('/') && !program.starts_with('/')
}

/// Every check of some tasks once, in order, with the first task that has it. Each task is given with the environments of
/// its checks.
pub fn distinct<'a>(tasks: impl IntoIterator<Item = (&'a PlanTask, Vec<String>)>) -> Vec<TryCheck> {
    let mut found: Vec<TryCheck> = Vec::new();
    let mut known = BTreeSet::new();
    for (planned, environments) in tasks {
        for (environment, command) in matrix(&environments, &planned.accept) {
            let (environment, command) = (environment.map(str::to_owned), command.to_owned());
            if known.insert((environment.clone(), command.clone())) {
                found.push(TryCheck { task: planned.id.clone(), environment, command });
            }
        }
    }
    found
}

/// Every command in every environment.
pub fn matrix<'a>(
    environments: &'a [String],
    commands: &'a [String],
) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
    let everywhere: Vec<Option<&str>> = match environments {
        [] => vec![None],
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    everywhere.into_iter().flat_map(move |place| commands.iter().map(move |command| (place, command.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_from_a_file_that_the_work_brings() {
        let of = |code, output: &str| outcome(Some(code), false, output);
        assert_eq!(of(127, "/bin/sh: 1: pytest: not found\n"), Outcome::CannotRun);
        assert_eq!(of(127, "bash: line 1: pytest: command not found\n"), Outcome::CannotRun);
        assert_eq!(of(127, "/bin/sh: 1: ./build/app: not found\n"), Outcome::MayCome);
        assert_eq!(of(127, "/bin/sh: 1: /opt/tool: not found\n"), Outcome::CannotRun);
        assert_eq!(of(127, ""), Outcome::CannotRun, "it said nothing");
        assert_eq!(of(126, "/bin/sh: 1: ./run.sh: Permission denied\n"), Outcome::CannotRun);
        assert_eq!(of(1, "1 failed\n"), Outcome::Fails);
        assert_eq!(of(0, ""), Outcome::Passes);
        assert_eq!(outcome(None, true, "x"), Outcome::Slow);
        assert_eq!(outcome(None, false, ""), Outcome::Fails);
    }

    #[test]
    fn every_command_in_every_environment() {
        let (none, two) = (Vec::new(), vec!["a".to_owned(), "b".to_owned()]);
        let commands = vec!["x".to_owned(), "y".to_owned()];
        assert_eq!(matrix(&none, &commands).collect::<Vec<_>>(), [(None, "x"), (None, "y")]);
        assert_eq!(matrix(&two, &commands).count(), 4);
    }
}
