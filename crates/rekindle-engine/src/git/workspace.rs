//! A worktree for every task: made when first requested, found again at the same path from then on, whatever has happened to
//! it. Work in it is never overwritten by a new one; the run's newest state is merged in only if nothing is open.

use std::path::{Path, PathBuf};

use super::links::Link;
use super::names;
use super::refs::{Move, there};
use super::snapshot::Place;
use super::{Checkout, Error, Removed, Result, Work, call};

/// The label for what was found in a worktree that was incomplete, or made by another run.
const FOUND: &str = "found";

/// A workspace that can be worked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Where to work: the project's directory in the worktree.
    pub dir: PathBuf,
    pub top: PathBuf,
    /// The commit that it is at.
    pub head: String,
    /// Whether this call made it.
    pub made: bool,
    pub notes: Vec<String>,
}

impl Work {
    /// The workspace of a key, made or repaired as needed. Fails if git does, or something that rekindle did not make is in
    /// its place.
    pub fn workspace(&self, key: &str) -> Result<Workspace> {
        self.alone(key, || self.workspace_alone(key))
    }

    fn workspace_alone(&self, key: &str) -> Result<Workspace> {
        let worktrees = self.worktrees();
        std::fs::create_dir_all(&worktrees).map_err(|e| Error::io(&worktrees, e))?;
        let mut notes = Vec::new();
        let (git_dir, made) = match self.link(key)? {
            Link::Missing | Link::Empty => (self.make(key, &mut notes)?, true),
            Link::Healthy(git_dir) if self.is_in_the_making(key) => (self.finish(key, git_dir, &mut notes)?, true),
            Link::Broken if self.is_in_the_making(key) => (self.make_anew(key, &mut notes)?, true),
            Link::Broken => (self.mend(key, &mut notes)?, false),
            Link::Healthy(git_dir) => match Self::marked(&git_dir) {
                Some(run) if run == self.run => (git_dir, false),
                Some(run) => (self.replace(key, &run, &mut notes)?, true),
                None => (self.finish(key, git_dir, &mut notes)?, true),
            },
        };
        let at = Checkout { dir: self.path(key), git_dir };
        let mut head = self.restore_head(key, &at, &mut notes)?;
        if !made {
            head = self.freshen(key, &at, head, &mut notes)?;
        }
        let dir = self.repo.project_in(&at.dir);
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        Ok(Workspace { dir, top: at.dir, head, made, notes })
    }

    /// Makes the worktree on its branch, which begins at the run's newest commit unless it is there already.
    fn make(&self, key: &str, notes: &mut Vec<String>) -> Result<PathBuf> {
        let path = self.path(key);
        self.begin_making(key)?;
        self.make_branch(key, notes)?;
        // An empty directory may contain only a `.git` that points nowhere.
        let _none_is_fine = std::fs::remove_file(path.join(".git"));
        self.register(key, &path)?;
        match self.link(key)? {
            Link::Healthy(git_dir) => self.fill(key, git_dir, notes),
            _ => Err(Error::InTheWay(path)),
        }
    }

    fn make_branch(&self, key: &str, notes: &mut Vec<String>) -> Result<()> {
        let (branch, base) = (names::work_branch(&self.run, key), names::base(&self.run, key));
        if self.repo.commit(&base)?.is_none() {
            let tip = self.tip(None, notes)?;
            self.repo.transact(&[Move::Create(&base, &tip)])?;
        }
        if self.repo.commit(&branch)?.is_none() {
            let begin = there(self.last_head(key, None)?, &base)?;
            self.repo.transact(&[Move::Create(&branch, &begin)])?;
        }
        if self.repo.commit(&branch)?.is_none() { Err(Error::NameTaken(branch)) } else { Ok(()) }
    }

    /// An incomplete worktree that lost its git directory before anybody worked in it, as in a power cut: it contains
    /// nobody's work.
    fn make_anew(&self, key: &str, notes: &mut Vec<String>) -> Result<PathBuf> {
        let aside = self.move_aside(key)?;
        notes.push(format!("the worktree of {key} was only half made and was moved to {}", aside.display()));
        self.make(key, notes)
    }

    /// Finishes a worktree whose creation was interrupted. If there is anything in it, it is kept.
    fn finish(&self, key: &str, git_dir: PathBuf, notes: &mut Vec<String>) -> Result<PathBuf> {
        self.make_branch(key, notes)?;
        let at = Checkout { dir: self.path(key), git_dir };
        self.restore_head(key, &at, notes)?;
        self.snapshot_alone(Place::Own, key, 0, FOUND)?;
        self.fill(key, at.git_dir, notes)
    }

    /// Writes the files, then the mark that it is complete.
    fn fill(&self, key: &str, git_dir: PathBuf, notes: &mut Vec<String>) -> Result<PathBuf> {
        let at = Checkout { dir: self.path(key), git_dir };
        let reset = || self.repo.call_at(&at).args(["reset", "--hard", "--quiet"]);
        match reset().files().ok() {
            // If a filter of the operator's fails (large files that are not here), the workspace must not be lost.
            Err(Error::Failed { .. }) => reset().plain_files().ok(),
            done => done,
        }?;
        self.fill_submodules(&at, notes)?;
        self.mark(&at.git_dir)?;
        self.end_making(key)?;
        Ok(at.git_dir)
    }

    /// Files whose git directory is gone: they stay as they are and get a new one.
    pub(super) fn mend(&self, key: &str, notes: &mut Vec<String>) -> Result<PathBuf> {
        notes.push(format!("the worktree of {key} had lost its git directory; its files were kept"));
        self.make_branch(key, notes)?;
        let git_dir = self.relink(key)?;
        let at = Checkout { dir: self.path(key), git_dir };
        self.repo.call_at(&at).args(["reset", "--quiet"]).ok()?;
        self.mark(&at.git_dir)?;
        Ok(at.git_dir)
    }

    /// A worktree of another run under the same name: kept in its run's snapshots, then replaced.
    fn replace(&self, key: &str, run: &str, notes: &mut Vec<String>) -> Result<PathBuf> {
        let other = Work { run: run.to_owned(), ..self.clone() };
        if let Removed::Kept(left) = other.remove_alone(key, 0, FOUND)? {
            let aside = self.move_aside(key)?;
            let why = left.first().map(|left| format!("{} {}", left.path, left.why)).unwrap_or_default();
            notes.push(format!("an earlier run's worktree was moved to {} because {why}", aside.display()));
        }
        self.make(key, notes)
    }

    /// The commit that a worktree is at; a missing branch or HEAD is restored.
    pub(super) fn restore_head(&self, key: &str, at: &Checkout, notes: &mut Vec<String>) -> Result<String> {
        if let Some(head) = self.whole_head(key, at)? {
            self.restore_index(key, at, notes)?;
            return Ok(head);
        }
        self.repo.sweep_objects();
        let known = there(self.last_head(key, Some(&at.git_dir))?, &names::work_branch(&self.run, key))?;
        let branch = self.repo.look_at(at).args(["symbolic-ref", "--quiet", "HEAD"]).run()?;
        let named = String::from_utf8_lossy(&branch.out).trim_end().to_owned();
        if branch.code == 0 && named.starts_with(names::HEADS) {
            self.repo.clear_torn(&named)?;
            self.repo.transact(&[Move::Set(&named, &known)])?;
            notes.push(format!("the branch of {key} was gone and was made again"));
        } else {
            self.repo.look_at(at).args(["update-ref", "--no-deref", "HEAD", &known]).ok()?;
        }
        let head = there(self.whole_head(key, at)?, &named)?;
        self.restore_index(key, at, notes)?;
        Ok(head)
    }

    /// Restores a worktree's index if there is none that git can read; files are not touched.
    fn restore_index(&self, key: &str, at: &Checkout, notes: &mut Vec<String>) -> Result<()> {
        let index = at.git_dir.join("index");
        let readable = self.repo.look_at(at).args(["ls-files", "--others", "--directory", "--", ".git"]).run()?;
        if index.exists() && readable.code == 0 && self.repo.is_index_whole(at)? {
            return Ok(());
        }
        if index.exists() {
            let aside = self.set_aside(&index, &format!("{key}.index"))?;
            notes.push(format!("the index of {key} could not be read and was moved to {}", aside.display()));
        }
        self.repo.call_at(at).args(["reset", "--quiet"]).ok()?;
        Ok(())
    }

    /// The newest known commit of a workspace that is complete: from its branch, its own log, its last snapshot, or its
    /// base.
    pub(super) fn last_head(&self, key: &str, git_dir: Option<&Path>) -> Result<Option<String>> {
        let logged = git_dir.filter(|dir| **dir != self.repo.common).and_then(logged_head);
        let snapshot = format!("{}^1", names::last(&self.run, key));
        let base = self.repo.commit(&names::base(&self.run, key))?;
        for name in [Some(names::work_branch(&self.run, key)), logged, Some(snapshot)].into_iter().flatten() {
            // A commit that cannot be read counts as missing.
            if let Some(commit) = self.repo.commit(&name).ok().flatten()
                && self.repo.is_whole(&commit, base.as_deref())?
            {
                return Ok(Some(commit));
            }
        }
        Ok(base)
    }

    /// Merges the run's newest state into a worktree in which nothing is open and nothing unmerged.
    fn freshen(&self, key: &str, at: &Checkout, head: String, notes: &mut Vec<String>) -> Result<String> {
        if self.branch.is_empty() {
            return Ok(head);
        }
        let tip = self.tip(None, notes)?;
        if head == tip || !self.repo.contains(&tip, &head)? || at.git_dir.join("MERGE_HEAD").exists() {
            return Ok(head);
        }
        let arguments = ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"];
        if !self.repo.call_at(at).args(arguments).ok()?.is_empty() {
            return Ok(head);
        }
        let merge = ["merge", "--ff-only", "--quiet", "--no-overwrite-ignore", &tip];
        self.begin_making(key)?;
        match self.repo.call_at(at).args(merge).ok() {
            Ok(_) => {
                self.fill_submodules(at, notes)?;
                self.end_making(key)?;
                Ok(tip)
            }
            // For example an ignored file in the way: the workspace is as good as before.
            Err(Error::Failed { said, .. }) => {
                notes.push(format!("{key} works on an older state of {}: {said}", self.branch));
                self.end_making(key)?;
                Ok(head)
            }
            Err(error) => Err(error),
        }
    }
}

/// The newest commit in a worktree's own log of its HEAD.
fn logged_head(git_dir: &Path) -> Option<String> {
    let log = std::fs::read(git_dir.join("logs/HEAD")).ok()?;
    let line = log.trim_ascii_end().rsplit(|b| *b == b'\n').next()?;
    let id = String::from_utf8_lossy(line.split(|b| *b == b' ').nth(1)?).into_owned();
    (call::is_id(&id) && id.bytes().any(|b| b != b'0')).then_some(id)
}
