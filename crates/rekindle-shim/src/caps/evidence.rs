//! Whether an agent ended for lack of memory: by the count of its cgroup, else by the kernel's log, else by the kernel's
//! count of such kills together with a SIGKILL that was not sent from here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{By, Caps, Held, OutOfMemory};
use crate::os;

/// Records of the kernel's log that are read at an end: more than its buffer holds.
const RECORDS_MAX: u32 = 100_000;

/// The longest record that the kernel gives.
const RECORD_BYTES: usize = 8 << 10;

/// The namespace in which the kernel's log numbers processes.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The signal that the kernel ends a process with for lack of memory.
const KILL: i32 = 9;

/// The exit code of a shell whose last command was ended that way.
const KILLED_CODE: i32 = 128 + KILL;

/// Share of a limit on each process, in tenths, that its largest process must have reached for the limit to count as met.
const REACHED_TENTHS: u64 = 9;

#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// It was ended by the shim, or by an order.
    pub(crate) ordered: bool,
    /// The largest resident size of its processes.
    pub(crate) max_rss_bytes: u64,
}

/// What is watched while the agent lives.
#[derive(Debug)]
pub(crate) struct Evidence {
    caps: Caps,
    held: Held,
    /// The kernel's log from the agent's start on; `None` if it may not be read.
    log: Option<File>,
    /// Kills that were counted at the last check.
    counted: u64,
}

impl Evidence {
    /// Starts monitoring, before the agent's first instruction.
    pub(crate) fn begin(caps: Caps, held: Held) -> Self {
        let mut evidence = Self { caps, held, log: log_from_now(), counted: 0 };
        evidence.look();
        evidence
    }

    /// Saves the current count, so that only later kills are attributed to what follows.
    pub(crate) fn look(&mut self) {
        self.counted = self.count();
    }

    fn count(&self) -> u64 {
        self.held.group.oom().map_or_else(counted_by_machine, |oom| oom.kills)
    }

    /// Ends everything left in the agent's group at once. Returns how many processes were in it.
    pub(crate) fn end_group(&self) -> u32 {
        let left = self.held.group.population();
        self.held.group.kill();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The cap on processes, if the kernel refused one because of it. Only a cgroup counts that.
    pub(crate) fn processes_cap_met(&self) -> Option<u64> {
        self.caps.processes_max.filter(|_| self.held.group.processes_refused() > 0)
    }

    /// What is known about an end. Also removes the group.
    pub(crate) fn close(mut self, agent: u32, end: End) -> Option<OutOfMemory> {
        let found = self.of(agent, end);
        self.held.group.remove();
        found
    }

    fn of(&mut self, agent: u32, end: End) -> Option<OutOfMemory> {
        if end.ordered || end.code == Some(0) {
            return None;
        }
        let killed = end.signal == Some(KILL) || end.code == Some(KILLED_CODE);
        let lately = self.count() > self.counted;
        if let Some(oom) = self.held.group.oom() {
            let cap = self.caps.memory_max.filter(|_| oom.at_cap);
            return (oom.kills > 0 && killed || lately).then_some(OutOfMemory { cap });
        }
        if killed && self.says_killed(agent, end).unwrap_or(lately) {
            return Some(OutOfMemory { cap: None });
        }
        // A process that reaches its own limit may end in any way.
        let cap = self.caps.memory_max.filter(|_| self.held.memory == By::Rlimit);
        cap.filter(|cap| end.max_rss_bytes >= cap / 10 * REACHED_TENTHS).map(|cap| OutOfMemory { cap: Some(cap) })
    }

    /// Whether the kernel's log names the agent; `None` if the log does not show it: it may not be read, numbers processes
    /// differently, or the killed process was below a shell.
    fn says_killed(&mut self, agent: u32, end: End) -> Option<bool> {
        let own = os::pid_namespace().is_ok_and(|inode| inode == FIRST_PID_NAMESPACE);
        let log = self.log.as_mut().filter(|_| own && end.signal == Some(KILL))?;
        Some(killed_in(log).contains(&agent))
    }
}

/// Processes that the kernel has killed for lack of memory since the machine started; 0 if the kernel does not report it.
fn counted_by_machine() -> u64 {
    let table = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    table.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// The kernel's log from now on, if it may be read.
fn log_from_now() -> Option<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let log = fs::OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
    rustix::fs::seek(&log, rustix::fs::SeekFrom::End(0)).ok()?;
    Some(log)
}

/// The processes that the log names as killed for lack of memory.
fn killed_in(log: &mut impl Read) -> Vec<u32> {
    let mut record = vec![0; RECORD_BYTES];
    let mut killed = Vec::new();
    for _ in 0..RECORDS_MAX {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(count) => killed.extend(victim(&String::from_utf8_lossy(&record[..count]))),
            // Overwritten records are skipped.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    killed
}

/// Parses `Out of memory: Killed process 7 (name) …` and `Memory cgroup out of memory: Killed process 7 (name) …`;
/// `oom_reaper`'s own lines name no killed process.
fn victim(record: &str) -> Option<u32> {
    let said = record.split_once(';')?.1;
    let (before, after) = said.split_once("Killed process ")?;
    let digits = after.split(|letter: char| !letter.is_ascii_digit()).next()?;
    before.to_ascii_lowercase().contains("out of memory").then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_who_it_killed() {
        let own =
            "3,1049,24801271178,-;Memory cgroup out of memory: Killed process 15766 (python3) total-vm:221368kB\n";
        assert_eq!(victim(own), Some(15766));
        assert_eq!(victim("3,1,2,-;Out of memory: Killed process 7 (a) b) total-vm:1kB\n"), Some(7));
        assert_eq!(victim("6,1,2,-;oom_reaper: reaped process 7 (x), now anon-rss:0kB\n"), None);
        assert_eq!(victim("6,1,2,-;Killed process 7 by the user's own program\n"), None);
        assert_eq!(victim("no record"), None);
    }
}
