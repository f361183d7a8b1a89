//! The processes of a sandbox's run, found through the bundles in its own state directory; their identity is proven before
//! anything is sent to them.

use std::path::{Path, PathBuf};

use rekindle_shim::bundle::{Bundle, ShimRecord, Spec};
use rekindle_shim::identity::{Opened, ProcId, Process};
use rekindle_shim::tree::Table;
use rustix::process::Signal;

/// An attempt's process and its supervisor.
pub(super) struct Held {
    pub bundle: u64,
    pub tasks: Vec<String>,
    pub spec: Spec,
    pub record: ShimRecord,
    /// Whether it has not ended, according to its bundle.
    pub open: bool,
}

impl Held {
    /// Kills one of the two, if it is proven to be the recorded process. Returns whether it was killed.
    pub(super) fn kill(&self, who: &ProcId) -> bool {
        self.pin(who).is_some_and(|process| process.signal(Signal::KILL).is_ok())
    }

    fn pin(&self, who: &ProcId) -> Option<Process> {
        match who.open().ok()? {
            Opened::Ours(process) => Some(process),
            // A kernel that cannot prove more: the marker of the attempt is the second factor.
            Opened::Likely(process) => process.carries_nonce(&self.spec.nonce).then_some(process),
            Opened::Gone | Opened::OtherBoot | Opened::OtherNamespace => None,
        }
    }
}

/// Every attempt that ever ran.
pub(super) fn attempts(state: &Path) -> Vec<Held> {
    bundles(&state.join("attempts")).into_iter().filter_map(|path| held(&path)).collect()
}

/// Live processes of attempts and checks, and how many bundles were inspected.
pub(super) fn living(state: &Path) -> (Vec<Process>, usize) {
    let checks = bundles(&state.join("checks")).into_iter().flat_map(|task| bundles(&task));
    let all: Vec<PathBuf> = bundles(&state.join("attempts")).into_iter().chain(checks).collect();
    let Ok(table) = Table::scan() else { return (Vec::new(), 0) };
    let specs = all.iter().filter_map(|path| Bundle::open(path).ok()??.spec().ok()?);
    let mut living: Vec<Process> = specs.flat_map(|spec| table.pin_marked(&spec.nonce)).collect();
    living.extend(all.iter().filter_map(|path| held(path)).filter_map(|held| held.pin(&held.record.shim)));
    (living, all.len())
}

/// Ends every process of a run that is still alive: an abandoned run leaves nothing behind.
pub(super) fn end_all(state: &Path) {
    /// Supervisors start no replacements, so a few passes find everything.
    const LOOKS: usize = 20;
    for _ in 0..LOOKS {
        let (living, _) = living(state);
        if living.is_empty() {
            return;
        }
        for process in living {
            // A process that has just ended is fine too.
            let _ = process.signal(Signal::KILL);
        }
        crate::ui::pause(50);
    }
}

fn bundles(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

fn held(path: &Path) -> Option<Held> {
    let bundle = Bundle::open(path).ok()??;
    let (spec, record) = (bundle.spec().ok()??, bundle.shim().ok()??);
    let tasks = spec.env.get("REKINDLE_TASKS").cloned().unwrap_or_default();
    Some(Held {
        bundle: path.file_name()?.to_str()?.parse().ok()?,
        tasks: tasks.split(',').map(str::to_owned).collect(),
        open: !matches!(bundle.exit(), Ok(Some(_))),
        spec,
        record,
    })
}
