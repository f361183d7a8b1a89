//! `rekindle plan check --try`: runs every check of a plan once in a fresh worktree before any work is done. A check that
//! cannot run there would cost every attempt; one that already passes proves nothing.

use rekindle_core::plan::{Plan, PlanTask};
use rekindle_core::preflight::{self, Outcome};
use rekindle_core::text::counted;
use rekindle_engine::git::Repo;
use serde::Serialize;

use super::super::Context;
use super::super::trial::Place;
use crate::config::Config;
use crate::error::{CliError, Result};
use crate::ui::{Align, Table, Tone, elapsed, one_line};

/// One check, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TriedJson {
    pub command: String,
    /// The `[environments.NAME]` that it ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The tasks that have it.
    pub tasks: Vec<String>,
    /// `fails`, as it should before the work; `passes` already; `cannot_run`: there is no such command; `may_come`: it calls a file of the
    /// project that is not there, which the work may bring; `stopped`: it took too long.
    pub outcome: &'static str,
    pub code: Option<i32>,
    pub took_ms: u64,
    /// The end of its output.
    pub output: String,
}

/// Tries every distinct check of the open tasks. Fails when there is no repository to make a worktree of, or its set-up fails.
pub(super) fn all(context: &Context, config: &Config, plan: &Plan) -> Result<Vec<TriedJson>> {
    let open = || plan.tasks.iter().filter(|task| !task.done);
    let environments = |task: &PlanTask| match task.environments.as_slice() {
        [] => plan.settings.environments.clone().unwrap_or_default(),
        named => named.to_vec(),
    };
    let found = preflight::distinct(open().map(|task| (task, environments(task))));
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
    for check in found {
        let ran = place.run(&check)?;
        let has = |task: &&PlanTask| {
            let environments = environments(task);
            preflight::matrix(&environments, &task.accept)
                .any(|(environment, command)| environment == check.environment.as_deref() && command == check.command)
        };
        let tasks = open().filter(has).map(|task| task.id.to_string()).collect();
        let outcome = word(ran.outcome());
        let (code, took_ms) = (ran.ended.ok().flatten(), ran.took_ms);
        let (command, environment) = (check.command, check.environment);
        tried.push(TriedJson { command, environment, tasks, outcome, code, took_ms, output: ran.output });
    }
    Ok(tried)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passes => "passes",
        Outcome::Fails => "fails",
        Outcome::CannotRun => "cannot_run",
        Outcome::MayCome => "may_come",
        Outcome::Slow => "stopped",
    }
}

/// Prints the results. Returns whether the plan can be run like this.
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
            "may_come" => ("calls a file that is not there yet", Tone::Warning),
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
