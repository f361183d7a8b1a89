//! The hint that a coordinator without a file watch leaves for the views: it is not in the log, because nothing is decided
//! by it.

use std::path::Path;

use rekindle_core::refusal::Refusal;
use rekindle_shim::atomic;

/// The file in the state directory that exists while a coordinator polls its agents.
const FILE: &str = "polling.json";

/// Writes the hint. Views that do not see it miss nothing else.
pub(crate) fn put(state_dir: &Path, lack: &Refusal) {
    let text = serde_json::to_vec(lack).unwrap_or_default();
    let _unseen = atomic::save(state_dir, FILE, &text);
}

/// Removes the hint; also at a coordinator's start, because the last one may have been killed.
pub(crate) fn clear(state_dir: &Path) {
    let _not_there = std::fs::remove_file(state_dir.join(FILE));
}

/// What the live coordinator of a state directory lacks for watching files.
pub fn read(state_dir: &Path) -> Option<Refusal> {
    serde_json::from_slice(&std::fs::read(state_dir.join(FILE)).ok()?).ok()
}
