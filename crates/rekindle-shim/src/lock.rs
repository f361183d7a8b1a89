//! The lock that proves a shim is alive: held by an open file, released by the kernel with its last holder.
//!
//! The process that starts a shim takes the lock first and hands it over as the shim's standard input, so there is no
//! instant between the decision to start and the shim's own first step in which the bundle looks abandoned.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::bundle::{self, Bundle, LOCK};
use crate::clock;

/// A probe holds the lock for some microseconds; a process that finds the lock held retries for this long before it
/// concludes that there is another shim.
const CONTENTION_MAX_MS: u64 = 250;

/// Pause between two retries.
const CONTENTION_PAUSE_MS: u64 = 5;

/// The held lock. Dropping it releases only this holder's share.
#[derive(Debug)]
pub struct Lock(OwnedFd);

impl Lock {
    /// Takes the lock; `None` when another process holds it.
    pub fn take(bundle: &Bundle) -> Result<Option<Self>, bundle::Error> {
        let file = bundle.open_file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        Self::hold(file)
    }

    /// Takes over the lock that was handed to this process as standard input, if it was; standard input is empty
    /// afterwards.
    pub(crate) fn inherit(bundle: &Bundle) -> Result<Option<Self>, bundle::Error> {
        let file = bundle.open_file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let named = rustix::fs::fstat(&file).map_err(lock_error)?;
        let same = match rustix::fs::fstat(rustix::stdio::stdin()) {
            Ok(given) => given.st_dev == named.st_dev && given.st_ino == named.st_ino,
            // Nothing was handed over; on any other error a failed check must not look like another holder.
            Err(Errno::BADF) => false,
            Err(error) => return Err(lock_error(error)),
        };
        if !same {
            return Self::hold(file);
        }
        let copy = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(lock_error)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
            .map_err(lock_error)?;
        rustix::stdio::dup2_stdin(&null).map_err(lock_error)?;
        Self::hold(copy)
    }

    fn hold(file: OwnedFd) -> Result<Option<Self>, bundle::Error> {
        let give_up_at_ms = clock::monotonic_ms() + CONTENTION_MAX_MS;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(Errno::WOULDBLOCK) if clock::monotonic_ms() < give_up_at_ms => {
                    clock::pause(CONTENTION_PAUSE_MS);
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(lock_error(error)),
            }
        }
    }

    /// Whether the lock file was deleted: then no process can ever find this holder again.
    pub fn is_lost(&self) -> bool {
        rustix::fs::fstat(&self.0).is_ok_and(|found| found.st_nlink == 0)
    }

    /// Gives the descriptor away, to become a shim's standard input.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a shim holds the lock of this bundle. A bundle without a lock file was never locked.
pub fn is_held(bundle: &Bundle) -> Result<bool, bundle::Error> {
    let file = match bundle.open_file(LOCK, OFlags::RDWR) {
        Ok(file) => file,
        Err(bundle::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    // Shared, so that two probes never take each other for a shim.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(lock_error(error)),
    }
}

fn lock_error(source: Errno) -> bundle::Error {
    bundle::Error::Io { name: LOCK.to_owned(), source: source.into() }
}
