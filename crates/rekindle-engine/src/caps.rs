//! How much of this machine an agent or a check may use: its own caps, else those for all, else sensible defaults for this
//! machine.

use rekindle_shim::caps::Caps;
pub use rekindle_shim::caps::{By, Held, standing};

use rekindle_shim::bundle::ExitRecord;

/// Quarters of the machine's memory that one agent may use by default: a memory hog is ended while the rest of the fleet and
/// the desktop still have the last quarter, and no ordinary build comes near it. Swap is not counted.
const AUTO_QUARTERS: u64 = 3;

/// Default number of processes and threads. A parallel build on a large machine has a few hundred, browsers and test runners
/// beside it a few hundred more; a fork bomb reaches it within a second, and eight of them fit into the smallest usual
/// `kernel.pid_max` of 32,768.
pub const PROCESSES_MAX: u64 = 4_096;

/// A cap on memory as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// A share of the machine's memory, if a cgroup can enforce it.
    #[default]
    Auto,
    None,
    Bytes(u64),
}

/// What an agent may use if it sets nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub memory_max: Memory,
    pub processes_max: u64,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { memory_max: Memory::Auto, processes_max: PROCESSES_MAX }
    }
}

impl Defaults {
    /// What a check may use: as much as an agent that sets nothing else.
    pub fn for_checks(&self) -> Caps {
        self.or_own(None, None)
    }

    /// What a program may use: its own caps if it has any.
    pub fn or_own(&self, memory_max: Option<Memory>, processes_max: Option<u64>) -> Caps {
        let memory = memory_max.unwrap_or(self.memory_max);
        let (memory_max, memory_named) = match memory {
            Memory::Auto => (total_memory().map(|bytes| bytes / 4 * AUTO_QUARTERS), false),
            Memory::None => (None, false),
            Memory::Bytes(bytes) => (Some(bytes), true),
        };
        Caps { memory_max, memory_named, processes_max: Some(processes_max.unwrap_or(self.processes_max)) }
    }
}

/// Which cap a check reached, with what to change; `None` if it reached none. A check that passed all the same needs no
/// explanation.
pub(crate) fn met(record: &ExitRecord) -> Option<String> {
    if record.code == Some(0) {
        return None;
    }
    let memory = record.out_of_memory.as_ref().map(|found| match found.cap {
        Some(cap) => format!(
            "this check was ended for lack of memory, at its cap of {} MiB: let it use less, or raise `caps.memory_max`",
            cap >> 20
        ),
        None => "this check was ended because the machine had no memory left: run fewer agents at once \
            (`run.max_agents`), or let it use less"
            .to_owned(),
    });
    let processes = record.processes_cap.map(|cap| {
        format!(
            "this check met its cap of {cap} processes, and more were refused: let it start fewer, or raise \
             `caps.processes_max`"
        )
    });
    memory.or(processes)
}

/// The machine's memory, if the system reports it.
fn total_memory() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_caps_go_before_those_for_all() {
        let defaults = Defaults { memory_max: Memory::Bytes(1 << 30), processes_max: 100 };
        let caps = defaults.or_own(None, None);
        assert_eq!((caps.memory_max, caps.processes_max, caps.memory_named), (Some(1 << 30), Some(100), true));
        let caps = defaults.or_own(Some(Memory::None), Some(7));
        assert_eq!((caps.memory_max, caps.processes_max), (None, Some(7)));
        let auto = Defaults::default().or_own(None, None);
        assert!(!auto.memory_named, "nobody asked for it: no limit on single processes");
        if cfg!(target_os = "linux") {
            assert!(auto.memory_max.is_some_and(|bytes| bytes > 0));
        }
    }
}
