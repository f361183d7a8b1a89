//! Whether a program can be started: found the way the shell would, and executable by this user.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    /// No directory of `PATH` has it.
    #[error("`{0}` was not found on PATH")]
    NotOnPath(String),
    #[error("{0} does not exist")]
    NoFile(PathBuf),
    #[error("{0} is a directory")]
    Directory(PathBuf),
    #[error("{0} is not executable")]
    NotExecutable(PathBuf),
}

impl Missing {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::NotOnPath(program) => format!("install `{program}`, or write its whole path into rekindle.toml"),
            Self::NoFile(_) | Self::Directory(_) => "write the program's path into rekindle.toml".to_owned(),
            Self::NotExecutable(path) => format!("chmod +x '{}'", path.display()),
        }
    }
}

/// Finds a program. A name with a slash is relative to the agents' workspace.
pub(crate) fn find(program: &str, path: Option<&OsStr>, workspace: &Path) -> Result<PathBuf, Missing> {
    if program.contains('/') {
        let file = workspace.join(program);
        return check(&file).map(|()| file);
    }
    let mut refused = None;
    for dir in std::env::split_paths(path.unwrap_or_default()) {
        // An empty entry means the working directory.
        let file = workspace.join(dir).join(program);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(missing @ Missing::NotExecutable(_)) => refused = Some(missing),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| Missing::NotOnPath(program.to_owned())))
}

fn check(file: &Path) -> Result<(), Missing> {
    let Ok(meta) = file.metadata() else {
        return Err(Missing::NoFile(file.to_owned()));
    };
    if meta.is_dir() {
        return Err(Missing::Directory(file.to_owned()));
    }
    rustix::fs::access(file, Access::EXEC_OK).map_err(|_| Missing::NotExecutable(file.to_owned()))
}
