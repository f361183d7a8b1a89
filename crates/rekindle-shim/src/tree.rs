//! Process trees: lists them, pins their members without ever confusing a reused process id, and ends them.
//!
//! A member counts as ours only when it was seen as the child of a pinned process that was still alive after the scan: then
//! the parent's id belonged to the parent all along. The caller decides what to end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus};

use crate::bundle::Survivor;
use crate::clock;
use crate::identity::Process;
use crate::os;
pub use crate::os::ProcStat;

/// How long a tree may resist before its survivors are reported: uninterruptible I/O cannot be killed.
pub const SWEEP_MAX_MS: u64 = 10_000;

/// The pause between passes grows to this, so that a stuck process costs little.
const PAUSE_MAX_MS: u64 = 50;

/// Names of survivors kept in a record, which must fit its preallocated space.
pub const SURVIVORS_MAX: usize = 32;

/// Descriptors polled at once while waiting for a tree to die; any of them ends the wait.
const POLL_MAX: usize = 256;

/// The parent of a process, as far as the system reports it.
pub fn parent_of(pid: u32) -> Option<u32> {
    os::stat(pid).ok().map(|row| row.ppid)
}

/// A snapshot of the process table.
#[derive(Debug)]
pub struct Table {
    rows: BTreeMap<u32, ProcStat>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Table {
    /// Reads the table once. Processes that vanish meanwhile are left out.
    pub fn scan() -> io::Result<Self> {
        let rows: BTreeMap<u32, ProcStat> =
            os::pids()?.into_iter().filter_map(|pid| Some((pid, os::stat(pid).ok()?))).collect();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in rows.values() {
            children.entry(row.ppid).or_default().push(row.pid);
        }
        Ok(Self { rows, children })
    }

    pub fn rows(&self) -> impl Iterator<Item = &ProcStat> {
        self.rows.values()
    }

    pub fn row(&self, pid: u32) -> Option<&ProcStat> {
        self.rows.get(&pid)
    }

    /// Everything below `root` in this snapshot, for observing only: process ids may be reused before they are used.
    pub fn descendants(&self, root: u32) -> Vec<&ProcStat> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([root]);
        let mut frontier = vec![root];
        while let Some(parent) = frontier.pop() {
            for child in self.children.get(&parent).into_iter().flatten() {
                if seen.insert(*child) {
                    found.extend(self.rows.get(child));
                    frontier.push(*child);
                }
            }
        }
        found
    }

    /// Pins every live process below `root`: a process that is pinned and verified, or this process for `None`.
    pub fn pin_descendants(&self, root: Option<&Process>) -> Vec<Process> {
        let mut pinned = Vec::new();
        let mut seen = BTreeSet::new();
        match root {
            None => self.pin_children(std::process::id(), None, &mut seen, &mut pinned),
            Some(root) => self.pin_children(root.id().pid, Some(root), &mut seen, &mut pinned),
        }
        let mut next = 0;
        while next < pinned.len() {
            let mut below = Vec::new();
            let parent = &pinned[next];
            self.pin_children(parent.id().pid, Some(parent), &mut seen, &mut below);
            pinned.append(&mut below);
            next += 1;
        }
        pinned
    }

    /// Pins every live process of our user that was started with the marker of this attempt, except this process: whatever
    /// it did to its session and its parents, the marker shows which attempt it belongs to.
    pub fn pin_marked(&self, nonce: &str) -> Vec<Process> {
        let uid = rustix::process::geteuid().as_raw();
        let candidates = self.rows.keys().filter(|pid| **pid != std::process::id());
        candidates
            .filter(|pid| os::owner(**pid).is_ok_and(|owner| owner == uid))
            .filter_map(|pid| Process::pin(*pid))
            .map(|(process, _)| process)
            .filter(|process| process.carries_nonce(nonce))
            .collect()
    }

    /// Pins the live members of the session that `leader` leads. While the leader lives, its process id belongs to the
    /// session alone.
    pub fn pin_session(&self, leader: &Process) -> Vec<Process> {
        let session = leader.id().pid;
        let candidates = self.rows.values().filter(|row| row.session == session && row.pid != session);
        let pinned = candidates.filter_map(|row| Process::pin(row.pid));
        let members: Vec<Process> =
            pinned.filter(|(_, row)| row.session == session).map(|(process, _)| process).collect();
        if leader.exited() { Vec::new() } else { members }
    }

    /// What the tree below `root` has done so far, `root` itself left out. `None` when `root` is not in the table.
    pub fn activity(&self, root: u32) -> Option<Activity> {
        self.row(root)?;
        let mut activity = Activity::default();
        for row in self.descendants(root) {
            activity.processes += 1;
            activity.cpu_ticks += row.cpu_ticks;
            activity.io_bytes = activity.io_bytes.saturating_add(os::io_bytes(row.pid));
        }
        Some(activity)
    }

    /// How long ago a byte last went over a connection of the tree below `root` that carried a request, in milliseconds.
    /// `None` if there is no such connection, or the system does not report it.
    pub fn connections_quiet_ms(&self, root: u32) -> Option<u64> {
        os::quiet_ms(self.descendants(root).into_iter().map(|row| row.pid))
    }

    fn pin_children(&self, pid: u32, parent: Option<&Process>, seen: &mut BTreeSet<u32>, into: &mut Vec<Process>) {
        for child in self.children.get(&pid).into_iter().flatten() {
            if !seen.insert(*child) {
                continue;
            }
            let Some((process, row)) = Process::pin(*child) else {
                continue;
            };
            // Orphaned in between: it will be seen under its new parent in the next pass.
            if row.ppid == pid && !parent.is_some_and(Process::exited) {
                into.push(process);
            }
        }
    }
}

/// Activity of a tree. The sums may fall when a member ends; any change counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Processor time, in the system's unit.
    pub cpu_ticks: u64,
    /// Bytes through read and write calls.
    pub io_bytes: u64,
    pub processes: u32,
}

/// Stops all of them, then kills all of them: stopped first, none can fork away while the others die. Returns which ones
/// accepted the kill.
pub fn kill_all(processes: &[Process]) -> Vec<u32> {
    for process in processes {
        let _ = process.signal(Signal::STOP);
    }
    processes.iter().filter(|process| process.signal(Signal::KILL).is_ok()).map(|process| process.id().pid).collect()
}

/// Waits until one of them ends or the time is over.
pub fn await_any(processes: &[Process], timeout_ms: u64) {
    let mut fds: Vec<PollFd<'_>> = processes
        .iter()
        .take(POLL_MAX)
        .map(|process| PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN))
        .collect();
    // Interrupted or refused: the caller's loop checks again anyway.
    let _ = poll(&mut fds, Some(&clock::timeout(timeout_ms)));
}

/// The pause of a loop that waits for a tree, doubling up to a bound.
#[derive(Debug)]
pub struct Pause(u64);

impl Default for Pause {
    fn default() -> Self {
        Self(1)
    }
}

impl Pause {
    /// How long to wait this time.
    pub fn next_ms(&mut self) -> u64 {
        let now = self.0;
        self.0 = (now * 2).min(PAUSE_MAX_MS);
        now
    }
}

pub fn name_survivors(processes: &[Process]) -> Vec<Survivor> {
    let name = |pid| os::stat(pid).map(|row| row.name).unwrap_or_default();
    processes
        .iter()
        .take(SURVIVORS_MAX)
        .map(|process| Survivor { pid: process.id().pid, name: name(process.id().pid) })
        .collect()
}

/// What one round of reaping found.
#[derive(Debug, Default)]
pub(crate) struct Reaped {
    /// How the awaited process ended, if it was among them.
    pub(crate) awaited: Option<WaitStatus>,
    /// No child is left.
    pub(crate) childless: bool,
}

/// Reaps every child that has ended, adopted ones too.
pub(crate) fn reap(awaited: u32) -> Reaped {
    let mut reaped = Reaped::default();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if u32::try_from(pid.as_raw_nonzero().get()) == Ok(awaited) {
                    reaped.awaited = Some(status);
                }
            }
            Ok(None) => return reaped,
            Err(Errno::INTR) => {}
            // Only ECHILD is possible here.
            Err(_) => {
                reaped.childless = true;
                return reaped;
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// How the awaited process ended, if it ended during the sweep.
    pub(crate) awaited: Option<WaitStatus>,
    pub(crate) killed: u32,
    pub(crate) survivors: Vec<Survivor>,
}

/// Ends everything below this process, which must be a subreaper, and reaps it: until no child is left, or the
/// time is over.
pub(crate) fn sweep(awaited: u32) -> Sweep {
    let mut sweep = Sweep::default();
    let mut killed = BTreeSet::new();
    let mut pause = Pause::default();
    let give_up_at_ms = clock::monotonic_ms() + SWEEP_MAX_MS;
    loop {
        let reaped = reap(awaited);
        sweep.awaited = sweep.awaited.or(reaped.awaited);
        if reaped.childless {
            break;
        }
        let members = Table::scan().map(|table| table.pin_descendants(None)).unwrap_or_default();
        if clock::monotonic_ms() >= give_up_at_ms {
            sweep.survivors = name_survivors(&members);
            break;
        }
        killed.extend(kill_all(&members));
        await_any(&members, pause.next_ms());
    }
    sweep.killed = u32::try_from(killed.len()).unwrap_or(u32::MAX);
    sweep
}
