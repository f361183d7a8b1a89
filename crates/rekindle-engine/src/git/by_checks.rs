//! Files that a check made and no agent did, such as caches. They stay out of the result, unless a task declares them or somebody
//! changes them afterwards. Snapshots hold them like every other file.
//!
//! What was seen is kept beside the worktree's git directory: the merge may be another coordinator's.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rekindle_shim::atomic;

use super::call::{self, records};
use super::snapshot::Place;
use super::{Checkout, Error, Repo, Result, Work};

/// The list, in the worktree's git directory: path, modification time and size, each ended by a zero byte.
const LIST: &str = "rekindle-made-by-checks";

/// Files that are listed. A check that makes more has made a build, and what is a result cannot be told from it.
const FILES_MAX: usize = 20_000;

/// What tells whether a file was changed since.
type Stamp = String;

/// The files of a workspace that git neither knows nor ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untracked(BTreeMap<PathBuf, Stamp>);

impl Work {
    /// Looks at the workspace of a key before its checks run.
    pub fn untracked(&self, key: &str) -> Result<Untracked> {
        match self.checkout(Place::Own, key)? {
            Some(at) => self.repo.untracked(&at).map(Untracked),
            None => Ok(Untracked::default()),
        }
    }

    /// Puts down what is there after the checks and was not before.
    pub fn made_by_checks(&self, key: &str, before: &Untracked) -> Result<()> {
        let Some(at) = self.checkout(Place::Own, key)? else { return Ok(()) };
        let known = listed(&at);
        let mut made = known.clone();
        for (path, stamp) in self.repo.untracked(&at)? {
            // A file of an earlier check that only checks have touched since is theirs still.
            let was = before.0.get(&path);
            if was.is_none() || was == known.get(&path) {
                made.insert(path, stamp);
            }
        }
        if made == known || made.len() > FILES_MAX {
            return Ok(());
        }
        let record =
            |(path, stamp): (&PathBuf, &Stamp)| [path.as_os_str().as_bytes(), b"\0", stamp.as_bytes(), b"\0"].concat();
        let bytes: Vec<u8> = made.iter().flat_map(record).collect();
        atomic::save(&at.git_dir, LIST, &bytes).map_err(|e| Error::io(&at.git_dir, e))
    }
}

impl Repo {
    /// Takes what checks made out of an index in which everything is staged. What the last commit has stays in it.
    pub(super) fn unstage_made(&self, at: &Checkout, head: Option<&str>, declared: &BTreeSet<PathBuf>) -> Result<()> {
        let made = listed(at);
        if made.is_empty() {
            return Ok(());
        }
        let from = head.map_or_else(|| self.empty_tree(), |head| Ok(head.to_owned()))?;
        let arguments = ["diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "-z", &from];
        let added = self.call_at(at).args(arguments).ok()?;
        let mut names = Vec::new();
        for path in records(&added).map(call::path) {
            let unchanged = made.get(&path).is_some_and(|known| stamp(&at.dir.join(&path)).as_ref() == Some(known));
            if unchanged && !declared.iter().any(|artifact| path.starts_with(artifact)) {
                names.extend([path.as_os_str().as_bytes(), b"\0"].concat());
            }
        }
        if !names.is_empty() {
            self.call_at(at).args(["update-index", "--force-remove", "-z", "--stdin"]).input(names).ok()?;
        }
        Ok(())
    }

    fn untracked(&self, at: &Checkout) -> Result<BTreeMap<PathBuf, Stamp>> {
        let arguments = ["ls-files", "--others", "--exclude-standard", "-z"];
        let listed = self.call_at(at).args(arguments).ok()?;
        let files = records(&listed).map(call::path).take(FILES_MAX);
        Ok(files.filter_map(|path| Some((path.clone(), stamp(&at.dir.join(path))?))).collect())
    }
}

fn listed(at: &Checkout) -> BTreeMap<PathBuf, Stamp> {
    let bytes = std::fs::read(at.git_dir.join(LIST)).unwrap_or_default();
    let fields: Vec<&[u8]> = records(&bytes).collect();
    let pairs = fields.chunks_exact(2);
    pairs.map(|pair| (call::path(pair[0]), String::from_utf8_lossy(pair[1]).into_owned())).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    Some(format!("{}.{}.{}", meta.mtime(), meta.mtime_nsec(), meta.len()))
}
