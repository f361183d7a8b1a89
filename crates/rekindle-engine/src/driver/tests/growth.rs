//! What a driver keeps beside the state is as large as what is alive, however many short tasks have gone by.

use std::fmt::Write as _;
use std::sync::Arc;

use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::report::{CheckResult, Evidence, Exit, Report};

use crate::control::Called;
use crate::control::wire::Request;
use crate::driver::{Driver, Message, Settings, load};
use crate::redact::Redactor;
use crate::store::MemoryStore;
use crate::token::Tokens;
use crate::world::MemoryWorld;

/// Tasks of the run: several hundred times as many as work at once.
const TASKS: usize = 400;

fn begun(store: Arc<MemoryStore>) -> Driver<MemoryWorld> {
    let settings = Settings {
        log_context_lines: 10,
        brief_budget_bytes: 8_192,
        prompts: std::collections::BTreeMap::new(),
        workspace: "/w".into(),
        build_status_path: "/w/b.md".into(),
    };
    let redactor = Redactor::new(std::iter::empty::<(&str, &str)>());
    let fresh = load(&*store).expect("an empty state");
    let found = Found::Finished(Exit { code: Some(0), ..Exit::default() });
    let world = MemoryWorld { found, output: b"at work\n".to_vec(), ..MemoryWorld::default() };
    let mut driver = Driver::new(store, world, fresh, Tokens::new([1; 32]), redactor, settings);
    let mut text = "# Plan\n".to_owned();
    for number in 1..=TASKS {
        let _written = write!(text, "\n### T{number}: Some\n\n- accept: check {number}\n");
    }
    let plan = plan::parse("plan", text.as_bytes()).plan.expect("a plan");
    let run = RunId::new("run").expect("a name");
    let input = Input::RunRequested { run, plan: Box::new(plan), plan_path: "/w/plan.md".into(), branch: None };
    driver.request_run(input).expect("a run");
    driver.start(1, Limits { max_agents: 2, ..Limits::default() }, "boot".into(), 1).expect("a start");
    driver
}

/// One agent's whole life, in every way that leaves something behind: it is heard, it prints, it claims, it leaves. Every fifth
/// one never starts.
fn live(driver: &mut Driver<MemoryWorld>, attempt: AttemptId) {
    if attempt.0.is_multiple_of(5) {
        let reason = "no such program".to_owned();
        driver.handle([Message::NotStarted { attempt, reason }]).expect("told");
        return;
    }
    driver.handle([Message::Started { attempt, pid: 2, shim_pid: 3 }]).expect("it starts");
    let found = driver.state().attempts.get(&attempt).expect("an attempt");
    let (epoch, task): (Epoch, TaskId) = (found.epoch, found.tasks[0].clone());
    let token = Tokens::new([1; 32]).token(attempt, epoch);
    for call in [Request::Heartbeat, Request::report(Report::Done { task: task.clone(), result: None })] {
        let token = Some(token.clone());
        driver
            .handle([Message::Called(Called { token, ancestors: Vec::new(), call, reply: Box::new(|_| {}) })])
            .expect("it is heard");
    }
    let check = CheckResult {
        command: "check".into(),
        passed: true,
        code: Some(0),
        timed_out: false,
        output: "x".repeat(10_000),
        kept: None,
        took_ms: 1,
        environment: None,
    };
    let evidence = Evidence { checks: vec![check], ..Evidence::default() };
    driver.handle([Message::Grew { attempt }, Message::ChecksDone { task, epoch, evidence }]).expect("proven");
    driver.handle([Message::Ended { attempt }]).expect("it leaves");
}

#[test]
fn hundreds_of_short_tasks_leave_nothing_beside_the_state() {
    let mut driver = begun(Arc::new(MemoryStore::new()));
    let (mut lives, mut most, mut bytes) = (0, Vec::new(), Vec::new());
    while let Some(attempt) = driver.world().launched.pop() {
        live(&mut driver, attempt);
        lives += 1;
        if lives % 100 == 0 {
            most.push(driver.entries());
            bytes.push(serde_json::to_vec(driver.state()).expect("a state").len());
        }
    }
    assert!(lives >= TASKS, "every task was worked on: {lives}");
    assert!(most.iter().all(|entries| *entries <= 8), "two agents at a time: {most:?}");
    let ended = driver.state().attempts.values().filter(|attempt| !attempt.is_live()).count();
    let ended = ended as u64 + driver.state().past.attempts;
    assert_eq!(driver.world().forgotten.len() as u64, ended, "whoever has ended is forgotten outside too");
    // What the state itself keeps of a task that is through: its row in the plan, its attempt, a hash for its check's output.
    let each = (bytes[bytes.len() - 1] - bytes[0]) / (100 * (bytes.len() - 1));
    assert!(each <= 2_048, "{each} bytes a task: {bytes:?}");
}
