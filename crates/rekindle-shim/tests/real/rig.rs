//! A bundle in a temporary directory, a shim on it, and the certainty that nothing of it is left afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rekindle_shim::bundle::{Bundle, ExitRecord, Output, ShimRecord, Spec, Stdin, VERSION};
use rekindle_shim::client::Client;
use rekindle_shim::ladder::default_rungs;
use rekindle_shim::tree::{Table, kill_all};

/// Longer than anything here takes on a loaded machine.
pub const BOUND: Duration = Duration::from_secs(600);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_shim-under-test");

static SERIAL: AtomicU64 = AtomicU64::new(0);

pub struct Rig {
    tmp: tempfile::TempDir,
    pub dir: PathBuf,
    pub spec: Spec,
    pub prompt: Option<Vec<u8>>,
}

impl Rig {
    pub fn new(argv: &[&str]) -> Self {
        let tmp = tempfile::tempdir().expect("tempdir");
        let dir = tmp.path().join("bundle");
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let spec = Spec {
            version: VERSION,
            run: String::new(),
            attempt: format!("attempt-{serial}"),
            epoch: 4,
            nonce: format!("{:016x}{serial:016x}", std::process::id()),
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            cwd: tmp.path().to_owned(),
            env: BTreeMap::new(),
            env_remove: BTreeSet::new(),
            stdin: Stdin::Null,
            output: Output::Spool,
            deadline_ms: None,
            stop: default_rungs(),
            caps: None,
        };
        Self { tmp, dir, spec, prompt: None }
    }

    pub fn sh(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    /// A file next to the bundle; it is the agent's working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    pub fn create(&self) -> Bundle {
        Bundle::create(&self.dir, &self.spec, self.prompt.as_deref()).expect("create the bundle")
    }

    pub fn bundle(&self) -> Bundle {
        Bundle::open(&self.dir).expect("open").expect("the bundle is there")
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("__shim").arg(&self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub fn start(&self) -> Child {
        self.create();
        self.command().spawn().expect("spawn the shim")
    }

    pub fn run(&self) -> ExitRecord {
        let mut shim = self.start();
        self.finish(&mut shim)
    }

    pub fn finish(&self, shim: &mut Child) -> ExitRecord {
        let status = wait(shim);
        assert!(status.success(), "the shim ended with {status}");
        self.exit()
    }

    pub fn exit(&self) -> ExitRecord {
        self.bundle().exit().expect("readable").expect("an exit record")
    }

    pub fn record(&self) -> ShimRecord {
        until("shim.json", || self.bundle().shim().expect("readable"))
    }

    pub fn client(&self) -> Client {
        self.record();
        Client::connect(&self.bundle(), &self.spec, BOUND).expect("handshake")
    }

    pub fn out(&self) -> Vec<u8> {
        std::fs::read(self.dir.join("out.log")).expect("out.log")
    }

    pub fn await_file(&self, name: &str) -> String {
        let path = self.path(name);
        until(name, || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
    }

    pub fn living(&self) -> usize {
        Table::scan().expect("process table").pin_marked(&self.spec.nonce).len()
    }

    pub fn assert_none_left(&self) {
        assert_eq!(self.living(), 0, "processes of the attempt are left");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A failed test must not leave its agents behind; the marker proves that they are its own.
        if let Ok(table) = Table::scan() {
            kill_all(&table.pin_marked(&self.spec.nonce));
        }
    }
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

pub fn wait(child: &mut Child) -> std::process::ExitStatus {
    until("the end of a process", || child.try_wait().expect("wait"))
}

pub fn exists(path: &Path) -> Option<()> {
    path.exists().then_some(())
}
