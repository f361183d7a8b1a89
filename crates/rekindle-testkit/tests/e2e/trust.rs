//! What rekindle trusts: which bundle is whose, whose state directory it is, and what a repository may make it run.

pub mod bundles;
mod clone;
mod neighbour;
mod old_state;

use std::path::Path;
use std::process::Command;

/// Copies a directory with everything in it.
fn duplicate(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp");
    assert!(done.success());
}
