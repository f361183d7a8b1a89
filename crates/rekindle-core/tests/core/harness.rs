//! A story is told to the core input by input; what it answers is written down as short lines.

use rekindle_core::apply::apply;
use rekindle_core::decide::{self, Reply, Step};
use rekindle_core::event::{Body, Event, RunEvent, TaskEvent};
use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::report::{Channel, CheckResult, Evidence, Exit, Report};
use rekindle_core::state::State;
use rekindle_core::time::Time;

pub struct Story {
    pub state: State,
    pub now: Time,
    pub log: Vec<Event>,
}

pub fn task(id: &str) -> TaskId {
    TaskId::new(id).expect("a valid id")
}

pub fn exit_code(code: i32) -> Exit {
    Exit { code: Some(code), ..Exit::default() }
}

pub fn evidence(passed: bool) -> Evidence {
    let check = CheckResult {
        command: "true".into(),
        passed,
        code: Some(i32::from(!passed)),
        timed_out: false,
        output: String::new(),
        kept: None,
        took_ms: 1,
        environment: None,
    };
    Evidence { checks: vec![check], missing_artifacts: Vec::new(), health: Vec::new() }
}

impl Story {
    pub fn of(plan_text: &str) -> Self {
        Self::with(plan_text, Limits::default())
    }

    pub fn with(plan_text: &str, limits: Limits) -> Self {
        let mut story = Self { state: State::default(), now: Time(1_000), log: Vec::new() };
        story.request(plan_text);
        story.coordinator(limits, Vec::new());
        story
    }

    pub fn request(&mut self, plan_text: &str) {
        let parsed = plan::parse("demo", plan_text.as_bytes());
        let plan = parsed.plan.unwrap_or_else(|| panic!("{:?}", parsed.problems));
        self.input(Input::RunRequested {
            run: RunId::new("r1").expect("a valid id"),
            plan: Box::new(plan),
            plan_path: "plan.md".into(),
            branch: None,
        });
    }

    pub fn coordinator(&mut self, limits: Limits, found: Vec<(AttemptId, Found)>) -> Step {
        self.input(Input::CoordinatorStarted {
            pid: 1,
            limits: Box::new(limits),
            boot_id: "boot".into(),
            boottime_ms: 0,
            found,
            missing: Vec::new(),
        })
    }

    pub fn input(&mut self, input: Input) -> Step {
        let step = decide::decide(&mut self.state, self.now, input);
        self.log.extend(step.events.iter().cloned());
        step
    }

    pub fn after_ms(&mut self, ms: u64) -> &mut Self {
        self.now = self.now.plus_ms(ms);
        self
    }

    pub fn started(&mut self, attempt: u64) -> Step {
        let attempt = AttemptId(attempt);
        self.input(Input::AttemptStarted { attempt, pid: 100, shim_pid: 99, own_bytes: 0 })
    }

    pub fn exited(&mut self, attempt: u64, exit: Exit) -> Step {
        let id = AttemptId(attempt);
        let epoch = self.state.attempts[&id].epoch;
        self.input(Input::AttemptExited { attempt: id, epoch, exit })
    }

    pub fn report(&mut self, attempt: u64, report: Report) -> Step {
        let id = AttemptId(attempt);
        let epoch = self.state.attempts.get(&id).map_or(Epoch(1), |found| found.epoch);
        self.input(Input::Reported { attempt: id, epoch, channel: Channel::Command, report })
    }

    pub fn done(&mut self, attempt: u64, id: &str) -> Step {
        self.report(attempt, Report::Done { task: task(id), result: Some("as asked".into()) })
    }

    pub fn checked(&mut self, id: &str, passed: bool) -> Step {
        let epoch = self.state.tasks[&task(id)].epoch;
        self.input(Input::ChecksFinished { task: task(id), epoch, evidence: evidence(passed) })
    }

    pub fn order(&mut self, order: Order) -> Step {
        self.input(Input::Ordered(order))
    }

    pub fn replayed(&self) -> State {
        let mut state = State::default();
        for event in &self.log {
            apply(&mut state, event);
        }
        state
    }
}

/// Events as lines, effects behind them, the reply last where it says something.
pub fn lines(step: &Step) -> String {
    let mut out = String::new();
    for event in &step.events {
        let about = [
            event.task.as_ref().map(ToString::to_string),
            event.agent.as_ref().map(ToString::to_string),
            event.epoch.map(|epoch| format!("e{epoch}")),
        ];
        let about: Vec<String> = about.into_iter().flatten().collect();
        out.push_str(&format!("{} {} {}\n", event.body.name(), about.join(" "), short(&event.body)));
    }
    for effect in &step.effects {
        out.push_str(&format!("-> {effect:?}\n"));
    }
    if step.reply != Reply::Accepted {
        out.push_str(&format!("= {:?}\n", step.reply));
    }
    out
}

fn short(body: &Body) -> String {
    match body {
        Body::Run(RunEvent::CoordinatorStarted { .. } | RunEvent::RunStarted { .. })
        | Body::Task(TaskEvent::ChecksFinished { .. }) => String::new(),
        other => other.details(),
    }
}
