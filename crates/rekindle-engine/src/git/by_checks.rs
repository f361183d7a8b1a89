//! Files that a check made and no agent did, such as caches. They stay out of the result, unless a task declares them or
//! somebody changes them afterwards. Snapshots contain them like every other file.
//!
//! The list of them is kept beside the worktree's git directory, because another coordinator may do the merge.

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

/// Files that are listed. If there are more, nothing is left out: results cannot be distinguished from the rest.
const FILES_MAX: usize = 100_000;

/// Where tools keep what they can make again. While an agent is running, only these count as made by a check: anything else
/// that appears meanwhile may be the agent's.
const CACHES: &[&str] = &[
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".hypothesis",
    ".eggs",
    ".cache",
    ".nyc_output",
    ".turbo",
    ".gradle",
    ".ccache",
    "htmlcov",
];

/// Who may write files at the same time as a check or a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nobody: no agent has begun.
    Nobody,
    /// An agent that has claimed its task and is still running.
    Agent,
}

/// Identifies a version of a file, to detect changes.
type Stamp = String;

/// The files of a workspace that git neither tracks nor ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untracked(BTreeMap<PathBuf, Stamp>);

impl Work {
    /// Lists the workspace of a key before its checks run.
    pub fn untracked(&self, key: &str) -> Result<Untracked> {
        match self.checkout(Place::Own, key)? {
            Some(at) => self.repo.untracked(&at).map(Untracked),
            None => Ok(Untracked::default()),
        }
    }

    /// Records the files that exist after the checks and did not before.
    pub fn made_by_checks(&self, key: &str, before: &Untracked, beside: Beside) -> Result<()> {
        let Some(at) = self.checkout(Place::Own, key)? else { return Ok(()) };
        let known = listed(&at);
        let mut made = known.clone();
        for (path, stamp) in self.repo.untracked(&at)? {
            // A file of an earlier check that only checks have touched since still counts as theirs.
            let was = before.0.get(&path);
            let is_new = was.is_none() && (beside == Beside::Nobody || is_cache(&path));
            if is_new || was.is_some() && was == known.get(&path) {
                made.insert(path, stamp);
            }
        }
        if made == known {
            return Ok(());
        }
        let record =
            |(path, stamp): (&PathBuf, &Stamp)| [path.as_os_str().as_bytes(), b"\0", stamp.as_bytes(), b"\0"].concat();
        let bytes: Vec<u8> = made.iter().flat_map(record).collect();
        atomic::save(&at.git_dir, LIST, &bytes).map_err(|e| Error::io(&at.git_dir, e))
    }
}

impl Repo {
    /// What somebody has added to the index: it does not count as made by a check.
    pub(super) fn added(&self, at: &Checkout) -> Result<BTreeSet<PathBuf>> {
        let listed = self.look_at(at).args(["ls-files", "--cached", "-z"]).ok()?;
        Ok(records(&listed).map(call::path).collect())
    }

    /// Removes what checks made from an index in which everything is staged. What the last commit has stays in it, and so
    /// does what was in the index before.
    pub(super) fn unstage_made(
        &self,
        at: &Checkout,
        head: Option<&str>,
        kept: &BTreeSet<PathBuf>,
        declared: &BTreeSet<PathBuf>,
    ) -> Result<()> {
        let made = listed(at);
        let from = head.map_or_else(|| self.empty_tree(), |head| Ok(head.to_owned()))?;
        let arguments = ["diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "-z", &from];
        let added = self.call_at(at).args(arguments).ok()?;
        let mut names = Vec::new();
        for path in records(&added).map(call::path) {
            let file = at.dir.join(&path);
            let unchanged = made.get(&path).is_some_and(|known| stamp(&file).as_ref() == Some(known));
            // A link that a set-up made to the person's own checkout would lead to itself there.
            let leads_home = std::fs::read_link(&file).is_ok_and(|to| to.starts_with(&self.top));
            if leads_home
                || unchanged && !kept.contains(&path) && !declared.iter().any(|artifact| path.starts_with(artifact))
            {
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
        let files: Vec<PathBuf> = records(&listed).map(call::path).collect();
        if files.len() > FILES_MAX {
            let said = format!("there are more than {FILES_MAX} new files");
            return Err(Error::Failed { what: "ls-files".to_owned(), said });
        }
        Ok(files.into_iter().filter_map(|path| Some((path.clone(), stamp(&at.dir.join(path))?))).collect())
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
    let (mode, inode, size) = (meta.mode(), meta.ino(), meta.len());
    // The time of the last status change cannot be set by any program.
    Some(format!("{}.{}.{mode}.{inode}.{size}", meta.ctime(), meta.ctime_nsec()))
}

fn is_cache(path: &Path) -> bool {
    let compiled = path.extension().is_some_and(|extension| extension == "pyc");
    compiled || path.iter().any(|part| part.to_str().is_some_and(|part| CACHES.contains(&part)))
}
