//! What no seam around the product can break is shown to the checkers as a log that was tampered with.

use rekindle_core::decide;
use rekindle_core::event::{Pause, Resume};
use rekindle_core::ids::RunId;
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::progress::Progress;
use rekindle_core::report::Evidence;

use super::*;

/// A run whose only task was split by the operator, as the checkers have seen it.
fn split() -> (Setting, Checkers, Event) {
    let text = "# Demo\n\n### T1: a\n- accept: `true`\n";
    let plan = plan::parse("demo", text.as_bytes()).plan.expect("a plan");
    let limits = Limits { validation_window_ms: 0, ..Limits::default() };
    let (quiet_at_ms, trouble, fault_every_ms, mute) = (0, 0, 1, false);
    let setting = Setting { plan: plan.clone(), limits: limits.clone(), quiet_at_ms, trouble, fault_every_ms, mute };
    let task = TaskId::new("T1").expect("a name");
    let order = Order::Split { task, subtasks: vec!["one".into()] };
    let inputs = [
        Input::RunRequested {
            run: RunId::new("r1").expect("a name"),
            plan: Box::new(plan),
            plan_path: "plan.md".into(),
            branch: None,
        },
        Input::CoordinatorStarted {
            pid: 1,
            limits: Box::new(limits),
            boot_id: "boot".into(),
            boottime_ms: 0,
            found: Vec::new(),
            missing: Vec::new(),
        },
        Input::Ordered(order.clone()),
    ];
    let (mut checkers, mut state) = (Checkers::default(), State::default());
    checkers.truth.operator(&order, &checkers.replayed);
    let mut last = None;
    for input in inputs {
        for event in decide::decide(&mut state, Time(1), input).events {
            checkers.event(&setting, &event);
            last = Some(event);
        }
    }
    assert_eq!(checkers.violation, None);
    (setting, checkers, last.expect("events"))
}

#[test]
fn a_whole_that_completes_before_its_parts_is_seen() {
    let (setting, mut checkers, some) = split();
    let whole = |body| Event { task: TaskId::new("T1").ok(), epoch: Some(Epoch(1)), body, ..some.clone() };
    checkers
        .event(&setting, &whole(Body::Task(TaskEvent::ChecksFinished { evidence: Evidence::default(), passed: true })));
    let early = whole(Body::Task(TaskEvent::TaskCompleted { result: None, unproven: false, unreported: false }));
    let seen = checkers.protocol(&setting, &early).expect_err("its part is open");
    assert_eq!(seen.0, Invariant::Parts);
}

#[test]
fn a_start_in_a_run_that_waits_is_seen() {
    let (setting, mut checkers, some) = split();
    let run = |body| Event { task: None, agent: None, epoch: None, body, ..some.clone() };
    let (reason, until) = (PauseReason::UsageLimit, Some(Time(60_000)));
    let (remaining_percent, resets_at, progress) = (None, None, Progress::of(&checkers.replayed));
    let pause = Pause { reason, remaining_percent, resets_at, resumes_at: until, probe: 1, progress };
    checkers.event(&setting, &run(Body::Run(RunEvent::SessionPause(pause))));
    checkers.event(&setting, &run(Body::Run(RunEvent::RunPaused {})));
    let task = TaskId::new("T1.1").expect("a name");
    let seen = checkers.may_dispatch(&setting, &some, &[task]).expect_err("it waits");
    assert_eq!(seen.0, Invariant::Gated);
    let early =
        run(Body::Run(RunEvent::SessionResume(Resume { resume_count: 1, tasks_to_revalidate: 0, reason: None })));
    assert_eq!(checkers.protocol(&setting, &early).expect_err("it is not time").0, Invariant::Allowance);
}
