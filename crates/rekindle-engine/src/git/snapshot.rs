//! Snapshots: everything in a checkout that is not ignored, and what its tasks declared, as a commit under a hidden ref.
//! Files, index and HEAD of the checkout stay as they are. The ref is written last, so a snapshot exists whole or not at
//! all.

use super::declared::Staging;
use super::links::Link;
use super::names;
use super::nested::Take;
use super::refs::{Move, Moved};
use super::{Checkout, Error, Result, Work};

/// Snapshots with the same attempt and label that are distinguished by a number.
const SAME_NAME_MAX: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a worktree of its own.
    Own,
    /// In the user's checkout.
    Shared,
}

/// Something that could not be included, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub path: String,
    /// The reason, to follow the path in a sentence.
    pub why: &'static str,
}

impl Left {
    pub(super) fn unread(path: &[u8]) -> Self {
        Self { path: String::from_utf8_lossy(path).into_owned(), why: "could not be read" }
    }

    pub(super) fn of(path: &std::path::Path, why: &'static str) -> Self {
        Self { path: path.to_string_lossy().into_owned(), why }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that contains everything; `None` if there is nothing to contain yet.
    pub commit: Option<String>,
    /// The ref that was made; `None` if nothing has changed since the last one or since the start.
    pub made: Option<String>,
    /// What could not be included.
    pub left: Vec<Left>,
}

struct Seen {
    head: Option<String>,
    tree: String,
    /// What was staged, if that is neither committed nor on disk.
    staged: Option<String>,
    left: Vec<Left>,
}

impl Work {
    /// Takes a snapshot of a workspace at an attempt's boundary. If git fails, nothing that existed before is lost.
    pub fn snapshot(&self, place: Place, key: &str, attempt: u64, label: &str) -> Result<Snapshot> {
        names::check(label)?;
        self.alone(key, || self.snapshot_alone(place, key, attempt, label))
    }

    pub(super) fn snapshot_alone(&self, place: Place, key: &str, attempt: u64, label: &str) -> Result<Snapshot> {
        let Some(at) = self.checkout(place, key)? else {
            let commit = self.repo.commit(&names::last(&self.run, key))?;
            return Ok(Snapshot { commit, made: None, left: Vec::new() });
        };
        let seen = self.look(&at, key)?;
        if let Some(commit) = self.already(place, key, &seen)? {
            return Ok(Snapshot { commit: Some(commit), made: None, left: seen.left });
        }
        let base_commit = self.repo.commit(&names::base(&self.run, key))?.or_else(|| seen.head.clone());
        let base = base_commit.as_ref().map(|base| format!("\nRekindle-Base: {base}")).unwrap_or_default();
        let trailers = format!("Rekindle-Run: {}\nRekindle-Key: {key}\nRekindle-Attempt: {attempt}{base}", self.run);
        let mut parents: Vec<String> = seen.head.iter().cloned().collect();
        if let Some(staged) = &seen.staged {
            let parent: Vec<&str> = seen.head.iter().map(String::as_str).collect();
            parents.push(self.repo.commit_tree(staged, &parent, &format!("staged in {key}\n\n{trailers}\n"))?);
        }
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let message = format!("snapshot of {key}, attempt {attempt}: {label}\n\n{trailers}\n");
        let commit = self.repo.commit_tree(&seen.tree, &parents, &message)?;
        if seen.head != base_commit {
            // Commits of the agent's own git, which syncs nothing: a snapshot never exists without what it builds on.
            self.repo.sync_to_disk()?;
        }
        let made = self.name(key, attempt, label, &commit)?;
        Ok(Snapshot { commit: Some(commit), made: Some(made), left: seen.left })
    }

    /// Names a snapshot: if the name is taken by another snapshot, a number is added.
    fn name(&self, key: &str, attempt: u64, label: &str, commit: &str) -> Result<String> {
        let last = names::last(&self.run, key);
        for n in 1..=SAME_NAME_MAX {
            let label = if n == 1 { label.to_owned() } else { format!("{label}.{n}") };
            let name = names::snapshot(&self.run, key, attempt, &label);
            if self.repo.transact(&[Move::Create(&name, commit), Move::Set(&last, commit)])? == Moved::Yes {
                return Ok(name);
            }
        }
        Err(Error::BadName(label.to_owned()))
    }

    /// Reads the whole checkout into an index of our own.
    fn look(&self, at: &Checkout, key: &str) -> Result<Seen> {
        let head = self.head(at, key)?;
        let name = format!("{}.{key}", self.run);
        let index = self.repo.private_index(at, head.as_deref(), &name)?;
        // A failure means that something is unmerged: then nothing is staged that is not on disk with its conflict marks.
        let staged = self.repo.write_tree(at, Some(&index)).ok();
        let taken = self.repo.stage(at, Some(&index), true)?;
        let declared = self.declared(key, at)?;
        let stage = Staging { at, index: Some(&index), raw: true };
        let mut left = self.repo.force(&stage, &declared)?;
        left.extend(self.repo.take_nested(at, Some(&index), head.as_deref(), taken, Take::Changed)?);
        left.extend(self.repo.untaken(&stage, &declared)?);
        let replaced = at.dir.join(".git").symlink_metadata().is_ok_and(|meta| !meta.is_file());
        if replaced && self.repo.is_lost(at) {
            left.push(Left { path: ".git".to_owned(), why: "was replaced and may hold commits of its own" });
        }
        let tree = self.repo.write_tree(at, Some(&index))?;
        drop(std::fs::remove_file(&index));
        let committed = head.as_deref().map(|head| self.repo.tree(head)).transpose()?;
        let empty = self.repo.empty_tree()?;
        let staged = staged.filter(|staged| Some(staged) != committed.as_ref() && *staged != tree && *staged != empty);
        Ok(Seen { head, tree, staged, left })
    }

    /// The commit that already contains all this.
    fn already(&self, place: Place, key: &str, seen: &Seen) -> Result<Option<String>> {
        if let Some(last) = self.repo.commit(&names::last(&self.run, key))? {
            let first = self.repo.commit(&format!("{last}^1"))?;
            let second = self.repo.commit(&format!("{last}^2"))?;
            let staged = second.map(|second| self.repo.tree(&second)).transpose()?;
            let same = self.repo.tree(&last)? == seen.tree && first == seen.head && staged == seen.staged;
            return Ok(same.then_some(last));
        }
        let Some(head) = &seen.head else {
            return Ok(None);
        };
        let clean = self.repo.tree(head)? == seen.tree && seen.staged.is_none();
        let begun = match place {
            Place::Own => self.repo.commit(&names::base(&self.run, key))?.as_ref() == Some(head),
            Place::Shared => true,
        };
        Ok((clean && begun).then(|| head.clone()))
    }

    /// The commit that a checkout is at; for a worktree whose branch or git directory is gone, the best that is known.
    fn head(&self, at: &Checkout, key: &str) -> Result<Option<String>> {
        let found = self.repo.look_at(at).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).id_if_any()?;
        match found.filter(|_| !self.repo.is_lost(at)) {
            Some(head) => Ok(Some(head)),
            None if at.dir == self.repo.top => Ok(None),
            None => self.last_head(key, Some(&at.git_dir)),
        }
    }

    /// Where an agent's files are; `None` if there is no directory.
    pub(super) fn checkout(&self, place: Place, key: &str) -> Result<Option<Checkout>> {
        let (top, git_dir) = (self.repo.top.clone(), self.repo.git_dir.clone());
        if place == Place::Shared {
            return Ok(Some(Checkout { dir: top, git_dir }));
        }
        let dir = self.path(key);
        Ok(match self.link(key)? {
            Link::Missing | Link::Empty => None,
            Link::Healthy(git_dir) => Some(Checkout { dir, git_dir }),
            // The files are what counts: they are read without the worktree's own git directory.
            Link::Broken => Some(Checkout { dir, git_dir: self.repo.common.clone() }),
        })
    }
}
