//! How a coordinator begins, on the store in memory and with an outside in which nothing happens.

use rekindle_core::event::ClockSeen;
use rekindle_core::ids::RunId;
use rekindle_core::plan;

use super::*;
use crate::driver::{Settings, load};
use crate::redact::Redactor;
use crate::store::MemoryStore;
use crate::token::Tokens;
use crate::world::MemoryWorld;

/// Only the machine's room is looked after.
struct Room(Option<Refusal>);

impl House for Room {
    fn short(&mut self) -> Option<Refusal> {
        self.0.clone()
    }

    fn plan_file(&mut self) -> Option<String> {
        None
    }

    fn files_due(&mut self, _: u64, _: Time) -> Option<Time> {
        None
    }

    fn write_files(&mut self, _: &State, _: u64, _: Time) {}

    fn tell(&mut self, _: &Notice) {}
}

fn coordinator(store: &Arc<MemoryStore>, world: MemoryWorld, short: Option<Refusal>) -> Loop<MemoryWorld, Room> {
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let known = load(&**store).expect("a state");
    let driver = Driver::new(store.clone(), world, known, Tokens::new([1; 32]), redactor, settings);
    Loop::new(driver, store.clone(), Room(short))
}

fn start() -> Start {
    let limits = Limits::default();
    Start { pid: 1, limits, boot_id: "boot".into(), boottime_ms: 1, gaps: Vec::new(), repaired: false }
}

#[test]
fn nothing_is_started_before_the_state_is_taken_over() {
    let store = Arc::new(MemoryStore::new());
    let mut first = coordinator(&store, MemoryWorld::default(), None);
    let plan = plan::parse("plan", b"# Plan\n\n### T1: One\n\nWork.\n").plan.expect("a plan");
    let run = RunId::new("run").expect("a name");
    let new = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
    first.begin(Some(new), None, None).expect("a run");
    first.start(start()).expect("a start");
    let attempt = AttemptId(1);
    first.driver.handle([Message::NotStarted { attempt, reason: "no such file".into() }]).expect("it waits");
    drop(first);
    // Its wait is over, the clocks tell something new, and there is no room for anything.
    let clocks = Some(ClockSeen { boot_id: "boot".into(), slept_ms: 0, wall_ahead_ms: 0 });
    let world = MemoryWorld { time: Time(10_000_000), clocks, ..MemoryWorld::default() };
    let refusal = Refusal { reason: "no room".into(), hint: "make room".into() };
    let mut second = coordinator(&store, world, Some(refusal));
    second.start(start()).expect("a start");
    assert!(second.driver.state().held.is_some(), "nothing new is started");
    assert_eq!(second.driver.state().attempts.len(), 1);
    assert!(second.driver.world().launched.is_empty());
}
