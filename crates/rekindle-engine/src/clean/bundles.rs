//! The bundles of runs: which run each belongs to, according to its spec, and removing them. The name of a directory proves
//! nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_shim::bundle::{Bundle, SPEC};
use rekindle_shim::lock;

use super::tree::{self, Gone, Refused};

/// The bundles of each run, with their size; and directories among them that are not proven to be rekindle's.
#[derive(Debug, Default)]
pub struct Bundles {
    of_run: BTreeMap<String, Vec<(PathBuf, u64)>>,
}

impl Bundles {
    /// Finds all of them. `run_of` maps an attempt to its run.
    pub fn find(state_dir: &Path, run_of: &BTreeMap<u64, String>) -> Self {
        let mut found = Self::default();
        for (name, path) in entries(&state_dir.join("attempts")) {
            let attempt = name.parse::<u64>().ok().filter(|_| name.len() >= 8);
            let run = attempt.and_then(|attempt| run_of.get(&attempt).map(|run| (attempt, run)));
            if let Some((attempt, run)) = run
                && is_of(&path, run, Some(attempt))
            {
                found.add(run, path);
            }
        }
        for (_, place) in entries(&state_dir.join("checks")) {
            for (_, path) in entries(&place) {
                if let Some(run) = spec_run(&path) {
                    found.add(&run, path);
                }
            }
        }
        found
    }

    fn add(&mut self, run: &str, path: PathBuf) {
        let bytes = tree::measure(&path, &mut |_| true).bytes;
        self.of_run.entry(run.to_owned()).or_default().push((path, bytes));
    }

    pub fn of(&self, run: &str) -> &[(PathBuf, u64)] {
        self.of_run.get(run).map_or(&[], Vec::as_slice)
    }

    pub fn bytes(&self, run: &str) -> u64 {
        self.of(run).iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Directories in a directory, by name; links and files are left out.
fn entries(dir: &Path) -> Vec<(String, PathBuf)> {
    let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_dir());
    if !is_dir(dir) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(_, path)| is_dir(path))
        .collect();
    found.sort();
    found
}

fn spec_run(path: &Path) -> Option<String> {
    let spec = Bundle::open(path).ok()??.spec().ok()??;
    Some(spec.run).filter(|run| !run.is_empty())
}

/// Whether a bundle belongs to a run. Those of earlier versions name no run, but their attempt's number is unique.
fn is_of(path: &Path, run: &str, attempt: Option<u64>) -> bool {
    let spec = Bundle::open(path).ok().flatten().and_then(|bundle| bundle.spec().ok().flatten());
    spec.is_some_and(|spec| {
        let numbered = attempt.is_some_and(|attempt| spec.attempt == attempt.to_string());
        spec.run == run || spec.run.is_empty() && numbered
    })
}

/// Removes a bundle that no process uses. Its spec is removed last: until then its owner is known.
pub fn remove(path: &Path) -> Gone {
    let held = match Bundle::open(path) {
        Ok(Some(bundle)) => lock::is_held(&bundle).unwrap_or(true),
        Ok(None) => return Gone::default(),
        Err(error) => return refused(path, &error.to_string()),
    };
    if held {
        return refused(path, "a process still works in it");
    }
    let gone = tree::remove(path, Some(SPEC));
    // The directory of a task's checks is removed with the last of them; if it contains others, it stays.
    if let Some(place) = path.parent().filter(|place| place.parent().is_some_and(|above| above.ends_with("checks"))) {
        let _not_empty = std::fs::remove_dir(place);
    }
    gone
}

fn refused(path: &Path, why: &str) -> Gone {
    Gone { bytes: 0, refused: vec![Refused::new(path, why)] }
}
