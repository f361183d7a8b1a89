//! Which agents are alive, recorded outside the state directory: `git clean -fdx` deletes that directory during a run, and
//! the next run must not start agents beside those of the last.
//!
//! A shim whose bundle was deleted ends its agent on its own; from these records the next coordinator learns which agents it
//! has to wait for. It sends no signals. If the project is in no repository there is no such place, and nothing is written.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rekindle_shim::atomic;
use rekindle_shim::bundle::{Bundle, ShimRecord};
use rekindle_shim::clock;
use rekindle_shim::identity::{Opened, ProcId};

use crate::git::Repo;

/// Letters of a state directory's hash in a name: enough for all that one repository will ever see.
const NAME_LETTERS: usize = 16;

/// Longest wait for agents of a deleted state: their shims check every two seconds and then go through their stop steps.
const WAIT_MS: u64 = 30_000;

/// Between two checks of them.
const LOOK_MS: u64 = 50;

/// Largest record that is read; ours have a few hundred bytes.
const RECORD_BYTES: u64 = 64 * 1024;

/// Where the agents of one state directory are recorded.
#[derive(Clone, Debug)]
pub struct Living {
    dir: PathBuf,
    prefix: String,
}

impl Living {
    /// The place for a state directory, in the repository that its project is in.
    pub fn of(repo: &Repo, state: &Path) -> Self {
        let hash = blake3::hash(state.as_os_str().as_bytes()).to_hex();
        Self { dir: repo.private_dir().join("live"), prefix: hash[..NAME_LETTERS].to_owned() }
    }

    fn name(&self, attempt: u64) -> String {
        format!("{}-{attempt:08}.json", self.prefix)
    }

    /// Records an agent. If that fails, the agent works all the same: the record is needed only if the state is deleted.
    pub fn record(&self, attempt: u64, record: &ShimRecord) {
        let save = || {
            std::fs::create_dir_all(&self.dir)?;
            atomic::save(&self.dir, &self.name(attempt), &serde_json::to_vec(record)?)
        };
        let _unwritten: std::io::Result<()> = save();
    }

    /// An agent has ended.
    pub fn forget(&self, attempt: u64) {
        let _not_there = std::fs::remove_file(self.dir.join(self.name(attempt)));
    }

    /// Waits until every process has ended whose bundle below `bundles` is gone, as long as a shim is there to end it, and
    /// returns those that have not.
    pub fn outlasting(&self, bundles: &Path) -> Vec<u32> {
        let give_up = clock::monotonic_ms() + WAIT_MS;
        loop {
            let lost: Vec<ShimRecord> = self.written().into_iter().filter_map(|found| lost(found, bundles)).collect();
            let ending = lost.iter().any(|record| lives(&record.shim));
            if !ending || clock::monotonic_ms() >= give_up {
                return lost.iter().flat_map(living).collect();
            }
            clock::pause(LOOK_MS);
        }
    }

    fn written(&self) -> Vec<(PathBuf, ShimRecord)> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().as_bytes().starts_with(self.prefix.as_bytes()));
        let small =
            ours.filter(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= RECORD_BYTES));
        let read = small.filter_map(|entry| {
            let record = serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
            Some((entry.path(), record))
        });
        read.collect()
    }
}

/// A record whose processes are alive although their bundle is gone. Records of dead processes are deleted.
fn lost((path, record): (PathBuf, ShimRecord), bundles: &Path) -> Option<ShimRecord> {
    if living(&record).is_empty() {
        let _tried_again = std::fs::remove_file(path);
        return None;
    }
    let number: u64 = path.file_stem().and_then(|name| name.to_str()?.rsplit_once('-')?.1.parse().ok()).unwrap_or(0);
    let bundle = Bundle::open(&bundles.join(format!("{number:08}"))).ok().flatten();
    let known = bundle.and_then(|bundle| bundle.shim().ok().flatten()).is_some_and(|found| found == record);
    // An agent whose bundle exists is found through it, and adopted.
    (!known).then_some(record)
}

fn living(record: &ShimRecord) -> Vec<u32> {
    [&record.shim, &record.agent].into_iter().filter(|id| lives(id)).map(|id| id.pid).collect()
}

fn lives(id: &ProcId) -> bool {
    matches!(id.open(), Ok(Opened::Ours(_) | Opened::Likely(_)))
}
