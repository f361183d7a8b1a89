//! Removing a workspace: only after proof that everything in it that is not ignored is merged or snapshotted. An interrupted
//! removal leaves no partial worktree where one would be expected.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::links::Link;
use super::names;
use super::snapshot::Place;
use super::{Error, Left, Result, Work, held};
use crate::save::move_if_there;

/// Prefix of a worktree that is being deleted.
pub(super) const MOVED_AWAY: &str = ".removed-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is removed, or never existed.
    Yes,
    /// It stays, because these are nowhere else.
    Kept(Vec<Left>),
}

impl Work {
    /// Removes a workspace and its branch. What is neither merged nor snapshotted is snapshotted first. Fails if git or the
    /// disk fails; nothing that exists nowhere else is lost then.
    pub fn remove(&self, key: &str, attempt: u64, label: &str) -> Result<Removed> {
        names::check(label)?;
        self.alone(key, || self.remove_alone(key, attempt, label))
    }

    pub(super) fn remove_alone(&self, key: &str, attempt: u64, label: &str) -> Result<Removed> {
        let path = self.path(key);
        match self.link(key)? {
            Link::Missing => {}
            Link::Empty | Link::Healthy(_) | Link::Broken => {
                let kept = self.snapshot_alone(Place::Own, key, attempt, label)?;
                if !kept.left.is_empty() {
                    return Ok(Removed::Kept(kept.left));
                }
                // Commits of the agent's own git, which syncs nothing, must not be lost with the files that contain them.
                self.repo.sync_to_disk()?;
                // Moved out of its place in one step: a partial worktree must never look like an agent's deletions.
                let gone = self.worktrees().join(format!("{MOVED_AWAY}{key}"));
                delete(&gone)?;
                move_if_there(&path, &gone).map_err(|e| Error::io(&path, e))?;
            }
        }
        self.forget(&path)?;
        delete(&self.worktrees().join(format!("{MOVED_AWAY}{key}")))?;
        self.drop_branch(key)?;
        held(&self.repo.locks.declared).remove(&format!("{}/{key}", self.run));
        Ok(Removed::Yes)
    }

    /// Removes the registration of a worktree whose directory is gone.
    fn forget(&self, path: &Path) -> Result<()> {
        let _whole = held(&self.repo.locks.whole);
        let answer = self.repo.call().args(["worktree", "remove", "--force", "--force"]).arg(path).run()?;
        match answer.code {
            0 => Ok(()),
            _ if answer.err.contains("is not a working tree") => Ok(()),
            _ => Err(answer.failed()),
        }
    }

    /// Deletes the workspace's branch if its commits are in the run's branch or in the last snapshot.
    pub(super) fn drop_branch(&self, key: &str) -> Result<()> {
        let name = names::work_branch(&self.run, key);
        let Some(tip) = self.repo.commit(&name)? else {
            return Ok(());
        };
        let held_by = [names::last(&self.run, key), format!("{}{}", names::HEADS, self.branch)];
        for holder in held_by {
            let Some(holder) = self.repo.commit(&holder)? else {
                continue;
            };
            if self.repo.contains(&holder, &tip)? && self.repo.checked_out(&name, None)?.is_none() {
                return match self.repo.delete(&name, &tip) {
                    // Moved by another process at this moment, or locked: a branch that stays costs nothing.
                    Ok(_) | Err(Error::Locked { .. }) => Ok(()),
                    Err(error) => Err(error),
                };
            }
        }
        Ok(())
    }
}

/// Deletes a directory of ours, with whatever an agent has made read-only in it.
pub(super) fn delete(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if std::fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path).and_then(|()| std::fs::remove_dir_all(path)).map_err(|e| Error::io(path, e))
}

/// Gives the owner access to every directory below.
fn open_up(dir: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
