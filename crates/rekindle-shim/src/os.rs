//! What differs between operating systems, behind one set of names. The only folder where `unsafe` is allowed.

pub mod clock;

#[cfg(target_os = "linux")]
mod connections;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use connections::quiet_ms;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::*;

/// One row of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcStat {
    pub pid: u32,
    /// Its parent at the moment of reading.
    pub ppid: u32,
    /// Its process group; 0 if the group is not in this namespace.
    pub group: u32,
    pub session: u32,
    /// Whether it has ended and waits to be reaped.
    pub zombie: bool,
    /// When it started, in the system's own unit since boot.
    pub start_ticks: u64,
    /// Processor time of the process and of the children it has waited for, in the system's own unit.
    pub cpu_ticks: u64,
    /// The short name of its program.
    pub name: String,
}

/// What all reaped children used together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Processor time in user mode.
    pub user_ms: u64,
    /// Processor time in the kernel.
    pub sys_ms: u64,
    /// The largest resident size any of them reached.
    pub max_rss_kb: u64,
}
