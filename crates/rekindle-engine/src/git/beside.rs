//! What is kept beside a worktree's git directory and removed with it, and which ignored files a list of patterns names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_shim::atomic;

use super::call::{self, Call, records};
use super::snapshot::Place;
use super::{Error, Result, Work};

impl Work {
    /// What was put beside the worktree of a key under a name.
    pub fn beside(&self, key: &str, name: &str) -> Option<Vec<u8>> {
        let at = self.checkout(Place::Own, key).ok()??;
        std::fs::read(at.git_dir.join(name)).ok()
    }

    /// Puts something beside the worktree of a key.
    pub fn put_beside(&self, key: &str, name: &str, bytes: &[u8]) -> Result<()> {
        match self.checkout(Place::Own, key)? {
            Some(at) => atomic::save(&at.git_dir, name, bytes).map_err(|e| Error::io(&at.git_dir, e)),
            None => Err(Error::Gone(format!("the worktree of {key}"))),
        }
    }
}

/// The files below a directory that git ignores and that match gitignore patterns.
pub fn ignored_matching(dir: &Path, patterns: &str) -> Result<Vec<PathBuf>> {
    let patterns: Vec<String> = patterns
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| format!("--exclude={line}"))
        .collect();
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let named = Call::new(dir).files().args(["ls-files", "--others", "--ignored", "-z"]).args(&patterns).ok()?;
    let all = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z"];
    let all = Call::new(dir).files().args(all).ok()?;
    let ignored: BTreeSet<PathBuf> = records(&all).map(call::path).collect();
    Ok(records(&named).map(call::path).filter(|path| ignored.contains(path)).collect())
}

/// The files below a directory that git tracks and that differ from its last commit.
pub fn modified(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let options = ["diff-index", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", "HEAD"];
    // A file that was only touched does not differ.
    Call::new(dir).files().args(["update-index", "-q", "--refresh"]).run()?;
    let listed = Call::new(dir).files().args(options).ok()?;
    Ok(records(&listed).map(call::path).collect())
}

/// The files below a directory that git tracks.
pub fn tracked(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let listed = Call::new(dir).files().args(["ls-files", "--cached", "-z"]).ok()?;
    Ok(records(&listed).map(call::path).collect())
}
