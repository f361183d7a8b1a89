//! Merges accepted work: what was left uncommitted is committed, then everything is brought into the run's branch without a
//! checkout. Each step can be interrupted and repeated.

use std::path::Path;

use super::call::records;
use super::declared::Staging;
use super::nested::Take;
use super::refs::Moved;
use super::snapshot::Place;
use super::{Checkout, Error, Left, Result, Work, call, held, names};

/// Merges lost to others before giving up; each loss means that another one succeeded.
const LOST_MAX: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is in the run's branch.
    Merged {
        /// The branch's commit that brought it.
        commit: String,
        /// What could not be included, and what a person should know.
        left: Vec<Left>,
        /// For example that a deleted branch was restored.
        notes: Vec<String>,
    },
    /// It was in the run's branch already, from an earlier call.
    Already {
        /// The branch's commit that brought it.
        commit: String,
    },
    /// The workspace contains nothing beyond what it started with.
    Nothing {
        /// The branch's commit.
        tip: String,
    },
    /// It conflicts with what others have merged. Nothing was merged; the work is committed on the workspace's branch.
    Conflict {
        files: Vec<String>,
        /// The commit of the run's branch that it conflicts with.
        with: String,
    },
}

/// How a workspace relates to the run's branch.
enum Joined {
    Commit(String),
    Conflict(Vec<String>),
}

impl Work {
    /// Merges accepted work into the run's branch. `known` is the newest commit of that branch that the caller knows, in
    /// case somebody has deleted the branch. Fails if git does, or the branch is checked out; a repeated call continues
    /// where it stopped.
    pub fn accept(&self, key: &str, message: &str, known: Option<&str>) -> Result<Accepted> {
        self.alone(key, || {
            let (mut left, mut notes) = (Vec::new(), Vec::new());
            let tip = match self.checkout(Place::Own, key)? {
                Some(at) => {
                    let at = if self.repo.is_lost(&at) { self.relinked(key, &mut notes)? } else { at };
                    self.restore_head(key, &at, &mut notes)?;
                    let open = self.unresolved(&at)?;
                    if !open.is_empty() {
                        let with = self.tip(known, &mut Vec::new())?;
                        return Ok(Accepted::Conflict { files: open, with });
                    }
                    left = self.commit_open(&at, key, message)?;
                    self.repo.look_at(&at).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).id_if_any()?
                }
                // Without its directory, the workspace is what was committed there.
                None => None,
            };
            let tip = match tip {
                Some(tip) => Some(tip),
                None => self.last_head(key, None)?,
            };
            match tip {
                Some(tip) => self.join(key, &tip, message, known, left, notes),
                None => Ok(Accepted::Nothing { tip: self.tip(known, &mut Vec::new())? }),
            }
        })
    }

    fn relinked(&self, key: &str, notes: &mut Vec<String>) -> Result<Checkout> {
        let git_dir = self.mend(key, notes)?;
        Ok(Checkout { dir: self.path(key), git_dir })
    }

    /// Files that are unmerged and still hold both sides' lines.
    fn unresolved(&self, at: &Checkout) -> Result<Vec<String>> {
        let listed = self.repo.call_at(at).args(["diff", "--name-only", "--diff-filter=U", "-z"]).ok()?;
        let marked = records(&listed).filter(|path| has_markers(&at.dir.join(call::path(path))));
        Ok(marked.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Commits the open changes in a worktree. This also finishes a merge that the agent left unfinished.
    fn commit_open(&self, at: &Checkout, key: &str, message: &str) -> Result<Vec<Left>> {
        let verify = || self.repo.look_at(at).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).id_if_any();
        let head = verify()?;
        let declared = self.declared(key, at)?;
        let kept = self.repo.added(at)?;
        let staged = self.repo.stage(at, None, false)?;
        let stage = Staging { at, index: None, raw: false };
        let mut left = self.repo.force(&stage, &declared)?;
        left.extend(self.repo.take_nested(at, None, head.as_deref(), staged, Take::Foreign)?);
        left.extend(self.repo.untaken(&stage, &declared)?);
        self.repo.unstage_made(at, head.as_deref(), &kept, &declared)?;
        let tree = self.repo.write_tree(at, None)?;
        let committed = match &head {
            Some(head) => self.repo.tree(head)?,
            None => self.repo.empty_tree()?,
        };
        if tree == committed && !at.git_dir.join("MERGE_HEAD").exists() {
            return Ok(left);
        }
        let arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--allow-empty"];
        let call = self.repo.call_at(at).args(arguments).args(["--file", "-"]);
        self.repo.authored(call).input(self.text(key, message)).ok()?;
        Ok(left)
    }

    fn text(&self, key: &str, message: &str) -> String {
        // Trailers are one paragraph.
        let gap = if message.contains("\n\n") { "\n" } else { "\n\n" };
        format!("{}{gap}Rekindle-Run: {}\nRekindle-Key: {key}\n", message.trim_end(), self.run)
    }

    /// Brings a commit into the run's branch.
    fn join(
        &self,
        key: &str,
        tip: &str,
        message: &str,
        known: Option<&str>,
        left: Vec<Left>,
        notes: Vec<String>,
    ) -> Result<Accepted> {
        // An agent's git syncs nothing: what the branch will name is on disk before the branch names it.
        self.repo.sync_to_disk()?;
        let joined = self.join_alone(key, tip, message, known, left, notes)?;
        // And before anybody is told that it does. A ref that an earlier attempt moved may not be on disk yet either.
        self.repo.sync_to_disk()?;
        Ok(joined)
    }

    fn join_alone(
        &self,
        key: &str,
        tip: &str,
        message: &str,
        known: Option<&str>,
        left: Vec<Left>,
        mut notes: Vec<String>,
    ) -> Result<Accepted> {
        let _whole = held(&self.repo.locks.whole);
        for _ in 0..LOST_MAX {
            let branch = self.tip(known, &mut notes)?;
            if self.repo.contains(&branch, tip)? {
                return self.contained(key, tip, &branch);
            }
            let commit = match self.joined(key, tip, &branch, message)? {
                Joined::Commit(commit) => commit,
                Joined::Conflict(files) => return Ok(Accepted::Conflict { files, with: branch }),
            };
            if self.advance(&commit, &branch)? == Moved::Yes {
                return Ok(Accepted::Merged { commit, left, notes });
            }
        }
        let said = format!("{} is constantly being moved by another process", self.branch);
        Err(Error::Failed { what: "update-ref".to_owned(), said })
    }

    /// The commit that holds the branch and the work.
    fn joined(&self, key: &str, tip: &str, branch: &str, message: &str) -> Result<Joined> {
        if self.repo.contains(tip, branch)? {
            return Ok(Joined::Commit(tip.to_owned()));
        }
        match self.repo.merged_tree(branch, tip, None)? {
            Ok(tree) => {
                let title = format!("merge {}", message.lines().next().unwrap_or_default());
                Ok(Joined::Commit(self.repo.commit_tree(&tree, &[branch, tip], &self.text(key, &title))?))
            }
            Err(files) => Ok(Joined::Conflict(files)),
        }
    }

    /// What it means that the branch already contains everything.
    fn contained(&self, key: &str, tip: &str, branch: &str) -> Result<Accepted> {
        if self.repo.commit(&names::base(&self.run, key))?.as_deref() == Some(tip) {
            return Ok(Accepted::Nothing { tip: branch.to_owned() });
        }
        let range = format!("{tip}..{branch}");
        let listed = self.repo.call().args(["rev-list", "--first-parent", "--ancestry-path", &range]).ok()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let commit = listed.lines().last().unwrap_or(tip).to_owned();
        Ok(Accepted::Already { commit })
    }
}

/// Whether a file still contains lines that mark the start of a conflict.
fn has_markers(path: &Path) -> bool {
    /// Git's mark for the start of a conflict.
    const MARK: &[u8] = b"<<<<<<< ";
    std::fs::read(path).is_ok_and(|bytes| bytes.split(|b| *b == b'\n').any(|line| line.starts_with(MARK)))
}
