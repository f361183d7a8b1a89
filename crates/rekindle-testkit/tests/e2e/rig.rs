//! A project in a temporary directory and the program that runs it. It waits for facts with a bound, and whatever it
//! started ends with it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{self, Pinned};

/// Longer than anything here takes on a loaded machine.
pub const BOUND: Duration = Duration::from_secs(600);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The usual settings: quick enough for a test.
const SETTINGS: &str = "[agents.script]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
    [run]\nagent = \"script\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"300ms\"\n";

/// A project.
pub struct Rig {
    base: TempDir,
    root: PathBuf,
    mark: String,
    variables: RefCell<Vec<(String, String)>>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Rig {
    /// A project with a plan and a shell script as its agent.
    pub fn new(plan: &str, agent: &str) -> Self {
        Self::within(&std::env::temp_dir(), plan, agent)
    }

    /// The same below a directory of the caller's choice.
    pub fn within(dir: &Path, plan: &str, agent: &str) -> Self {
        let base = tempfile::Builder::new().prefix("rk-e2e-").tempdir_in(dir).expect("tempdir");
        let root = base.path().join("project");
        std::fs::create_dir(&root).expect("project");
        let mark = base.path().to_str().expect("text").to_owned();
        let rig = Self { base, root, mark, variables: RefCell::default() };
        rig.write("plan.md", plan);
        rig.write("agent.sh", agent);
        rig.write("rekindle.toml", SETTINGS);
        rig
    }

    /// Moves the project to another place below the temporary directory.
    pub fn moved_to(mut self, place: &str) -> Self {
        let root = self.base.path().join(place);
        std::fs::create_dir_all(root.parent().expect("parent")).expect("directories");
        std::fs::rename(&self.root, &root).expect("moved");
        self.root = root;
        self
    }

    /// Adds settings.
    pub fn with(self, settings: &str) -> Self {
        let settings = format!("{SETTINGS}{settings}");
        self.write("rekindle.toml", &settings);
        self
    }

    /// Replaces all settings.
    pub fn with_settings(self, settings: &str) -> Self {
        self.write("rekindle.toml", settings);
        self
    }

    /// Sets a variable for all that follows.
    pub fn set(&self, name: &str, value: impl AsRef<Path>) {
        let value = value.as_ref().to_str().expect("text").to_owned();
        self.variables.borrow_mut().push((name.to_owned(), value));
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Outside the project, and gone with it.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        let named = self.variables.borrow().iter().find(|(name, _)| name == "REKINDLE_STATE_DIR").cloned();
        named.map_or_else(|| self.root.join(".rekindle"), |(_, dir)| PathBuf::from(dir))
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Makes an empty file, which is how a test tells its agents to go on.
    pub fn touch(&self, name: &str) {
        self.write(name, "");
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The lines of a file that agents append to; none when it is not there yet.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The program, ready to run in the project.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        self.prepare(&mut command);
        command.args(arguments);
        command
    }

    /// Gives a command the project's directory and environment.
    pub fn prepare(&self, command: &mut Command) {
        command
            .current_dir(&self.root)
            .env_clear()
            .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8")])
            .env("HOME", self.base.path())
            .env("FAKE", env!("CARGO_BIN_EXE_fake-agent"))
            .env(processes::MARK, &self.mark)
            .envs(self.variables.borrow().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
    }

    /// Git in the project, as somebody; what it says.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        self.prepare(&mut command);
        let output = command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A repository whose first commit holds these paths.
    pub fn commit_first(&self, paths: &str) {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["add", paths]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    /// Runs a command to its end.
    pub fn rekindle(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs a command that must succeed and returns what it printed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.rekindle(arguments);
        assert_eq!(ended.code, Some(0), "rekindle {arguments:?}: {ended:?}");
        ended.out
    }

    /// Starts a command.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.launch(self.command(arguments))
    }

    /// Starts a prepared command with its output in files.
    pub fn launch(&self, mut command: Command) -> Running {
        let out = tempfile::NamedTempFile::new_in(self.base.path()).expect("file for output");
        let err = tempfile::NamedTempFile::new_in(self.base.path()).expect("file for errors");
        command.stdout(out.reopen().expect("again")).stderr(err.reopen().expect("again"));
        let child = command.spawn().expect("the program starts");
        Running { child, out, err }
    }

    /// Starts the run of the plan.
    pub fn run(&self) -> Running {
        self.start(&["run", "plan.md"])
    }

    /// Runs the plan to its end, which must be complete.
    pub fn finish(&self) -> Ended {
        let ended = self.run().end();
        assert_eq!(ended.code, Some(0), "the plan is not finished: {ended:?}\n{}", self.story());
        ended
    }

    /// `status --json`.
    pub fn status(&self) -> Value {
        let text = self.ok(&["status", "--json"]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("status is no JSON: {error}: {text}"))
    }

    /// A task of `status --json`.
    pub fn task(&self, id: &str) -> Value {
        find(&self.status()["tasks"], "id", id)
    }

    /// `events --json`.
    pub fn events(&self) -> Vec<Value> {
        objects(&self.ok(&["events", "--json"]))
    }

    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["kind"] == kind).collect()
    }

    /// The events in a few words, for the text of a failed assertion.
    pub fn story(&self) -> String {
        let ended = self.rekindle(&["events"]);
        format!("{}{}", ended.out, ended.err)
    }

    /// Awaits a file that agents make.
    pub fn await_file(&self, name: &str) {
        self.until(&format!("file {name}"), || self.has(name).then_some(()));
    }

    pub fn await_event(&self, kind: &str) -> Value {
        self.until(&format!("event {kind}"), || {
            let ended = self.rekindle(&["events", "--json", "--kind", kind]);
            objects(&ended.out).into_iter().next()
        })
    }

    /// Awaits a condition.
    pub fn until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        match until(condition) {
            Some(value) => value,
            None => panic!("waited in vain for {what}\n{}", self.story()),
        }
    }

    /// The record of a shim in an attempt's bundle, once it is there.
    pub fn shim_record(&self, attempt: u64) -> Option<Value> {
        let text = std::fs::read(self.state().join(format!("attempts/{attempt:08}/shim.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// A process of this project, to be killed. While it replaces its program it shows no environment to be known by.
    pub fn pin(&self, pid: u32) -> Pinned {
        self.until(&format!("process {pid} of this test"), || Pinned::new(pid, &self.mark))
    }

    /// The same for one that may have ended.
    pub fn pinned(&self, pid: u32) -> Option<Pinned> {
        Pinned::new(pid, &self.mark)
    }

    /// Processes of this project that still run.
    pub fn living(&self) -> Vec<u32> {
        processes::marked(&self.mark)
    }

    /// Nothing of this project runs any more, or soon does not.
    pub fn assert_nothing_left(&self) {
        let gone = until(|| self.living().is_empty().then_some(()));
        let left: Vec<String> = self.living().into_iter().map(processes::describe).collect();
        assert!(gone.is_some(), "left behind: {left:?}");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Shims replace nothing once they are gone, so a few rounds end whatever a failed test left.
        for _ in 0..20 {
            let left = self.living();
            if left.is_empty() {
                break;
            }
            for pid in left {
                processes::signal(pid, &self.mark, Signal::KILL);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A command that runs.
pub struct Running {
    child: Child,
    out: tempfile::NamedTempFile,
    err: tempfile::NamedTempFile,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.err.path()).unwrap_or_default()).into_owned()
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.out.path()).unwrap_or_default()).into_owned()
    }

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("asked for its end")
    }

    /// Awaits its end, and keeps it.
    pub fn wait(&mut self) -> ExitStatus {
        until(|| self.has_ended()).unwrap_or_else(|| panic!("it does not end\n{}\n{}", self.printed(), self.said()))
    }

    /// Awaits its end.
    pub fn end(mut self) -> Ended {
        let status = self.wait();
        Ended { code: status.code(), out: self.printed(), err: self.said() }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("our own child");
    }

    /// Kills it at once and awaits that.
    pub fn kill(mut self) {
        let _ended_already = self.child.kill();
        self.child.wait().expect("reaped");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// The program under test, beside the tests.
pub fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fake-agent")).with_file_name("rekindle");
    assert!(program.is_file(), "{} is missing: run `cargo build -p rekindle` first", program.display());
    program
}

/// Awaits a condition, within the bound.
pub fn until<T>(condition: impl FnMut() -> Option<T>) -> Option<T> {
    until_within(BOUND, condition)
}

/// Awaits a condition, within a bound of the caller's.
pub fn until_within<T>(bound: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if started.elapsed() > bound {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

/// Awaits a condition that is over soon, without a pause between two looks.
pub fn until_quickly(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < BOUND, "waited in vain");
        std::thread::yield_now();
    }
}

/// One JSON object a line.
pub fn objects(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON: {error}: {line}"));
    text.lines().map(parse).collect()
}

fn find(list: &Value, key: &str, value: &str) -> Value {
    let found = list.as_array().expect("a list").iter().find(|entry| entry[key] == value);
    found.unwrap_or_else(|| panic!("no {key} {value} in {list}")).clone()
}
