//! Other programs' files on disk: reading one with everything that must stay the same, replacing it whole, removing it with
//! the directories that were made for it. What a file contains is decided elsewhere.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rekindle_shim::atomic::{self, Access};
use rustix::fs::Access as May;

use super::Error;
use crate::agents::hook_installer::FILE_MAX_BYTES;
use crate::state_dir::sync_dir;

/// A file as it was found.
#[derive(Clone, Debug)]
pub struct Seen {
    pub text: String,
    /// Its real path, with symbolic links resolved.
    target: PathBuf,
    /// Whether it was reached through a link.
    pub linked: bool,
    access: Access,
}

/// Reads a file; `None` if there is none.
pub fn look(path: &Path) -> Result<Option<Seen>, Error> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Error::io(path, error)),
    };
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::DeadLink(path.to_owned())),
        Err(error) => return Err(Error::io(path, error)),
    };
    let known = target.metadata().map_err(|error| Error::io(path, error))?;
    if !known.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    if known.len() > FILE_MAX_BYTES {
        return Err(Error::TooLong { path: path.to_owned(), most: FILE_MAX_BYTES });
    }
    let bytes = std::fs::read(&target).map_err(|error| Error::io(path, error))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::NotText(path.to_owned()))?;
    let access = Access::Like { mode: known.permissions().mode(), uid: known.uid(), gid: known.gid() };
    Ok(Some(Seen { text, target, linked: found.is_symlink(), access }))
}

/// Refuses a file that its owner has write-protected: replacing it would ignore that.
pub fn check_writable(path: &Path, seen: Option<&Seen>) -> Result<(), Error> {
    let Some(seen) = seen else { return Ok(()) };
    let protected = matches!(seen.access, Access::Like { mode, .. } if mode & 0o222 == 0);
    if protected || rustix::fs::access(&seen.target, May::WRITE_OK).is_err() {
        return Err(Error::ReadOnly(path.to_owned()));
    }
    Ok(())
}

/// Replaces a file as it was seen, or makes it. A link stays, and so do the permissions.
pub fn put(path: &Path, seen: Option<&Seen>, text: &str) -> Result<(), Error> {
    check_writable(path, seen)?;
    unchanged(path, seen)?;
    let (target, access) = match seen {
        Some(seen) => (seen.target.clone(), seen.access),
        None => (in_real_dir(path)?, Access::Usual),
    };
    let name = target.file_name().and_then(|name| name.to_str()).ok_or_else(|| Error::NotAFile(path.to_owned()))?;
    let dir = target.parent().unwrap_or(Path::new("/"));
    atomic::save_as(dir, name, text.as_bytes(), access).map_err(|error| Error::io(path, error))
}

pub fn remove(path: &Path, seen: &Seen) -> Result<(), Error> {
    check_writable(path, Some(seen))?;
    unchanged(path, Some(seen))?;
    std::fs::remove_file(path).map_err(|error| Error::io(path, error))?;
    sync_parent(path)
}

/// The directories that have to be made for a file, the outermost first.
pub fn missing_dirs(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

pub fn make_dirs(dirs: &[PathBuf]) -> Result<(), Error> {
    for dir in dirs {
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::io(dir, error)),
            _ => sync_parent(dir)?,
        }
    }
    Ok(())
}

/// Removes those that are empty, innermost first. One that is in use stays.
pub fn remove_dirs(dirs: &[PathBuf]) {
    for dir in dirs.iter().rev() {
        // Whatever prevents the removal is a reason to keep it.
        let _ = std::fs::remove_dir(dir);
    }
}

/// Fails if somebody has written in between: their change would be lost.
fn unchanged(path: &Path, seen: Option<&Seen>) -> Result<(), Error> {
    let now = look(path)?;
    let same = match (&now, seen) {
        (None, None) => true,
        (Some(now), Some(seen)) => now.text == seen.text && now.target == seen.target,
        _ => false,
    };
    if same { Ok(()) } else { Err(Error::Changed(path.to_owned())) }
}

fn in_real_dir(path: &Path) -> Result<PathBuf, Error> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let dir = dir.canonicalize().map_err(|error| Error::io(dir, error))?;
    Ok(dir.join(path.file_name().ok_or_else(|| Error::NotAFile(path.to_owned()))?))
}

fn sync_parent(path: &Path) -> Result<(), Error> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_dir(dir).map_err(|error| Error::io(dir, error))
}
