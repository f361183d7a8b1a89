//! What is on disk: artifacts, and what git says of the workspace. Looked at, never changed.

use std::path::Path;
use std::process::{Command, Stdio};

use rekindle_core::brief::{Disk, Facts};
use rekindle_core::text;

/// Most of git's answer that a brief can use.
const GIT_BYTES: usize = 8 * 1024;

/// Commits named in a brief.
const COMMITS: &str = "20";

/// Those of `paths` that do not exist in the workspace.
pub(super) fn missing(workspace: &Path, paths: &[String]) -> Vec<String> {
    paths.iter().filter(|path| std::fs::symlink_metadata(workspace.join(path)).is_err()).cloned().collect()
}

/// What is on disk for the brief of an attempt. A first prompt has no past and asks for nothing.
pub(super) fn facts(workspace: &Path, known: &Facts) -> Disk {
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
        disk.diff_stat = git(workspace, &["diff", "--stat", "HEAD"]).unwrap_or_default();
        let log = git(workspace, &["log", "--oneline", "--no-decorate", "-n", COMMITS]).unwrap_or_default();
        disk.commits = log.lines().map(str::to_owned).collect();
    }
    disk
}

/// Asks git, with everything switched off by which a repository could make it run something.
fn git(workspace: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"])
        .args(["--no-optional-locks", "--no-pager"])
        .args(arguments)
        .current_dir(workspace)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_EXTERNAL_DIFF")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text::truncate_bytes(&said, GIT_BYTES).to_owned())
}
