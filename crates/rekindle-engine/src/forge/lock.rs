//! Only one process at a time gives orders to the forge. During an order its program holds the lock as well: if rekindle was
//! killed during an order, it waits at the next start until that program has ended, and only then checks what there is.

use std::fs::File;
use std::path::Path;

use rekindle_shim::clock;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

/// How long to wait for another process's order: longer than one may take.
const WAIT_MS: u64 = 180_000;

/// Between two attempts to take the lock.
const PAUSE_MS: u64 = 50;

const NAME: &str = "pull-request.lock";

/// The right to give an order.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another `rekindle land` publishes this run, or a program that one started is still running")]
    Busy,
    #[error("the lock of the pull request: {0}")]
    Io(#[from] std::io::Error),
}

impl Lock {
    /// Takes the lock, waiting for its holder. Fails if that takes too long.
    pub fn take(state: &Path) -> Result<Self, LockError> {
        let file = File::options().create(true).truncate(false).write(true).open(state.join(NAME))?;
        let give_up = clock::monotonic_ms().saturating_add(WAIT_MS);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if clock::monotonic_ms() < give_up => clock::pause(PAUSE_MS),
                Err(Errno::WOULDBLOCK) => return Err(LockError::Busy),
                Err(error) => return Err(LockError::Io(error.into())),
            }
        }
    }

    /// Gives an order while the programs that it starts hold the lock too.
    pub fn held_by_programs<T>(&self, order: impl FnOnce() -> T) -> Result<T, LockError> {
        fcntl_setfd(&self.file, FdFlags::empty()).map_err(std::io::Error::from)?;
        let done = order();
        fcntl_setfd(&self.file, FdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        Ok(done)
    }
}
