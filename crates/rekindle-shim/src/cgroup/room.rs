//! How much memory the groups of this process leave it: in a container this is what counts, not the memory of the machine.

use std::fs;
use std::path::Path;

use super::Layout;

/// Nested groups that are checked: no tree is deeper than this.
const DEPTH_MAX: usize = 16;

/// Memory within the groups of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes it may still use.
    pub available: u64,
    /// Bytes it may use in all.
    pub total: u64,
}

/// The least memory that the groups of this process leave it; `None` if none of them limits it.
pub fn room() -> Option<Room> {
    let layout = Layout::here();
    let dirs = [(&layout.unified, &SECOND), (&layout.memory, &FIRST)];
    let rooms = dirs.into_iter().filter_map(|(dir, files)| dir.as_deref().and_then(|dir| least(dir, files)));
    rooms.min_by_key(|room| room.available)
}

/// File names of one version.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Memory that could be reclaimed: the part of the file cache that was not used lately.
    idle: &'static str,
}

const SECOND: Files = Files { limit: "memory.max", usage: "memory.current", idle: "inactive_file " };
const FIRST: Files =
    Files { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", idle: "total_inactive_file " };

/// More than this means no limit: version 1 writes "none" as the largest number of pages.
const UNLIMITED: u64 = 1 << 60;

fn least(dir: &Path, files: &Files) -> Option<Room> {
    let rooms = dir.ancestors().take(DEPTH_MAX).filter_map(|dir| {
        let number = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
        let total = number(files.limit).filter(|limit| *limit < UNLIMITED)?;
        let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
        let idle = stat.lines().find_map(|line| line.strip_prefix(files.idle)?.trim().parse::<u64>().ok());
        let used = number(files.usage)?.saturating_sub(idle.unwrap_or(0));
        Some(Room { available: total.saturating_sub(used), total })
    });
    rooms.min_by_key(|room| room.available)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_group_counts() {
        let root = tempfile::tempdir().expect("tempdir");
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).expect("directories");
        let write = |dir: &Path, name: &str, text: &str| fs::write(dir.join(name), text).expect("file");
        write(&inner, "memory.max", "max\n");
        write(&inner, "memory.current", "500\n");
        assert_eq!(least(&inner, &SECOND), None, "nothing limits it");
        let outer = root.path().join("a");
        write(&outer, "memory.max", "1000\n");
        write(&outer, "memory.current", "900\n");
        write(&outer, "memory.stat", "anon 1\ninactive_file 300\nactive_file 7\n");
        assert_eq!(least(&inner, &SECOND), Some(Room { available: 400, total: 1000 }));
    }
}
