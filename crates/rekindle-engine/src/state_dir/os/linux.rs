//! Network filesystems on Linux, recognised by the magic number that `statfs` gives. This file owns the list; the caller
//! decides what to do about a match.

use std::io;
use std::path::Path;

/// Filesystems on which advisory locks or shared memory maps are not reliable between processes or hosts.
const NETWORK: [(u32, &str); 12] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xfe53_4d42, "smb2"),
    (0xff53_4d42, "cifs"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0bd0_0bd0, "lustre"),
    (0x7461_636f, "ocfs2"),
];

/// The kind of network filesystem the path is on, if any.
pub fn network_filesystem(path: &Path) -> io::Result<Option<String>> {
    let kind = rustix::fs::statfs(path)?.f_type;
    // The field's type differs between architectures; every magic number has 32 bits.
    let magic = (kind as u64 & 0xffff_ffff) as u32;
    Ok(NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_disk_is_not_a_network() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(network_filesystem(dir.path()).expect("statfs"), None);
    }
}
