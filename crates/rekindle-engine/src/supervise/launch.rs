//! Starts a shim: bundle first, then the lock, then the process that inherits it.
//!
//! The lock is taken before the process exists and handed over as its standard input, so a coordinator that is killed
//! between the two leaves either a free lock and no shim, or a held one and a shim; never a shim that looks as if it had not
//! been started.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rekindle_core::refusal::Refusal;
use rekindle_shim::bundle::{self, Bundle, Spec};
use rekindle_shim::identity::Process;
use rekindle_shim::lock::Lock;

use crate::{descriptors, refusal};

/// Why a shim was not started, or is not known well enough. Every variant except [`LaunchError::Unpinned`],
/// [`LaunchError::Exists`] and [`LaunchError::Held`] means that no shim was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The bundle is already there; probe it to learn what became of it.
    #[error("the bundle {0} already exists")]
    Exists(PathBuf),
    /// There is no bundle to start.
    #[error("there is no bundle at {0}")]
    Absent(PathBuf),
    #[error("another shim holds the bundle {0}")]
    Held(PathBuf),
    /// The bundle could not be written.
    #[error("cannot prepare the bundle: {0}")]
    Bundle(#[from] bundle::Error),
    /// The files that its program needs could not be put into the bundle.
    #[error("cannot prepare the bundle: {0}")]
    Prepare(String),
    /// The system would not start a process; the bundle stays and can be started later.
    #[error("cannot start a shim: {0}")]
    Spawn(io::Error),
    /// A shim lives and could not be pinned: it is our child, and is watched by its process id and its bundle.
    #[error("a shim was started as process {pid} and cannot be pinned: {error}")]
    Unpinned {
        /// Its process id, which cannot be reused until this process reaps it.
        pid: u32,
        error: io::Error,
    },
}

impl LaunchError {
    /// What the machine lacks, if that is why nothing was started.
    pub fn refusal(&self, at: &Path) -> Option<Refusal> {
        match self {
            Self::Bundle(bundle::Error::Io { source, .. }) | Self::Spawn(source) => refusal::of(source, at),
            Self::Prepare(reason) => refusal::in_text(reason, at),
            _ => None,
        }
    }
}

/// A shim that was started and is our child: watch it, so that it is reaped.
#[derive(Debug)]
pub struct Launched {
    pub shim: Process,
}

/// Starts shims from one program.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

impl Default for Launcher {
    /// The program that is running now, even if its file was replaced meanwhile.
    fn default() -> Self {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rekindle"))
        };
        Self { program }
    }
}

impl Launcher {
    /// Another program that knows the hidden subcommands.
    pub fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Creates the bundle and starts its shim. Returns [`LaunchError::Exists`] when the bundle exists, in whatever state:
    /// the caller probes it and decides.
    pub fn launch(&self, dir: &Path, spec: &Spec, prompt: Option<&[u8]>) -> Result<Launched, LaunchError> {
        self.launch_prepared(dir, spec, prompt, |_| Ok(()))
    }

    /// The same, with more put into the bundle before the shim is started.
    pub fn launch_prepared(
        &self,
        dir: &Path,
        spec: &Spec,
        prompt: Option<&[u8]>,
        prepare: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<Launched, LaunchError> {
        let bundle = Bundle::create(dir, spec, prompt).map_err(|error| match error {
            bundle::Error::Exists(dir) => LaunchError::Exists(dir),
            other => LaunchError::Bundle(other),
        })?;
        prepare(dir).map_err(LaunchError::Prepare)?;
        self.start_in(&bundle)
    }

    /// Starts the shim of a bundle that was created and never started. Safe to repeat: a bundle starts once. Returns
    /// [`LaunchError::Held`] when there is already a shim.
    pub fn start(&self, dir: &Path) -> Result<Launched, LaunchError> {
        let bundle = Bundle::open(dir)?.ok_or_else(|| LaunchError::Absent(dir.to_owned()))?;
        self.start_in(&bundle)
    }

    fn start_in(&self, bundle: &Bundle) -> Result<Launched, LaunchError> {
        let lock = Lock::take(bundle)?.ok_or_else(|| LaunchError::Held(bundle.path().to_owned()))?;
        let log = bundle.shim_log()?;
        let child = Command::new(&self.program)
            .arg0("rekindle")
            .arg(rekindle_shim::SHIM_COMMAND)
            .arg(bundle.path())
            .envs(descriptors::original().map(|soft| (rekindle_shim::DESCRIPTORS_ENV, soft.to_string())))
            .stdin(Stdio::from(lock.into_fd()))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            // Out of reach of the terminal's keys from its first instant.
            .process_group(0)
            .spawn()
            .map_err(LaunchError::Spawn)?;
        // From here on a shim lives: nothing may be reported as "not started". The handle is dropped without waiting: the
        // watch reaps.
        let pid = child.id();
        match Process::of_child(pid) {
            Ok(shim) => Ok(Launched { shim }),
            Err(error) => Err(LaunchError::Unpinned { pid, error }),
        }
    }
}
