//! How an agent is started: behind a barrier, so that it never runs before it is recorded.
//!
//! The shim starts this same program as a stub, which makes its own session, waits for one byte, takes its standard input
//! and becomes the agent. If the shim dies first, the stub reads the end of the pipe and exits quietly.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use crate::bundle::{self, BEGUN, Bundle, START_ERROR, Spec, StartError};
use crate::caps;
use crate::identity::Process;
use crate::os;

/// The stub's exit code when it did not become the agent; the reason is in its file.
const NOT_STARTED: u8 = 127;

/// A stub that waits at the barrier.
pub(crate) struct Waiting {
    /// The process that will be the agent.
    pub(crate) process: Process,
    barrier: OwnedFd,
}

impl Waiting {
    /// Starts the stub with the given output descriptors.
    pub(crate) fn spawn(bundle: &Path, out: OwnedFd, err: OwnedFd) -> io::Result<Self> {
        let (read, barrier) = os::pipe()?;
        let child = Command::new(os::self_exe())
            .arg0("rekindle")
            .arg(crate::STUB_COMMAND)
            .arg(bundle)
            .stdin(Stdio::from(read))
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err))
            .spawn()?;
        // The handle is dropped without waiting: the loop does the reaping.
        Ok(Self { process: Process::of_child(child.id())?, barrier })
    }

    /// Makes writing to the pipe return at once when it is full.
    pub(crate) fn never_block(&self) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.barrier, true)?)
    }

    /// Lets the agent run. Returns the pipe's writing end: it is the agent's input in mode `lines`.
    pub(crate) fn release(self) -> io::Result<(Process, OwnedFd)> {
        match crate::atomic::write_all(&self.barrier, b"!") {
            // A stub that died meanwhile is found by reaping, not here.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok((self.process, self.barrier)),
        }
    }
}

/// Becomes the agent of the bundle once the shim allows it.
pub fn stub_main(bundle: &Path) -> ExitCode {
    // Its own session: no terminal, and one more way to find what the agent starts.
    let _ = rustix::process::setsid();
    let opened = barrier_opened();
    if matches!(opened, Ok(false)) {
        return ExitCode::SUCCESS;
    }
    let Ok(Some(bundle)) = Bundle::open(bundle) else {
        return ExitCode::from(NOT_STARTED);
    };
    let error = match (opened, bundle.spec()) {
        (Err(error), _) => start_error("barrier", &error.into()),
        (Ok(_), Ok(Some(spec))) => become_agent(&bundle, &spec),
        (Ok(_), Ok(None)) => StartError { errno: libc::ENOENT, text: "the spec is gone".to_owned() },
        (Ok(_), Err(error)) => StartError { errno: error.errno(), text: error.to_string() },
    };
    // The stub runs on only to report why it did not become the agent: the agent was never started.
    let _ = rustix::fs::unlinkat(&bundle, BEGUN, AtFlags::empty());
    let _ = bundle.save(START_ERROR, &error);
    ExitCode::from(NOT_STARTED)
}

/// Reads exactly one byte: what follows in the pipe belongs to the agent.
fn barrier_opened() -> Result<bool, Errno> {
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut [0; 1]) {
            Ok(n) => return Ok(n == 1),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns only on failure.
fn become_agent(bundle: &Bundle, spec: &Spec) -> StartError {
    if let Err(error) = take_input(bundle, spec.stdin) {
        return StartError { errno: error.errno(), text: format!("cannot open its input: {error}") };
    }
    if !spec.cwd.is_absolute() {
        return StartError { errno: libc::EINVAL, text: format!("{} is not absolute", spec.cwd.display()) };
    }
    if let Err(error) = rustix::process::chdir(&spec.cwd) {
        return start_error(&format!("cannot enter {}", spec.cwd.display()), &error.into());
    }
    let Some((program, arguments)) = spec.argv.split_first() else {
        return StartError { errno: libc::EINVAL, text: "there is no program to start".to_owned() };
    };
    // Where this is not possible, the agent keeps its place in the order of victims.
    let _ = os::prefer_as_oom_victim();
    let held = bundle.shim().ok().flatten().and_then(|record| record.caps);
    if let (Some(caps), Some(held)) = (&spec.caps, held) {
        caps::limit_self(caps, &held);
    }
    let mut command = Command::new(program);
    command.args(arguments).env("PWD", &spec.cwd).env_remove(crate::DESCRIPTORS_ENV);
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command.envs(&spec.env).env(crate::MARKER_ENV, &spec.nonce);
    if let Err(error) = crate::atomic::create_new(bundle, BEGUN) {
        return start_error("cannot mark its begin", &error);
    }
    let error = command.exec();
    start_error(&format!("cannot start {program}"), &error)
}

fn take_input(bundle: &Bundle, mode: bundle::Stdin) -> Result<(), bundle::Error> {
    let file = match mode {
        bundle::Stdin::Lines => return Ok(()),
        bundle::Stdin::File => bundle.open_file(bundle::PROMPT, OFlags::RDONLY)?,
        bundle::Stdin::Null => {
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
                .map_err(|error| bundle::Error::Io { name: "/dev/null".to_owned(), source: error.into() })?
        }
    };
    rustix::stdio::dup2_stdin(file.as_fd())
        .map_err(|error| bundle::Error::Io { name: "standard input".to_owned(), source: error.into() })
}

fn start_error(what: &str, error: &io::Error) -> StartError {
    StartError { errno: error.raw_os_error().unwrap_or(libc::EINVAL), text: format!("{what}: {error}") }
}
