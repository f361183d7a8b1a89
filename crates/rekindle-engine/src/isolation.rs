//! Whether the agents of a run work in isolation, each in a worktree, or all in the project's directory: decided once, when
//! the run starts, and kept for the whole run. How worktrees are made and merged is left to `git`.

use std::path::Path;

use rekindle_core::event::WorkBranch;
use rekindle_core::plan::Isolation;
use rekindle_core::state::Run;

use crate::git::{Repo, Start, Work};

/// How much of git's list of changes is counted.
const STATUS_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
pub struct Apart {
    /// The run's share of the repository; without one nothing is kept in git.
    pub work: Option<Work>,
    /// Whether every task has a worktree of its own.
    pub worktrees: bool,
    /// The branch, if this start created it.
    pub made: Option<WorkBranch>,
}

/// A run's name, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    pub run: &'a str,
    /// The plan's name.
    pub slug: &'a str,
    /// The current run, if it continues.
    pub known: Option<&'a Run>,
}

/// Chooses the isolation. Fails if worktrees are requested, or a run has them, and git cannot provide them.
pub fn choose(
    wanted: Isolation,
    max_agents: u32,
    state_dir: &Path,
    workspace: &Path,
    of: Of<'_>,
) -> Result<Apart, crate::git::Error> {
    let begun = of.known.filter(|run| run.phase != rekindle_core::state::RunPhase::Created);
    if let Some((run, branch)) = begun.and_then(|run| Some((run, run.work_branch.as_deref()?))) {
        let repo = Repo::of(workspace)?;
        let known = run.work_commit.as_deref();
        let base = repo.begin(of.slug, of.run, Start::Continue { branch, known })?;
        let work = Work::new(repo, state_dir, of.run, &base.branch)?;
        return Ok(Apart { work: Some(work), worktrees: true, made: None });
    }
    let apart = match wanted {
        Isolation::Worktree => true,
        Isolation::Auto => max_agents > 1,
        Isolation::Shared => false,
    };
    let shared = || {
        // Only for snapshots: agents can also work in a directory without a repository.
        let work = Repo::of(workspace).and_then(|repo| Work::new(repo, state_dir, of.run, ""));
        Apart { work: work.ok(), worktrees: false, made: None }
    };
    if begun.is_some() || !apart {
        return Ok(shared());
    }
    match (begin(state_dir, workspace, of), wanted) {
        (Ok(apart), _) => Ok(apart),
        (Err(error), Isolation::Worktree) => Err(error),
        (Err(_), _) => Ok(shared()),
    }
}

fn begin(state_dir: &Path, workspace: &Path, of: Of<'_>) -> Result<Apart, crate::git::Error> {
    let repo = Repo::of(workspace)?;
    let base = repo.begin(of.slug, of.run, Start::New)?;
    let work = Work::new(repo, state_dir, of.run, &base.branch)?;
    let mut notes = base.notes;
    let changes = crate::git::ask(workspace, &["status", "--porcelain"], STATUS_BYTES).unwrap_or_default();
    if !changes.trim().is_empty() {
        let count = changes.lines().count();
        let words = if count == 1 { "1 path".to_owned() } else { format!("{count} paths") };
        notes.push(format!(
            "{words} of your checkout with uncommitted changes are not part of this run: commit them first"
        ));
    }
    let made = WorkBranch { branch: base.branch, base: base.commit, notes };
    Ok(Apart { work: Some(work), worktrees: true, made: Some(made) })
}
