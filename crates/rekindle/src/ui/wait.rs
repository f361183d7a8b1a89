//! Waiting to poll something again that cannot report its changes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits, at most for `ms`. Returns `false` as soon as the reader of our standard output is gone: a pipe was closed, a
/// terminal hung up.
pub(super) fn reader_stays_for(ms: u32) -> bool {
    // No event is requested: only errors and hang-ups, which are always reported, end the wait early.
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    match poll(&mut fds, Some(&span(ms))) {
        Ok(0) | Err(_) => true,
        Ok(_) => fds[0].revents().is_empty(),
    }
}

/// Waits for `ms`, or less when a signal arrives.
pub(crate) fn pause(ms: u32) {
    // Nothing is watched and a signal only ends the pause early: both answers mean continue.
    let _ = poll(&mut [], Some(&span(ms)));
}

fn span(ms: u32) -> Timespec {
    Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 }
}
