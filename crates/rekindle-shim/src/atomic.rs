//! The one way to create a small file: whole or not at all, even through a crash or a power cut.
//!
//! A temporary file in the same directory is created exclusively, written, synced, renamed over the name, and the directory
//! is synced. A failed sync is an error of this save and is never retried on the same file: the kernel may have dropped the
//! page and would then report success.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

/// Suffix of temporary files, so that a sweep at start can recognise them.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// The mode that programs request for a new file; the umask is applied to it.
const USUAL: Mode = Mode::from_raw_mode(0o666);

/// Tells apart the temporary files of one process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Opens a directory to work in; a symlink as the last component is refused. Fails when it is missing, not a directory, or a
/// symlink.
pub fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}

/// Saves `bytes` as `name` in `dir`, readable by the owner only. Fails when any step fails; the old content of `name`,
/// if any, is then untouched.
pub fn save(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    save_in(open_dir(dir)?, name, bytes)
}

/// Who owns a saved file and who may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Private,
    /// Like any new file: what the caller's umask leaves of read and write permission for everyone.
    Usual,
    /// Like another file: these mode bits, and this owner and group where they can be set.
    Like {
        mode: u32,
        uid: u32,
        gid: u32,
    },
}

/// [`save`] with another access: for files that are not rekindle's own. Fails like [`save`], and also when the owner cannot
/// be kept.
pub fn save_as(dir: &Path, name: &str, bytes: &[u8], access: Access) -> io::Result<()> {
    save_with(open_dir(dir)?, name, bytes, access)
}

/// [`save`] in a directory that is already open.
pub fn save_in<Fd: AsFd>(dir: Fd, name: &str, bytes: &[u8]) -> io::Result<()> {
    save_with(dir, name, bytes, Access::Private)
}

fn save_with<Fd: AsFd>(dir: Fd, name: &str, bytes: &[u8], access: Access) -> io::Result<()> {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = format!(".{name}.{}.{serial}{TEMPORARY_SUFFIX}", std::process::id());
    let mode = if access == Access::Usual { USUAL } else { Mode::RUSR | Mode::WUSR };
    let file = create_new_as(dir.as_fd(), &temporary, mode)?;
    let done = give(&file, access)
        .and_then(|()| write_all(&file, bytes))
        .and_then(|()| Ok(rustix::fs::fsync(&file)?))
        .and_then(|()| commit(dir.as_fd(), &temporary, name));
    if done.is_err() {
        // The first error is the one to report; a leftover is swept by its suffix.
        let _ = rustix::fs::unlinkat(dir.as_fd(), &temporary, AtFlags::empty());
    }
    done
}

/// Gives a new file the requested access.
fn give(file: &OwnedFd, access: Access) -> io::Result<()> {
    let Access::Like { mode, uid, gid } = access else { return Ok(()) };
    let made = rustix::fs::fstat(file)?;
    if made.st_uid != uid {
        rustix::fs::fchown(file, Some(Uid::from_raw(uid)), None)?;
    }
    if made.st_gid != gid {
        // A group that we are not a member of cannot be set; the group bits then apply to our own group.
        let _ = rustix::fs::fchown(file, None, Some(Gid::from_raw(gid)));
    }
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o7777))?)
}

/// Creates a file that did not exist, private to its owner.
pub(crate) fn create_new<Fd: AsFd>(dir: Fd, name: &str) -> io::Result<OwnedFd> {
    create_new_as(dir, name, Mode::RUSR | Mode::WUSR)
}

fn create_new_as<Fd: AsFd>(dir: Fd, name: &str, mode: Mode) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, mode)?)
}

/// Renames a synced temporary file to its final name, durably.
pub(crate) fn commit<Fd: AsFd>(dir: Fd, temporary: &str, name: &str) -> io::Result<()> {
    rustix::fs::renameat(dir.as_fd(), temporary, dir.as_fd(), name)?;
    rustix::fs::fsync(dir)?;
    Ok(())
}

/// Writes everything, through short writes and interruptions.
pub(crate) fn write_all<Fd: AsFd>(file: Fd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file.as_fd(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().expect("tempdir");
        save(dir.path(), "a", b"one").expect("first save");
        save(dir.path(), "a", &[b'x'; 100_000]).expect("second save");
        assert_eq!(std::fs::read(dir.path().join("a")).expect("read"), vec![b'x'; 100_000]);
        assert_eq!(std::fs::read_dir(dir.path()).expect("list").count(), 1);
    }

    #[test]
    fn a_file_is_saved_with_the_access_of_another() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().expect("tempdir");
        let known = dir.path().metadata().expect("metadata");
        let like = Access::Like { mode: 0o640, uid: known.uid(), gid: known.gid() };
        save_as(dir.path(), "a", b"x", like).expect("saved");
        let mode = || dir.path().join("a").metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(), 0o640);
        save_as(dir.path(), "a", b"y", Access::Private).expect("saved");
        assert_eq!(mode(), 0o600);
        save_as(dir.path(), "a", b"z", Access::Usual).expect("saved");
        assert_eq!(mode() & 0o600, 0o600, "whatever the mask leaves to others");
    }

    #[test]
    fn a_symlinked_directory_is_refused() {
        let dir = tempfile::tempdir().expect("tempdir");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).expect("symlink");
        assert!(save(&link, "a", b"x").is_err());
    }

    #[test]
    fn a_symlink_under_the_name_is_replaced_not_followed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let target = dir.path().join("target");
        std::fs::write(&target, b"old").expect("write");
        std::os::unix::fs::symlink(&target, dir.path().join("a")).expect("symlink");
        save(dir.path(), "a", b"new").expect("save");
        assert_eq!(std::fs::read(&target).expect("read"), b"old");
        assert_eq!(std::fs::read(dir.path().join("a")).expect("read"), b"new");
    }
}
