//! The directory that contains everything durable: who may own it, which version it is, where each thing is in it, which
//! coordinator holds it. What the files contain is left to their owners; the database to `store`.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

mod binding;
mod lock;
mod os;
mod secret;

pub use binding::{Foreign, Standing};
pub use lock::{CoordinatorLock, Owner};
pub use secret::Secret;

pub use crate::save::{install, move_if_there, save_atomically, sync_dir};

/// The layout this program writes; a directory with a higher number is refused.
pub const STATE_VERSION: u32 = 1;

/// Only the owner may enter: spools and the database hold whatever agents printed.
const DIR_MODE: u32 = 0o700;

/// Write bits of others; with one of these set someone else could have planted files.
const FOREIGN_WRITE: u32 = 0o022;

/// The marker's name.
const VERSION_FILE: &str = "version";

/// Names that may exist in a directory whose creation was interrupted before the marker was written.
const LEFTOVERS: [&str; 2] = [".gitignore", "version.tmp"];

/// Folders that `git clean -fdx` leaves of a state directory, because it deletes no worktree; the next run that finds them
/// keeps their contents.
const CLEANED: [&str; 2] = ["worktrees", "aside"];

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none, and none should be created.
    #[error("{0} does not exist")]
    Missing(PathBuf),
    /// The last component is a symbolic link or not a directory.
    #[error("{0} is not a directory of its own (a symbolic link or another kind of file)")]
    NotADirectory(PathBuf),
    #[error("{path} belongs to user {owner}, rekindle runs as user {us}")]
    ForeignOwner {
        path: PathBuf,
        owner: u32,
        /// The user of this process.
        us: u32,
    },
    #[error("{path} has mode {mode:04o}: others may write or read what only its owner may")]
    TooOpen { path: PathBuf, mode: u32 },
    /// It does not belong to this user on this machine.
    #[error("{path} {why}")]
    Foreign { path: PathBuf, why: Foreign },
    /// It holds other things and no marker of ours.
    #[error("{0} is not empty and is not a rekindle state directory")]
    NotOurs(PathBuf),
    #[error("{path} has state version {found}, this rekindle knows up to {known}; use a newer rekindle")]
    Newer {
        path: PathBuf,
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The marker or another small file of ours cannot be parsed.
    #[error("{0} is damaged or was changed by hand")]
    Damaged(PathBuf),
    /// File locks and the database's shared memory cannot be trusted there.
    #[error("{path} is on a network filesystem ({kind}), where a database is not safe")]
    Network { path: PathBuf, kind: String },
    #[error("{0} is on a read-only filesystem")]
    ReadOnly(PathBuf),
    #[error("no permission for {0}")]
    Denied(PathBuf),
    #[error("another coordinator holds {path}{}", owner.as_ref().map(|o| format!(": {o}")).unwrap_or_default())]
    Held {
        path: PathBuf,
        /// The owner named in the lock, if that can be read.
        owner: Option<Owner>,
    },
    /// Any other error of the operating system.
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    /// Classifies an error of the operating system, separating the causes that a person can fix.
    fn from_io(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::NotFound => Error::Missing(path),
            ErrorKind::ReadOnlyFilesystem => Error::ReadOnly(path),
            ErrorKind::PermissionDenied => Error::Denied(path),
            ErrorKind::NotADirectory => Error::NotADirectory(path),
            _ => Error::Io { path, source },
        }
    }
}

/// A state directory that was found usable.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    standing: Standing,
}

impl StateDir {
    /// Opens the directory, making it when it is missing. Refuses network filesystems.
    pub fn open_or_create(path: &Path) -> Result<StateDir, Error> {
        StateDir::open_or_create_on(path, false)
    }

    /// The same; `any_filesystem` accepts a network filesystem at the caller's risk.
    pub fn open_or_create_on(path: &Path, any_filesystem: bool) -> Result<StateDir, Error> {
        match DirBuilder::new().mode(DIR_MODE).create(path) {
            Ok(()) => sync_dir(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
                .map_err(|e| Error::from_io(path, e))?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            // A missing parent is the caller's mistake; the error names the requested path.
            Err(e) => return Err(Error::from_io(path, e)),
        }
        let (mut dir, mode) = StateDir::inspect(path)?;
        if let Some(kind) = os::network_filesystem(&dir.path).map_err(|e| Error::from_io(path, e))?
            && !any_filesystem
        {
            return Err(Error::Network { path: dir.path, kind });
        }
        rustix::fs::access(&dir.path, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|e| Error::from_io(path, e.into()))?;
        if dir.version()?.is_some() {
            dir.standing = binding::judge(&dir.path, mode, true)?;
        }
        dir.prepare()?;
        if dir.standing != Standing::Bound {
            binding::bind(&dir.path)?;
        }
        Ok(dir)
    }

    /// Opens an existing directory for reading; makes and changes nothing.
    pub fn open(path: &Path) -> Result<StateDir, Error> {
        let (mut dir, mode) = StateDir::inspect(path)?;
        if dir.version()?.is_none() {
            return Err(Error::NotOurs(dir.path));
        }
        dir.standing = binding::judge(&dir.path, mode, false)?;
        Ok(dir)
    }

    /// The directory itself, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("state.db")
    }

    /// Where the shadow log's segments are.
    pub fn shadow(&self) -> PathBuf {
        self.path.join("shadow")
    }

    pub fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// The directory and its permission bits.
    fn inspect(path: &Path) -> Result<(StateDir, u32), Error> {
        let meta = path.symlink_metadata().map_err(|e| Error::from_io(path, e))?;
        if !meta.is_dir() {
            return Err(Error::NotADirectory(path.to_owned()));
        }
        check_owner(path, &meta)?;
        let mode = meta.permissions().mode() & 0o777;
        if mode & FOREIGN_WRITE != 0 {
            return Err(Error::TooOpen { path: path.to_owned(), mode });
        }
        let path = path.canonicalize().map_err(|e| Error::from_io(path, e))?;
        Ok((StateDir { path, standing: Standing::Unbound }, mode))
    }

    /// Writes what a new directory needs, and tightens the permissions of one that others could read.
    fn prepare(&self) -> Result<(), Error> {
        let fail = |e| Error::from_io(&self.path, e);
        if self.version()?.is_none() {
            self.refuse_foreign_content()?;
            save_atomically(&self.path, VERSION_FILE, format!("{STATE_VERSION}\n").as_bytes()).map_err(fail)?;
        }
        let handle = File::open(&self.path).map_err(fail)?;
        if handle.metadata().map_err(fail)?.permissions().mode() & 0o777 != DIR_MODE {
            handle.set_permissions(PermissionsExt::from_mode(DIR_MODE)).map_err(fail)?;
        }
        let ignore = self.path.join(".gitignore");
        if !ignore.try_exists().map_err(fail)? {
            save_atomically(&self.path, ".gitignore", b"*\n").map_err(fail)?;
        }
        Ok(())
    }

    /// The marker's number; `None` when there is no marker.
    fn version(&self) -> Result<Option<u32>, Error> {
        let path = self.path.join(VERSION_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == ErrorKind::InvalidData => return Err(Error::Damaged(path)),
            Err(e) => return Err(Error::from_io(&path, e)),
        };
        let found: u32 = text.trim_end().parse().map_err(|_| Error::Damaged(path))?;
        if found > STATE_VERSION {
            return Err(Error::Newer { path: self.path.clone(), found, known: STATE_VERSION });
        }
        Ok(Some(found))
    }

    /// A mistyped path must not turn somebody's folder into a state directory that git ignores.
    fn refuse_foreign_content(&self) -> Result<(), Error> {
        let fail = |e| Error::from_io(&self.path, e);
        for entry in std::fs::read_dir(&self.path).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let left = LEFTOVERS.iter().any(|leftover| name == *leftover);
            let cleaned =
                CLEANED.iter().any(|cleaned| name == *cleaned) && holds_only_worktrees(&self.path.join(&name));
            if !left && !cleaned {
                return Err(Error::NotOurs(self.path.clone()));
            }
        }
        Ok(())
    }
}

/// Whether everything in a directory is a git worktree. No clone contains one: git keeps no `.git` inside a repository.
fn holds_only_worktrees(dir: &Path) -> bool {
    let is_worktree = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().join(".git").symlink_metadata().is_ok_and(|meta| meta.is_file()))
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.all(is_worktree))
}

/// Refuses what another user owns: its content could be anything.
fn check_owner(path: &Path, meta: &Metadata) -> Result<(), Error> {
    let us = rustix::process::geteuid().as_raw();
    if meta.uid() != us {
        return Err(Error::ForeignOwner { path: path.to_owned(), owner: meta.uid(), us });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
