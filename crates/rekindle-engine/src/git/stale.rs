//! Lock files that a killed git left behind: who owns them, whether any live process can hold one, and removing it.
//!
//! Only locks of our own refs and worktrees, and of the files that all worktrees share, are judged. The user's own checkout
//! belongs to the user: its index and HEAD are not touched, except for the lock that a landing of ours left there. Whatever
//! is removed is kept for a day and is on record.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rekindle_shim::clock;

use super::{Error, Repo, Result, call, held};
use crate::save::move_if_there;

/// Refs that only rekindle moves.
const OURS: &[&str] = &[
    "refs/rekindle",
    "refs/rekindle-run",
    "refs/heads/rekindle",
    "refs/heads/rekindle-run",
    "refs/heads/rekindle-work",
];

/// Files that the user's gits change too: they hold such a lock for moments, so one of this age is stale.
const SHARED: &[&str] = &["packed-refs.lock", "config.lock"];

/// The age, in seconds, from which a shared lock without a visible holder counts as stale.
const SHARED_SECONDS: u64 = 60;

/// Clocks of files and processes differ by this many seconds at most.
const SLACK_SECONDS: u64 = 2;

/// The unit in which Linux reports the start of a process to programs, whatever the kernel itself counts in.
const TICKS_PER_SECOND: u64 = 100;

/// Long-running gits that take no lock.
const LOCKLESS: &[&str] = &["fsmonitor--daemon", "cat-file", "credential-cache--daemon", "daemon"];

/// Notes about locks that wait to be recorded; more of them only repeat the first.
const NOTES_MAX: usize = 100;

enum Whose {
    /// Of one of our worktrees, which is here.
    Worktrees(PathBuf),
    /// Of a ref that only rekindle moves.
    Refs,
    /// Of a file that all worktrees share.
    Shared,
}

/// Distinguishes one lock file from the next of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64, i64, i64);

/// The lock file that exists now.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    Some(Stamp(meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

impl Repo {
    /// Removes a lock that was seen unchanged for the whole of our patience, if it is one of ours and no live process can
    /// hold it. Returns whether it did.
    pub(super) fn take_away(&self, lock: &Path, seen: Stamp) -> Result<bool> {
        let Some(whose) = self.whose(lock) else {
            return Ok(false);
        };
        let age = call::age_of(lock).unwrap_or(0);
        let left = match &whose {
            Whose::Worktrees(_) | Whose::Refs => true,
            Whose::Shared => age >= SHARED_SECONDS,
        };
        let near = match &whose {
            Whose::Worktrees(dir) => vec![dir.clone()],
            Whose::Refs | Whose::Shared => [Some(self.top.clone()), Some(self.common.clone()), self.worktrees.clone()]
                .into_iter()
                .flatten()
                .collect(),
        };
        if !left || is_open(lock) || may_be_held(lock, &near) || stamp(lock) != Some(seen) {
            return Ok(false);
        }
        let aside = self.private("stale-lock")?;
        move_if_there(lock, &aside).map_err(|e| Error::io(lock, e))?;
        let (lock, aside) = (lock.display(), aside.display());
        self.note(format!("{lock} was left by a git that was killed {age} s ago; it was moved to {aside}"));
        Ok(true)
    }

    /// Removes the lock of a checkout's index that a landing left, unless a live process may hold it.
    pub(super) fn take_away_left(&self, lock: &Path, at: &Path) -> Result<()> {
        if is_open(lock) || may_be_held(lock, &[at.to_owned()]) {
            return Ok(());
        }
        move_if_there(lock, &self.private("stale-lock")?).map_err(|error| Error::io(lock, error))
    }

    /// Records something that a person should find.
    fn note(&self, text: String) {
        let mut notes = held(&self.locks.notes);
        if notes.len() < NOTES_MAX {
            notes.push(text);
        }
    }

    /// The notes since the last call.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.locks.notes))
    }

    /// Who owns a lock; `None` for locks that must not be judged.
    fn whose(&self, lock: &Path) -> Option<Whose> {
        let inside = lock.strip_prefix(&self.common).ok()?;
        if OURS.iter().any(|ours| inside.starts_with(ours)) {
            return Some(Whose::Refs);
        }
        if SHARED.iter().any(|shared| inside == Path::new(shared)) {
            return Some(Whose::Shared);
        }
        let name = inside.strip_prefix("worktrees").ok()?.components().next()?;
        let git_dir = self.common.join("worktrees").join(name);
        let back = std::fs::read(git_dir.join("gitdir")).ok()?;
        let dir = git_dir.join(call::path(back.trim_ascii_end())).parent()?.to_owned();
        // The directory itself may be gone; the one that holds all of ours is not.
        let ours = self.worktrees.as_ref()?;
        let within = dir.parent()?.canonicalize().ok()?;
        (within == *ours).then_some(Whose::Worktrees(dir))
    }
}

/// Whether a process of ours has a file open. If that cannot be determined, the answer is yes.
fn is_open(path: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let descriptors = processes.filter_map(std::result::Result::ok).filter_map(|process| {
        let numbered = process.file_name().as_bytes().first().is_some_and(u8::is_ascii_digit);
        numbered.then(|| std::fs::read_dir(process.path().join("fd")).ok()).flatten()
    });
    let mut links = descriptors.flatten().filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    links.any(|open| open == path)
}

/// Whether a live git may hold a lock although it has closed the file, as it does while a hook or an editor runs: one that
/// works near the lock and is older than it.
fn may_be_held(lock: &Path, near: &[PathBuf]) -> bool {
    let (Ok(meta), Ok(processes)) = (lock.symlink_metadata(), std::fs::read_dir("/proc")) else {
        return true;
    };
    let made = u64::try_from(meta.mtime()).unwrap_or(0);
    let mut gits =
        processes.filter_map(std::result::Result::ok).map(|entry| entry.path()).filter(|process| is_git(process));
    gits.any(|process| {
        let older = started(&process).is_none_or(|start| start <= made + SLACK_SECONDS);
        let here = match std::fs::read_link(process.join("cwd")) {
            Ok(cwd) => near.iter().any(|dir| cwd.starts_with(dir)),
            // Gone meanwhile, or not to be seen: one of another user made no lock that is ours.
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(_) => process.symlink_metadata().is_ok_and(|owner| owner.uid() == meta.uid()),
        };
        older && here
    })
}

/// Whether a process is a git that may take locks.
fn is_git(process: &Path) -> bool {
    let name = std::fs::read(process.join("comm")).unwrap_or_default();
    if !name.starts_with(b"git") {
        return false;
    }
    let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let mut words = line.split(|b| *b == 0);
    !words.any(|word| LOCKLESS.iter().any(|lockless| word == lockless.as_bytes()))
}

/// When a process was started, in seconds since 1970.
fn started(process: &Path) -> Option<u64> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // The name in brackets may contain anything; the fields follow the last bracket.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let up = clock::boottime_ms() / 1000;
    let booted = (clock::wall_ms() / 1000).saturating_sub(up);
    Some(booted + ticks / TICKS_PER_SECOND)
}
