//! State directories as a coordinator leaves them: the product's own decisions on scripted inputs, in a real store.

use rekindle_core::activity::{StreamEvent, Transcript};
use rekindle_core::decide::{self, Reply};
use rekindle_core::event::{AgentSaid, Event};
use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::Input;
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::plan;
use rekindle_core::report::{Channel, CheckResult, Evidence, Exit, Report};
use rekindle_core::state::State;
use rekindle_core::time::Time;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, LogLine, Options, SqliteStore, Store, Stream};

use crate::environment::Environment;

/// The moment at which every history begins: 2026-01-02 03:04:05 UTC.
const BEGIN: Time = Time(1_767_323_045_000);

/// A run in the making.
pub struct History {
    state: State,
    events: Vec<Event>,
    lines: Vec<LogLine>,
    now: Time,
}

impl History {
    /// A run of a plan with a coordinator that has taken it and dispatched what it could.
    pub fn of(plan: &str) -> Self {
        Self::with(plan, Traits::new("command"))
    }

    /// The same with agents that can do more than a command.
    pub fn with(plan: &str, traits: Traits) -> Self {
        let parsed = plan::parse("plan", plan.as_bytes());
        let plan = parsed.plan.unwrap_or_else(|| panic!("{:?}", parsed.problems));
        let mut history = Self { state: State::default(), events: Vec::new(), lines: Vec::new(), now: BEGIN };
        history.input(Input::RunRequested {
            run: RunId::new("r-1").expect("a name"),
            plan: Box::new(plan),
            plan_path: "plan.md".to_owned(),
            branch: None,
        });
        let limits = Limits {
            default_cli: "default".to_owned(),
            clis: vec!["default".to_owned()],
            traits: [("default".to_owned(), traits)].into(),
            ..Limits::default()
        };
        history.input(Input::CoordinatorStarted {
            pid: 100,
            limits: Box::new(limits),
            boot_id: "boot".to_owned(),
            boottime_ms: 1,
            found: Vec::new(),
            missing: Vec::new(),
        });
        history
    }

    /// Lets something happen, a second after the last.
    pub fn input(&mut self, input: Input) -> Reply {
        self.now = self.now.plus_ms(1_000);
        let step = decide::decide(&mut self.state, self.now, input);
        self.events.extend(step.events);
        step.reply
    }

    /// Lets time pass.
    pub fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.input(Input::TimePassed);
    }

    /// The newest attempt at a task.
    pub fn holder(&self, task: &str) -> (AttemptId, Epoch) {
        let holder = self.state.tasks[&TaskId::new(task).expect("a name")].holder.expect("somebody holds it");
        (holder, self.state.attempts[&holder].epoch)
    }

    /// The agent of a task has started.
    pub fn started(&mut self, task: &str) {
        let (attempt, _) = self.holder(task);
        let pid = 1_000 + u32::try_from(attempt.0).expect("small");
        self.input(Input::AttemptStarted { attempt, pid, shim_pid: pid + 1_000, own_bytes: 948 });
    }

    /// The agent of a task printed a line.
    pub fn printed(&mut self, task: &str, stream: Stream, text: &str) {
        let (attempt, epoch) = self.holder(task);
        let agent = self.state.attempts[&attempt].agent.to_string();
        let offset = self.lines.iter().filter(|line| line.attempt == attempt.0 && line.stream == stream);
        let offset = offset.map(|line| line.len + 1).sum();
        self.lines.push(LogLine {
            attempt: attempt.0,
            agent,
            epoch: epoch.0,
            stream,
            time_ms: self.now.0,
            offset,
            len: text.len() as u64,
            text: text.to_owned(),
            torn: false,
        });
    }

    /// The agent of a task reported.
    pub fn reported(&mut self, task: &str, report: Report) -> Reply {
        let (attempt, epoch) = self.holder(task);
        self.input(Input::Reported { attempt, epoch, channel: Channel::Command, report })
    }

    /// The agent of a task claims it, and its one check ends with a code.
    pub fn claimed(&mut self, task: &str, result: &str, code: i32, output: &str) {
        let id = TaskId::new(task).expect("a name");
        let (_, epoch) = self.holder(task);
        self.reported(task, Report::Done { task: id.clone(), result: Some(result.to_owned()) });
        self.input(Input::ChecksFinished { task: id, epoch, evidence: seen(code, output) });
    }

    /// The agent of a task told something by its own stream.
    pub fn signed(&mut self, task: &str, sign: StreamEvent) {
        let (attempt, _) = self.holder(task);
        self.input(Input::Streamed { attempt, event: sign });
    }

    /// The agent of a task has ended by a signal, with its transcript whole and a call cut off.
    pub fn killed(&mut self, task: &str, signal: i32) {
        let (attempt, epoch) = self.holder(task);
        let measure = self.state.attempts[&attempt].cli_session.measure;
        let cut_off = Some("Bash: make".to_owned());
        self.input(Input::SessionClosed {
            attempt,
            measure,
            transcript: Transcript::Whole,
            cut_off,
            under_way: Default::default(),
        });
        let exit = Exit { signal: Some(signal), ..Exit::default() };
        self.input(Input::AttemptExited { attempt, epoch, exit });
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// The agent that held a task has ended.
    pub fn exited(&mut self, holder: (AttemptId, Epoch), code: i32) {
        let exit = Exit { code: Some(code), ..Exit::default() };
        self.input(Input::AttemptExited { attempt: holder.0, epoch: holder.1, exit });
    }

    /// The agent that held a task ended in prose, and rekindle's look at its work found nothing.
    pub fn left(&mut self, task: &str, holder: (AttemptId, Epoch), words: &str) {
        let said = AgentSaid { attempt: holder.0, text: words.to_owned(), asks: false };
        let step = decide::decide(&mut self.state, self.now, Input::AgentSaid(said));
        self.events.extend(step.events);
        self.exited(holder, 0);
        let id = TaskId::new(task).expect("a name");
        let found = Input::ChecksFinished { task: id, epoch: holder.1, evidence: seen(1, "nothing to test\n") };
        let step = decide::decide(&mut self.state, self.now, found);
        self.events.extend(step.events);
    }

    /// Makes it the state of a project.
    pub fn save(&self, environment: &Environment) {
        let dir = StateDir::open_or_create(&environment.path(".rekindle")).expect("a state directory");
        let options = Options { now_ms: self.now.0, ..Options::default() };
        let (store, _) = SqliteStore::open(&dir, options).expect("a store");
        let batch = Batch {
            events: self.events.iter().map(driver::encode).collect(),
            lines: self.lines.clone(),
            rows: driver::all_rows(&self.state),
            ..Batch::default()
        };
        store.append(batch).expect("appended");
    }
}

/// What the one check of a task showed.
fn seen(code: i32, output: &str) -> Evidence {
    let check = CheckResult {
        command: "make test".to_owned(),
        passed: code == 0,
        code: Some(code),
        timed_out: false,
        output: output.to_owned(),
        kept: None,
        took_ms: 250,
        environment: None,
    };
    Evidence { checks: vec![check], missing_artifacts: Vec::new(), health: Vec::new() }
}

/// A run of two tasks: the first crashed once, was not proven once and is complete; the second failed for good.
pub fn eventful(environment: &Environment) {
    let plan =
        "# Calculator\n\n### T1: Parse\n- accept: `make test`\n\n### T2: Print\n- accept: `make test`\n- attempts: 1\n";
    let mut history = History::of(plan);
    history.started("T1");
    history.printed("T1", Stream::Out, "reading the grammar");
    let first = history.holder("T1");
    history.exited(first, 7);
    history.wait(10_000);
    history.started("T1");
    history.printed("T1", Stream::Err, "warning: \x1b[31mred\x1b[0m text");
    history.printed("T1", Stream::Out, "parser written");
    history.claimed("T1", "parser", 1, "1 test failed\n");
    let second = history.holder("T1");
    history.claimed("T1", "parser with 3 tests", 0, "");
    history.exited(second, 0);
    history.started("T2");
    let third = history.holder("T2");
    history.left("T2", third, "The printer is done.");
    history.wait(1_000);
    history.save(environment);
}
