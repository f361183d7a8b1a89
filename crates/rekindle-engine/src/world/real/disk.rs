//! What is on disk: artifacts, and what git says of the workspace. Looked at, never changed.

use std::path::Path;

use rekindle_core::brief::{Disk, Facts};

use crate::git;

/// Most of git's answer that a brief can use.
const GIT_BYTES: usize = 8 * 1024;

/// Files named in a brief that git does not know yet.
const UNTRACKED: usize = 50;

/// Commits named in a brief.
const COMMITS: &str = "20";

/// Those of `paths` that do not exist in the workspace.
pub(super) fn missing(workspace: &Path, paths: &[String]) -> Vec<String> {
    paths.iter().filter(|path| std::fs::symlink_metadata(workspace.join(path)).is_err()).cloned().collect()
}

/// What is on disk for the brief of an attempt. A first prompt has no past and asks for nothing.
/// `base` is the commit that the work began with, where it is known.
pub(super) fn facts(workspace: &Path, base: Option<&str>, known: &Facts) -> Disk {
    let mut disk = known.disk.clone();
    if known.is_first() {
        return disk;
    }
    if let Some(task) = known.current() {
        disk.artifacts_missing = missing(workspace, &task.artifacts);
        let present = |path: &&String| !disk.artifacts_missing.contains(path);
        disk.artifacts_present = task.artifacts.iter().filter(present).cloned().collect();
    }
    if workspace.ancestors().any(|dir| dir.join(".git").exists()) {
        let ask = |arguments: &[&str]| git::ask(workspace, arguments, GIT_BYTES).unwrap_or_default();
        disk.diff_stat = ask(&["diff", "--no-ext-diff", "--no-textconv", "--stat", base.unwrap_or("HEAD")]);
        let untracked = ask(&["ls-files", "--others", "--exclude-standard"]);
        for path in untracked.lines().take(UNTRACKED) {
            disk.diff_stat.push_str(&format!(" {path} | new, not committed\n"));
        }
        let range = base.map_or_else(|| "HEAD".to_owned(), |base| format!("{base}..HEAD"));
        let log = ask(&["log", "--oneline", "--no-decorate", "-n", COMMITS, &range]);
        disk.commits = log.lines().map(str::to_owned).collect();
    }
    disk
}
