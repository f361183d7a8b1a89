//! Bundles in a temporary directory, agents that are shell scripts, and nothing left afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rekindle_engine::supervise::{Launched, Launcher, Probe, probe};
use rekindle_shim::bundle::{Bundle, Output, ShimRecord, Spec, Stdin, VERSION};
use rekindle_shim::ladder::default_rungs;
use rekindle_shim::tree::{Table, kill_all};

/// Longer than anything here takes on a loaded machine.
pub const BOUND: Duration = Duration::from_secs(600);

/// The time a probe or an order gets where it is expected to succeed.
pub const BUDGET: Duration = Duration::from_secs(120);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_supervised-shim");

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A place for bundles.
pub struct Rig {
    tmp: tempfile::TempDir,
    nonces: Mutex<Vec<String>>,
}

impl Rig {
    pub fn new() -> Self {
        Self { tmp: tempfile::tempdir().expect("tempdir"), nonces: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.tmp.path()
    }

    pub fn spec(&self, script: &str) -> Spec {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let nonce = format!("{:016x}{serial:016x}", std::process::id());
        self.nonces.lock().expect("lock").push(nonce.clone());
        Spec {
            version: VERSION,
            run: String::new(),
            attempt: format!("attempt-{serial}"),
            epoch: 1,
            nonce,
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            cwd: self.tmp.path().to_owned(),
            env: BTreeMap::new(),
            env_remove: BTreeSet::new(),
            stdin: Stdin::Null,
            output: Output::Spool,
            deadline_ms: None,
            stop: default_rungs(),
            caps: None,
        }
    }

    pub fn launch(&self, name: &str, script: &str) -> (PathBuf, Spec, Launched) {
        let spec = self.spec(script);
        let dir = self.path(name);
        let launched = launcher().launch(&dir, &spec, None).expect("launch");
        (dir, spec, launched)
    }

    pub fn await_file(&self, name: &str) -> String {
        let path = self.path(name);
        until(name, || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A failed test must not leave its agents behind; the marker proves that they are its own.
        let Ok(table) = Table::scan() else { return };
        for nonce in self.nonces.lock().expect("lock").iter() {
            kill_all(&table.pin_marked(nonce));
        }
    }
}

pub fn launcher() -> Launcher {
    Launcher::new(PathBuf::from(PROGRAM))
}

pub fn bundle(dir: &Path) -> Bundle {
    Bundle::open(dir).expect("open").expect("the bundle is there")
}

pub fn alive(dir: &Path) -> ShimRecord {
    match probe(dir, BUDGET) {
        Probe::Alive(record) => *record,
        other => panic!("not alive: {other:?}"),
    }
}

pub fn living(nonce: &str) -> usize {
    Table::scan().expect("process table").pin_marked(nonce).len()
}

/// Awaits a condition.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started.elapsed() < BOUND, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
