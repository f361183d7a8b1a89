//! Whether the machine has room for another agent: disk for its output and the log, memory to run in.
//!
//! Only a look. Agents that run are left alone; what follows for new ones is decided in the core.

use std::path::Path;

use rekindle_core::refusal::Refusal;

/// Free space below which nothing new is started: a log that cannot grow cannot keep its promises.
const DISK_LOW_BYTES: u64 = 256 * 1024 * 1024;

/// On a small disk this part of it, so that one of a few megabytes can be used at all.
const DISK_LOW_PART: u64 = 50;

/// Free files below which nothing new is started: an attempt takes a dozen.
const FILES_LOW: u64 = 64;

/// Memory below which nothing new is started; coding agents take some hundred megabytes each.
const MEMORY_LOW_BYTES: u64 = 128 * 1024 * 1024;

/// What the machine is short of, if anything.
#[must_use]
pub fn look(state_dir: &Path) -> Option<Refusal> {
    disk(state_dir).or_else(|| memory(&std::fs::read_to_string("/proc/meminfo").ok()?))
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

fn memory(table: &str) -> Option<Refusal> {
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    (kib * 1024 < MEMORY_LOW_BYTES).then(|| Refusal {
        reason: format!("only {} MiB of memory are available", kib / 1024),
        hint: "see who has it: free -m; ps aux --sort=-rss | head".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_table() {
        assert_eq!(memory("MemTotal: 8000000 kB\nMemAvailable:    4000000 kB\n"), None);
        let low = memory("MemAvailable:      65536 kB\n").expect("too little");
        assert!(low.reason.contains("64 MiB"), "{low:?}");
        assert_eq!(memory("no such line"), None);
    }
}
