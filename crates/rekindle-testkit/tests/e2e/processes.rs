//! Processes of a test, known by a mark in their environment that everything below them inherits.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// The variable that carries the mark.
pub const MARK: &str = "E2E_RIG";

/// Every living process that carries the mark.
pub fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").expect("process table");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| carries(*pid, &wanted)).collect()
}

fn carries(pid: u32, wanted: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes()))
}

/// What a process is, for the text of a failed assertion.
pub fn describe(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("{pid} {}", command.trim())
}

/// Sends a signal to a process that carries the mark; says whether there was one.
pub fn signal(pid: u32, mark: &str, signal: Signal) -> bool {
    let Some(handle) = pin(pid) else { return false };
    // Pinned first, then looked at: the number cannot come to mean somebody else in between.
    carries(pid, &format!("{MARK}={mark}")) && rustix::process::pidfd_send_signal(&handle, signal).is_ok()
}

/// A process of a test, held so that its number cannot come to mean another.
pub struct Pinned(OwnedFd);

/// Looks at a process that is between two programs: far longer than an exec takes, and still bounded.
const EXEC_LOOKS: u32 = 100_000;

impl Pinned {
    /// The process, if it is there and carries the mark.
    pub fn new(pid: u32, mark: &str) -> Option<Self> {
        let handle = pin(pid)?;
        // A process that is just becoming another program shows an empty environment for an instant.
        let between = || std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| environ.is_empty());
        for _ in 0..EXEC_LOOKS {
            if !runs(pid) || !between() {
                break;
            }
            std::thread::yield_now();
        }
        carries(pid, &format!("{MARK}={mark}")).then_some(Self(handle))
    }

    /// Kills it at once, unless it is gone already.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Sends it a signal, unless it is gone already.
    pub fn send(&self, signal: Signal) {
        let _gone = rustix::process::pidfd_send_signal(&self.0, signal);
    }
}

/// Whether the process runs: there, and not a zombie.
pub fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

fn pin(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}
