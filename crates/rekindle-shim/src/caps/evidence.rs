//! Whether an agent's end was one for lack of memory: what its cgroup counted, else what the kernel's log says, else the
//! kernel's count of such ends beside a kill that nobody here sent.

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

/// The exit code of a shell whose last command was ended so.
const KILLED_CODE: i32 = 128 + KILL;

/// Share of a limit on each process, in tenths, that its largest process reached when it met the limit.
const REACHED_TENTHS: u64 = 9;

#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// It was ended by the shim, or on somebody's order.
    pub(crate) ordered: bool,
    /// The largest resident size of its processes.
    pub(crate) max_rss_bytes: u64,
}

/// What is watched while the agent lives.
#[derive(Debug)]
pub(crate) struct Evidence {
    caps: Caps,
    held: Held,
    /// From the agent's start on; none where it may not be read.
    log: Option<File>,
    /// Ends that were counted at the last look.
    counted: u64,
}

impl Evidence {
    /// Begins to watch, before the agent's first instruction.
    pub(crate) fn begin(caps: Caps, held: Held) -> Self {
        let mut evidence = Self { caps, held, log: log_from_now(), counted: 0 };
        evidence.look();
        evidence
    }

    /// Takes the count. What comes later belongs to what comes later.
    pub(crate) fn look(&mut self) {
        self.counted = self.count();
    }

    fn count(&self) -> u64 {
        self.held.group.oom().map_or_else(counted_by_machine, |oom| oom.kills)
    }

    /// Ends all that is left in the agent's group at once. Answers how many were in it.
    pub(crate) fn end_group(&self) -> u32 {
        let left = self.held.group.population();
        self.held.group.kill();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The cap on processes, where the kernel refused one for it. Only a cgroup counts that.
    pub(crate) fn processes_cap_met(&self) -> Option<u64> {
        self.caps.processes_max.filter(|_| self.held.group.processes_refused() > 0)
    }

    /// What is known of an end. The group goes with it.
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
        // A process that meets its own limit ends as it likes.
        let cap = self.caps.memory_max.filter(|_| self.held.memory == By::Rlimit);
        cap.filter(|cap| end.max_rss_bytes >= cap / 10 * REACHED_TENTHS).map(|cap| OutOfMemory { cap: Some(cap) })
    }

    /// Whether the kernel's log names the agent; nothing where it does not tell: it may not be read, numbers processes
    /// differently, or the one that was killed was below a shell.
    fn says_killed(&mut self, agent: u32, end: End) -> Option<bool> {
        let own = os::pid_namespace().is_ok_and(|inode| inode == FIRST_PID_NAMESPACE);
        let log = self.log.as_mut().filter(|_| own && end.signal == Some(KILL))?;
        Some(killed_in(log).contains(&agent))
    }
}

/// Processes that the kernel has ended for lack of memory since the machine's start; 0 where it does not tell.
fn counted_by_machine() -> u64 {
    let table = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    table.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// The kernel's log from now on, where it may be read.
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
            // Records that were overwritten are passed over.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    killed
}

/// `Out of memory: Killed process 7 (name) …`, `Memory cgroup out of memory: Killed process 7 (name) …`, and `oom_reaper`'s
/// own lines, which name nobody as killed.
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
