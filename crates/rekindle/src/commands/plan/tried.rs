//! `rekindle plan check --try`: every check of a plan, run once in a fresh worktree before anybody works. A check that cannot run there would
//! cost every attempt; one that passes already proves nothing.

use rekindle_core::plan::Plan;
use rekindle_core::text::counted;
use rekindle_engine::git::Repo;
use serde::Serialize;

use super::super::Context;
use super::super::trial::{Place, Tried};
use crate::config::Config;
use crate::error::{CliError, Result};
use crate::ui::{Align, Table, Tone, elapsed, one_line};

/// One check, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TriedJson {
    pub command: String,
    /// The tasks that have it.
    pub tasks: Vec<String>,
    /// `fails`, as it should before the work; `passes` already; `cannot_run`: there is no such command; `stopped`: it took too long.
    pub outcome: &'static str,
    pub code: Option<i32>,
    pub took_ms: u64,
    /// The end of what it printed.
    pub output: String,
}

/// Tries every distinct check of the open tasks. Fails when there is no repository to make a worktree of, or its set-up fails.
pub(super) fn all(context: &Context, config: &Config, plan: &Plan) -> Result<Vec<TriedJson>> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for task in plan.tasks.iter().filter(|task| !task.done) {
        for command in &task.accept {
            match found.iter_mut().find(|(known, _)| known == command) {
                Some((_, tasks)) => tasks.push(task.id.to_string()),
                None => found.push((command.clone(), vec![task.id.to_string()])),
            }
        }
    }
    let repo = Repo::of(&context.project.root)?;
    if !repo.has_commits()? {
        let error = CliError::usage("the repository has no commit yet, so there is nothing to make a worktree of");
        return Err(error.hint("commit something first: git commit"));
    }
    let failed = |error: std::io::Error| CliError::internal("cannot make a temporary directory").because(&error);
    let holder = tempfile::Builder::new().prefix("rekindle-try-").tempdir().map_err(failed)?;
    let fresh = repo.trial(&holder.path().canonicalize().map_err(failed)?.join("worktree"), "HEAD")?;
    let place = Place::set_up(context, config, &fresh.project)?;
    let mut tried = Vec::new();
    for (command, tasks) in found {
        let ran = place.run(&command)?;
        let (outcome, code) = (outcome(&ran), ran.ended.ok().flatten());
        tried.push(TriedJson { command, tasks, outcome, code, took_ms: ran.took_ms, output: ran.output });
    }
    Ok(tried)
}

fn outcome(ran: &Tried) -> &'static str {
    match ran.ended {
        _ if ran.passed() => "passes",
        _ if ran.cannot_run() => "cannot_run",
        Ok(_) => "fails",
        Err(_) => "stopped",
    }
}

/// Prints what came of them. Says whether the plan can be run so.
pub(super) fn show(context: &Context, tried: &[TriedJson]) -> Result<bool> {
    let ui = &context.ui;
    let mut table = Table::new(&[
        ("CHECK", Align::Left),
        ("BEFORE THE WORK", Align::Left),
        ("TIME", Align::Right),
        ("TASKS", Align::Left),
    ]);
    for one in tried {
        let (words, tone) = match one.outcome {
            "fails" => ("fails, as it should", Tone::Good),
            "passes" => ("passes already", Tone::Warning),
            "cannot_run" => ("cannot run", Tone::Error),
            _ => ("takes too long", Tone::Error),
        };
        table.row([
            (one_line(&one.command), None),
            (words.to_owned(), Some(tone)),
            (elapsed(one.took_ms), None),
            (one.tasks.join(", "), None),
        ]);
    }
    ui.line(&table.render(ui.paint(), ui.width()))?;
    let broken: Vec<&TriedJson> = tried.iter().filter(|one| matches!(one.outcome, "cannot_run" | "stopped")).collect();
    for one in &broken {
        ui.warn(&format!(
            "`{}` cannot be proven in a fresh worktree: {}",
            one_line(&one.command),
            last_line(&one.output)
        ));
    }
    if !broken.is_empty() {
        ui.hint("bring what it needs: setup, copy or link under [worktree] in rekindle.toml");
    }
    let early = tried.iter().filter(|one| one.outcome == "passes").count();
    if early > 0 {
        let verb = if early == 1 { "passes" } else { "pass" };
        ui.warn(&format!(
            "{} {verb} before any work is done, and so proves nothing",
            counted(early, "check", "checks")
        ));
    }
    Ok(broken.is_empty())
}

fn last_line(output: &str) -> String {
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| "it printed nothing".to_owned(), one_line)
}
