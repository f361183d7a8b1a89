//! Which errors of the system mean that the machine lacks resources: they say nothing about the caller, and pass.

use std::io;

/// Whether an error number means that the machine has no descriptor, process, memory or space left, or that its disk gives errors.
pub fn is_refusal(errno: i32) -> bool {
    const REFUSALS: [i32; 8] =
        [libc::EMFILE, libc::ENFILE, libc::ENOSPC, libc::EDQUOT, libc::EAGAIN, libc::ENOMEM, libc::EIO, libc::EROFS];
    REFUSALS.contains(&errno)
}

/// The same for an I/O error.
pub fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(is_refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_is_told_from_wrong() {
        for errno in [libc::EMFILE, libc::ENOSPC, libc::EAGAIN, libc::ENOMEM, libc::EIO] {
            assert!(is_refused(&io::Error::from_raw_os_error(errno)), "{errno}");
        }
        for errno in [libc::ENOENT, libc::EACCES, libc::ENOEXEC, libc::ELOOP] {
            assert!(!is_refused(&io::Error::from_raw_os_error(errno)), "{errno}");
        }
        assert!(!is_refused(&io::Error::other("no number")));
    }
}
