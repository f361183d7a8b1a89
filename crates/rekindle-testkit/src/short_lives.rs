//! The product's driver with a world in which every agent does its work at once and exits: many short tasks, as fast as the
//! driver and the store accept them.

use std::fmt::Write as _;
use std::sync::Arc;

use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::report::{CheckResult, Checkpoint, Evidence, Exit, Report};
use rekindle_engine::control::Called;
use rekindle_engine::control::wire::Request;
use rekindle_engine::driver::{self, Driver, Message, Settings};
use rekindle_engine::redact::Redactor;
use rekindle_engine::store::Store;
use rekindle_engine::token::Tokens;
use rekindle_engine::world::MemoryWorld;

/// The key that tokens of these runs are made with.
const KEY: [u8; 32] = [1; 32];

/// Agents running at once.
const AGENTS: u32 = 16;

/// A run of short tasks.
pub struct ShortLives {
    pub driver: Driver<MemoryWorld>,
    /// Agents that have run.
    pub lives: usize,
}

/// A plan of this many tasks without dependencies.
#[must_use]
pub fn plan_text(tasks: usize) -> String {
    let mut text = "# Plan\n\nThe goal of all of it.\n".to_owned();
    for number in 1..=tasks {
        let _written = write!(
            text,
            "\n### T{number}: Task number {number}\n\n- accept: `make check-{number}`\n\nWork until it is done.\n"
        );
    }
    text
}

impl ShortLives {
    /// A new run of this many tasks, taken over by a driver.
    ///
    /// # Panics
    ///
    /// When the store refuses.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tasks: usize) -> Self {
        let plan = plan::parse("plan", plan_text(tasks).as_bytes()).plan.expect("a plan");
        let run = RunId::new("run").expect("a name");
        let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
        Self::over(store, Some(input))
    }

    /// Another driver over the content of a store.
    ///
    /// # Panics
    ///
    /// When the store refuses.
    #[must_use]
    pub fn again(store: Arc<dyn Store>) -> Self {
        Self::over(store, None)
    }

    fn over(store: Arc<dyn Store>, request: Option<Input>) -> Self {
        let settings = Settings {
            log_context_lines: 10,
            brief_budget_bytes: 48 * 1024,
            prompts: std::collections::BTreeMap::new(),
            workspace: "/w".into(),
            build_status_path: "/w/b.md".into(),
        };
        let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
        let state = driver::load(&*store).expect("a state");
        // Every read of the time is a millisecond later: what depends on time depends only on the course of the run.
        let world = MemoryWorld {
            time: state.0.last_time,
            tick_ms: 1,
            found: Found::Finished(Exit { code: Some(0), ..Exit::default() }),
            output: b"it works\n".to_vec(),
            ..MemoryWorld::default()
        };
        let mut driver = Driver::new(store, world, state, Tokens::new(KEY), redactor, settings);
        if let Some(input) = request {
            driver.request_run(input).expect("a run");
        }
        let limits = Limits { max_agents: AGENTS, clis: vec!["default".into()], ..Limits::default() };
        driver.start(1, limits, "boot".into(), 1).expect("a start");
        Self { driver, lives: 0 }
    }

    /// Lets this many agents run, or as many as there are tasks for; returns how many ran.
    ///
    /// # Panics
    ///
    /// When the store refuses.
    pub fn live(&mut self, lives: usize) -> usize {
        let before = self.lives;
        while self.lives - before < lives {
            let mut launched = std::mem::take(&mut self.driver.world().launched);
            let rest = launched.split_off(launched.len().min(lives - (self.lives - before)));
            self.driver.world().launched = rest;
            if launched.is_empty() {
                break;
            }
            self.lives += launched.len();
            self.all(&launched);
        }
        self.lives - before
    }

    /// The whole lives of agents, side by side: each starts, prints, claims and exits. Every fiftieth never starts; the
    /// claim of every seventieth is not proven, it exits, rekindle checks its work again, and another is started.
    fn all(&mut self, launched: &[AttemptId]) {
        let (never, lived): (Vec<AttemptId>, Vec<AttemptId>) =
            launched.iter().partition(|attempt| attempt.0.is_multiple_of(50));
        let reason = || "no such program".to_owned();
        self.take(never.iter().map(|attempt| Message::NotStarted { attempt: *attempt, reason: reason() }).collect());
        self.take(lived.iter().map(|id| Message::Started { attempt: *id, pid: 2, shim_pid: 3 }).collect());
        let known: Vec<(AttemptId, Epoch, TaskId)> = lived
            .iter()
            .filter_map(|id| {
                let found = self.driver.state().attempts.get(id)?;
                Some((*id, found.epoch, found.tasks.first()?.clone()))
            })
            .collect();
        let words = known.iter().flat_map(|(attempt, epoch, task)| {
            let checkpoint = Checkpoint { status: format!("{task} is half done"), ..Checkpoint::default() };
            let result = Some(format!("{task} is done: `src/{task}.rs` holds it, and its tests pass"));
            let reports =
                [Report::Checkpoint { task: task.clone(), checkpoint }, Report::Done { task: task.clone(), result }];
            reports.map(|report| {
                Message::Called(Called {
                    token: Some(Tokens::new(KEY).token(*attempt, *epoch)),
                    ancestors: Vec::new(),
                    call: Request::report(report),
                    reply: Box::new(|_| {}),
                })
            })
        });
        self.take(words.collect());
        self.take(known.iter().map(|(attempt, ..)| Message::Grew { attempt: *attempt }).collect());
        self.check(|holder| !holder.is_some_and(|attempt| attempt.0.is_multiple_of(70)));
        self.take(known.iter().map(|(attempt, ..)| Message::Ended { attempt: *attempt }).collect());
        self.check(|_| false);
        // Any wait before the next attempt is over by now.
        let world = self.driver.world();
        world.time = world.time.plus_ms(60_000);
        world.forgotten.clear();
        self.driver.pass_time().expect("time passes");
    }

    /// Answers every order for checks; whether they pass depends on which attempt holds the task.
    fn check(&mut self, passes: impl Fn(Option<AttemptId>) -> bool) {
        let checks = std::mem::take(&mut self.driver.world().checks);
        let tasks = &self.driver.state().tasks;
        let done = |(task, epoch): (TaskId, Epoch)| {
            let holder = tasks.get(&task).and_then(|found| found.holder);
            Message::ChecksDone { task, epoch, evidence: evidence(passes(holder)) }
        };
        let done: Vec<Message> = checks.into_iter().map(done).collect();
        self.take(done);
    }

    fn take(&mut self, messages: Vec<Message>) {
        self.driver.handle(messages).expect("a store that takes it");
    }
}

fn evidence(passed: bool) -> Evidence {
    let check = CheckResult {
        command: "make check".into(),
        passed,
        code: Some(i32::from(!passed)),
        timed_out: false,
        output: "x".repeat(2_000),
        kept: None,
        took_ms: 1,
        environment: None,
    };
    Evidence { checks: vec![check], ..Evidence::default() }
}
