//! Whether the machine has room for another agent: disk for its output and the log, memory to run in.
//!
//! It only measures. Running agents are left alone; the consequences for new ones are decided in the core.

use std::path::Path;

use rekindle_core::refusal::Refusal;
use rekindle_shim::cgroup::{self, Room};

/// Free space below which nothing new is started: a log that cannot grow cannot keep its promises.
const DISK_LOW_BYTES: u64 = 256 * 1024 * 1024;

/// On a small disk this fraction of it (one in 50), so that a disk of a few megabytes can be used at all.
const DISK_LOW_PART: u64 = 50;

/// Free files below which nothing new is started: an attempt takes a dozen.
const FILES_LOW: u64 = 64;

/// Memory below which nothing new is started; coding agents use a few hundred megabytes each.
const MEMORY_LOW_BYTES: u64 = 512 * 1024 * 1024;

/// On a small machine this fraction of its memory (one in 10), so that a machine with a gigabyte can be used at all.
const MEMORY_LOW_PART: u64 = 10;

/// Up to this many times that limit, memory is tight: agents are then started one after the other.
const MEMORY_TIGHT_TIMES: u64 = 4;

/// Share of the last ten seconds, in percent, in which everything stalled for lack of memory: the machine is thrashing.
const STALLED_PERCENT: f64 = 20.0;

/// What the machine lacks, if anything.
pub fn look(state_dir: &Path) -> Option<Refusal> {
    disk(state_dir).or_else(memory)
}

/// The refusal if memory is short: on the machine, in the cgroup of this process, or because the machine thrashes.
pub fn memory() -> Option<Refusal> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let short = room(&read("/proc/meminfo")).filter(|room| room.available < low(room));
    short.map(few).or_else(|| stalled(&read("/proc/pressure/memory")))
}

/// Whether memory is so tight that the next start has to wait to see how much the last one uses.
pub fn is_tight() -> bool {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    room(&table).is_some_and(|room| room.available < low(&room) * MEMORY_TIGHT_TIMES)
}

/// The memory available: on the machine, or in the cgroup of this process if that has less.
fn room(table: &str) -> Option<Room> {
    let kib = |name: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let machine = kib("MemAvailable:").map(|available| Room {
        available: available << 10,
        // An old table without a total counts as that of a machine with enough.
        total: kib("MemTotal:").map_or(u64::MAX, |total| total << 10),
    });
    machine.into_iter().chain(cgroup::room()).min_by_key(|room| room.available)
}

fn low(room: &Room) -> u64 {
    MEMORY_LOW_BYTES.min(room.total / MEMORY_LOW_PART)
}

fn few(room: Room) -> Refusal {
    Refusal { reason: format!("only {} MiB of memory are available", room.available >> 20), hint: hint() }
}

fn hint() -> String {
    "see who has it: free -m; ps aux --sort=-rss | head; or run fewer agents at once: run.max_agents".to_owned()
}

/// The kernel's own measure of a machine that only moves memory about.
fn stalled(table: &str) -> Option<Refusal> {
    let line = table.lines().find_map(|line| line.strip_prefix("full avg10="))?;
    let percent: f64 = line.split(' ').next()?.parse().ok()?;
    (percent >= STALLED_PERCENT).then(|| Refusal {
        reason: format!("the machine stalled for lack of memory for {percent:.0} % of the last ten seconds"),
        hint: hint(),
    })
}

fn disk(dir: &Path) -> Option<Refusal> {
    let found = rustix::fs::statvfs(dir).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let total = found.f_blocks.saturating_mul(found.f_frsize);
    if free < DISK_LOW_BYTES.min(total / DISK_LOW_PART) {
        let reason = format!("only {} KiB are free on the disk of {}", free / 1024, dir.display());
        return Some(Refusal { reason, hint: format!("free space there: df -h {}", dir.display()) });
    }
    // Some filesystems do not count files: they say that there are none at all.
    (found.f_files > 0 && found.f_favail < FILES_LOW).then(|| Refusal {
        reason: format!("only {} more files can be made on the disk of {}", found.f_favail, dir.display()),
        hint: format!("remove files there: df -i {}", dir.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_table() {
        let short = |table: &str| room(table).filter(|room| room.available < low(room)).map(few);
        assert_eq!(short("MemTotal: 8000000 kB\nMemAvailable:    4000000 kB\n"), None);
        let low = short("MemTotal: 8000000 kB\nMemAvailable:      65536 kB\n").expect("too little");
        assert!(low.reason.contains("64 MiB"), "{low:?}");
        assert_eq!(short("MemTotal: 500000 kB\nMemAvailable:      65536 kB\n"), None, "a small machine has no more");
    }

    #[test]
    fn a_machine_that_thrashes_says_so() {
        let table = |full: &str| {
            format!("some avg10=80.00 avg60=1.00 avg300=0.00 total=9\nfull avg10={full} avg60=0.10 total=5\n")
        };
        assert_eq!(stalled(&table("3.20")), None);
        assert!(stalled(&table("41.70")).is_some_and(|refusal| refusal.reason.contains("42 %")));
        assert_eq!(stalled(""), None, "an old kernel");
    }
}
