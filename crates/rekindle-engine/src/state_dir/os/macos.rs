//! Network filesystems on macOS, by the flag that says a mount is local. It owns that question only.

use std::io;
use std::path::Path;

/// `MNT_LOCAL` of `sys/mount.h`: the filesystem is stored on this machine.
const MNT_LOCAL: u32 = 0x0000_1000;

/// The kind of network filesystem the path is on, if it is on one.
pub fn network_filesystem(path: &Path) -> io::Result<Option<String>> {
    let local = rustix::fs::statfs(path)?.f_flags & MNT_LOCAL != 0;
    Ok((!local).then(|| "not local".to_owned()))
}
