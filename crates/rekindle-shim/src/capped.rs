//! Output that passes through the shim and is kept only up to a limit: for checks, whose output nobody promised to keep. The
//! writer is never blocked and never sees an error; bytes over the limit are counted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::os;

/// Bytes taken in one turn, so that a flood does not keep the loop from its other duties.
const TURN_BYTES: usize = 1 << 20;

/// What may still be in a pipe when its writers are dead: the largest pipe an ordinary user may request, and some reserve. A
/// writer that could not be killed must not keep the shim reading forever.
const REST_BYTES: usize = 4 << 20;

/// One stream on its way into its log.
pub(crate) struct Capped {
    pipe: Option<OwnedFd>,
    log: OwnedFd,
    room: u64,
    discarded: u64,
}

impl Capped {
    /// The stream, and the end that the agent writes to.
    pub(crate) fn new(log: OwnedFd, cap: u64) -> io::Result<(Self, OwnedFd)> {
        let (read, write) = os::pipe()?;
        // Only our end: the agent expects a blocking pipe.
        rustix::io::ioctl_fionbio(&read, true)?;
        Ok((Self { pipe: Some(read), log, room: cap, discarded: 0 }, write))
    }

    /// The pipe, until its last writer closed it.
    pub(crate) fn wants(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Bytes not kept.
    pub(crate) fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Reads what is available, up to one turn.
    pub(crate) fn pump(&mut self) {
        self.take(TURN_BYTES);
    }

    /// Reads what is left once the writers are dead.
    pub(crate) fn finish(&mut self) {
        self.take(REST_BYTES);
        self.pipe = None;
    }

    fn take(&mut self, most: usize) {
        let mut buffer = [0; 64 << 10];
        let mut taken = 0;
        while let Some(pipe) = &self.pipe {
            if taken >= most {
                return;
            }
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    taken += n;
                    self.keep(&buffer[..n]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        let mut kept = 0;
        while kept < fits {
            match rustix::io::write(&self.log, &bytes[kept..fits]) {
                Ok(n) if n > 0 => kept += n,
                Err(Errno::INTR) => {}
                _ => {
                    // The disk is full: from here on everything is only counted, so that the log gets no hole.
                    self.room = 0;
                    break;
                }
            }
        }
        self.room = self.room.saturating_sub(kept as u64);
        self.discarded += (bytes.len() - kept) as u64;
    }
}
