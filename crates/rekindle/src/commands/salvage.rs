//! `rekindle salvage`: finds what agents left on disk in snapshots and restores it. It reads the repository, and the store
//! only to match attempts with tasks; no coordinator is needed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use rekindle_core::ids::TaskId;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::number_of;
use rekindle_engine::git::{Leftover, Repo};
use serde::Serialize;

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::project::Project;
use crate::ui::{Align, Table, elapsed, stamp};
use crate::view::View;

/// List and restore snapshots of the files that agents left
///
/// rekindle takes a snapshot of a task's files, tracked and untracked, when an attempt starts and when it ends. Without --to
/// or --branch, lists the snapshots; with either, restores the newest, or the one of --attempt.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle salvage\n  rekindle salvage T3\n  rekindle salvage T3 --attempt 1 --to /tmp/t3\n  rekindle salvage T3 --branch t3-again"
)]
pub(crate) struct SalvageArgs {
    /// Only snapshots of this task [default: all]
    task: Option<String>,
    /// Only those of this attempt at the task; its first is 1
    #[arg(long, value_name = "N")]
    attempt: Option<u64>,
    /// Restore the files into this directory
    #[arg(long, value_name = "DIR", requires = "task", conflicts_with = "branch")]
    to: Option<PathBuf>,
    /// Create a branch with the files
    #[arg(long, value_name = "NAME", requires = "task")]
    branch: Option<String>,
    /// Overwrite files in DIR that differ
    #[arg(long, requires = "to")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A snapshot, for programs.
#[derive(Serialize)]
struct SnapshotJson<'a> {
    task: &'a str,
    attempt: u64,
    /// Which attempt at the task it is, counted from 1; `None` if the store does not know it.
    number: Option<u64>,
    label: &'a str,
    run: &'a str,
    time: String,
    files: &'a [String],
    commit: &'a str,
    #[serde(rename = "ref")]
    reference: &'a str,
}

#[derive(Serialize)]
struct RestoredJson<'a> {
    snapshot: SnapshotJson<'a>,
    to: Option<&'a PathBuf>,
    branch: Option<&'a str>,
    files: usize,
    written: usize,
}

pub(crate) fn run(args: &SalvageArgs, context: &Context) -> Result<Exit> {
    let repo = Repo::of(&context.project.root)?;
    let numbers = Numbers::of(&context.project);
    let mut found = repo.snapshots(None)?;
    if let Some(task) = &args.task {
        found.retain(|one| one.key == *task || numbers.held(one, task));
    }
    let number = |one: &Leftover| numbers.number(one, args.task.as_deref());
    // If the store is gone, the numbers are unknown: then the number in the list is used.
    found.retain(|one| args.attempt.is_none_or(|wanted| number(one).unwrap_or(one.attempt) == wanted));
    if args.to.is_none() && args.branch.is_none() {
        return list(args, context, &found, &number);
    }
    let Some(newest) = found.last() else {
        let message = format!("there is no such snapshot of {}", args.task.as_deref().unwrap_or_default());
        return Err(CliError::usage(message).hint("list them: rekindle salvage"));
    };
    restore(args, context, &repo, newest, number(newest))
}

/// Which attempt at which task each of them is, by run. Without a store there are only the snapshots' own names.
#[derive(Default)]
struct Numbers(BTreeMap<(String, u64), BTreeMap<String, u64>>);

impl Numbers {
    fn of(project: &Project) -> Self {
        Self::read(project).unwrap_or_default()
    }

    fn read(project: &Project) -> Result<Self> {
        let view = View::open(project)?;
        let mut numbers = BTreeMap::new();
        for row in view.runs()? {
            let attempts = view.run_named(&row.id)?.attempts()?;
            for attempt in &attempts {
                let of_task = |task: &TaskId| {
                    let number = number_of(&attempts, task, attempt.attempt)?;
                    Some((task.to_string(), u64::from(number)))
                };
                let tasks = attempt.tasks.iter().filter_map(of_task).collect();
                numbers.insert((row.id.clone(), attempt.attempt.0), tasks);
            }
        }
        Ok(Self(numbers))
    }

    fn tasks(&self, one: &Leftover) -> Option<&BTreeMap<String, u64>> {
        self.0.get(&(one.run.clone(), one.attempt))
    }

    fn held(&self, one: &Leftover, task: &str) -> bool {
        self.tasks(one).is_some_and(|tasks| tasks.contains_key(task))
    }

    /// The attempt's number for a task, or for the task that the snapshot is named after.
    fn number(&self, one: &Leftover, task: Option<&str>) -> Option<u64> {
        let tasks = self.tasks(one)?;
        tasks.get(task.unwrap_or(&one.key)).or_else(|| tasks.get(&one.key)).or_else(|| tasks.values().next()).copied()
    }
}

fn list(
    args: &SalvageArgs,
    context: &Context,
    found: &[Leftover],
    number: &dyn Fn(&Leftover) -> Option<u64>,
) -> Result<Exit> {
    if args.json {
        context.ui.json(&found.iter().map(|one| as_json(one, number(one))).collect::<Vec<_>>())?;
        return Ok(Exit::Success);
    }
    let Some(last) = found.last() else {
        context.ui.say("there is no snapshot: no agent left anything that differs from what is committed");
        if removed_any(context) {
            context.ui.say("snapshots of earlier runs were removed by retention: rekindle events --kind cleaned");
        }
        return Ok(Exit::Success);
    };
    let columns = [
        ("TASK", Align::Left),
        ("ATTEMPT", Align::Right),
        ("AT", Align::Left),
        ("AGE", Align::Right),
        ("FILES", Align::Right),
        ("RUN", Align::Left),
        ("CHANGED", Align::Left),
    ];
    let mut table = Table::new(&columns);
    let now = rekindle_engine::clock::wall().0;
    for one in found {
        let age = elapsed(u64::try_from(now.saturating_sub(one.time.saturating_mul(1000))).unwrap_or(0));
        let cells = [
            one.key.clone(),
            number(one).unwrap_or(one.attempt).to_string(),
            one.label.clone(),
            age,
            one.files.len().to_string(),
            one.run.clone(),
            one.files.join(", "),
        ];
        table.row(cells.map(|cell| (cell, None)));
    }
    context.ui.line(&table.render(context.ui.paint(), context.ui.width()))?;
    context.ui.hint(&format!(
        "restore one: rekindle salvage {} --attempt {} --to DIR",
        last.key,
        number(last).unwrap_or(last.attempt)
    ));
    Ok(Exit::Success)
}

/// Whether snapshots were removed. Without a store this is unknown, and the answer is no.
fn removed_any(context: &Context) -> bool {
    View::open(&context.project).and_then(|view| view.work_removed()).unwrap_or(false)
}

fn restore(args: &SalvageArgs, context: &Context, repo: &Repo, one: &Leftover, number: Option<u64>) -> Result<Exit> {
    let (mut files, mut written) = (one.files.len(), 0);
    let done = if let Some(dir) = &args.to {
        let done = repo.restore(&one.commit, dir, args.force)?;
        (files, written) = (done.files, done.written);
        let files = counted(done.files, "file", "files");
        format!("restored {files} into {}, {} written", dir.display(), done.written)
    } else {
        let name = args.branch.as_deref().unwrap_or_default();
        repo.restore_as_branch(&one.commit, name)?;
        format!("made the branch {name}; look at it: git diff HEAD...{name}")
    };
    if args.json {
        let (to, branch) = (args.to.as_ref(), args.branch.as_deref());
        context.ui.json(&RestoredJson { snapshot: as_json(one, number), to, branch, files, written })?;
    } else {
        context.ui.say(&format!("{} of attempt {} ({}): {done}", one.key, number.unwrap_or(one.attempt), one.label));
    }
    Ok(Exit::Success)
}

fn as_json(one: &Leftover, number: Option<u64>) -> SnapshotJson<'_> {
    SnapshotJson {
        task: &one.key,
        attempt: one.attempt,
        number,
        label: &one.label,
        run: &one.run,
        time: stamp(Time(one.time.saturating_mul(1000))),
        files: &one.files,
        commit: &one.commit,
        reference: &one.reference,
    }
}
