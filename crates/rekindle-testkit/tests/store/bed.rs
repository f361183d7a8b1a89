//! What the tests of this binary stand on: directories, images of a killed process, random numbers from a seed.

use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{OpenReport, Options, SqliteStore, Store};
use rekindle_testkit::contract::store::Subject;
use tempfile::TempDir;

/// A state directory that goes away with the test.
pub fn state() -> (TempDir, StateDir) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("a state directory");
    (parent, dir)
}

/// A directory in memory where there is one: for tests about content, which sync thousands of times.
pub fn fast_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

/// Opens the store of a directory.
pub fn open(dir: &StateDir) -> (SqliteStore, OpenReport) {
    SqliteStore::open(dir, Options::default()).expect("the store opens")
}

/// Copies a directory as it is at this moment: what the disk holds when the process is killed. A process of its own
/// does the reading, because closing a database file would drop this process's locks on it.
pub fn image(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success(), "cp -a {} {}", from.display(), to.display());
}

/// The engine on SQLite as a subject of the contract.
pub struct OnDisk {
    parent: TempDir,
    store: SqliteStore,
}

impl OnDisk {
    /// An empty store.
    pub fn make() -> Box<dyn Subject> {
        let (parent, dir) = state();
        let (store, report) = open(&dir);
        assert!(report.created);
        Box::new(OnDisk { parent, store })
    }
}

impl Subject for OnDisk {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn killed(&self) -> Box<dyn Subject> {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let path = parent.path().join("state");
        image(&self.parent.path().join("state"), &path);
        let dir = StateDir::open_or_create(&path).expect("a state directory");
        let (store, report) = open(&dir);
        assert_eq!(report.repaired, None, "a kill damages nothing");
        Box::new(OnDisk { parent, store })
    }
}

/// The program that appends and says what was acknowledged.
pub fn writer_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_store-writer"))
}

/// Small random numbers; the same seed gives the same ones.
pub struct Random(pub u64);

impl Random {
    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A number from the environment, for longer runs than CI's.
pub fn knob(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}
