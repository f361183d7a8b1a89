//! The provable identity of a process: recorded once, checked before every signal.
//!
//! A process id alone, or one with a start time, is not an identity: ids are reused within one clock tick. A process is
//! pinned first, then verified, and signalled only through the pin, so there is no gap between the check and the act. Which
//! processes to end is decided elsewhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::os;

/// A process as it is written into a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcId {
    /// The boot in which it lived; in another boot none of our processes is alive.
    pub boot_id: String,
    pub pid: u32,
    /// The inode of its pidfd, if the kernel never reuses one (Linux 6.9 on).
    pub pidfd_inode: Option<u64>,
    /// When it started, in the system's unit since boot.
    pub start_ticks: u64,
    /// The namespace in which the process id has meaning.
    pub pid_ns_inode: u64,
}

/// A pinned process: signals reach it and nothing else.
#[derive(Debug)]
pub struct Process {
    id: ProcId,
    handle: os::Handle,
}

/// What is left of a recorded process.
#[derive(Debug)]
pub enum Opened {
    /// It lives, and this is it.
    Ours(Process),
    /// Process id, start time and boot agree, but this kernel cannot prove more: a second factor is required before a
    /// signal.
    Likely(Process),
    /// It has ended; its process id may have been reused by now.
    Gone,
    /// It lived in another boot of this machine, or on another one.
    OtherBoot,
    /// It was recorded inside another pid namespace; its process id means nothing here.
    OtherNamespace,
}

impl ProcId {
    /// Finds the recorded process, if it still lives. Fails when the system does not answer; never because the process
    /// is gone.
    pub fn open(&self) -> io::Result<Opened> {
        if self.boot_id != os::boot_id()? {
            return Ok(Opened::OtherBoot);
        }
        if self.pid_ns_inode != os::pid_namespace()? {
            return Ok(Opened::OtherNamespace);
        }
        let handle = match os::Handle::open(self.pid) {
            Ok(handle) => handle,
            // The second error means that the id now belongs to a thread of another process.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL)) => {
                return Ok(Opened::Gone);
            }
            Err(error) => return Err(error),
        };
        let inode = handle.inode();
        let process = Process { id: self.clone(), handle };
        if let (Some(recorded), Some(found)) = (self.pidfd_inode, inode) {
            if recorded != found || process.exited() {
                return Ok(Opened::Gone);
            }
            return Ok(Opened::Ours(process));
        }
        match os::stat(self.pid) {
            Ok(stat) if stat.start_ticks == self.start_ticks && !process.exited() => Ok(Opened::Likely(process)),
            _ => Ok(Opened::Gone),
        }
    }

    /// Whether it was recorded in this boot of this machine. Fails when the system does not tell its boot id.
    pub fn is_this_boot(&self) -> io::Result<bool> {
        Ok(self.boot_id == os::boot_id()?)
    }
}

impl Process {
    /// Pins our own child, which keeps its process id until we reap it, even when it has already ended. Fails when the
    /// system cannot pin or describe it.
    pub fn of_child(pid: u32) -> io::Result<Self> {
        let handle = os::Handle::open(pid)?;
        let stat = os::stat(pid)?;
        Self::describe(handle, &stat)
    }

    /// Pins and describes this very process.
    pub fn own() -> io::Result<Self> {
        Self::of_child(std::process::id())
    }

    /// Pins the program that started this one: the nearest ancestor whose program is not in `between`, the shells and the
    /// like that only come in between. `None` if there is none within a few generations.
    pub fn caller(between: &[&str]) -> Option<Self> {
        /// A shell, perhaps one more, a wrapper.
        const GENERATIONS: usize = 5;
        let mut pid = u32::try_from(rustix::process::getppid()?.as_raw_nonzero().get()).ok()?;
        for _ in 0..GENERATIONS {
            let (process, stat) = Self::pin(pid)?;
            if stat.pid <= 1 {
                return None;
            }
            if !between.contains(&stat.name.as_str()) {
                return Some(process);
            }
            pid = stat.ppid;
        }
        None
    }

    /// Pins a living process together with its row of the process table; `None` when it is gone.
    pub(crate) fn pin(pid: u32) -> Option<(Self, os::ProcStat)> {
        let handle = os::Handle::open(pid).ok()?;
        let stat = os::stat(pid).ok()?;
        // If it is alive after the read, the row describes this process.
        if handle.exited() {
            return None;
        }
        let process = Self::describe(handle, &stat).ok()?;
        Some((process, stat))
    }

    fn describe(handle: os::Handle, stat: &os::ProcStat) -> io::Result<Self> {
        let id = ProcId {
            boot_id: os::boot_id()?,
            pid: stat.pid,
            pidfd_inode: handle.inode(),
            start_ticks: stat.start_ticks,
            pid_ns_inode: os::pid_namespace()?,
        };
        Ok(Self { id, handle })
    }

    pub fn id(&self) -> &ProcId {
        &self.id
    }

    /// Sends a signal to exactly this process. Fails when it has ended (`ESRCH`) or may not be signalled (`EPERM`).
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.handle.signal(signal)
    }

    /// Whether it has ended, reaped or not.
    pub fn exited(&self) -> bool {
        self.handle.exited()
    }

    /// Reaps our own child, if it has ended; processes of others are not affected. Fails when it is not our child, or was
    /// already reaped.
    pub fn reap_child(&self) -> io::Result<bool> {
        Ok(reap(self.id.pid)?.is_some())
    }

    /// Whether it was started with the marker of this attempt: the second factor for [`Opened::Likely`].
    pub fn carries_nonce(&self, nonce: &str) -> bool {
        let marker = format!("{}={nonce}", crate::MARKER_ENV);
        !nonce.is_empty() && os::environ_has(self.id.pid, marker.as_bytes()) && !self.exited()
    }
}

/// How a reaped child of this process ended: its exit code, if it had one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped(pub Option<i32>);

/// Reaps a child of this process, if it has ended. By process id and not by pidfd, which only Linux has and which may be
/// refused: an unreaped child keeps its id. Fails when it is not our child, or was already reaped.
pub fn reap(pid: u32) -> io::Result<Option<Reaped>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let reaped = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG)?;
    Ok(reaped.map(|(_, status)| Reaped(status.exit_status())))
}

impl AsFd for Process {
    /// Becomes readable when the process ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("spawn sleep")
    }

    #[test]
    fn a_living_process_is_found_and_an_ended_one_is_gone() {
        let mut child = sleeper();
        let process = Process::of_child(child.id()).expect("pin");
        let id = process.id().clone();
        assert!(matches!(id.open().expect("open"), Opened::Ours(_) | Opened::Likely(_)));
        process.signal(Signal::KILL).expect("kill");
        child.wait().expect("wait");
        assert!(process.exited());
        assert!(matches!(id.open().expect("open"), Opened::Gone));
    }

    #[test]
    fn a_stranger_with_the_same_number_is_not_ours() {
        let mut child = sleeper();
        let mut id = Process::of_child(child.id()).expect("pin").id().clone();
        id.pidfd_inode = id.pidfd_inode.map(|inode| inode + 1);
        id.start_ticks += 1;
        assert!(matches!(id.open().expect("open"), Opened::Gone));
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    #[test]
    fn another_boot_and_another_namespace_are_never_ours() {
        let mut id = Process::own().expect("own").id().clone();
        id.pid_ns_inode += 1;
        assert!(matches!(id.open().expect("open"), Opened::OtherNamespace));
        id.boot_id = "another".to_owned();
        assert!(matches!(id.open().expect("open"), Opened::OtherBoot));
        assert!(!id.is_this_boot().expect("boot id"));
    }
}
