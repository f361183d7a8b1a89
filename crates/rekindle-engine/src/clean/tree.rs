//! Our own directory trees: their size, and removing them. Nothing is followed: of a symbolic link only the name is removed,
//! another file system and another user's directory stay. What cannot be removed is reported, and the rest is removed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Deepest directory that is entered: far deeper than any that rekindle or an agent makes, and each level holds a descriptor.
const DEPTH_MAX: usize = 200;

/// Size of a file block as the system counts it.
const BLOCK_BYTES: u64 = 512;

/// Something that stays although it should have been removed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Refused {
    pub path: PathBuf,
    pub why: String,
}

impl Refused {
    pub fn new(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into() }
    }

    fn by(path: &Path, error: Errno) -> Self {
        Self::new(path, std::io::Error::from(error).to_string())
    }
}

/// What was removed, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub bytes: u64,
    pub refused: Vec<Refused>,
}

impl Gone {
    pub fn add(&mut self, other: Gone) {
        self.bytes += other.bytes;
        self.refused.extend(other.refused);
    }
}

/// Removes a directory or file of ours with all its contents. `last` names a file directly inside that is removed after all
/// the others: as long as it exists, an interrupted removal is recognised and repeated. A path that does not exist counts as
/// removed.
pub fn remove(path: &Path, last: Option<&str>) -> Gone {
    let mut gone = Gone::default();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return gone };
    let open = rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    let parent = match open {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return gone,
        Err(error) => {
            gone.refused.push(Refused::by(path, error));
            return gone;
        }
    };
    let Ok(about) = rustix::fs::fstat(&parent) else { return gone };
    Removal { device: about.st_dev, user: rustix::process::geteuid().as_raw(), gone: &mut gone }.entry(
        parent.as_fd(),
        name,
        path,
        last,
        0,
    );
    gone
}

struct Removal<'a> {
    device: u64,
    user: u32,
    gone: &'a mut Gone,
}

impl Removal<'_> {
    /// Removes one name; returns whether it is gone.
    fn entry(&mut self, parent: BorrowedFd<'_>, name: &OsStr, path: &Path, last: Option<&str>, depth: usize) -> bool {
        let about = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => about,
            Err(Errno::NOENT) => return true,
            Err(error) => return self.refuse(path, error),
        };
        let is_dir = FileType::from_raw_mode(about.st_mode) == FileType::Directory;
        if is_dir && !self.empty(parent, name, path, &about, last, depth) {
            return false;
        }
        let flags = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(parent, name, flags) {
            Ok(()) => {
                if is_dir || about.st_nlink == 1 {
                    self.gone.bytes += size(&about);
                }
                true
            }
            Err(Errno::NOENT) => true,
            Err(error) => self.refuse(path, error),
        }
    }

    /// Removes everything in a directory.
    fn empty(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        about: &Stat,
        last: Option<&str>,
        depth: usize,
    ) -> bool {
        if about.st_dev != self.device {
            return self.keep(path, "it is on another file system");
        }
        if about.st_uid != self.user {
            return self.keep(path, "it belongs to another user");
        }
        if depth >= DEPTH_MAX {
            return self.keep(path, "it is too deep");
        }
        if about.st_mode & 0o700 != 0o700 {
            // An agent has made it read-only. If that cannot be undone, the removal itself reports it.
            let _said_below = rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty());
        }
        let dir = match open_dir(parent, name) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return true,
            Err(error) => return self.refuse(path, error),
        };
        let mut names = match names_in(&dir) {
            Ok(names) => names,
            Err(error) => return self.refuse(path, error),
        };
        names.sort_by_key(|name| last.is_some_and(|last| name == last));
        let mut all = true;
        for name in names {
            // The file that proves whose directory this is stays as long as anything else does.
            if all || last.is_none_or(|last| name != last) {
                all &= self.entry(dir.as_fd(), &name, &path.join(&name), None, depth + 1);
            }
        }
        all
    }

    fn refuse(&mut self, path: &Path, error: Errno) -> bool {
        self.gone.refused.push(Refused::by(path, error));
        false
    }

    fn keep(&mut self, path: &Path, why: &str) -> bool {
        self.gone.refused.push(Refused::new(path, why));
        false
    }
}

fn open_dir(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn names_in(dir: &OwnedFd) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

fn size(about: &Stat) -> u64 {
    u64::try_from(about.st_blocks).unwrap_or(0) * BLOCK_BYTES
}

/// How much disk space something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub bytes: u64,
    pub entries: u64,
    /// Everything was counted; otherwise it is at least so much.
    pub whole: bool,
}

/// Counts what a directory takes, as long as `go_on` allows. Follows no link and enters no other file system; what cannot be
/// read counts as nothing.
pub fn measure(path: &Path, go_on: &mut dyn FnMut(u64) -> bool) -> Use {
    let mut found = Use { whole: true, ..Use::default() };
    let Ok(about) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return found };
    found.bytes += size(&about);
    found.entries += 1;
    if FileType::from_raw_mode(about.st_mode) == FileType::Directory
        && let Ok(dir) = open_dir(CWD, path.as_os_str())
    {
        count(&dir, about.st_dev, 0, &mut found, go_on);
    }
    found
}

fn count(dir: &OwnedFd, device: u64, depth: usize, found: &mut Use, go_on: &mut dyn FnMut(u64) -> bool) {
    let Ok(entries) = Dir::read_from(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if !go_on(found.entries) {
            found.whole = false;
            return;
        }
        let Ok(about) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        found.bytes += size(&about);
        found.entries += 1;
        let enters = FileType::from_raw_mode(about.st_mode) == FileType::Directory
            && about.st_dev == device
            && depth < DEPTH_MAX;
        if enters && let Ok(below) = open_dir(dir.as_fd(), OsStr::from_bytes(name.to_bytes())) {
            count(&below, device, depth + 1, found, go_on);
            if !found.whole {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_not_followed_and_the_proof_goes_last() {
        let base = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (base.path().join("bundle"), base.path().join("outside"));
        for dir in [inside.join("deep/er"), outside.clone()] {
            std::fs::create_dir_all(dir).expect("made");
        }
        std::fs::write(outside.join("precious"), "mine").expect("written");
        std::fs::write(inside.join("spec.json"), "{}").expect("written");
        std::fs::write(inside.join("deep/er/file"), "x".repeat(10_000)).expect("written");
        symlink(&outside, inside.join("link")).expect("linked");
        symlink(&outside, base.path().join("bundle-link")).expect("linked");
        let bytes = measure(&inside, &mut |_| true).bytes;
        let gone = remove(&inside, Some("spec.json"));
        assert_eq!((gone.bytes, gone.refused, inside.exists()), (bytes, Vec::new(), false));
        remove(&base.path().join("bundle-link"), None);
        assert_eq!(std::fs::read_to_string(outside.join("precious")).expect("there"), "mine");
        assert_eq!(remove(&inside, None), Gone::default(), "what is gone is gone");
    }

    #[test]
    fn what_was_made_read_only_goes_too() {
        let base = tempfile::tempdir().expect("a directory");
        let dir = base.path().join("dir/locked");
        std::fs::create_dir_all(&dir).expect("made");
        std::fs::write(dir.join("file"), "x").expect("written");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o500)).expect("locked");
        assert_eq!(remove(&base.path().join("dir"), None).refused, []);
        assert!(!base.path().join("dir").exists());
    }

    #[test]
    fn a_count_that_is_cut_short_says_so() {
        let base = tempfile::tempdir().expect("a directory");
        for n in 0..100 {
            std::fs::write(base.path().join(n.to_string()), "x").expect("written");
        }
        assert!(measure(base.path(), &mut |_| true).whole);
        let cut = measure(base.path(), &mut |entries| entries < 50);
        assert_eq!((cut.whole, cut.entries), (false, 50));
        assert_eq!(measure(&base.path().join("none"), &mut |_| true), Use { whole: true, ..Use::default() });
    }
}
