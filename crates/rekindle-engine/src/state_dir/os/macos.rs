//! Network filesystems on macOS, recognised by the flag for local mounts. This file answers only that question.

use std::io;
use std::path::Path;

/// `MNT_LOCAL` of `sys/mount.h`: the filesystem is stored on this machine.
const MNT_LOCAL: u32 = 0x0000_1000;

/// The kind of network filesystem the path is on, if any.
pub fn network_filesystem(path: &Path) -> io::Result<Option<String>> {
    let local = rustix::fs::statfs(path)?.f_flags & MNT_LOCAL != 0;
    Ok((!local).then(|| "not local".to_owned()))
}
