//! Whose bundle has an attempt's number. A directory is not trusted by its name: run, attempt, epoch and nonce in its spec
//! must be this attempt's. A bundle of another attempt is set aside, and nothing is deleted.

use std::path::{Path, PathBuf};

use rekindle_core::ids::{AttemptId, Epoch};
use rekindle_shim::bundle::Bundle;
use rekindle_shim::lock;

use super::Shared;
use crate::state_dir;
use crate::supervise::{self, PROBE_BUDGET, Probe};

/// Name prefix of a bundle that was set aside.
const ASIDE: &str = "bad-";

/// Names tried for a bundle that is set aside: as many as one number can meet.
const ASIDE_NAMES: u32 = 100;

/// Attempts that have bundles but are unknown to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The highest attempt that the log knows.
    pub known: u64,
    /// The highest attempt that has a bundle.
    pub highest: u64,
    /// Process ids of their agents that are still running.
    pub living: Vec<u32>,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { known, highest, .. } = self;
        write!(f, "the state has lost events: its log ends at attempt {known}, bundles go up to {highest}")?;
        for pid in &self.living {
            write!(f, "; an agent of a lost attempt still works (process {pid})")?;
        }
        Ok(())
    }
}

/// Finds attempts above the highest one that the log knows.
pub fn lost(state_dir: &Path, known: u64) -> Option<Lost> {
    let bundles = state_dir.join("attempts");
    let names = std::fs::read_dir(&bundles).ok()?.flatten().map(|entry| entry.file_name());
    let mut unknown: Vec<(u64, PathBuf)> = names
        .filter_map(|name| Some((number(name.to_str()?)?, bundles.join(&name))))
        .filter(|(number, _)| *number > known)
        .collect();
    unknown.sort();
    let highest = unknown.last()?.0;
    let dirs: Vec<PathBuf> = unknown.into_iter().map(|(_, dir)| dir).collect();
    let agent = |probe| match probe {
        Probe::Alive(record) => Some(record.agent.pid),
        Probe::Unresponsive { record, .. } => Some(record.map_or(0, |record| record.agent.pid)),
        _ => None,
    };
    let living = supervise::probe_all(&dirs, PROBE_BUDGET).into_iter().filter_map(agent).collect();
    Some(Lost { known, highest, living })
}

/// The highest attempt that has a bundle.
pub fn highest(state_dir: &Path) -> Option<u64> {
    let names = std::fs::read_dir(state_dir.join("attempts")).ok()?.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| number(name.to_str()?)).max()
}

/// The attempt that a bundle is called after, set aside or not.
fn number(name: &str) -> Option<u64> {
    let name = name.strip_prefix(ASIDE).unwrap_or(name);
    name.split('-').next()?.parse().ok()
}

/// The nonce of an attempt's bundle, from its spec; `None` if there is no readable spec. Fails when the bundle belongs to
/// another attempt.
pub(super) fn nonce(shared: &Shared, attempt: AttemptId, epoch: Epoch) -> Result<Option<String>, String> {
    let spec = Bundle::open(&shared.bundle(attempt)).ok().flatten().and_then(|bundle| bundle.spec().ok().flatten());
    let Some(spec) = spec else { return Ok(None) };
    let same = spec.attempt == attempt.to_string() && spec.epoch == epoch.0;
    match same && shared.tokens.made_nonce(&spec.nonce, &spec.run, attempt, epoch) {
        true => Ok(Some(spec.nonce)),
        false => {
            Err(format!("the bundle is not this attempt's: it is of attempt {}, run `{}`", spec.attempt, spec.run))
        }
    }
}

/// Makes way for a new attempt: a bundle under its number that belongs to another attempt is set aside. Fails when an agent
/// is still running in it, or it cannot be moved.
pub(super) fn make_way(shared: &Shared, attempt: AttemptId, epoch: Epoch) -> Result<(), String> {
    let Err(reason) = nonce(shared, attempt, epoch) else { return Ok(()) };
    let dir = shared.bundle(attempt);
    let held = Bundle::open(&dir).ok().flatten().is_some_and(|bundle| lock::is_held(&bundle).unwrap_or(true));
    if held {
        return Err(format!("{reason}, and its agent still works in {}", dir.display()));
    }
    set_aside(shared, attempt, &reason).map(|_| ())
}

/// Sets a bundle aside under another name; nothing is deleted. Returns the reason with its new path.
pub(super) fn set_aside(shared: &Shared, attempt: AttemptId, reason: &str) -> Result<String, String> {
    let dir = shared.bundle(attempt);
    let name = |count| match count {
        1 => format!("{ASIDE}{:08}", attempt.0),
        more => format!("{ASIDE}{:08}-{more}", attempt.0),
    };
    let free = (1..=ASIDE_NAMES).map(|count| shared.bundles.join(name(count))).find(|aside| !aside.exists());
    let aside = free.unwrap_or_else(|| shared.bundles.join(name(1)));
    match state_dir::move_if_there(&dir, &aside) {
        Ok(()) => Ok(format!("{reason}; set aside as {}", aside.display())),
        Err(error) => Err(format!("{reason}; could not be set aside: {error}")),
    }
}

impl super::RealWorld {
    /// Process ids of agents whose bundles were deleted and that do not end.
    pub fn outlasting(&self) -> Vec<u32> {
        self.shared.living.as_ref().map_or_else(Vec::new, |living| living.outlasting(&self.shared.bundles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_above_the_log_are_lost_ones_also_when_they_were_set_aside() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert_eq!(lost(dir.path(), 0), None, "no bundles at all");
        for name in ["00000001", "bad-00000004", "bad-00000003-2", "notes"] {
            std::fs::create_dir_all(dir.path().join("attempts").join(name)).expect("a bundle");
        }
        assert_eq!(lost(dir.path(), 4), None);
        assert_eq!(lost(dir.path(), 3), Some(Lost { known: 3, highest: 4, living: Vec::new() }));
    }
}
