//! A checkout whose files were to become those of another commit, but not all did: they become those of the commit that its
//! branch names. Only what git itself wrote is replaced or removed; a file that a person changed meanwhile is left and
//! named.
//!
//! The operation in progress is recorded in a journal in the repository, written before the first file is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rekindle_shim::{atomic, clock};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use super::call::{self, records};
use super::forward::{CHECKOUT_MS, NAMED_MAX, bytes_of};
use super::{Error, Repo, Result};

/// In the repository's private directory.
const JOURNAL: &str = "landing.json";
const LOCK: &str = "landing.lock";

/// How long to wait for another landing: it holds the lock only while it writes files.
const LOCK_WAIT_MS: u64 = 60_000;
const LOCK_PAUSE_MS: u64 = 50;

/// How much of a file is compared to decide whether git wrote it.
const COMPARED_BYTES: u64 = 64 << 20;

/// Git's mode for a file that does not exist.
const NO_MODE: &[u8] = b"000000";
const LINK_MODE: &[u8] = b"120000";
const MODULE_MODE: &[u8] = b"160000";

/// Whether a private file outlives a sweep.
pub(super) fn is_kept(name: &OsStr) -> bool {
    name == JOURNAL || name == LOCK
}

/// A file in which two commits differ.
#[derive(Debug)]
pub(super) struct Change {
    pub path: PathBuf,
    old: Option<Version>,
    new: Option<Version>,
}

/// A commit's version of a file.
#[derive(Debug)]
struct Version {
    mode: Vec<u8>,
    id: String,
}

impl Change {
    /// Reads `:MODE MODE ID ID STATUS`.
    pub fn read(fields: &[u8], path: &[u8]) -> Option<Self> {
        let text: Vec<&[u8]> = fields.strip_prefix(b":")?.split(|byte| *byte == b' ').collect();
        let [old_mode, new_mode, old, new, ..] = text[..] else { return None };
        let version = |mode: &[u8], id: &[u8]| {
            let id = String::from_utf8_lossy(id).into_owned();
            (mode != NO_MODE && call::is_id(&id)).then(|| Version { mode: mode.to_vec(), id })
        };
        Some(Self { path: call::path(path), old: version(old_mode, old), new: version(new_mode, new) })
    }

    /// The object of the file before; `None` for a submodule, which is not a file.
    pub fn before(&self) -> Option<&str> {
        self.old.as_ref().filter(|version| version.mode != MODULE_MODE).map(|version| version.id.as_str())
    }

    pub fn after(&self) -> Option<&str> {
        self.new.as_ref().filter(|version| version.mode != MODULE_MODE).map(|version| version.id.as_str())
    }

    fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// What is needed to put a checkout back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// Paths are bytes: not every name is text.
    at: Vec<u8>,
    target: String,
    commit: String,
    /// What existed there before although the old commit does not have it.
    kept: Vec<Vec<u8>>,
}

impl Journal {
    pub fn new(at: &Path, target: &str, commit: &str, changes: &[Change]) -> Self {
        let mut kept = BTreeSet::new();
        for change in changes.iter().filter(|change| change.old.is_none()) {
            let path = at.join(&change.path);
            if path.symlink_metadata().is_ok() {
                kept.insert(bytes_of(&path));
            }
            // An empty folder of the person's stays, though git would not miss it.
            let folders = path.ancestors().skip(1).take_while(|dir| dir.starts_with(at) && *dir != at);
            let is_empty = |dir: &&Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
            kept.extend(folders.filter(is_empty).map(bytes_of));
        }
        let (target, commit) = (target.to_owned(), commit.to_owned());
        Self { at: bytes_of(at), target, commit, kept: kept.into_iter().collect() }
    }

    fn keeps(&self, path: &Path) -> bool {
        self.kept.iter().any(|kept| kept == path.as_os_str().as_bytes())
    }
}

/// A journal that is on disk.
pub(super) struct Journaled {
    journal: Journal,
    file: PathBuf,
}

impl Journaled {
    /// Removes the journal: no operation is in progress any more.
    pub fn close(self) -> Result<()> {
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&self.file, error)),
            _ => Ok(()),
        }
    }
}

impl Repo {
    pub(super) fn has_journal(&self) -> bool {
        self.private_dir().join(JOURNAL).exists()
    }

    pub(super) fn open_journal(&self, journal: Journal) -> Result<Journaled> {
        let (dir, file) = (self.private_dir(), self.private_dir().join(JOURNAL));
        let bytes = serde_json::to_vec(&journal).map_err(|error| Error::io(&file, error.into()))?;
        atomic::save(&dir, JOURNAL, &bytes).map_err(|error| Error::io(&file, error))?;
        Ok(Journaled { journal, file })
    }

    /// Excludes every other landing. The programs that this process starts hold the lock too, so it is free only when no
    /// part of a landing writes files any more.
    pub(super) fn landing_lock(&self) -> Result<File> {
        let dir = self.private_dir();
        std::fs::create_dir_all(&dir).map_err(|error| Error::io(&dir, error))?;
        let path = dir.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| Error::io(&path, error))?;
        let give_up = clock::monotonic_ms() + LOCK_WAIT_MS;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if clock::monotonic_ms() < give_up => clock::pause(LOCK_PAUSE_MS),
                Err(Errno::WOULDBLOCK) => return Err(Error::Landing),
                Err(error) => return Err(Error::io(&path, error.into())),
            }
        }
        fcntl_setfd(&lock, FdFlags::empty()).map_err(|error| Error::io(&path, error.into()))?;
        Ok(lock)
    }

    /// Repairs what an interrupted landing left. Returns whether there was one.
    pub(super) fn settle(&self) -> Result<bool> {
        let file = self.private_dir().join(JOURNAL);
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io(&file, error)),
        };
        // It is saved whole or not at all: one that cannot be parsed was not written here.
        let journal = serde_json::from_slice::<Journal>(&bytes);
        let journal = journal.map_err(|error| Error::io(&file, error.into()))?;
        let journal = Journaled { journal, file };
        self.put_back(journal, &"an earlier landing was cut short")?;
        Ok(true)
    }

    /// Gives a checkout the files of the commit that it is at. Fails if not all can be written; then the journal stays, and
    /// the error names what is left.
    pub(super) fn put_back(&self, journal: Journaled, why: &dyn std::fmt::Display) -> Result<()> {
        let at = call::path(&journal.journal.at);
        let half = |files: Vec<String>, also: &dyn std::fmt::Display| Error::HalfWritten {
            at: at.clone(),
            files,
            why: format!("{why}; {also}"),
        };
        // A checkout that is gone, or that a person has since moved to another commit, is theirs.
        let head = if at.is_dir() { self.head_of(&at).ok() } else { None };
        let known = |head: &String| *head == journal.journal.target || *head == journal.journal.commit;
        if let Some(head) = head.filter(known) {
            let changes = self.changes(&journal.journal.target, &journal.journal.commit)?;
            let restored = self.rewrite((&at, &head), (&journal.journal, &journal.file), &changes);
            restored.map_err(|error| half(self.unsettled(&at, &head, &changes), &error))?;
        }
        journal.close()
    }

    fn rewrite(
        &self,
        (at, head): (&Path, &str),
        (journal, journal_file): (&Journal, &Path),
        changes: &[Change],
    ) -> Result<()> {
        let back = head == journal.target;
        // Files that the commit does not have are removed first: that makes room.
        for change in changes.iter().filter(|change| change.has(back).is_none()) {
            let path = at.join(&change.path);
            let there = path.symlink_metadata().is_ok();
            if there && (journal.keeps(&path) || !self.is_written(at, change)?) {
                continue;
            }
            if there {
                remove(&path)?;
            }
            // Folders that were made for it are removed with it; one that is not empty stays.
            let folders = path.ancestors().skip(1).take_while(|dir| dir.starts_with(at) && *dir != at);
            folders.filter(|dir| !journal.keeps(dir)).for_each(|dir| drop(std::fs::remove_dir(dir)));
        }
        self.take_left_locks(at, journal_file)?;
        self.call_in(at).limit(CHECKOUT_MS).args(["read-tree", "--reset", head]).ok()?;
        let differs = self.differing(at)?;
        let mut list = Vec::new();
        for change in changes.iter().filter(|change| differs.contains(&change.path)) {
            let missing = at.join(&change.path).symlink_metadata().is_err();
            if missing || self.is_written(at, change)? {
                list.extend(bytes_of(&change.path));
                list.push(0);
            }
        }
        if !list.is_empty() {
            self.call_in(at)
                .limit(CHECKOUT_MS)
                .args(["checkout-index", "-f", "-u", "-z", "--stdin"])
                .input(list)
                .ok()?;
        }
        Ok(())
    }

    /// A git that was killed leaves its locks: a lock that was made since this landing started and whose owner is not alive
    /// was that git's.
    fn take_left_locks(&self, at: &Path, journal_file: &Path) -> Result<()> {
        let branch = self.call_in(at).args(["rev-parse", "--symbolic-full-name", "HEAD"]).line()?;
        let branch = format!("{}.lock", String::from_utf8_lossy(&branch));
        let written = |path: &Path| path.symlink_metadata().ok().and_then(|meta| meta.modified().ok());
        for name in ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", &branch] {
            let lock = self.call_in(at).args(["rev-parse", "--path-format=absolute", "--git-path", name]).line()?;
            let lock = call::path(&lock);
            if let (Some(made), Some(began)) = (written(&lock), written(journal_file))
                && made >= began
            {
                self.take_away_left(&lock, at)?;
            }
        }
        Ok(())
    }

    /// Files that differ from the index.
    fn differing(&self, at: &Path) -> Result<BTreeSet<PathBuf>> {
        let options = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative"];
        let listed = self.call_in(at).limit(CHECKOUT_MS).args(options).ok()?;
        Ok(records(&listed).map(call::path).collect())
    }

    /// Files of a change that differ from a commit; all of them if git cannot tell.
    fn unsettled(&self, at: &Path, head: &str, changes: &[Change]) -> Vec<String> {
        let options = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", head];
        let listed = self.call_in(at).limit(CHECKOUT_MS).args(options).ok().ok();
        let listed = listed.map(|listed| records(&listed).map(call::path).collect::<BTreeSet<_>>());
        let open = |change: &&Change| listed.as_ref().is_none_or(|listed| listed.contains(&change.path));
        changes.iter().filter(open).take(NAMED_MAX).map(Change::name).collect()
    }

    /// Whether a file is what git wrote of either commit, or the beginning of it: then it contains nobody else's work.
    fn is_written(&self, at: &Path, change: &Change) -> Result<bool> {
        for version in [&change.new, &change.old].into_iter().flatten() {
            if self.is_version(at, &change.path, version)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_version(&self, at: &Path, path: &Path, version: &Version) -> Result<bool> {
        let place = at.join(path);
        let Ok(meta) = place.symlink_metadata() else { return Ok(false) };
        if version.mode == MODULE_MODE {
            return Ok(meta.is_dir() && std::fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none()));
        }
        if version.mode == LINK_MODE {
            let content = self.call().args(["cat-file", "blob", &version.id]).ok()?;
            return Ok(std::fs::read_link(&place).is_ok_and(|to| to.as_os_str().as_bytes() == content));
        }
        if !meta.is_file() || meta.len() == 0 {
            return Ok(meta.is_file());
        }
        let mut found = Vec::new();
        let read = File::open(&place).and_then(|file| file.take(COMPARED_BYTES).read_to_end(&mut found));
        read.map_err(|error| Error::io(&place, error))?;
        let filtered = self.call_in(at).args(["cat-file", "--filters"]).arg(path_option(path)).arg(&version.id);
        Ok(filtered.beginning(found.len()).ok()? == found)
    }
}

impl Change {
    /// The old commit's version of it, or the new one's.
    fn has(&self, back: bool) -> Option<&Version> {
        if back { self.old.as_ref() } else { self.new.as_ref() }
    }
}

fn path_option(path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from("--path=");
    option.push(path);
    option
}

/// Removes a file, a link or an empty folder.
fn remove(path: &Path) -> Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir(path),
        _ => std::fs::remove_file(path),
    };
    gone.map_err(|error| Error::io(path, error))
}
