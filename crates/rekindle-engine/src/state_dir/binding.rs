//! Whose state directory it is: the file `binding` names user, machine and path. It is written when a directory is first
//! opened for use. A directory that came with a clone has no matching one, and a run never takes it for its own.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{DIR_MODE, Error, StateDir, check_owner, save_atomically};
use crate::git;

/// The file's name.
const BINDING_FILE: &str = "binding";

/// The newest known version of the file.
const VERSION: u32 = 1;

/// Longest content that is read: three short fields, and a path.
const MAX_BYTES: u64 = 64 * 1024;

/// Files with an id that a machine keeps across restarts.
const MACHINE_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Longest time for git to say whether it tracks the directory; it only reads its index.
const GIT_MS: u64 = 10_000;

/// How a directory relates to its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Bound to this user, machine and path.
    Bound,
    /// Not bound yet, and nothing speaks against it.
    Unbound,
    /// Bound by this user on this machine to another path: it was moved, renamed or copied.
    Moved { from: PathBuf },
}

/// Why a directory is not taken for this user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Git tracks files in it.
    Tracked,
    /// It is open to others and bound to nobody: it was created by a checkout or an archive, not by rekindle.
    CameAlong,
    OtherUser,
    OtherMachine,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tracked => "is tracked by git: it came with the repository, and what it says was not decided here",
            Self::CameAlong => "was not made by rekindle here: it came with the project's files",
            Self::OtherUser => "was made by another user",
            Self::OtherMachine => "was made on another machine",
        })
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Binding {
    version: u32,
    user: u32,
    machine: String,
    path: String,
}

impl Binding {
    fn here(dir: &Path) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self { version: VERSION, user, machine: machine(), path: dir.to_string_lossy().into_owned() }
    }
}

impl StateDir {
    /// How the directory relates to its path.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }
}

/// Judges a directory that holds a state. With `whole`, git is asked although the directory is bound.
pub(super) fn judge(dir: &Path, mode: u32, whole: bool) -> Result<Standing, Error> {
    let refuse = |why| Err(Error::Foreign { path: dir.to_owned(), why });
    let bound = read(dir)?;
    if (whole || bound.is_none()) && tracked(dir) {
        return refuse(Foreign::Tracked);
    }
    let here = Binding::here(dir);
    match bound {
        None if mode != DIR_MODE => refuse(Foreign::CameAlong),
        None => Ok(Standing::Unbound),
        Some(bound) if bound.user != here.user => refuse(Foreign::OtherUser),
        Some(bound) if bound.machine != here.machine => refuse(Foreign::OtherMachine),
        Some(bound) if bound.path != here.path => Ok(Standing::Moved { from: PathBuf::from(bound.path) }),
        Some(_) => Ok(Standing::Bound),
    }
}

/// Binds a directory to this user, machine and its path.
pub(super) fn bind(dir: &Path) -> Result<(), Error> {
    let text = serde_json::to_vec(&Binding::here(dir)).map_err(|e| Error::from_io(dir, e.into()))?;
    save_atomically(dir, BINDING_FILE, &text).map_err(|e| Error::from_io(dir, e))
}

fn read(dir: &Path) -> Result<Option<Binding>, Error> {
    let path = dir.join(BINDING_FILE);
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::from_io(&path, e)),
    };
    let meta = file.metadata().map_err(|e| Error::from_io(&path, e))?;
    check_owner(&path, &meta)?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(Error::TooOpen { path, mode });
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|e| Error::from_io(&path, e))?;
    serde_json::from_slice(&text).map(Some).map_err(|_| Error::Damaged(path))
}

/// Whether git tracks something in the directory. No program of the repository is run for this; without git nothing was
/// cloned.
fn tracked(dir: &Path) -> bool {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name().and_then(|name| name.to_str())) else {
        return false;
    };
    let in_repository = parent.ancestors().any(|above| above.join(".git").exists());
    let said = || git::ask_within(parent, &["ls-files", "--", name], 1, GIT_MS);
    in_repository && said().is_some_and(|said| !said.is_empty())
}

/// The machine, by a hash of its id, so that the id itself is not exposed. Machines without one cannot be distinguished.
fn machine() -> String {
    let id = MACHINE_FILES.iter().find_map(|path| std::fs::read_to_string(path).ok());
    let id = id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    id.map_or_else(String::new, |id| {
        blake3::derive_key("rekindle state directory machine", id.as_bytes())
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    })
}
