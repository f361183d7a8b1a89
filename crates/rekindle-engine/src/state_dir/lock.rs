//! One coordinator per state directory. The kernel's lock on `coordinator.lock` decides, and ends with its holder,
//! however it dies; the content of the file only tells people who holds it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Error, StateDir, check_owner};

/// The lock file's name.
const LOCK_FILE: &str = "coordinator.lock";

/// Tries to get past those who ask for the owner and hold the lock shared for an instant; each yields the processor,
/// so this many outlast any number of them.
const TRIES: u32 = 10_000;

/// Longest content that is read; ours has some hundred bytes.
const MAX_OWNER_BYTES: u64 = 64 * 1024;

/// Who holds a state directory, as written by the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id, on its host.
    pub pid: u32,
    /// Its host's name.
    pub host: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The plan it runs.
    pub plan: String,
}

impl Owner {
    /// This process, as an owner.
    #[must_use]
    pub fn this_process(now_ms: i64, plan: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since_ms: now_ms, plan: plan.to_owned() }
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
    /// Whether the lock file was deleted, as with the whole directory: then another coordinator may hold what is there now.
    #[must_use]
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
    /// Takes the coordinator's lock and writes who took it.
    pub fn lock_coordinator(&self, owner: &Owner) -> Result<CoordinatorLock, Error> {
        let path = self.path().join(LOCK_FILE);
        let fail = |e| Error::from_io(&path, e);
        for _ in 0..TRIES {
            let mut file = open_lock(&path, true)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => {
                    write_owner(&mut file, owner).map_err(fail)?;
                    return Ok(CoordinatorLock { file });
                }
                // The file was replaced between opening and locking: that lock protects nothing.
                Ok(()) => {}
                // Shared with somebody who only asks is not held.
                Err(Errno::WOULDBLOCK) if shareable(&file).map_err(fail)? => std::thread::yield_now(),
                Err(Errno::WOULDBLOCK) => break,
                Err(e) => return Err(fail(e.into())),
            }
        }
        Err(Error::Held { path: self.path().to_owned(), owner: read_owner(&path) })
    }

    /// Whether a coordinator holds the directory, and who it says to be: `None` when free, `Some(None)` when held by
    /// one that has not written itself down (yet).
    pub fn owner(&self) -> Result<Option<Option<Owner>>, Error> {
        let path = self.path().join(LOCK_FILE);
        let file = match open_lock(&path, false) {
            Ok(file) => file,
            Err(Error::Missing(_)) => return Ok(None),
            Err(e) => return Err(e),
        };
        let free = shareable(&file).map_err(|e| Error::from_io(&path, e))?;
        Ok((!free).then(|| read_owner(&path)))
    }
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

/// Informs only, so whatever cannot be read is simply unknown.
fn read_owner(path: &Path) -> Option<Owner> {
    let file = open_lock(path, false).ok()?;
    let mut text = String::new();
    file.take(MAX_OWNER_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
