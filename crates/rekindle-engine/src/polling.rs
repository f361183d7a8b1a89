//! What a coordinator that has no file watch leaves for the views: the log is not for it, because nothing is decided by it.

use std::path::Path;

use rekindle_core::refusal::Refusal;
use rekindle_shim::atomic;

/// Where it stands in the state directory, while a coordinator looks at its agents in turn.
const FILE: &str = "polling.json";

/// Puts it down. Views that do not see it miss a hint.
pub(crate) fn put(state_dir: &Path, lack: &Refusal) {
    let text = serde_json::to_vec(lack).unwrap_or_default();
    let _unseen = atomic::save(state_dir, FILE, &text);
}

/// Takes it away; also at a coordinator's start, because the last one may have been killed.
pub(crate) fn clear(state_dir: &Path) {
    let _not_there = std::fs::remove_file(state_dir.join(FILE));
}

/// What the living coordinator of a state directory lacks to watch files with.
pub fn read(state_dir: &Path) -> Option<Refusal> {
    serde_json::from_slice(&std::fs::read(state_dir.join(FILE)).ok()?).ok()
}
