//! The size of a state directory. Counting is bounded: a view that asks for it must not wait for a directory with a million
//! files.

use std::path::Path;

use rekindle_shim::clock;

use super::tree::{self, Use};

/// Files that are counted before the rest is left out: a tenth of a second on a cold disk, less on a warm one.
const ENTRIES_MAX: u64 = 20_000;

/// Longest time for counting.
const LOOK_MS: u64 = 100;

/// Counted last: agents' files, of which there may be any number.
const LAST: &str = "worktrees";

/// The size of a state directory; if it contains too much to be counted at once, the part that was counted.
pub fn used(state_dir: &Path) -> Use {
    let until = clock::monotonic_ms() + LOOK_MS;
    let mut left = ENTRIES_MAX;
    let mut all = Use { whole: true, ..Use::default() };
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort_by_key(|path| path.file_name().is_some_and(|name| name == LAST));
    for path in paths {
        let found = tree::measure(&path, &mut |entries| entries < left && clock::monotonic_ms() < until);
        left = left.saturating_sub(found.entries);
        all.bytes += found.bytes;
        all.entries += found.entries;
        all.whole &= found.whole;
    }
    all
}

/// The same without a bound, for callers that have time.
pub fn used_in_all(state_dir: &Path) -> Use {
    tree::measure(state_dir, &mut |_| true)
}
