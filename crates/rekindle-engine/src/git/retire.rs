//! A run that is over: where its result is, what is left of it in the repository, and how that is released. Objects are
//! never deleted here: git's own gc drops what no ref names any more, in its own time.

use std::path::Path;

use rekindle_core::event::Landed;
use rekindle_core::retention;

use super::links::Link;
use super::names::{self, HEADS};
use super::refs::{Move, Moved};
use super::{Error, Removed, Repo, Result, Work};

/// Refs that are deleted in one transaction: each is locked meanwhile.
const REFS_AT_ONCE: usize = 200;

/// Where rekindle's own branches are; what any other branch contains, the person has.
const OWN_BRANCHES: [&str; 3] = ["refs/heads/rekindle/", "refs/heads/rekindle-run/", "refs/heads/rekindle-work/"];

/// What was released of a run, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    pub refs: usize,
    pub worktrees: usize,
    /// The result's branch, with the commit that it was at.
    pub branch: Option<(String, String)>,
    /// What stays, and why.
    pub kept: Vec<String>,
}

impl Work {
    /// Where the result of the run is. `base` is the commit that it started from.
    pub fn whereabouts(&self, base: Option<&str>, landed: Option<&Landed>) -> Result<retention::Work> {
        let Some(tip) = self.newest_known()? else { return Ok(retention::Work::None) };
        if base == Some(tip.as_str()) {
            return Ok(retention::Work::None);
        }
        // A squashed or rebased result exists as other commits: those must exist.
        let as_others = landed.filter(|landed| landed.tip == tip).map(|landed| landed.commit.clone());
        for commit in std::iter::once(tip).chain(as_others) {
            if self.repo.commit(&commit)?.is_some() && self.repo.is_the_persons(&commit)? {
                return Ok(retention::Work::Landed);
            }
        }
        Ok(retention::Work::NotLanded)
    }

    /// The newest commit of the result; unlike `tip` it restores nothing.
    fn newest_known(&self) -> Result<Option<String>> {
        if self.branch.is_empty() {
            return Ok(None);
        }
        let branch = self.repo.commit(&format!("{HEADS}{}", self.branch))?;
        let recorded = self.repo.commit(&names::record(&self.run))?;
        match branch {
            Some(tip) if !self.is_another_runs(&tip, recorded.as_deref())? => Ok(Some(tip)),
            _ => Ok(recorded),
        }
    }

    /// Whether the branch is at a commit that another run made and this one did not: a later run has taken the name since.
    pub(super) fn is_another_runs(&self, tip: &str, recorded: Option<&str>) -> Result<bool> {
        if recorded == Some(tip) {
            return Ok(false);
        }
        let (own, at) = (names::record(&self.run), format!("--points-at={tip}"));
        let call = self.repo.call().args(["for-each-ref", "--format=%(refname)", &at, names::RECORDS]);
        let listed = call.ok()?;
        Ok(String::from_utf8_lossy(&listed).lines().any(|name| name != own))
    }

    /// The worktrees that this run made and that still exist, by key.
    pub fn own_worktrees(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.worktrees()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut keys: Vec<String> = names.filter(|key| names::check(key).is_ok() && self.made(key)).collect();
        keys.sort();
        keys
    }

    /// Whether the worktree of a key was made by this run.
    fn made(&self, key: &str) -> bool {
        match self.link(key) {
            Ok(Link::Healthy(git_dir)) => Self::marked(&git_dir).is_some_and(|run| run == self.run),
            _ => false,
        }
    }

    /// Refs of the run, with their values; the result's branch is not among them.
    pub fn own_refs(&self) -> Result<Vec<(String, String)>> {
        let run = names::part(&self.run);
        let below =
            ["refs/rekindle", "refs/rekindle-person", "refs/heads/rekindle-work"].map(|at| format!("{at}/{run}/"));
        let call = self.repo.call().args(["for-each-ref", "--format=%(objectname) %(refname)"]);
        let listed = call.args(&below).arg(names::record(&self.run)).ok()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect())
    }

    /// Removes the worktrees and work branches of a run that is complete: all of its work is on its branch or in snapshots.
    pub fn tidy_up(&self) -> Retired {
        let mut retired = Retired::default();
        for key in self.own_worktrees() {
            match self.remove(&key, 0, "removed") {
                Ok(Removed::Yes) => retired.worktrees += 1,
                Ok(Removed::Kept(left)) => {
                    let why = left.first().map(|left| format!("{} {}", left.path, left.why)).unwrap_or_default();
                    retired.kept.push(format!("{}: {why}", self.path(&key).display()));
                }
                Err(error) => retired.kept.push(format!("{}: {error}", self.path(&key).display())),
            }
        }
        match self.own_refs() {
            Ok(refs) => {
                let prefix = format!("{HEADS}rekindle-work/");
                for (name, tip) in refs.iter().filter(|(name, _)| name.starts_with(&prefix)) {
                    self.drop_left_branch(name, tip, &mut retired);
                }
            }
            Err(error) => retired.kept.push(error.to_string()),
        }
        retired
    }

    /// Drops the branch of a workspace that is gone. Commits that are nowhere else become a snapshot.
    fn drop_left_branch(&self, name: &str, tip: &str, retired: &mut Retired) {
        let Some(key) = name.rsplit('/').next().map(names::name_of) else { return };
        if self.path(&key).symlink_metadata().is_ok() {
            return;
        }
        let dropped = self.alone(&key, || {
            self.drop_branch(&key)?;
            if self.repo.commit(name)?.is_none() {
                return Ok(true);
            }
            if self.repo.checked_out(name, None)?.is_some() {
                return Ok(false);
            }
            let kept = names::snapshot(&self.run, &key, 0, "branch");
            Ok(self.repo.transact(&[Move::Set(&kept, tip), Move::Delete(name, tip)])? == Moved::Yes)
        });
        match dropped {
            Ok(true) => retired.refs += 1,
            Ok(false) => retired.kept.push(format!("{name}: it is checked out, or was moved meanwhile")),
            Err(error) => retired.kept.push(format!("{name}: {error}")),
        }
    }

    /// Releases everything that the repository holds of the run: worktrees, snapshots, refs. Deleting the result's branch is
    /// left to the person; it is deleted only if the result was `discarded`. Can be interrupted anywhere and repeated: what
    /// a snapshot needs is deleted after it.
    pub fn retire(&self, discarded: bool) -> Retired {
        let mut retired = self.tidy_up();
        let refs = match self.own_refs() {
            Ok(refs) => refs,
            Err(error) => {
                retired.kept.push(error.to_string());
                return retired;
            }
        };
        // The record from which the result's branch can be restored is deleted last.
        let (record, refs): (Vec<_>, Vec<_>) =
            refs.into_iter().partition(|(name, _)| *name == names::record(&self.run));
        for part in refs.chunks(REFS_AT_ONCE) {
            self.delete_refs(part, &mut retired);
        }
        if discarded {
            match self.discard_branch() {
                Ok(branch) => retired.branch = branch,
                Err(error) => retired.kept.push(format!("{}: {error}", self.branch)),
            }
        }
        self.delete_refs(&record, &mut retired);
        retired
    }

    fn delete_refs(&self, refs: &[(String, String)], retired: &mut Retired) {
        let free = |(name, _): &&(String, String)| {
            !name.starts_with(HEADS) || matches!(self.repo.checked_out(name, None), Ok(None))
        };
        let (going, staying): (Vec<_>, Vec<_>) = refs.iter().partition(free);
        retired.kept.extend(staying.iter().map(|(name, _)| format!("{name}: it is checked out")));
        let moves: Vec<Move<'_>> = going.iter().map(|(name, old)| Move::Delete(name, old)).collect();
        if moves.is_empty() {
            return;
        }
        match self.repo.transact(&moves) {
            Ok(Moved::Yes) => retired.refs += moves.len(),
            Ok(Moved::Lost) => retired.kept.push("a ref of the run was moved meanwhile".to_owned()),
            Err(error) => retired.kept.push(error.to_string()),
        }
    }

    /// Deletes the branch of a result that was given up.
    fn discard_branch(&self) -> Result<Option<(String, String)>> {
        let name = format!("{HEADS}{}", self.branch);
        let Some(tip) = (if self.branch.is_empty() { None } else { self.repo.commit(&name)? }) else {
            return Ok(None);
        };
        // Another run may have taken the name since: then the branch belongs to that run.
        if self.repo.commit(&names::record(&self.run))?.is_none_or(|recorded| recorded != tip) {
            return Ok(None);
        }
        if let Some(at) = self.repo.checked_out(&name, None)? {
            return Err(Error::CheckedOut { branch: self.branch.clone(), at });
        }
        let gone = self.repo.transact(&[Move::Delete(&name, &tip)])? == Moved::Yes;
        Ok(gone.then(|| (self.branch.clone(), tip)))
    }
}

impl Repo {
    /// Whether a branch of the person's, here or as last seen at a remote, or their checkout contains a commit.
    fn is_the_persons(&self, commit: &str) -> Result<bool> {
        let contains = format!("--contains={commit}");
        let listed = self
            .call()
            .args(["for-each-ref", "--format=%(refname)", &contains, "refs/heads/", "refs/remotes/"])
            .ok()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let is_own = |name: &str| {
            let local = name.strip_prefix("refs/remotes/").and_then(|name| name.split_once('/'));
            let name = local.map_or_else(|| name.to_owned(), |(_, branch)| format!("{HEADS}{branch}"));
            OWN_BRANCHES.iter().any(|own| name.starts_with(own))
        };
        Ok(text.lines().any(|name| !is_own(name)))
    }

    /// Deletes worktree directories that an interrupted removal had already moved away.
    pub fn delete_moved_away(worktrees: &Path) -> Vec<(std::path::PathBuf, Error)> {
        let entries = std::fs::read_dir(worktrees).into_iter().flatten().flatten();
        let moved = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(super::remove::MOVED_AWAY));
        let failed = moved.filter_map(|entry| Some((entry.path(), super::remove::delete(&entry.path()).err()?)));
        failed.collect()
    }
}
