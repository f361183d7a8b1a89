//! One coordinator per state directory. The kernel's lock on `coordinator.lock` decides, and ends with its holder, however
//! that dies. A holder that was killed while it started a process leaves the lock to that child for a moment, until the
//! child runs its own program: the owner that the file names is then proven dead, so the lock is waited for instead of being
//! taken as held.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rekindle_shim::clock;
use rekindle_shim::identity::{Opened, ProcId, Process};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Error, StateDir, check_owner};

/// The lock file's name.
const LOCK_FILE: &str = "coordinator.lock";

/// Attempts to get past processes that query the owner and hold the lock shared for an instant; each attempt yields the
/// processor, so this many outlast any number of them.
const TRIES: u32 = 10_000;

/// How long to wait for a lock whose owner is dead. A child runs its own program within milliseconds, on a badly loaded
/// machine within a second or two; after that another process holds it.
const LEFTOVER_MS: u64 = 5_000;

/// Between two checks of such a lock.
const LEFTOVER_PAUSE_MS: u64 = 5;

/// Longest content that is read; ours has a few hundred bytes.
const MAX_OWNER_BYTES: u64 = 64 * 1024;

/// Who holds a state directory, as written by the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id, on its host.
    pub pid: u32,
    pub host: String,
    /// Since when it holds the directory, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    pub plan: String,
    /// The provable identity of its process; `None` if an earlier version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Box<ProcId>>,
}

impl Owner {
    pub fn this_process(now_ms: i64, plan: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let process = Process::own().ok().map(|process| Box::new(process.id().clone()));
        Self { pid: std::process::id(), host, since_ms: now_ms, plan: plan.to_owned(), process }
    }

    /// Whether its process is proven to have ended.
    pub fn is_dead(&self) -> bool {
        let found = self.process.as_deref().map(ProcId::open);
        matches!(found, Some(Ok(Opened::Gone | Opened::OtherBoot)))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} running {}", self.pid, self.host, self.plan)
    }
}

/// The right to be the coordinator, held until dropped or dead.
#[derive(Debug)]
pub struct CoordinatorLock {
    file: File,
}

impl CoordinatorLock {
    /// Whether the lock file was deleted, for example with the whole directory: then another coordinator may hold what is
    /// there now.
    pub fn is_lost(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
}

impl Drop for CoordinatorLock {
    fn drop(&mut self) {
        // Emptied first, so that nobody reads a former owner; the lock goes with the descriptor in any case.
        drop(self.file.set_len(0));
    }
}

impl StateDir {
    /// Takes the coordinator's lock and records its owner.
    pub fn lock_coordinator(&self, owner: &Owner) -> Result<CoordinatorLock, Error> {
        let path = self.path().join(LOCK_FILE);
        let fail = |e| Error::from_io(&path, e);
        let give_up_at_ms = clock::monotonic_ms() + LEFTOVER_MS;
        for _ in 0..TRIES {
            let mut file = open_lock(&path, true)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => {
                    write_owner(&mut file, owner).map_err(fail)?;
                    return Ok(CoordinatorLock { file });
                }
                // The file was replaced between opening and locking: that lock protects nothing.
                Ok(()) => {}
                // A lock that is shared with a process that only queries is not held.
                Err(Errno::WOULDBLOCK) if shareable(&file).map_err(fail)? => std::thread::yield_now(),
                Err(Errno::WOULDBLOCK) if clock::monotonic_ms() < give_up_at_ms && is_left_over(&path) => {
                    clock::pause(LEFTOVER_PAUSE_MS);
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(e) => return Err(fail(e.into())),
            }
        }
        Err(Error::Held { path: self.path().to_owned(), owner: read_owner(&path) })
    }

    /// Whether a coordinator holds the directory, and its stated identity: `None` if it is free, `Some(None)` if the holder
    /// has not recorded itself (yet).
    pub fn owner(&self) -> Result<Option<Option<Owner>>, Error> {
        let path = self.path().join(LOCK_FILE);
        let give_up_at_ms = clock::monotonic_ms() + LEFTOVER_MS;
        loop {
            let file = match open_lock(&path, false) {
                Ok(file) => file,
                Err(Error::Missing(_)) => return Ok(None),
                Err(e) => return Err(e),
            };
            if shareable(&file).map_err(|e| Error::from_io(&path, e))? {
                return Ok(None);
            }
            let owner = read_owner(&path);
            if !owner.as_ref().is_some_and(Owner::is_dead) || clock::monotonic_ms() >= give_up_at_ms {
                return Ok(Some(owner));
            }
            clock::pause(LEFTOVER_PAUSE_MS);
        }
    }
}

/// Whether the lock is held although the process that took it has ended.
fn is_left_over(path: &Path) -> bool {
    read_owner(path).is_some_and(|owner| owner.is_dead())
}

/// Whether no coordinator holds the file; takes the lock shared, which ends with the descriptor.
fn shareable(file: &File) -> std::io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn open_lock(path: &Path, create: bool) -> Result<File, Error> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(path).map_err(|e| Error::from_io(path, e))?;
    let meta = file.metadata().map_err(|e| Error::from_io(path, e))?;
    check_owner(path, &meta)?;
    if meta.is_file() { Ok(file) } else { Err(Error::Damaged(path.to_owned())) }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn write_owner(file: &mut File, owner: &Owner) -> std::io::Result<()> {
    let text = serde_json::to_vec(owner)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&text)
}

/// Only informative, so whatever cannot be read counts as unknown.
fn read_owner(path: &Path) -> Option<Owner> {
    let file = open_lock(path, false).ok()?;
    let mut text = String::new();
    file.take(MAX_OWNER_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
