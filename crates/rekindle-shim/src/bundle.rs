//! The bundle: one private directory per started process, and the typed records inside it.
//!
//! A missing record, an unreadable one and a whole one are three different answers, because adoption acts differently on
//! each. Nothing here deletes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::caps::{Caps, Held, OutOfMemory};
use crate::identity::ProcId;
use crate::ladder::{self, Rung};
use crate::refusal;

/// The version of the records and of the wire that this build writes; it reads every earlier one.
pub const VERSION: u32 = 1;

/// What the engine asks for.
pub const SPEC: &str = "spec.json";
/// What the agent reads from its standard input in mode `file`.
pub const PROMPT: &str = "prompt";
/// The identities of the shim and the agent.
pub const SHIM: &str = "shim.json";
/// The agent's standard output.
pub const OUT: &str = "out.log";
/// The agent's standard error.
pub const ERR: &str = "err.log";
/// The file whose lock shows that a shim is alive.
pub const LOCK: &str = "lock";
/// The exit record.
pub const EXIT: &str = "exit.json";
/// The socket that the shim listens on.
pub const SOCK: &str = "sock";
/// The shim's own log output.
pub const SHIM_LOG: &str = "shim.log";
/// Why the agent's program could not be started; written by the stub, folded into the exit record by the shim.
pub const START_ERROR: &str = "start_error.json";
/// Made by the stub at the last moment before it becomes the agent: without it no instruction of the agent was ever run.
pub const BEGUN: &str = "begun";

/// Arguments and environment may reach some megabytes; a larger file is not a spec.
const SPEC_MAX_BYTES: u64 = 16 << 20;
/// Every other record is small by construction; a larger file is not ours.
const RECORD_MAX_BYTES: u64 = 64 << 10;

/// What the agent's standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The file `prompt` of the bundle, of any size.
    File,
    Null,
    /// Lines sent over the socket while the agent runs.
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Straight into the logs: the files are the agent's descriptors, no byte passes through the shim.
    Spool,
    /// Through the shim, which keeps the first `bytes` of each stream and counts the rest.
    Capped {
        /// How much of each stream is kept.
        bytes: u64,
    },
}

/// What the shim is asked to hold. Written whole before the shim is started and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub version: u32,
    /// The run this process belongs to; empty in bundles of earlier versions and if it belongs to none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The attempt this process belongs to.
    pub attempt: String,
    /// The attempt's epoch; requests with an older one are refused.
    pub epoch: u64,
    /// The secret that both sides of a handshake know, and the marker of the tree.
    pub nonce: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// Variables added to the inherited environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables removed from the inherited environment.
    #[serde(default)]
    pub env_remove: BTreeSet<String>,
    pub stdin: Stdin,
    pub output: Output,
    /// When the shim ends the program on its own, counted from the start of the program.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// The ladder for the deadline, and for a stop that brings none.
    #[serde(default = "ladder::default_rungs")]
    pub stop: Vec<Rung>,
    /// Its resource caps; `None` for a process without caps, such as a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
}

/// Which processes live here. Written before the agent's first instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRecord {
    /// The version of this record and of the wire.
    pub version: u32,
    /// The attempt, as in the spec.
    pub attempt: String,
    /// The epoch, as in the spec.
    pub epoch: u64,
    pub shim: ProcId,
    /// The agent, which is also the leader of its session.
    pub agent: ProcId,
    /// Wall time of the start.
    pub started_at_ms: u64,
    /// The same moment since boot.
    pub started_boottime_ms: u64,
    /// What enforces its caps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Held>,
    /// The stub marks the agent's start; earlier builds did not.
    #[serde(default)]
    pub marks_begin: bool,
}

/// Why a program never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartError {
    /// The system's error number, 0 if it gave none.
    pub errno: i32,
    /// What was tried and what the system said.
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    pub bytes: u64,
    /// BLAKE3 of its content; `None` if it is too long to be hashed at the end.
    pub digest: Option<String>,
    /// Bytes that were written by the agent and not kept.
    pub discarded: u64,
    pub truncated: bool,
    /// The file was unlinked or replaced while the agent ran: its content is not what the agent wrote.
    pub replaced: bool,
}

/// A process that did not die.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: u32,
    /// The short name of its program.
    pub name: String,
}

/// How the process ended. This is the truth about an attempt's process; the socket is only a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub version: u32,
    /// The attempt, as in the spec.
    pub attempt: String,
    /// The epoch, as in the spec.
    pub epoch: u64,
    /// The nonce, as in the spec.
    pub nonce: String,
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did. Neither code nor signal: it could not be ended, see `survivors`.
    pub signal: Option<i32>,
    /// Why it never ran, if it did not.
    pub start_error: Option<StartError>,
    /// Wall time of the end.
    pub ended_at_ms: u64,
    /// The same moment since boot.
    pub ended_boottime_ms: u64,
    /// How long it ran, without suspension.
    pub ran_ms: u64,
    /// Processor time in user mode of everything that was reaped.
    pub user_ms: u64,
    /// Processor time in the kernel of everything that was reaped.
    pub sys_ms: u64,
    /// The largest resident size of any reaped process.
    pub max_rss_kb: u64,
    pub out: LogEnd,
    pub err: LogEnd,
    /// How many processes it left behind, or that had to be killed with it.
    pub swept: u32,
    /// Processes that could not be killed; the list is truncated at a limit.
    pub survivors: Vec<Survivor>,
    /// The deadline of the spec ended it.
    pub timed_out: bool,
    pub stop_requested: bool,
    /// Why a log could not be synced to disk, if that failed.
    pub sync_error: Option<String>,
    /// The kernel killed it for lack of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<OutOfMemory>,
    /// The cap on its processes, if it reached that cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_cap: Option<u64>,
    /// Its process ended before it became the agent, for an unknown reason: not the program's fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_began: bool,
}

/// What can be wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{name}: {source}")]
    Io { name: String, source: io::Error },
    /// The file is there and is not the record it should be.
    #[error("{name} is not a whole record: {reason}")]
    Malformed { name: String, reason: String },
    /// The record was written by a later build.
    #[error("{name} has version {found}, this build reads up to {VERSION}")]
    Version {
        name: String,
        /// The version it claims.
        found: u32,
    },
    /// A new bundle's directory is already there.
    #[error("the bundle {0} already exists")]
    Exists(PathBuf),
}

impl Error {
    fn io(name: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { name: name.to_owned(), source: source.into() }
    }

    /// The system's error number, 0 if it gave none.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Io { source, .. } => source.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether the machine lacked the resources for it; the bundle itself may be sound.
    pub fn is_refusal(&self) -> bool {
        refusal::is_refusal(self.errno())
    }

    fn malformed(name: &str, reason: impl ToString) -> Self {
        Self::Malformed { name: name.to_owned(), reason: reason.to_string() }
    }
}

/// An open bundle directory. All files are reached through its descriptor, so renaming the directory or putting
/// another in its place changes nothing.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    dir: OwnedFd,
}

impl Bundle {
    /// Opens a bundle; `None` when there is no such directory. Fails when it exists but is a symlink, not a directory, or
    /// not ours to open.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        match atomic::open_dir(path) {
            Ok(dir) => Ok(Some(Self { path: path.to_owned(), dir })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&path.display().to_string(), error)),
        }
    }

    /// Creates a bundle. The spec is written last: a directory without one was never meant to be started. Returns
    /// [`Error::Exists`] when the directory exists; the caller decides what that means.
    pub fn create(path: &Path, spec: &Spec, prompt: Option<&[u8]>) -> Result<Self, Error> {
        let name = path.display().to_string();
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => return Err(Error::Exists(path.to_owned())),
            Err(error) => return Err(Error::io(&name, error)),
        }
        let dir = atomic::open_dir(path).map_err(|error| Error::io(&name, error))?;
        // The umask reduces the mode given to mkdir; here it must be exact.
        rustix::fs::fchmod(&dir, Mode::RWXU).map_err(|error| Error::io(&name, error))?;
        if let Some(prompt) = prompt {
            atomic::save_in(&dir, PROMPT, prompt).map_err(|error| Error::io(PROMPT, error))?;
        }
        let bundle = Self { path: path.to_owned(), dir };
        bundle.save(SPEC, spec)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| Error::io(&name, error))?;
        }
        Ok(bundle)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The spec, if there is one. Fails when it is there and cannot be read whole.
    pub fn spec(&self) -> Result<Option<Spec>, Error> {
        self.record(SPEC, SPEC_MAX_BYTES)
    }

    /// The shim's record, if one was ever written.
    pub fn shim(&self) -> Result<Option<ShimRecord>, Error> {
        self.record(SHIM, RECORD_MAX_BYTES)
    }

    /// The exit record, if the process has ended.
    pub fn exit(&self) -> Result<Option<ExitRecord>, Error> {
        self.record(EXIT, RECORD_MAX_BYTES)
    }

    /// Why the program was not started, if the stub recorded a reason.
    pub(crate) fn start_error(&self) -> Result<Option<StartError>, Error> {
        let Some(bytes) = self.read(START_ERROR, RECORD_MAX_BYTES)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::malformed(START_ERROR, error))
    }

    /// Opens the shim's log file, to be its standard error. Fails when it cannot be opened, or is not a regular file.
    pub fn shim_log(&self) -> Result<OwnedFd, Error> {
        self.open_file(SHIM_LOG, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    /// Saves a record atomically.
    pub(crate) fn save<T: Serialize>(&self, name: &str, record: &T) -> Result<(), Error> {
        let bytes = serde_json::to_vec(record).map_err(|error| Error::malformed(name, error))?;
        atomic::save_in(&self.dir, name, &bytes).map_err(|error| Error::io(name, error))
    }

    /// Whether the recorded agent provably never ran: the stub's mark is missing, although this build would have written it.
    pub fn never_began(&self, record: &ShimRecord) -> bool {
        record.marks_begin && self.lacks(BEGUN)
    }

    /// Whether a name is provably free: a name that cannot be checked does not count as free.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        let found = rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!(found, Err(rustix::io::Errno::NOENT))
    }

    /// Whether a name exists, whatever kind of file it is.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens a file of the bundle: never through a symlink, never blocking on a FIFO, regular files only.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::io(name, error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| Error::io(name, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::malformed(name, "it is not a regular file"));
        }
        // Only the opening had to be non-blocking; the agent gets the blocking descriptor it expects.
        let status = rustix::fs::fcntl_getfl(&file).map_err(|error| Error::io(name, error))?;
        rustix::fs::fcntl_setfl(&file, status - OFlags::NONBLOCK).map_err(|error| Error::io(name, error))?;
        Ok(file)
    }

    fn record<T: DeserializeOwned>(&self, name: &str, max: u64) -> Result<Option<T>, Error> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Some(bytes) = self.read(name, max)? else {
            return Ok(None);
        };
        let versioned: Versioned = serde_json::from_slice(&bytes).map_err(|error| Error::malformed(name, error))?;
        if versioned.version == 0 || versioned.version > VERSION {
            return Err(Error::Version { name: name.to_owned(), found: versioned.version });
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::malformed(name, error))
    }

    fn read(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, Error> {
        let file = match self.open_file(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        File::from(file).take(max + 1).read_to_end(&mut bytes).map_err(|error| Error::io(name, error))?;
        if bytes.len() as u64 > max {
            return Err(Error::malformed(name, format_args!("it is longer than {max} bytes")));
        }
        Ok(Some(bytes))
    }
}

impl AsFd for Bundle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

#[cfg(test)]
#[path = "bundle/tests.rs"]
mod tests;
