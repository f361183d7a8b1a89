//! Git, as far as rekindle changes anything with it: the run's branch, a worktree for every task, snapshots of what agents
//! left on disk, the merge of what was accepted, and the proof that comes before anything is deleted.
//!
//! It owns the names of refs and worktrees and the promise that no byte which was on disk is lost: what is deleted was
//! merged or snapshotted before, refs are written last and by compare-and-swap, and the user's own checkout, index and HEAD
//! stay as they are. When a workspace is made, kept, merged or removed is decided by the callers.
//!
//! Git is called as a program, with every feature disabled through which a repository could make it run another program.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

mod beside;
mod branch;
mod by_checks;
mod call;
mod declared;
mod diff;
mod exclude;
mod forward;
mod guard;
mod index;
mod land;
mod links;
mod merge;
mod names;
mod nested;
mod person;
mod publish;
mod put_back;
mod refs;
mod remove;
mod retire;
mod reverted;
mod salvage;
mod snapshot;
mod stale;
mod submodule;
mod torn;
mod workspace;

pub use beside::{ignored_matching, modified, tracked};
pub use branch::{Base, Start};
pub use by_checks::{Beside, Untracked};
pub use call::{ask, ask_within};
pub use diff::{Changes, ChangesIn};
pub use land::{Counted, Form, Prepared, Ready, Trial};
pub use merge::Accepted;
pub use publish::{Joined, Pushed};
pub use remove::Removed;
pub use retire::Retired;
pub use salvage::{Leftover, Restored};
pub use snapshot::{Left, Place, Snapshot};
pub use workspace::Workspace;

use call::Call;

/// The oldest git that merges without a checkout (`merge-tree --write-tree`).
const OLDEST_GIT: (u32, u32) = (2, 38);

/// How long to wait for another process's lock: git holds its locks for moments, a person's editor for longer.
const LOCK_PATIENCE_MS: u64 = 10_000;

/// A private file of this age is abandoned: no call may take that long.
const LEFT_SECONDS: u64 = 24 * 60 * 60;

/// System errors that mean that the machine lacks something, or that its disk does not work at the moment.
const MACHINE: &[i32] = &[
    rustix::io::Errno::NOSPC.raw_os_error(),
    rustix::io::Errno::DQUOT.raw_os_error(),
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
    rustix::io::Errno::AGAIN.raw_os_error(),
    rustix::io::Errno::NOMEM.raw_os_error(),
    rustix::io::Errno::IO.raw_os_error(),
    rustix::io::Errno::ROFS.raw_os_error(),
];

/// Why git could not be used, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no program of that name.
    #[error("git is not installed: install it, or run without worktrees (run.isolation = \"shared\")")]
    NoGit,
    /// It is too old to merge without a checkout.
    #[error("git {0} is too old for worktrees: install 2.38 or newer, or set run.isolation = \"shared\"")]
    TooOld(String),
    #[error("{0} is not in a git repository: type git init, or set run.isolation = \"shared\"")]
    NotARepository(PathBuf),
    #[error("{0} is a bare repository, which has no files to work on: run rekindle in a checkout of it")]
    Bare(PathBuf),
    /// Git does not trust the directory's owner.
    #[error("git does not trust {0}, which another user owns: git config --global --add safe.directory '{0}'")]
    Unsafe(PathBuf),
    #[error("git {what} failed: {said}")]
    Failed {
        what: String,
        /// The end of its output.
        said: String,
    },
    /// It did not end in time and was killed.
    #[error("git {what} did not end within {seconds} s and was stopped: is its disk or a filter hanging?")]
    TimedOut { what: String, seconds: u64 },
    /// It printed more than can be held.
    #[error("git {what} printed more than {most} bytes")]
    TooMuch { what: String, most: usize },
    /// Another process holds a lock, or died with it.
    #[error("git is locked by {path}{}: wait for that git, or if none is running: rm '{path}'", age(*.seconds))]
    Locked {
        path: String,
        /// Its age, if known.
        seconds: Option<u64>,
    },
    /// The run's branch is checked out, so moving it would change somebody's checkout.
    #[error("{branch} is checked out in {at}, so nothing can be merged into it: run git switch - there")]
    CheckedOut { branch: String, at: PathBuf },
    /// There is no branch of that name.
    #[error("there is no branch {0}: make it with git branch {0}, or name another with --into")]
    NoBranch(String),
    /// The person's checkout has changes of their own.
    #[error("{at} has changes that are not committed ({}): commit or stash them first", few(.files))]
    Unclean { at: PathBuf, files: Vec<String> },
    /// The disk has no room for the files of a commit.
    #[error("the disk of {} has no room for it: {needs_kib} KiB are needed, {free_kib} KiB are free", .at.display())]
    NoRoom { at: PathBuf, needs_kib: u64, free_kib: u64 },
    /// Another process moves a checkout of this repository.
    #[error("another landing is under way in this repository: wait until it has ended")]
    Landing,
    /// The files of a checkout are half of one commit and half of another.
    #[error(
        "the files of {} could not be written and could not all be put back ({}): {why}",
        .at.display(),
        few(.files)
    )]
    HalfWritten { at: PathBuf, files: Vec<String>, why: String },
    /// A name that cannot become a ref or a folder.
    #[error("{0:?} cannot be the name of a workspace")]
    BadName(String),
    /// Another ref has the name of a folder that this one needs.
    #[error(
        "{0} cannot be created because another branch is named like its first part: rename that branch with git branch -m"
    )]
    NameTaken(String),
    /// Something that is not a workspace is in its place.
    #[error("{0} is in the way of a workspace and was not made by rekindle: move it away")]
    InTheWay(PathBuf),
    /// A commit or branch that was recorded no longer exists.
    #[error("{0} is gone from the repository and nothing recorded tells what it held")]
    Gone(String),
    #[error("{} would be overwritten in {dir}: choose an empty directory, or add --force", few(.files))]
    WouldOverwrite { dir: PathBuf, files: Vec<String> },
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Whether it is about the machine and not about the work: the same call may succeed later.
    pub fn passes(&self) -> bool {
        match self {
            Self::Locked { .. } => true,
            Self::Io { source, .. } => source.raw_os_error().is_some_and(|code| MACHINE.contains(&code)),
            // Git repeats the system's error and ends with its text.
            Self::Failed { said, .. } => MACHINE.iter().any(|code| {
                let words = io::Error::from_raw_os_error(*code).to_string();
                words.split_once(" (os error").is_some_and(|(words, _)| said.contains(words))
            }),
            _ => false,
        }
    }
}

/// The words that introduce a lock that is in the way.
pub(crate) const LOCKED: &str = "git is locked by ";

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A repository with a checkout.
#[derive(Clone, Debug)]
pub struct Repo {
    top: PathBuf,
    /// The git directory of that checkout.
    git_dir: PathBuf,
    /// The git directory that all its worktrees share.
    common: PathBuf,
    /// The project's directory inside the checkout; empty when it is the checkout itself.
    prefix: PathBuf,
    /// Where our worktrees are, once a run is known.
    worktrees: Option<PathBuf>,
    locks: Arc<Locks>,
    patience_ms: u64,
}

/// Files and the git directory that they belong to.
#[derive(Clone, Debug)]
struct Checkout {
    dir: PathBuf,
    git_dir: PathBuf,
}

/// One run's share of a repository: its branch, its workspaces below the state directory, its hidden refs.
#[derive(Clone, Debug)]
pub struct Work {
    repo: Repo,
    state: PathBuf,
    run: String,
    /// The run's branch without `refs/heads/`; empty for a run that shares the checkout.
    branch: String,
}

/// Locks that keep calls of this process apart, and what those calls have learned.
#[derive(Debug, Default)]
struct Locks {
    /// Snapshot, merge, making and removal of one workspace never interleave.
    keys: Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
    /// Worktrees are registered one at a time, and merges would only lose against each other.
    whole: Mutex<()>,
    /// The id of the empty tree, which depends only on the repository's hash algorithm.
    empty_tree: OnceLock<String>,
    /// Objects were found empty, so an index may name some that do not exist.
    torn: AtomicBool,
    /// Notes to be recorded.
    notes: Mutex<Vec<String>>,
    /// The artifacts declared by the tasks of a workspace, by run and key.
    declared: Mutex<BTreeMap<String, BTreeSet<PathBuf>>>,
}

impl Locks {
    fn key(&self, key: &str) -> Arc<Mutex<()>> {
        let mut keys = held(&self.keys);
        // A lock that nobody holds or waits for protects nothing: a run of many tasks would keep one for each.
        keys.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(keys.entry(key.to_owned()).or_default())
    }
}

/// Takes a lock that protects no data of its own, so a thread that died with it left nothing half done.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The locks of every repository that this process has opened, by its common directory.
fn locks_of(common: &Path) -> Arc<Locks> {
    static ALL: OnceLock<Mutex<BTreeMap<PathBuf, Arc<Locks>>>> = OnceLock::new();
    Arc::clone(held(ALL.get_or_init(Mutex::default)).entry(common.to_owned()).or_default())
}

impl Repo {
    /// The repository whose checkout holds `dir`. Fails when there is no usable git, no repository, no checkout, or git
    /// does not trust it.
    pub fn of(dir: &Path) -> Result<Self> {
        check_version(dir)?;
        let answer = Call::new(dir)
            .args(["rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir"])
            .args(["--path-format=absolute", "--git-common-dir", "--show-prefix"])
            .run()?;
        if answer.code != 0 {
            let said = &answer.err;
            return Err(match () {
                () if said.contains("dubious ownership") => Error::Unsafe(dir.to_owned()),
                () if said.contains("not a git repository") => Error::NotARepository(dir.to_owned()),
                () => answer.failed(),
            });
        }
        let lines: Vec<&[u8]> = answer.out.split(|b| *b == b'\n').collect();
        let [bare, inside, git_dir, common, prefix, ..] = lines[..] else {
            return Err(answer.failed());
        };
        if bare == b"true" || inside != b"true" {
            return Err(Error::Bare(call::path(git_dir)));
        }
        let top = call::path(&Call::new(dir).args(["rev-parse", "--show-toplevel"]).line()?);
        let common = call::path(common);
        let common = common.canonicalize().map_err(|e| Error::io(&common, e))?;
        let locks = locks_of(&common);
        let (git_dir, prefix) = (call::path(git_dir), call::path(prefix));
        Ok(Self { top, git_dir, common, prefix, worktrees: None, locks, patience_ms: LOCK_PATIENCE_MS })
    }

    /// The same, but waits this long for locks that others hold.
    pub fn patient_for(mut self, ms: u64) -> Self {
        self.patience_ms = ms;
        self
    }

    /// The project's directory in a checkout.
    fn project_in(&self, top: &Path) -> PathBuf {
        // An empty name would leave a trailing slash, and programs treat that as another directory.
        if self.prefix.as_os_str().is_empty() { top.to_owned() } else { top.join(&self.prefix) }
    }

    /// The checkout through which it was found.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// A call that concerns the whole repository and no checkout.
    fn call(&self) -> Call {
        self.call_in(&self.top)
    }

    /// A call in one of its checkouts.
    fn call_in(&self, dir: &Path) -> Call {
        Call::new(dir).patience(self.patience_ms).judging(self)
    }

    /// A call in a checkout whose git directory is known, so that an agent's changes to its `.git` file do not matter. Git
    /// may read files, and so would run filters, wherever it writes an index: `write-tree` and `read-tree` do too.
    fn call_at(&self, at: &Checkout) -> Call {
        self.look_at(at).files()
    }

    /// The same for a call that reads only refs, objects and the list in an index.
    fn look_at(&self, at: &Checkout) -> Call {
        self.call_in(&at.dir).env("GIT_DIR", &at.git_dir).env("GIT_WORK_TREE", &at.dir)
    }

    /// A file of ours in the repository that nothing else uses, for an index. Its name is unique: a git whose caller was
    /// killed may still be writing the last one.
    fn private(&self, name: &str) -> Result<PathBuf> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let dir = self.private_dir();
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let file = dir.join(format!("{name}.{}.{serial}.index", std::process::id()));
        // Left by an old process that had our process id.
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(&file, e)),
            _ => Ok(file),
        }
    }

    /// Flushes everything in the repository to disk.
    fn sync_to_disk(&self) -> Result<()> {
        crate::durable::sync(&self.common).map_err(|e| Error::io(&self.common, e))
    }

    /// A directory of ours in the repository, outside of every checkout.
    pub fn private_dir(&self) -> PathBuf {
        self.common.join("rekindle")
    }

    /// Deletes private files that killed processes left long ago.
    fn sweep(&self) {
        let entries = std::fs::read_dir(self.private_dir()).into_iter().flatten().filter_map(io::Result::ok);
        for entry in entries {
            let old = call::age_of(&entry.path()).is_some_and(|seconds| seconds > LEFT_SECONDS);
            // A landing that was interrupted is put back, however long ago it was.
            if old && !put_back::is_kept(&entry.file_name()) {
                // Retried at the next start.
                drop(std::fs::remove_file(entry.path()));
            }
        }
    }
}

impl Work {
    /// A run's share. `branch` is what [`Repo::begin`] returned, or empty for a run that shares the checkout. Fails if the
    /// run's name cannot be part of a ref.
    pub fn new(repo: Repo, state: &Path, run: &str, branch: &str) -> Result<Self> {
        names::check(run)?;
        // As git will name it; a directory that does not exist yet has nothing to resolve.
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        let repo = Repo { worktrees: Some(state.join("worktrees")), ..repo };
        Ok(Self { repo, state, run: run.to_owned(), branch: branch.to_owned() })
    }

    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// The run's branch, without `refs/heads/`.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The project's directory in the worktree of a key, if there is one and all its files are written; it is left as it is.
    pub fn standing(&self, key: &str) -> Option<PathBuf> {
        let top = self.path(key);
        // A git that outlives its coordinator may still be writing the files: a partial set proves nothing.
        let is_whole = top.join(".git").exists() && !self.is_in_the_making(key);
        is_whole.then(|| self.repo.project_in(&top))
    }

    /// The commit that the work of a key started from, if it is recorded.
    pub fn base(&self, key: &str) -> Option<String> {
        self.repo.commit(&names::base(&self.run, key)).ok().flatten()
    }

    /// Where the worktree of a key is, whether it exists or not.
    pub fn path(&self, key: &str) -> PathBuf {
        self.worktrees().join(key)
    }

    /// Where all worktrees are.
    pub fn worktrees(&self) -> PathBuf {
        self.state.join("worktrees")
    }

    /// Performs an action on a workspace exclusively.
    fn alone<T>(&self, key: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        names::check(key)?;
        let lock = self.repo.locks.key(key);
        let _alone = held(&lock);
        act()
    }
}

fn check_version(dir: &Path) -> Result<()> {
    let said = String::from_utf8_lossy(&Call::new(dir).arg("version").line()?).into_owned();
    let number = said.trim_start_matches("git version ").to_owned();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST_GIT { Err(Error::TooOld(number)) } else { Ok(()) }
}

fn age(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(" since {seconds} s")).unwrap_or_default()
}

/// A few of many names, for one line.
fn few(files: &[String]) -> String {
    /// Names in one line of text.
    const SHOWN: usize = 3;
    let shown = files.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
