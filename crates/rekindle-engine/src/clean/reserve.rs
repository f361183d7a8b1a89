//! Space that is reserved for when the disk is full: `rekindle clean` needs a little of it to take the lock and to open the
//! store. A coordinator reserves it, cleaning takes it and gives it back.

use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags};

/// The file's name.
const RESERVE: &str = "reserve";

/// Its size: the store's log and its shared memory start with less.
const RESERVE_BYTES: u64 = 1024 * 1024;

/// Releases the reserve, so that there is room for what follows.
pub fn take(state_dir: &Path) {
    let _none_there = std::fs::remove_file(state_dir.join(RESERVE));
}

/// Creates the reserve. A disk without room for it has nothing to reserve.
pub fn give_back(state_dir: &Path) {
    let path = state_dir.join(RESERVE);
    if path.symlink_metadata().is_ok_and(|about| about.len() == RESERVE_BYTES) {
        return;
    }
    let lay_up = || -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)
    };
    if lay_up().is_err() {
        take(state_dir);
    }
}
