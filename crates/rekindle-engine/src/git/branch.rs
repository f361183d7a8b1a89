//! The run's branch: where it begins, under which name, how it is found again, and how its result is taken. The user's
//! checkout, index and HEAD are not touched.

use super::names::{self, HEADS, record};
use super::refs::{Move, Moved, there};
use super::{Error, Repo, Result, Work};

/// Names tried before giving up; nobody keeps that many unmerged runs of one plan.
const NAMES_MAX: u32 = 1_000;

/// How a run gets its branch.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    New,
    Continue {
        branch: &'a str,
        /// The newest commit on it that the caller knows of.
        known: Option<&'a str>,
    },
}

/// Where a run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    pub commit: String,
    pub notes: Vec<String>,
}

impl Repo {
    /// Makes sure that the run has its branch. Fails when git does, or the branch of a run that continues is gone without a trace.
    pub fn begin(&self, slug: &str, run: &str, start: Start<'_>) -> Result<Base> {
        names::check(slug)?;
        names::check(run)?;
        self.sweep();
        self.sweep_objects();
        if let Start::Continue { branch, known } = start {
            let mut notes = Vec::new();
            let commit = self.run_tip(run, branch, known, &mut notes)?;
            return Ok(Base { branch: branch.to_owned(), commit, notes });
        }
        let head = match self.commit("HEAD")? {
            Some(head) => head,
            // A branch without commits stays so: only the run's branch gets a first, empty one.
            None => self.commit_tree(&self.empty_tree()?, &[], "rekindle: an empty beginning\n")?,
        };
        // If there is a branch called `rekindle`, nothing can be created below that name.
        let blocked = self.commit(&format!("{HEADS}rekindle"))?.is_some();
        let stem = if blocked { "rekindle-run" } else { "rekindle" };
        for n in 1..=NAMES_MAX {
            let number = if n == 1 { String::new() } else { format!("-{n}") };
            let branch = format!("{stem}/{}{number}", names::part(slug));
            if self.take_name(&branch, run, &head)? {
                return Ok(Base { branch, commit: head, notes: Vec::new() });
            }
        }
        Err(Error::BadName(slug.to_owned()))
    }

    /// Starts a branch at `head`, if the name is free or everything on it is contained in `head`.
    fn take_name(&self, branch: &str, run: &str, head: &str) -> Result<bool> {
        let (name, record) = (format!("{HEADS}{branch}"), record(run));
        let moved = match self.commit(&name)? {
            None => self.transact(&[Move::Create(&name, head), Move::Set(&record, head)])?,
            Some(old) if self.contains(head, &old)? && self.checked_out(&name, None)?.is_none() => {
                self.transact(&[Move::From(&name, head, &old), Move::Set(&record, head)])?
            }
            Some(_) => Moved::Lost,
        };
        Ok(moved == Moved::Yes)
    }

    /// The newest commit of a run's branch; a deleted branch is restored from what is recorded.
    pub(super) fn run_tip(
        &self,
        run: &str,
        branch: &str,
        known: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<String> {
        let name = format!("{HEADS}{branch}");
        if let Some(tip) = self.commit(&name)? {
            return Ok(tip);
        }
        let recorded = self.commit(&record(run))?;
        let known = known.map(|known| self.commit(known)).transpose()?.flatten();
        let tip = match (recorded, known) {
            // Whichever has more: a record may be one merge behind what the caller knows, or ahead of it.
            (Some(recorded), Some(known)) if self.contains(&known, &recorded)? => known,
            (recorded, known) => there(recorded.or(known), branch)?,
        };
        self.transact(&[Move::Create(&name, &tip), Move::Set(&record(run), &tip)])?;
        notes.push(format!("the branch {branch} was gone and was made again at {tip}"));
        there(self.commit(&name)?, branch)
    }
}

impl Work {
    /// The newest commit of the run's branch.
    pub(super) fn tip(&self, known: Option<&str>, notes: &mut Vec<String>) -> Result<String> {
        self.repo.run_tip(&self.run, &self.branch, known, notes)
    }

    /// Moves the run's branch from `old` to `new`, together with the record from which it can be restored.
    pub(super) fn advance(&self, new: &str, old: &str) -> Result<Moved> {
        let name = format!("{HEADS}{}", self.branch);
        if let Some(at) = self.repo.checked_out(&name, None)? {
            return Err(Error::CheckedOut { branch: self.branch.clone(), at });
        }
        self.repo.transact(&[Move::From(&name, new, old), Move::Set(&record(&self.run), new)])
    }

    /// The `paths` (as in the plan, below the project's directory) that `commit` brought and that the run's branch no longer
    /// has. What was never committed, such as ignored build results, does not count as missing.
    pub fn missing(&self, commit: &str, paths: &[String]) -> Result<Vec<String>> {
        let tip = self.tip(None, &mut Vec::new())?;
        let mut missing = Vec::new();
        for path in paths {
            if self.repo.has_path(commit, path)? && !self.repo.has_path(&tip, path)? {
                missing.push(path.clone());
            }
        }
        Ok(missing)
    }
}

impl Repo {
    /// Whether a commit holds a file or folder. A path that leads out of the repository is in no commit.
    fn has_path(&self, commit: &str, path: &str) -> Result<bool> {
        let Some(path) = super::salvage::plain(&self.prefix.join(path)) else {
            return Ok(false);
        };
        let call = self.call().args(["ls-tree", "--full-tree", "--name-only", "-z", commit, "--"]).arg(&path);
        Ok(!call.ok()?.is_empty())
    }
}
