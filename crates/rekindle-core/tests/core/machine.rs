//! A machine that says no: it costs no attempt, holds new starts, is tried again ever more rarely, and is believed again as soon as
//! something worked.

use rekindle_core::cause::Cause;
use rekindle_core::decide::Step;
use rekindle_core::effect::Effect;
use rekindle_core::event::{Body, MachineEvent, PauseReason};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, Refused};
use rekindle_core::limits::Limits;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::Exit;
use rekindle_core::state::{AttemptPhase, RunPhase, TaskState};
use rekindle_core::{decide, view};

use crate::harness::{Story, lines, task};

const TWO: &str = "# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n\n### T2: b\n- accept: `true`\n\nDo.\n";

fn refusal() -> Refusal {
    Refusal { reason: "no space".into(), hint: "df -h /p".into() }
}

fn refuse(story: &mut Story, attempt: u64) {
    story.input(Input::Refused { what: Refused::Attempt(AttemptId(attempt)), refusal: refusal() });
}

fn starting(story: &Story) -> Vec<u64> {
    let all = story.state.live_attempts().filter(|(_, found)| found.phase == AttemptPhase::Starting);
    all.map(|(id, _)| id.0).collect()
}

/// The wait after a refusal is over.
fn wait(story: &mut Story) -> u64 {
    let until = story.state.hold.until.expect("it is tried again");
    let waited = until.since_ms(story.now);
    story.now = until;
    story.input(Input::TimePassed);
    waited
}

#[test]
fn a_refused_start_costs_no_attempt_however_often_it_is_refused() {
    let mut story = Story::with(TWO, Limits { max_agents: 2, ..Limits::default() });
    assert_eq!(starting(&story), [1, 2]);
    refuse(&mut story, 1);
    refuse(&mut story, 2);
    assert_eq!(story.state.hold.strikes, 1, "several at one moment are one");
    assert_eq!(starting(&story), [0_u64; 0], "nothing new is started");
    let mut waits = Vec::new();
    for _ in 0..8 {
        waits.push(wait(&mut story));
        let probes = starting(&story);
        assert_eq!(probes.len(), 1, "one at a time until one has worked");
        refuse(&mut story, probes[0]);
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    for id in ["T1", "T2"] {
        let found = &story.state.tasks[&task(id)];
        assert_eq!((found.state, found.attempts), (TaskState::Pending, 0), "{id}");
    }
    wait(&mut story);
    let probe = starting(&story)[0];
    story.started(probe);
    assert_eq!(story.state.hold.strikes, 0, "believed again");
    story.input(Input::TimePassed);
    assert_eq!(starting(&story).len(), 1, "the other follows");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_hold_is_said_with_what_to_type_and_a_person_is_told_once() {
    let mut story = Story::of("# Demo\n\n### T1: a\n\nDo.\n");
    let mut alerts = 0;
    for _ in 0..6 {
        let attempt = starting(&story)[0];
        let what = Refused::Attempt(AttemptId(attempt));
        let step = story.input(Input::Refused { what, refusal: refusal() });
        let told = |effect: &&Effect| matches!(effect, Effect::AlertPerson { choices, .. } if choices == &["df -h /p"]);
        alerts += step.effects.iter().filter(told).count();
        let held = view::run_row(&story.state).and_then(|row| row.held).expect("held");
        assert_eq!((held.reason.as_str(), held.hint.as_str()), ("no space", "df -h /p"));
        wait(&mut story);
    }
    assert_eq!(alerts, 1, "not for the first, which may be over at once, and not for every one after it");
    assert!(view::run_row(&story.state).is_some_and(|row| row.held.is_none()));
}

#[test]
fn checks_that_could_not_be_run_are_run_again_and_nothing_is_decided_on_them() {
    let mut story = Story::of(TWO);
    story.started(1);
    story.done(1, "T1");
    let epoch = story.state.tasks[&task("T1")].epoch;
    let what = Refused::Checks(task("T1"), epoch);
    story.input(Input::Refused { what: what.clone(), refusal: refusal() });
    assert!(story.state.tasks[&task("T1")].claim.is_some(), "the claim stays");
    // Its agent leaves meanwhile: it is not ended before its claim is proven.
    story.exited(1, Exit { code: Some(0), ..Exit::default() });
    assert_eq!(story.state.attempts[&AttemptId(1)].phase, AttemptPhase::Exited);
    let until = story.state.hold.until.expect("it is tried again");
    story.now = until;
    let step = story.input(Input::TimePassed);
    assert!(step.effects.contains(&Effect::RepeatRefused), "{:?}", step.effects);
    assert!(decide::outstanding(&story.state).contains(&Effect::RunChecks { task: task("T1"), epoch }));
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1);
    let late = story.input(Input::Refused { what, refusal: refusal() });
    assert_eq!(late.reply, decide::Reply::Already, "decided meanwhile");
}

#[test]
fn an_agent_whose_supervisor_found_no_room_costs_no_attempt() {
    let mut story = Story::of(TWO);
    story.exited(
        1,
        Exit { start_error: Some("cannot start a process".into()), refused: Some(refusal()), ..Exit::default() },
    );
    assert!(matches!(story.state.attempts[&AttemptId(1)].cause, Some(Cause::Machine(_))));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 0);
    assert!(story.state.held.is_some());
}

/// Its supervisor found room, its program did not: the record of the process comes first, the refusal with its end.
fn refuse_program(story: &mut Story, attempt: u64) -> Step {
    story.started(attempt);
    let refused = Some(refusal());
    story.exited(attempt, Exit { start_error: Some("cannot start it".into()), refused, ..Exit::default() })
}

#[test]
fn a_program_that_is_refused_for_ever_is_tried_ever_more_rarely_and_a_person_is_told_once() {
    let mut story = Story::of("# Demo\n\n### T1: a\n\nDo.\n");
    let (mut waits, mut alerts) = (Vec::new(), 0);
    for _ in 0..8 {
        let attempt = starting(&story)[0];
        let step = refuse_program(&mut story, attempt);
        alerts += step.effects.iter().filter(|effect| matches!(effect, Effect::AlertPerson { .. })).count();
        let held = view::run_row(&story.state).and_then(|row| row.held).expect("held");
        assert_eq!((held.reason.as_str(), held.hint.as_str()), ("no space", "df -h /p"));
        assert_eq!(story.state.tasks[&task("T1")].attempts, 0, "nobody pays");
        waits.push(wait(&mut story));
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(alerts, 1, "told once");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_program_that_runs_ends_the_row_of_refusals() {
    let mut story = Story::of("# Demo\n\n### T1: a\n\nDo.\n");
    for _ in 0..3 {
        let attempt = starting(&story)[0];
        refuse_program(&mut story, attempt);
        wait(&mut story);
    }
    let attempt = starting(&story)[0];
    story.started(attempt);
    story.exited(attempt, Exit { code: Some(1), ..Exit::default() });
    story.now = story.state.tasks[&task("T1")].not_before.expect("it is tried again");
    story.input(Input::TimePassed);
    let attempt = starting(&story)[0];
    refuse_program(&mut story, attempt);
    assert_eq!(wait(&mut story), 1_000, "the first of a new row");
}

#[test]
fn a_new_coordinator_tries_at_once_what_its_predecessor_was_refused() {
    let mut story = Story::of(TWO);
    refuse(&mut story, 1);
    assert!(story.state.held.is_some());
    let limits = story.state.limits.clone();
    let found: Vec<(AttemptId, Found)> = Vec::new();
    let step = story.coordinator(limits, found);
    assert!(step.events.iter().any(|event| matches!(event.body, Body::Machine(MachineEvent::StartsReleased {}))));
    assert!(story.state.held.is_none() && !starting(&story).is_empty());
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_look_that_finds_room_does_not_end_what_a_refusal_began() {
    let mut story = Story::of(TWO);
    refuse(&mut story, 1);
    story.input(Input::PressureSeen { short: None });
    assert!(story.state.held.is_some(), "nothing but trying tells");
    story.input(Input::PressureSeen { short: Some(Refusal { reason: "disk".into(), hint: "df".into() }) });
    assert_eq!((story.state.held.as_deref(), story.state.hold.until), (Some("disk"), None), "seen with our own eyes");
    story.input(Input::PressureSeen { short: None });
    assert!(story.state.held.is_none());
}

#[test]
fn a_run_that_is_not_to_wait_leaves_after_a_few_refusals() {
    for (no_wait, left) in [(true, true), (false, false)] {
        let mut story = Story::with("# Demo\n\n### T1: a\n\nDo.\n", Limits { no_wait, ..Limits::default() });
        for _ in 0..5 {
            let Some(attempt) = starting(&story).first().copied() else { break };
            refuse(&mut story, attempt);
            if story.state.held.is_some() {
                wait(&mut story);
            }
        }
        let phase = story.state.run.as_ref().map(|run| run.phase);
        assert_eq!(matches!(phase, Some(RunPhase::Paused(PauseReason::SystemError))), left, "{phase:?}");
        assert_eq!(story.state.tasks[&task("T1")].attempts, u32::from(!left), "one that is under way counts as one");
    }
}

/// The kernel killed an agent for lack of memory.
fn starve(story: &mut Story, attempt: u64, memory_cap: Option<u64>) -> Step {
    story.started(attempt);
    let exit = Exit { signal: Some(9), out_of_memory: true, memory_cap, ..Exit::default() };
    story.exited(attempt, exit)
}

#[test]
fn a_want_of_the_machines_memory_is_free_once_in_a_row_and_holds_starts() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n");
    for (attempt, spent) in [(1, 0), (2, 1), (3, 2)] {
        starve(&mut story, attempt, None);
        let found = &story.state.tasks[&task("T1")];
        assert_eq!((found.state, found.attempts), (TaskState::Pending, spent), "after {attempt}");
        let held = view::run_row(&story.state).and_then(|row| row.held).expect("held");
        assert!(held.reason.contains("ran out of memory") && held.hint.contains("run.max_agents"), "{held:?}");
        // First the hold is over, then perhaps a backoff.
        wait(&mut story);
        if let Some(at) = story.state.tasks[&task("T1")].not_before {
            story.now = story.now.max(at);
            story.input(Input::TimePassed);
        }
        assert_eq!(starting(&story), [attempt + 1]);
    }
    starve(&mut story, 4, None);
    let found = &story.state.tasks[&task("T1")];
    assert_eq!(found.state, TaskState::Failed, "it cannot go on for ever");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn an_agent_that_met_its_own_cap_pays_and_the_way_out_is_said() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n");
    let told = lines(&starve(&mut story, 1, Some(64 << 20)));
    assert!(story.state.held.is_none(), "the machine has memory");
    let found = &story.state.tasks[&task("T1")];
    assert_eq!((found.attempts, found.last_cause.clone()), (1, Some(Cause::OutOfMemory { cap: Some(64 << 20) })));
    let row = view::task_row(&story.state, &task("T1")).expect("a row");
    assert_eq!(row.cause.as_deref(), Some("out_of_memory"));
    assert!(told.contains("cap of 64 MiB") && told.contains("raise `memory_max` of [agents."), "{told}");
}

#[test]
fn logs_of_earlier_versions_know_no_cap() {
    let old: Cause = serde_json::from_str("{\"cause\":\"out_of_memory\"}").expect("reads");
    assert_eq!(old, Cause::OutOfMemory { cap: None });
    assert_eq!(serde_json::to_string(&old).expect("writes"), "{\"cause\":\"out_of_memory\"}");
}
