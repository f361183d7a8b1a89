//! How a worktree and its git directory find each other, the state of that link, and repairing it without touching a file of
//! the worktree.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rekindle_shim::atomic;

use super::{Error, Result, Work, call, held};
use crate::durable;
use crate::save::move_if_there;

/// Marks a worktree as completely made, and by which run; it is in the worktree's git directory.
const MARKER: &str = "rekindle";

/// Things set aside under one name that are distinguished by a number.
const ASIDE_MAX: u32 = 10_000;

/// The state of the link between a worktree and its git directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Link {
    Missing,
    /// A directory with nothing in it except perhaps a `.git` that points nowhere.
    Empty,
    /// Both ends name each other; this is the git directory.
    Healthy(PathBuf),
    /// A directory with files, and no link from it to a git directory of this repository.
    Broken,
}

impl Work {
    pub(super) fn link(&self, key: &str) -> Result<Link> {
        let path = self.path(key);
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Link::Missing),
            Err(error) => return Err(Error::io(&path, error)),
            Ok(meta) if !meta.is_dir() => return Err(Error::InTheWay(path)),
            Ok(_) => {}
        }
        if let Some(git_dir) = self.git_dir_of(&path) {
            return Ok(Link::Healthy(git_dir));
        }
        let entries = std::fs::read_dir(&path).map_err(|e| Error::io(&path, e))?;
        let dot_git = path.join(".git");
        let is_file = dot_git.symlink_metadata().is_ok_and(|meta| meta.is_file());
        let more = entries.filter_map(std::result::Result::ok).any(|entry| entry.file_name() != ".git" || !is_file);
        Ok(if more { Link::Broken } else { Link::Empty })
    }

    /// The git directory that a worktree names, if it is one of this repository's and names the worktree in return.
    fn git_dir_of(&self, path: &Path) -> Option<PathBuf> {
        let dot_git = path.join(".git");
        if !dot_git.symlink_metadata().ok()?.is_file() {
            return None;
        }
        let said = std::fs::read(&dot_git).ok()?;
        let named = path.join(call::path(said.strip_prefix(b"gitdir: ")?.trim_ascii_end()));
        let git_dir = named.canonicalize().ok()?;
        let ours = self.repo.common.join("worktrees").canonicalize().ok()?;
        let back = std::fs::read(git_dir.join("gitdir")).ok()?;
        let back = git_dir.join(call::path(back.trim_ascii_end()));
        let same = back.parent()?.canonicalize().ok()? == path.canonicalize().ok()?;
        let shared = std::fs::read(git_dir.join("commondir")).ok()?;
        let shared = git_dir.join(call::path(shared.trim_ascii_end())).canonicalize().ok()?;
        let whole = git_dir.join("HEAD").symlink_metadata().is_ok_and(|meta| meta.len() > 0);
        (git_dir.parent() == Some(&ours) && shared == self.repo.common && same && whole).then_some(git_dir)
    }

    /// Gives files that have lost their git directory a new one on the workspace's branch. No file is touched; differences
    /// from the branch show as changes.
    pub(super) fn relink(&self, key: &str) -> Result<PathBuf> {
        let path = self.path(key);
        self.set_git_aside(key)?;
        // If only the paths have changed (the project was moved), git repairs both ends itself.
        let _mended = self.repo.call().args(["worktree", "repair"]).arg(&path).run()?;
        if let Some(git_dir) = self.git_dir_of(&path) {
            return Ok(git_dir);
        }
        let other = self.worktrees().join(format!(".link-{key}"));
        remove_dir_of_ours(&other)?;
        self.register(key, &other)?;
        let said = std::fs::read(other.join(".git")).map_err(|e| Error::io(&other, e))?;
        let git_dir = call::path(said.strip_prefix(b"gitdir: ").unwrap_or(&said).trim_ascii_end());
        save_back_link(&git_dir, &path)?;
        atomic::save(&path, ".git", &said).map_err(|e| Error::io(&path, e))?;
        remove_dir_of_ours(&other)?;
        self.git_dir_of(&path).ok_or(Error::InTheWay(path))
    }

    /// Makes a worktree without files on the workspace's branch, or detached from it if it is checked out elsewhere.
    pub(super) fn register(&self, key: &str, path: &Path) -> Result<()> {
        let branch = super::names::work_branch(&self.run, key);
        let tip = self.repo.commit(&branch)?.ok_or_else(|| Error::Gone(branch.clone()))?;
        let _whole = held(&self.repo.locks.whole);
        let elsewhere = self.repo.checked_out(&branch, Some(&self.path(key)))?;
        let call = self.repo.call().args(["worktree", "add", "--force", "--force", "--no-checkout"]);
        let short = branch.trim_start_matches(super::names::HEADS);
        let call =
            if elsewhere.is_some() { call.arg("--detach").arg(path).arg(&tip) } else { call.arg(path).arg(short) };
        call.ok().map(drop)
    }

    /// A `.git` that is not a file of ours may hold commits: it is moved out of the worktree, not deleted.
    fn set_git_aside(&self, key: &str) -> Result<()> {
        let dot_git = self.path(key).join(".git");
        match dot_git.symlink_metadata() {
            Ok(meta) if !meta.is_file() => self.set_aside(&dot_git, &format!("{key}.git")).map(drop),
            _ => Ok(()),
        }
    }

    /// Moves something of a workspace to where nothing reads or deletes it.
    pub(super) fn set_aside(&self, path: &Path, name: &str) -> Result<PathBuf> {
        let aside = self.state.join("aside");
        std::fs::create_dir_all(&aside).map_err(|e| Error::io(&aside, e))?;
        for n in 1..=ASIDE_MAX {
            let target = aside.join(format!("{name}.{n}"));
            if target.symlink_metadata().is_err() {
                move_if_there(path, &target).map_err(|e| Error::io(path, e))?;
                return Ok(target);
            }
        }
        Err(Error::InTheWay(aside))
    }

    /// Moves a whole worktree to where nothing reads or deletes it; it stays a worktree.
    pub(super) fn move_aside(&self, key: &str) -> Result<PathBuf> {
        let path = self.path(key);
        let git_dir = self.git_dir_of(&path);
        let aside = self.set_aside(&path, key)?;
        if let Some(git_dir) = git_dir {
            // Otherwise the registration would seem to belong to a missing directory, and would be removed with everything
            // in it.
            save_back_link(&git_dir, &aside)?;
        }
        Ok(aside)
    }

    /// Records on disk that the files of a worktree are about to be written. Nobody works in it until they all are: files
    /// that a power cut leaves incomplete must not be mistaken for an agent's changes.
    pub(super) fn begin_making(&self, key: &str) -> Result<()> {
        let worktrees = self.worktrees();
        atomic::save(&worktrees, &making(key), b"").map_err(|e| Error::io(&worktrees, e))
    }

    /// The files of a worktree are written: they are on disk before that is said.
    pub(super) fn end_making(&self, key: &str) -> Result<()> {
        for place in durable::file_systems([self.repo.common.clone(), self.path(key)]) {
            durable::sync(&place).map_err(|e| Error::io(&place, e))?;
        }
        let file = self.worktrees().join(making(key));
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(&file, error)),
            _ => Ok(()),
        }
    }

    pub(super) fn is_in_the_making(&self, key: &str) -> bool {
        self.worktrees().join(making(key)).symlink_metadata().is_ok()
    }

    /// Which run made a worktree completely; `None` while it is incomplete.
    pub(super) fn marked(git_dir: &Path) -> Option<String> {
        std::fs::read_to_string(git_dir.join(MARKER)).ok().map(|run| run.trim_end().to_owned())
    }

    /// Marks a worktree as complete.
    pub(super) fn mark(&self, git_dir: &Path) -> Result<()> {
        let run = format!("{}\n", self.run);
        atomic::save(git_dir, MARKER, run.as_bytes()).map_err(|e| Error::io(git_dir, e))
    }
}

fn making(key: &str) -> String {
    format!(".making-{key}")
}

/// Tells a git directory where its worktree is.
fn save_back_link(git_dir: &Path, worktree: &Path) -> Result<()> {
    let back = [worktree.join(".git").as_os_str().as_bytes(), b"\n"].concat();
    atomic::save(git_dir, "gitdir", &back).map_err(|e| Error::io(git_dir, e))
}

/// Removes a directory that this module has made and where nobody works.
fn remove_dir_of_ours(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}
