//! What the areas stand on: scratch directories on the disk that builds use, a driver over a store, a project with real
//! processes. It owns how they are made and ended.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::Input;
use rekindle_core::limits::Limits;
use rekindle_core::plan::{self, Plan};
use rekindle_core::report::{Checkpoint, Report};
use rekindle_core::time::Time;
use rekindle_engine::clock::Clock;
use rekindle_engine::control::Called;
use rekindle_engine::control::wire::Request;
use rekindle_engine::driver::{Driver, Message, Settings};
use rekindle_engine::redact::Redactor;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{self, Read, SqliteReader, SqliteStore, Store};
use rekindle_engine::token::Tokens;
use rekindle_engine::world::MemoryWorld;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::measure::await_some;

/// Longest wait for a fleet to be where a benchmark wants it; a thousand agents on a slow machine take a minute.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Between two looks at the log: short, and still leaving the processors to what is measured.
const LOOK: Duration = Duration::from_millis(2);

/// A directory on a real disk (the system's temporary one is often in memory).
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a scratch directory")
}

/// A new store in a directory.
pub fn open_store(path: &Path) -> SqliteStore {
    let dir = StateDir::open_or_create(path).expect("a state directory");
    SqliteStore::open(&dir, store::Options::default()).expect("a store").0
}

/// The text of a plan with tasks that wait for nothing.
pub fn plan_text(tasks: usize) -> String {
    let tasks: Vec<String> =
        (1..=tasks).map(|n| format!("### T{n}: Task number {n}\n\nWork until it is done.\n")).collect();
    format!("---\nplan: bench\n---\n# Bench\n\nThe goal of all of it.\n\n{}", tasks.join("\n"))
}

fn plan_of(tasks: usize) -> Plan {
    plan::parse("bench", plan_text(tasks).as_bytes()).plan.expect("a plan")
}

/// The product's driver over the product's store, with an outside in memory.
pub struct DriverBed {
    pub driver: Driver<MemoryWorld>,
    tokens: Tokens,
}

impl DriverBed {
    /// A run of a plan with so many tasks, of which one is under way at most.
    pub fn new(store: Arc<dyn Store>, tasks: usize) -> DriverBed {
        DriverBed::with_agents(store, tasks, 1)
    }

    /// The same with so many agents at work at once.
    pub fn with_agents(store: Arc<dyn Store>, tasks: usize, agents: u32) -> DriverBed {
        let tokens = Tokens::new([7; 32]);
        let settings = Settings {
            log_context_lines: 200,
            brief_budget_bytes: 48 * 1024,
            prompts: std::collections::BTreeMap::new(),
            workspace: "/workspace".into(),
            build_status_path: "/workspace/build-status--bench.md".into(),
        };
        let environment = [("BENCH_TOKEN", "a-secret-that-never-occurs"), ("LANG", "C.UTF-8")];
        let fresh = (rekindle_core::state::State::default(), 0);
        let clock = Some(Clock::starting_after(Time(0), None));
        let world = MemoryWorld { clock, ..MemoryWorld::default() };
        let mut driver = Driver::new(store, world, fresh, tokens.clone(), Redactor::new(environment), settings);
        let input = Input::RunRequested {
            run: RunId::new("bench-run").expect("a name"),
            plan: Box::new(plan_of(tasks)),
            plan_path: "/workspace/plan.md".into(),
            branch: None,
        };
        driver.request_run(input).expect("a run");
        let limits = Limits { max_agents: agents, clis: vec!["default".into()], ..Limits::default() };
        driver.start(std::process::id(), limits, "boot".into(), 1).expect("a start");
        let launched: Vec<AttemptId> = driver.world().launched.clone();
        let started = launched.iter().map(|attempt| Message::Started { attempt: *attempt, pid: 2, shim_pid: 3 });
        driver.handle(started).expect("a started agent");
        DriverBed { driver, tokens }
    }

    /// The agent that is at work: its attempt and its task.
    pub fn at_work(&self) -> (AttemptId, Epoch, TaskId) {
        let (id, attempt) = self.driver.state().live_attempts().next().expect("a living attempt");
        (id, attempt.epoch, attempt.tasks.first().expect("a task").clone())
    }

    /// Every agent at work.
    pub fn living(&self) -> Vec<(AttemptId, Epoch, TaskId)> {
        let living = self.driver.state().live_attempts();
        living.map(|(id, attempt)| (id, attempt.epoch, attempt.tasks.first().expect("a task").clone())).collect()
    }

    /// What that agent sends when it saves a checkpoint through the control socket.
    pub fn checkpoint(&self, number: usize) -> Message {
        self.checkpoint_of(self.at_work(), number)
    }

    /// The same of an agent of the caller's choice.
    pub fn checkpoint_of(&self, (attempt, epoch, task): (AttemptId, Epoch, TaskId), number: usize) -> Message {
        let checkpoint = Checkpoint { status: format!("at step {number}"), ..Checkpoint::default() };
        Message::Called(Called {
            token: Some(self.tokens.token(attempt, epoch)),
            ancestors: Vec::new(),
            call: Request::report(Report::Checkpoint { task, checkpoint }),
            reply: Box::new(|_| {}),
        })
    }
}

/// The released program beside this benchmark.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a path of this program");
    let found = own.ancestors().map(|dir| dir.join("rekindle")).find(|path| path.is_file());
    found.expect("target/release/rekindle is missing: cargo build --release")
}

/// The agent of these benchmarks.
pub fn agent_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bench-agent"))
}

/// A project whose agents are real processes, and at most one coordinator of it. Ends them all when dropped.
pub struct Project {
    dir: TempDir,
    coordinator: Option<Child>,
    seen: u64,
}

impl Project {
    /// A project with so many tasks that all run at once, each by an agent with these arguments.
    pub fn new(tasks: usize, agent_arguments: &[&str]) -> Project {
        let dir = scratch();
        let mut command = vec![agent_program().to_string_lossy().into_owned()];
        command.extend(agent_arguments.iter().map(|argument| (*argument).to_owned()));
        let words: Vec<String> = command.iter().map(|word| format!("{word:?}")).collect();
        let config = format!(
            "[agents.default]\nkind = \"command\"\ncommand = [{}]\n\n[run]\nmax_agents = {tasks}\nattempts = 10000\n\
             backoff = \"0s\"\n\n[stop]\ngrace = \"1s\"\n",
            words.join(", ")
        );
        std::fs::write(dir.path().join("rekindle.toml"), config).expect("a configuration");
        std::fs::write(dir.path().join("plan.md"), plan_text(tasks)).expect("a plan");
        Project { dir, coordinator: None, seen: 0 }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A command of the program in this project, silent.
    pub fn rekindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.path()).env_remove("REKINDLE_STATE_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a coordinator in this project.
    pub fn start(&mut self) -> u32 {
        let child = self.rekindle(&["run", "plan.md"]).spawn().expect("a coordinator");
        let pid = child.id();
        self.coordinator = Some(child);
        pid
    }

    /// Ends the coordinator as a power cut would, and nothing else.
    pub fn kill_coordinator(&mut self) {
        if let Some(mut child) = self.coordinator.take() {
            child.kill().expect("a kill");
            child.wait().expect("an end");
        }
    }

    fn reader(&self) -> Option<SqliteReader> {
        SqliteReader::open(&StateDir::open(&self.path().join(".rekindle")).ok()?).ok()
    }

    /// Waits until so many events of a kind have come since the last wait.
    pub fn await_events(&mut self, kind: &str, count: usize) {
        let reader = await_some("a store", PATIENCE, LOOK, || self.reader());
        let (mut seen, mut found) = (self.seen, 0);
        await_some(kind, PATIENCE, LOOK, || {
            let page = reader.events(seen, 4_096).expect("events");
            for event in &page {
                seen = event.seq;
                found += usize::from(event.kind == kind);
                if found >= count {
                    break;
                }
            }
            (found >= count).then_some(())
        });
        self.seen = seen;
    }

    /// Lines in the index so far.
    pub fn lines(&self) -> u64 {
        let reader = self.reader().expect("a store");
        reader.log_tail(None, 1).expect("a tail").first().map_or(0, |line| line.seq)
    }

    /// Processes of the newest attempts: agents' and their shims'.
    pub fn processes(&self) -> Vec<(u32, u32)> {
        let reader = self.reader().expect("a store");
        let rows = reader.rows(store::Table::Attempt, None).expect("attempts");
        rows.iter()
            .filter_map(|row| {
                let attempt: serde_json::Value = serde_json::from_str(&row.json).ok()?;
                let pid = |key: &str| attempt.get(key)?.as_u64().and_then(|pid| u32::try_from(pid).ok());
                let lives = attempt.get("ended_at").is_none_or(serde_json::Value::is_null);
                lives.then_some((pid("pid")?, pid("shim_pid")?))
            })
            .collect()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // The program's own way to end everything; without a coordinator there is nobody to tell, so one is started.
        if self.coordinator.is_none() {
            self.start();
            self.await_events("coordinator_started", 1);
        }
        let _told = self.rekindle(&["stop"]).status();
        if let Some(mut child) = self.coordinator.take() {
            let ended = await_end(&mut child);
            assert!(ended, "the coordinator did not stop; agents may be left in {}", self.dir.path().display());
        }
    }
}

fn await_end(child: &mut Child) -> bool {
    let started = std::time::Instant::now();
    while started.elapsed() < PATIENCE {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    let _gone = child.kill();
    false
}

/// Kills one process that this benchmark's own coordinator started.
pub fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(pid, Signal::KILL).expect("a kill");
}

/// Nanoseconds on the clock that processes share.
pub fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
