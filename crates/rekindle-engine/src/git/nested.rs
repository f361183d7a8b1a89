//! Nested repositories in a checkout: submodules and those that an agent made or cloned. Git records only a commit of them
//! that nobody else has; here their files are included as files of the checkout. Their own history stays with them, which is
//! reported.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::call::{self, records};
use super::index::Staged;
use super::{Checkout, Error, Left, Repo, Result};

/// Repositories inside repositories inside …: deeper ones are reported and left out.
const DEPTH_MAX: usize = 4;

/// Which nested repositories are included as files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// All that contain anything beyond their recorded commit.
    Changed,
    /// Only those that are not submodules: a submodule's commit is what its users expect to be recorded.
    Foreign,
}

impl Repo {
    /// Adds the files of nested repositories to a staged index, and returns what was left out.
    pub(super) fn take_nested(
        &self,
        at: &Checkout,
        index: Option<&Path>,
        head: Option<&str>,
        staged: Staged,
        take: Take,
    ) -> Result<Vec<Left>> {
        self.take_nested_to(at, index, head, staged, take, 0)
    }

    fn take_nested_to(
        &self,
        at: &Checkout,
        index: Option<&Path>,
        head: Option<&str>,
        staged: Staged,
        take: Take,
        depth: usize,
    ) -> Result<Vec<Left>> {
        let Staged { mut left, nested } = staged;
        let linked = self.links_in(at, index)?;
        let recorded = if linked.is_empty() { Vec::new() } else { self.links_of(at, head)? };
        let mut plain: Vec<(PathBuf, bool)> = nested.into_iter().map(|path| (path, false)).collect();
        for (path, _) in linked {
            let submodule = recorded.iter().find(|(known, _)| *known == path).map(|(_, commit)| commit.as_str());
            let dir = at.dir.join(&path);
            let kept = match (take, submodule) {
                (Take::Foreign, Some(commit)) => {
                    left.extend(self.unshared(&dir, &path, commit));
                    true
                }
                (Take::Foreign, None) => false,
                (Take::Changed, commit) => !holds_more(&dir, commit),
            };
            if !kept {
                plain.push((path, true));
            }
        }
        for (path, linked) in plain {
            if depth >= DEPTH_MAX {
                left.push(Left { path: path.to_string_lossy().into_owned(), why: "is a repository nested too deep" });
                continue;
            }
            left.extend(self.take_one(at, index, &path, linked, depth)?);
        }
        Ok(left)
    }

    /// Puts the files of one nested repository into the index, in place of its commit.
    fn take_one(
        &self,
        at: &Checkout,
        index: Option<&Path>,
        path: &Path,
        linked: bool,
        depth: usize,
    ) -> Result<Vec<Left>> {
        let inside = Checkout { dir: at.dir.join(path), git_dir: at.git_dir.clone() };
        let own = self.private("inside")?;
        let staged = self.stage(&inside, Some(&own), true)?;
        let mut left = self.take_nested_to(&inside, Some(&own), None, staged, Take::Changed, depth + 1)?;
        let tree = self.write_tree(&inside, Some(&own))?;
        drop(std::fs::remove_file(&own));
        for one in &mut left {
            one.path = path.join(&one.path).to_string_lossy().into_owned();
        }
        let with = |call: call::Call| match index {
            Some(index) => call.index(index),
            None => call,
        };
        if linked {
            let call = with(self.call_at(at).args(["update-index", "--force-remove", "-z", "--stdin"]));
            call.input([path.as_os_str().as_bytes(), b"\0"].concat()).ok()?;
        }
        if tree != self.empty_tree()? {
            let mut prefix = std::ffi::OsString::from("--prefix=");
            prefix.push(path);
            prefix.push("/");
            with(self.call_at(at).arg("read-tree")).arg(prefix).arg(&tree).ok()?;
        }
        if head_of(&at.dir.join(path)).is_some() {
            let path = path.to_string_lossy().into_owned();
            left.push(Left { path, why: "is a repository of its own: its files are taken, its commits are not" });
        }
        Ok(left)
    }

    /// The warning about a submodule whose commit is recorded: nobody else may have that commit.
    fn unshared(&self, dir: &Path, path: &Path, recorded: &str) -> Option<Left> {
        let now = head_of(dir)?;
        let moved = (now != recorded).then_some("is a submodule with a new commit that only this worktree has");
        let why =
            moved.or_else(|| holds_more(dir, Some(recorded)).then_some("is a submodule with uncommitted changes"))?;
        Some(Left { path: path.to_string_lossy().into_owned(), why })
    }

    /// The commits of nested repositories that an index records.
    fn links_in(&self, at: &Checkout, index: Option<&Path>) -> Result<Vec<(PathBuf, String)>> {
        let call = self.look_at(at).args(["ls-files", "--stage", "-z"]);
        let call = match index {
            Some(index) => call.index(index),
            None => call,
        };
        Ok(links(&call.ok()?, 1))
    }

    /// The same of a commit.
    fn links_of(&self, at: &Checkout, commit: Option<&str>) -> Result<Vec<(PathBuf, String)>> {
        let Some(commit) = commit else {
            return Ok(Vec::new());
        };
        Ok(links(&self.look_at(at).args(["ls-tree", "-r", "-z", "--full-tree", commit]).ok()?, 2))
    }
}

/// Entries of mode 160000; the id is the word at `place`.
fn links(listed: &[u8], place: usize) -> Vec<(PathBuf, String)> {
    let entries = records(listed).filter(|entry| entry.starts_with(b"160000 "));
    let parsed = entries.filter_map(|entry| {
        let tab = entry.iter().position(|b| *b == b'\t')?;
        let words = std::str::from_utf8(&entry[..tab]).ok()?;
        Some((call::path(&entry[tab + 1..]), words.split(' ').nth(place)?.to_owned()))
    });
    parsed.collect()
}

/// The commit that a nested repository is at; `None` if it is not a repository or has no commit.
pub(super) fn head_of(dir: &Path) -> Option<String> {
    // Without a `.git` of its own git would answer for the repository around it.
    dir.join(".git").symlink_metadata().ok()?;
    call::Call::new(dir).args(["rev-parse", "--verify", "--quiet", "HEAD"]).id_if_any().ok().flatten()
}

/// Whether a nested repository contains anything beyond its recorded commit. One that cannot be inspected counts as if it
/// did.
fn holds_more(dir: &Path, recorded: Option<&str>) -> bool {
    if dir.join(".git").symlink_metadata().is_err() {
        // Never populated: an empty directory at most.
        return std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    }
    let arguments = ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"];
    let asked: Result<Vec<u8>, Error> = call::Call::new(dir).args(arguments).plain_files().ok();
    head_of(dir).as_deref() != recorded || asked.map_or(true, |said| !said.is_empty())
}
