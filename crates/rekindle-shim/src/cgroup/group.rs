//! The group of one attempt: made before the agent's first instruction, ended as a whole, removed when it is empty.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Layout, passed_down, write};
use crate::caps::{By, Caps};
use crate::clock;
use crate::identity::Process;

/// How often the removal of a group is retried after its last process has gone.
const REMOVE_TRIES: u32 = 40;

/// Pause between two of these removals.
const REMOVE_PAUSE_MS: u64 = 5;

/// Groups that an agent made within its own, and that are removed with it: how deep, and how many on a level.
const NESTED_DEPTH: u32 = 4;
const NESTED_MAX: usize = 256;

/// An attempt's group: one directory in each hierarchy that enforces something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    #[serde(default)]
    pub dirs: Vec<Dir>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dir {
    pub path: PathBuf,
    /// What kind of group it is.
    pub by: By,
    pub memory: bool,
    #[serde(default)]
    pub memory_capped: bool,
    pub processes: bool,
}

/// What a group's memory controller counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oom {
    /// Processes that the kernel killed for lack of memory.
    pub kills: u64,
    /// The group reached its own cap.
    pub at_cap: bool,
}

impl Group {
    /// Makes the directories and writes the caps. Directories that cannot be made are left out.
    pub(crate) fn make(layout: &Layout, name: &str, caps: &Caps) -> Self {
        let mut group = Self::default();
        if let Some(base) = &layout.unified {
            let passes = passed_down(base);
            let path = base.join(name);
            let made = make_dir(&path).is_ok();
            let memory = made && passes.has("memory");
            let memory_capped = memory && capped(&path, "memory.max", caps.memory_max);
            let processes = made && passes.has("pids") && capped(&path, "pids.max", caps.processes_max);
            if made {
                group.dirs.push(Dir { path, by: By::Cgroup2, memory, memory_capped, processes });
            }
        }
        if let Some(base) = layout.memory.as_ref().filter(|_| !group.counts_memory()) {
            let path = base.join(name);
            if make_dir(&path).is_ok() {
                let memory_capped = capped(&path, "memory.limit_in_bytes", caps.memory_max);
                group.dirs.push(Dir { path, by: By::Cgroup1, memory: true, memory_capped, processes: false });
            }
        }
        let wanted = caps.processes_max.is_some() && group.processes_by() == By::Nothing;
        if let Some(base) = layout.processes.as_ref().filter(|_| wanted) {
            let path = base.join(name);
            if make_dir(&path).is_ok() {
                let processes = capped(&path, "pids.max", caps.processes_max);
                group.dirs.push(Dir { path, by: By::Cgroup1, memory: false, memory_capped: false, processes });
            }
        }
        group
    }

    /// The directories with a given name, below this process's own groups.
    pub(crate) fn named(name: &str) -> Self {
        let dir = |base: &Path| Dir {
            path: base.join(name),
            by: By::Nothing,
            memory: false,
            memory_capped: false,
            processes: false,
        };
        Self { dirs: Layout::here().dirs().map(dir).collect() }
    }

    /// Moves a process in. A directory that does not take it is removed.
    pub(crate) fn admit(&mut self, pid: u32) {
        self.dirs.retain(|dir| {
            let taken = write(&dir.path.join("cgroup.procs"), &pid.to_string()).is_ok();
            if !taken {
                let _in_use = fs::remove_dir(&dir.path);
            }
            taken
        });
    }

    /// Only the directories that are named after this attempt: the rest are not trusted.
    pub fn proven(&self, attempt: &str, nonce: &str) -> Self {
        let name = super::name(attempt, nonce);
        let scope = super::scope::unit(&name);
        let called = |dir: &&Dir| dir.path.file_name().is_some_and(|found| *found == *name || *found == *scope);
        Self { dirs: self.dirs.iter().filter(called).cloned().collect() }
    }

    fn counts_memory(&self) -> bool {
        self.dirs.iter().any(|dir| dir.memory)
    }

    pub fn memory_by(&self) -> By {
        self.dirs.iter().find(|dir| dir.memory_capped).map_or(By::Nothing, |dir| dir.by)
    }

    pub fn processes_by(&self) -> By {
        self.dirs.iter().find(|dir| dir.processes).map_or(By::Nothing, |dir| dir.by)
    }

    /// What its memory controller counted; `None` without a controller.
    pub fn oom(&self) -> Option<Oom> {
        let dir = self.dirs.iter().find(|dir| dir.memory)?;
        let read = |name: &str| fs::read_to_string(dir.path.join(name)).ok();
        if dir.by == By::Cgroup1 {
            let kills = field(&read("memory.oom_control")?, "oom_kill")?;
            let refused = read("memory.failcnt").and_then(|text| text.trim().parse::<u64>().ok());
            return Some(Oom { kills, at_cap: dir.memory_capped && refused.unwrap_or(0) > 0 });
        }
        let events = read("memory.events")?;
        let met = field(&events, "oom").unwrap_or(0);
        Some(Oom { kills: field(&events, "oom_kill")?, at_cap: dir.memory_capped && met > 0 })
    }

    /// How often a process was refused because of its cap; 0 without a controller.
    pub fn processes_refused(&self) -> u64 {
        let dir = self.dirs.iter().find(|dir| dir.processes);
        let events = dir.and_then(|dir| fs::read_to_string(dir.path.join("pids.events")).ok());
        events.and_then(|text| field(&text, "max")).unwrap_or(0)
    }

    /// Ends everything in it at once, forks included. Returns whether the kernel supports that.
    pub fn kill(&self) -> bool {
        let mut killed = false;
        for dir in &self.dirs {
            // Where they cannot be ended at once, they are kept from multiplying meanwhile.
            let _has_none =
                if dir.by == By::Cgroup1 && dir.processes { write(&dir.path.join("pids.max"), "0") } else { Ok(()) };
            killed |= dir.by != By::Cgroup1 && write(&dir.path.join("cgroup.kill"), "1").is_ok();
        }
        killed
    }

    /// How many processes are in it.
    pub fn population(&self) -> usize {
        self.pids().len()
    }

    fn pids(&self) -> BTreeSet<u32> {
        self.dirs.iter().flat_map(|dir| members_of(&dir.path, NESTED_DEPTH)).collect()
    }

    /// Pins all live processes in it.
    pub fn members(&self) -> Vec<Process> {
        let pinned = self.pids().into_iter().filter_map(|pid| Process::pin(pid).map(|(process, _)| process));
        // Checked again once it is pinned: the process id may have been reused since.
        pinned.filter(|process| self.holds(process)).collect()
    }

    fn holds(&self, process: &Process) -> bool {
        let table = fs::read_to_string(format!("/proc/{}/cgroup", process.id().pid)).unwrap_or_default();
        let named = |dir: &Dir| {
            let name = dir.path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| table.lines().any(|line| line.split('/').any(|part| part == name)))
        };
        self.dirs.iter().any(named) && !process.exited()
    }

    /// Removes the group, which the kernel allows only when it is empty. Waits a moment for the last process to go.
    pub fn remove(&self) {
        for dir in &self.dirs {
            for _ in 0..REMOVE_TRIES {
                match remove_dir(&dir.path, NESTED_DEPTH) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => clock::pause(REMOVE_PAUSE_MS),
                    _ => break,
                }
            }
        }
    }
}

/// Makes a directory. A bundle that was prepared twice finds its group again.
fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Whether a cap was given and is in force.
fn capped(dir: &Path, file: &str, cap: Option<u64>) -> bool {
    cap.is_some_and(|cap| write(&dir.join(file), &cap.to_string()).is_ok())
}

/// The number after a word at the beginning of a line.
fn field(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok())
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .take(NESTED_MAX)
        .collect()
}

fn members_of(dir: &Path, depth: u32) -> Vec<u32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect();
    if depth > 0 {
        pids.extend(below(dir).iter().flat_map(|dir| members_of(dir, depth - 1)));
    }
    pids
}

fn remove_dir(dir: &Path, depth: u32) -> io::Result<()> {
    if depth > 0 {
        for nested in below(dir) {
            // If one stays, the removal of its parent reports it.
            let _stays = remove_dir(&nested, depth - 1);
        }
    }
    fs::remove_dir(dir)
}
