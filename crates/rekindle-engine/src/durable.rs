//! Flushes to disk what others wrote. Files of our own are synced where they are written (`rekindle_shim::atomic`, the
//! store); what agents and their gits wrote is synced here, a whole file system at a time, before anything is accepted.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes everything on a path's file system to disk and waits for it. A write error that has not been reported yet is an
/// error of this call. Fails if the path cannot be opened, or the disk refused something.
pub fn sync(path: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    sync_of(&opened)
}

#[cfg(target_os = "linux")]
fn sync_of(opened: &std::os::fd::OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(opened)?)
}

/// Other systems can only sync all disks at once.
#[cfg(not(target_os = "linux"))]
fn sync_of(_opened: &std::os::fd::OwnedFd) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// The file systems that paths are on, each as one path. A path that does not exist has none.
pub fn file_systems(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found = BTreeMap::new();
    for path in paths {
        if let Ok(meta) = path.metadata()
            // Anything else could be a pipe or a device, and its file system is not where it writes to.
            && (meta.is_dir() || meta.is_file())
        {
            found.entry(meta.dev()).or_insert(path);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_named_once_and_what_is_missing_not_at_all() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("file");
        std::fs::write(&file, b"x").expect("written");
        let found = file_systems([dir.path().to_owned(), file.clone(), dir.path().join("none")]);
        assert_eq!(found, [dir.path().to_owned()]);
        sync(&file).expect("synced");
        sync(&dir.path().join("none")).expect_err("nothing to sync");
    }
}
