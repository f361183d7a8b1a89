//! Which programs the repository itself would make git run on files, and how each is kept from running.
//!
//! A filter or merge driver from the operator's own or the machine's configuration is used: the operator decided on it, and
//! large-file storage needs it. One from the repository's configuration is not used: an agent can write there.

use std::ffi::OsString;
use std::path::Path;

use super::Result;
use super::call::{Call, records};

/// Merges as git does without a driver.
const PLAIN_MERGE: &str = "git merge-file -q %A %O %B";

/// Whose filters and drivers may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// Those of the operator and of the machine.
    Operators,
    Nothing,
}

/// The settings that keep everything else from running.
pub(super) fn overrides(
    dir: &Path,
    environment: &[(OsString, OsString)],
    may_run: Run,
) -> Result<Vec<(String, String)>> {
    let mut call = Call::new(dir).args(["config", "--list", "--show-scope", "--includes", "-z"]);
    // Which configuration applies depends on the repository.
    for (name, value) in environment.iter().filter(|(name, _)| name == "GIT_DIR") {
        call = call.env(&name.to_string_lossy(), value);
    }
    let listed = call.ok()?;
    let mut found = Vec::new();
    let mut parts = records(&listed);
    while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
        if may_run == Run::Nothing || matches!(scope, b"local" | b"worktree") {
            let key = entry.split(|b| *b == b'\n').next().unwrap_or(entry);
            found.extend(std::str::from_utf8(key).ok().map(replacement).unwrap_or_default());
        }
    }
    Ok(found)
}

fn replacement(key: &str) -> Vec<(String, String)> {
    let filter = [".clean", ".smudge", ".process"].iter().find_map(|end| key.strip_suffix(end));
    if let Some(driver) = filter.filter(|driver| driver.starts_with("filter.")) {
        let off = |what: &str| (format!("{driver}.{what}"), String::new());
        let optional = (format!("{driver}.required"), "false".to_owned());
        return vec![off("clean"), off("smudge"), off("process"), optional];
    }
    if key.starts_with("merge.") && key.ends_with(".driver") {
        return vec![(key.to_owned(), PLAIN_MERGE.to_owned())];
    }
    Vec::new()
}
