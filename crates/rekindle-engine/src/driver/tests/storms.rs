//! A program that tries again and again by itself: how long it may do so counts the time awake.

use std::sync::Arc;

use rekindle_core::activity::Activity;
use rekindle_core::event::ClockSeen;
use rekindle_core::ids::{AttemptId, RunId};
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;
use rekindle_core::plan;

use crate::agents::{LineSource, Reader};
use crate::driver::{Driver, Message, Settings, load};
use crate::redact::Redactor;
use crate::store::MemoryStore;
use crate::token::Tokens;
use crate::world::MemoryWorld;

const NIGHT_MS: u64 = 8 * 60 * 60 * 1000;

/// Every line says that the program tries again.
struct Tries;

impl Reader for Tries {
    fn line(&mut self, _: LineSource, _: &str, _: bool) -> Vec<Activity> {
        vec![Activity::Retrying { problem: None, text: "no answer".to_owned() }]
    }
}

fn begun() -> Driver<MemoryWorld> {
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let store = Arc::new(MemoryStore::new());
    let fresh = load(&*store).expect("an empty state");
    let world = MemoryWorld {
        clocks: Some(ClockSeen { boot_id: "boot".into(), slept_ms: 0, wall_ahead_ms: 0 }),
        found: Found::Alive { pid: 2, shim_pid: 3 },
        reader: Some(|| Box::new(Tries)),
        output: b"again\n".to_vec(),
        ..MemoryWorld::default()
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let mut driver = Driver::new(store, world, fresh, Tokens::new([1; 32]), redactor, settings);
    let plan = plan::parse("plan", b"# Plan\n\n### T1: One\n\nWork.\n").plan.expect("a plan");
    let run = RunId::new("run").expect("a name");
    let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
    driver.request_run(input).expect("a run");
    driver.start(1, Limits::default(), "boot".into(), 1).expect("a start");
    driver
}

/// Time passes, part of it asleep; the coordinator takes a turn. Whether the agent is being stopped then.
fn is_stopped_after(driver: &mut Driver<MemoryWorld>, ms: u64, slept_ms: u64) -> bool {
    let world = driver.world();
    world.time = world.time.plus_ms(ms);
    if let Some(clocks) = &mut world.clocks {
        clocks.slept_ms += slept_ms;
    }
    driver.handle([]).expect("a turn");
    driver.break_storms().expect("a look");
    driver.state().attempts[&AttemptId(1)].stop.is_some()
}

#[test]
fn a_night_asleep_is_not_a_night_of_trying() {
    let mut driver = begun();
    let attempt = AttemptId(1);
    driver.handle([Message::Started { attempt, pid: 2, shim_pid: 3 }, Message::Grew { attempt }]).expect("it tries");
    let limit_ms = driver.state().limits.silence_ms;
    assert!(!is_stopped_after(&mut driver, NIGHT_MS + 1_000, NIGHT_MS), "it tried for a second");
    assert!(!is_stopped_after(&mut driver, limit_ms - 2_000, 0));
    assert!(is_stopped_after(&mut driver, 2_000, 0), "it tried for as long as it may");
}
