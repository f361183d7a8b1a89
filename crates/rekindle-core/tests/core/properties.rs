//! Properties over random histories: replay equals live, the fences hold, and recovery after any prefix finishes the plan.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rekindle_core::activity::{Failure, Measure, Problem, StreamEvent, Transcript, UnderWay, Usage};
use rekindle_core::apply::apply;
use rekindle_core::budget::{Allowance, Budgets, Calendar, Price};
use rekindle_core::decide::{self, Reply};
use rekindle_core::effect::Effect;
use rekindle_core::event::{AgentSaid, Body, Event, PauseReason, TaskEvent, UsageLeft};
use rekindle_core::ids::{AttemptId, Epoch, QuestionId, TaskId};
use rekindle_core::input::{Found, Input, MergeOutcome, Order, PreflightTried, Refused};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{Baseline, Channel, CheckResult, Checkpoint, Exit, Report};
use rekindle_core::review::{Findings, Verdict};
use rekindle_core::role::Role;
use rekindle_core::state::{AttemptPhase, Preflight, RunPhase, State, TaskState};
use rekindle_core::time::Time;

use crate::harness::{Story, evidence, task};

const PLAN: &str = "---\nplan: demo\n---\n# Demo\n\n## Wave 1\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- agent: duo\n- accept: `true`\n\n### T3: c\n- agent: duo\n- blocked by: T2\n- artifacts: c.txt\n\n## Wave 2\n\n### T4: d\n- blocked by: T1\n- artifacts: c.txt\n\n### T5: e\n- accept: `true`\n- attempts: 2\n";

/// One random move: what happens, and to whom.
pub type Move = (u8, u8, u8, u32);

/// Mostly whoever lives, so that stories get far; now and then one that is over.
fn attempts(state: &State, who: u8) -> Vec<AttemptId> {
    let live: Vec<AttemptId> = state.live_attempts().map(|(id, _)| id).collect();
    if live.is_empty() || who >= 224 { state.attempts.keys().copied().collect() } else { live }
}

fn pick<T: Clone>(from: &[T], by: u8) -> Option<T> {
    (!from.is_empty()).then(|| from[by as usize % from.len()].clone())
}

/// The machine refuses an attempt that is being started, or the checks of a task, or a worktree cannot be set up for either; else time passes.
fn refused(state: &State, attempt: Option<AttemptId>, id: TaskId, how: u8) -> Option<Input> {
    let refusal = Refusal { reason: "no room".into(), hint: "make room".into() };
    let starting = |id: &AttemptId| state.attempts[id].phase == AttemptPhase::Starting;
    let what = match how % 6 {
        0 => Refused::Attempt(attempt.filter(starting)?),
        2 => {
            let attempt = attempt.filter(starting)?;
            let task = state.attempts[&attempt].tasks.first()?.clone();
            return Some(Input::SetupFailed { attempt, task, reason: "no registry".into() });
        }
        3 => return Some(Input::TimePassed),
        5 => {
            let epoch = state.tasks[&id].epoch;
            return Some(Input::ChecksNotSetUp { task: id, epoch, reason: "no registry".into() });
        }
        4 => return Some(Input::CalendarSeen(calendar(state, how))),
        _ => Refused::Checks(id.clone(), state.tasks[&id].epoch),
    };
    Some(Input::Refused { what, refusal })
}

/// An answer to one of the first questions. Numbers are what one about a budget takes; any other takes them as words.
fn answer(who: u8, how: u8) -> Order {
    let text = match how % 8 {
        2 => "done".to_owned(),
        3 => "yes".to_owned(),
        _ => (how / 8 % 4 + 1).to_string(),
    };
    Order::Answer { id: QuestionId(u64::from(who % 4) + 1), text }
}

/// A day, and now and then hours in which nothing starts.
fn calendar(state: &State, how: u8) -> Calendar {
    let quiet_until = how.is_multiple_of(3).then(|| state.last_time.plus_ms(u64::from(how) * 10_000));
    Calendar { date: format!("day {}", how / 8 % 3), quiet_until }
}

/// Budgets small enough to be met.
fn random_budgets(by: u32) -> Budgets {
    let limit = |tokens, usd_micros| Allowance { usd_micros, tokens, wall_ms: None };
    match by % 4 {
        0 | 1 => Budgets::default(),
        2 => Budgets { run: limit(Some(300), None), day: limit(None, Some(200_000)), ..Budgets::default() },
        _ => Budgets {
            task: limit(Some(100), None),
            run: Allowance { wall_ms: Some(2_000_000), ..limit(None, Some(400_000)) },
            day: limit(Some(900), None),
        },
    }
}

/// What the checks said in the pre-flight, some of them that they cannot run.
fn tried(state: &State, how: u8) -> Input {
    let results = decide::to_try(state).into_iter().zip(0_u8..).map(|(check, at)| CheckResult {
        command: check.command,
        passed: false,
        code: Some(if (how >> (at % 8)) & 1 == 1 { 127 } else { 1 }),
        timed_out: false,
        output: String::new(),
        kept: None,
        took_ms: 1,
        environment: check.environment,
    });
    Input::Preflight(PreflightTried { results: results.collect(), problem: None, took_ms: 1 })
}

fn make_input(state: &State, (what, who, how, _): Move) -> Option<Input> {
    if state.preparing.preflight == Preflight::Ordered && what % 3 == 0 {
        return Some(tried(state, how));
    }
    let tasks: Vec<TaskId> = state.tasks.keys().cloned().collect();
    let attempt = pick(&attempts(state, who), who);
    let epoch = attempt.map(|id| state.attempts[&id].epoch).unwrap_or_default();
    // Now and then a stale or foreign one.
    let epoch = if how % 11 == 0 { Epoch(epoch.0.saturating_sub(1)) } else { epoch };
    let own = attempt.and_then(|id| pick(&state.attempts[&id].tasks, how));
    let id = if how % 13 == 0 { pick(&tasks, who)? } else { own.or_else(|| pick(&tasks, how))? };
    let report = |report| attempt.map(|attempt| Input::Reported { attempt, epoch, channel: Channel::Command, report });
    match what % 24 {
        0 | 1 => attempt.map(|attempt| Input::AttemptStarted { attempt, pid: 10, shim_pid: 9, own_bytes: 0 }),
        2 => {
            let exit = Exit { code: Some(i32::from(how % 3)), ..Exit::default() };
            attempt.map(|attempt| Input::AttemptExited { attempt, epoch, exit })
        }
        3 => attempt.map(|attempt| Input::AttemptLost { attempt, with_host: how % 5 == 0 }),
        4..=6 => report(Report::Done { task: id, result: None }),
        7 if how % 2 == 0 => report(Report::Split { task: id, subtasks: vec![format!("part {}", how % 3)] }),
        7 => report(Report::Checkpoint { task: id, checkpoint: Checkpoint::default() }),
        8 => report(Report::Ask { task: id, text: format!("q{how}"), options: Vec::new(), context: String::new() }),
        9 => report(Report::Fail { task: id, reason: "no".into() }),
        10..=12 => {
            let epoch = state.tasks[&id].epoch;
            Some(Input::ChecksFinished { task: id, epoch, evidence: evidence(how % 4 != 0) })
        }
        13 => refused(state, attempt, id, how),
        14 => Some(Input::Ordered(match how % 8 {
            0 => Order::Retry { task: id },
            1 => Order::Skip { task: id, reason: "s".into() },
            2..=4 => answer(who, how),
            5 => Order::Note { text: "n".into() },
            6 => Order::Stop { task: id },
            _ => Order::Pause(PauseReason::Operator),
        })),
        16..=19 => attempt.map(|attempt| match how % 16 {
            15 => Input::SessionClosed {
                attempt,
                measure: Measure::default(),
                transcript: Transcript::Whole,
                cut_off: Some("a call".into()),
                under_way: UnderWay::default(),
            },
            14 => {
                let text = if how % 32 == 14 { "done" } else { "which one?" };
                Input::AgentSaid(AgentSaid { attempt, text: text.into(), asks: how.is_multiple_of(5) })
            }
            13 => {
                let failed = (how % 32 == 13).then(|| "`true`".to_owned());
                Input::BaselineSeen { attempt, task: id, baseline: Baseline { failed, unknown: None } }
            }
            _ => Input::Streamed { attempt, event: random_sign(how) },
        }),
        20 | 21 => merged(state, how),
        22 | 23 => report(random_verdict(attempt.map(|id| state.attempts[&id].role)?, id, how)),
        _ if state.run.as_ref().is_some_and(|run| run.inspection == rekindle_core::state::Inspection::Asked) => {
            Some(Input::DiskInspected { missing: Vec::new() })
        }
        _ => Some(restart(state, how)),
    }
}

fn merged(state: &State, how: u8) -> Option<Input> {
    let merging = state.tasks.iter().find(|(_, task)| task.workflow.merging.is_some());
    let (task, epoch) = merging.map(|(id, task)| (id.clone(), task.epoch))?;
    let outcome = match how % 4 {
        0 => MergeOutcome::Merged { commit: Some(format!("c{how}")) },
        1 => MergeOutcome::Failed { reason: "no".into() },
        _ => MergeOutcome::Conflict { files: vec!["c.txt".into()], advice: "rebase".into() },
    };
    Some(Input::WorkMerged { task, epoch, outcome })
}

fn random_verdict(role: Role, task: TaskId, how: u8) -> Report {
    let verdict = match how % 5 {
        0 => Verdict::Blocked,
        1 | 2 => Verdict::Fail,
        _ => Verdict::Pass,
    };
    // Now and then from somebody who may not give it.
    let role = if how.is_multiple_of(7) { Role::Auditor } else { role };
    Report::Verdict {
        task: Some(task),
        role,
        verdict,
        findings: Findings { issues: vec!["i".into()], ..Findings::default() },
    }
}

fn random_sign(how: u8) -> StreamEvent {
    let failed = |problem, resets_at| {
        StreamEvent::Failed(Failure { problem, resets_at, text: "no".into(), runaway: how % 32 > 16 })
    };
    let n = u64::from(how);
    match how % 12 {
        0 => StreamEvent::Session { id: format!("s{}", how % 3), model: None },
        1 | 2 => {
            let cost_usd = how.is_multiple_of(2).then_some(n as f64 / 1_000.0);
            let usage = Usage { input_tokens: n, cached_tokens: n / 3, output_tokens: n / 7, cost_usd };
            StreamEvent::Measured(Measure { usage, context_used: Some(n), context_window: Some(200) })
        }
        3 => StreamEvent::Compacted { automatic: None, turns: n, calls: n },
        4 => failed(Problem::UsageLimit, Some(Time(500_000 + i64::from(how) * 1_000))),
        5 => failed(Problem::Overloaded, None),
        6 => failed(Problem::Auth, None),
        7 => StreamEvent::Result { ok: how.is_multiple_of(3) },
        8 => StreamEvent::Stalled { times: 8, words: "`ls` ran 8 times".into(), printed: "nothing".into() },
        9 => StreamEvent::Acted,
        10 => StreamEvent::Called { calls: n },
        _ => failed(Problem::ContextFull, None),
    }
}

/// What an agent can do differs from story to story.
fn random_traits(by: usize) -> BTreeMap<String, Traits> {
    let able = Traits {
        structured_output: by & 1 != 0,
        resumes: by & 2 != 0,
        takes_messages: by & 4 != 0,
        compacts: by & 8 != 0,
        reinjects: by & 16 != 0,
        ..Traits::new("able")
    };
    BTreeMap::from([("default".to_owned(), able)])
}

fn restart(state: &State, how: u8) -> Input {
    let found = state
        .live_attempts()
        .map(|(id, attempt)| {
            let what = match (how.wrapping_add(id.0 as u8) % 4, attempt.phase) {
                (0, AttemptPhase::Starting) => Found::NeverStarted,
                (1, _) => Found::Lost,
                (2, _) => Found::Finished(Exit::default()),
                _ => Found::Alive { pid: 10, shim_pid: 9 },
            };
            (id, what)
        })
        .collect();
    Input::CoordinatorStarted {
        pid: 2,
        limits: Box::new(state.limits.clone()),
        boot_id: "boot".into(),
        boottime_ms: 1,
        found,
        missing: Vec::new(),
    }
}

/// What must hold between two states, whatever happened.
fn check_step(before: &State, after: &State, events: &[Event]) {
    for (id, task) in &after.tasks {
        // A part, or a repair of the plan's health, may be new.
        let Some(old) = before.tasks.get(id) else { continue };
        assert!(task.epoch >= old.epoch, "{id}: an epoch went back");
        let reopened = events.iter().any(|event| {
            event.task.as_ref() == Some(id) && matches!(event.body, Body::Task(TaskEvent::TaskReopened { .. }))
        });
        if old.state.is_terminal() && old.state != task.state {
            let by_operator = events.iter().any(|event| {
                event.task.as_ref() == Some(id)
                    && matches!(event.body, Body::Task(TaskEvent::TaskCompleted { .. } | TaskEvent::TaskSkipped { .. }))
            });
            assert!(reopened || (old.state != TaskState::Complete && by_operator), "{id}: left {:?}", old.state);
        }
        // Rework for free gives its attempt back, so it needs no room beyond the limit.
        let limit = after.attempt_limit(id);
        assert!(task.attempts <= limit, "{id}: {} attempts of {limit}", task.attempts);
        if task.state == TaskState::Complete {
            assert!(task.claim.is_none() && task.holder.is_none());
        }
    }
    let live = after.live_attempts().count();
    assert!(live <= before.live_attempts().count().max(after.limits.max_agents as usize));
    let mut holders: BTreeMap<&TaskId, usize> = BTreeMap::new();
    for (id, attempt) in after.live_attempts() {
        for task in attempt.tasks.iter().filter(|task| after.tasks[*task].holder == Some(id)) {
            *holders.entry(task).or_default() += 1;
        }
    }
    assert!(holders.values().all(|count| *count == 1), "two attempts hold one task");
    let mut names: Vec<_> = after.live_attempts().map(|(_, attempt)| attempt.agent.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), live, "one process an agent");
}

fn play(moves: &[Move]) -> Story {
    play_with(moves, |_, _| {})
}

/// The same, looked at after every step.
pub fn play_with(moves: &[Move], mut look: impl FnMut(&Story, &[Event])) -> Story {
    // Whether work is done apart, who reviews it and how soon what has ended is let go differ from story to story as well.
    let by = moves.first().map_or(0, |made| made.3 >> 24);
    let review = ["", "review: [critic, auditor]\n", "review: [critic]\n", ""][by as usize / 2 % 4];
    let plan = PLAN.replacen("plan: demo\n", &format!("plan: demo\n{review}"), 1);
    let limits = Limits {
        max_agents: 2,
        traits: random_traits(moves.len()),
        worktrees: by % 2 == 1,
        preflight: by % 4 == 3,
        ended_kept: [1, Limits::default().ended_kept][by as usize / 8 % 2],
        budget: random_budgets(by / 16),
        prices: BTreeMap::from([("default".to_owned(), Price { input: 1_000_000, cached: 0, output: 9_000_000 })]),
        ..Limits::default()
    };
    let mut story = Story::with(&plan, limits);
    look(&story, &story.log);
    for &made in moves {
        story.after_ms(u64::from(made.3 % 400_000));
        let Some(input) = make_input(&story.state, made) else { continue };
        let before = story.state.clone();
        let step = story.input(input);
        check_step(&before, &story.state, &step.events);
        look(&story, &step.events);
        for effect in &step.effects {
            // What an attempt left is kept by the next one as well, before it begins.
            let known = matches!(
                effect,
                // What was refused is outstanding itself, and so is a claim.
                Effect::AlertPerson { .. }
                    | Effect::TellEnd { .. }
                    | Effect::LeaveWorkspace { .. }
                    | Effect::RepeatRefused
                    | Effect::ProveAgain { .. }
            ) || decide::outstanding(&story.state).contains(effect);
            let settled = matches!(effect, Effect::LaunchAttempt { attempt }
                | Effect::StopAttempt { attempt, .. }
                | Effect::TellAgent { attempt, .. }
                | Effect::CloseInput { attempt }
                if !story.state.attempts[attempt].is_live());
            assert!(known || settled, "an effect that a restart would forget: {effect:?}");
        }
        if let Reply::Refused { .. } = step.reply {
            assert!(step.events.iter().all(|event| !matches!(event.body, Body::Task(TaskEvent::TaskCompleted { .. }))));
        }
    }
    story
}

/// What comes of an effect in a world in which nothing goes wrong.
fn outcome(state: &State, effect: Effect) -> Option<Input> {
    let ended = |attempt| {
        let epoch = state.attempts[&attempt].epoch;
        Input::AttemptExited { attempt, epoch, exit: Exit::default() }
    };
    Some(match effect {
        Effect::LaunchAttempt { attempt } => Input::AttemptStarted { attempt, pid: 1, shim_pid: 2, own_bytes: 0 },
        Effect::StopAttempt { attempt, .. } | Effect::CloseInput { attempt } => ended(attempt),
        Effect::RunChecks { task, epoch } => Input::ChecksFinished { task, epoch, evidence: evidence(true) },
        Effect::InspectDisk => Input::DiskInspected { missing: Vec::new() },
        Effect::MergeWork { task, epoch } => {
            Input::WorkMerged { task, epoch, outcome: MergeOutcome::Merged { commit: None } }
        }
        Effect::Preflight => Input::Preflight(PreflightTried::default()),
        Effect::CheckHealth => Input::HealthChecked { results: Vec::new() },
        Effect::AskUsage => Input::UsageSeen(UsageLeft { remaining_percent: Some(50), resets_at: None }),
        Effect::WatchPerson { task, by, .. } => Input::PersonLeft { task, by, changed: Vec::new() },
        Effect::TellAgent { attempt, number, .. } => Input::MessageTaken { attempt, number },
        Effect::ProveAgain { task } => {
            let epoch = state.tasks[&task].claim.as_ref()?.epoch;
            Input::ChecksFinished { task, epoch, evidence: evidence(true) }
        }
        Effect::AlertPerson { .. } | Effect::TellEnd { .. } | Effect::RepeatRefused | Effect::LeaveWorkspace { .. } => {
            return None;
        }
    })
}

/// From any state on, a world in which nothing goes wrong any more brings the run to an end.
fn finish(mut state: State, mut now: rekindle_core::time::Time) -> State {
    let start = restart(&state, 0);
    let found = match &start {
        Input::CoordinatorStarted { found, .. } => found.clone(),
        _ => Vec::new(),
    };
    let mut inputs = vec![start];
    for (attempt, what) in found {
        let epoch = state.attempts[&attempt].epoch;
        match what {
            Found::Lost => inputs.push(Input::AttemptLost { attempt, with_host: false }),
            Found::Finished(exit) => inputs.push(Input::AttemptExited { attempt, epoch, exit }),
            _ => {}
        }
    }
    for _ in 0..400 {
        for input in inputs.drain(..) {
            decide::decide(&mut state, now, input);
        }
        if matches!(state.run.as_ref().map(|run| run.phase), Some(RunPhase::Finished(_))) {
            return state;
        }
        now = now.plus_ms(1_000_000_000 / 400);
        if matches!(state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(_))) {
            inputs.push(restart(&state, 0));
        }
        inputs.extend(decide::outstanding(&state).into_iter().filter_map(|effect| outcome(&state, effect)));
        for (id, asked) in state.questions.iter().filter(|(_, question)| question.answer.is_none()) {
            let text = if asked.is_budget { "raise" } else { "yes" };
            inputs.push(Input::Ordered(Order::Answer { id: *id, text: text.into() }));
        }
        for (id, _) in state.tasks.iter().filter(|(_, task)| task.spending.handed_back && !task.state.is_terminal()) {
            inputs.push(Input::Ordered(Order::Retry { task: id.clone() }));
        }
        for (attempt, found) in state.live_attempts().filter(|(_, found)| found.phase == AttemptPhase::Running) {
            let (epoch, open) = (found.epoch, state.open_tasks(attempt));
            let role = found.role;
            let report = |task| {
                let report =
                    if role.reviews() { random_verdict(role, task, 3) } else { Report::Done { task, result: None } };
                Input::Reported { attempt, epoch, channel: Channel::Command, report }
            };
            match open.first() {
                Some(task) => inputs.push(report(task.clone())),
                None => inputs.push(Input::AttemptExited {
                    attempt,
                    epoch,
                    exit: Exit { code: Some(0), ..Exit::default() },
                }),
            }
        }
        inputs.push(Input::TimePassed);
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replay_of_the_log_gives_the_live_state(moves in prop::collection::vec(any::<Move>(), 0..120)) {
        let story = play(&moves);
        prop_assert_eq!(&story.replayed(), &story.state);
        // And through the words of the store: names and details as text.
        let mut state = State::default();
        for event in &story.log {
            let body = Body::from_parts(&event.body.name(), &event.body.details()).expect("its own words");
            prop_assert_eq!(&body, &event.body);
            apply(&mut state, &Event { body, ..event.clone() });
        }
        prop_assert_eq!(&state, &story.state);
        let snapshot = serde_json::to_vec(&state).expect("JSON");
        prop_assert_eq!(serde_json::from_slice::<State>(&snapshot).expect("JSON"), state);
    }

    #[test]
    fn recovery_after_any_prefix_of_the_log_finishes_the_plan(
        moves in prop::collection::vec(any::<Move>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let story = play(&moves);
        // A prefix without the run's first event is a state without a run: there is nothing to recover.
        let keep = 1 + cut.index(story.log.len());
        let mut state = State::default();
        for event in &story.log[..keep] {
            apply(&mut state, event);
        }
        let end = finish(state, story.now);
        let phase = end.run.as_ref().map(|run| run.phase);
        let open: Vec<_> = end.attempts.iter().filter(|(_, a)| a.phase != AttemptPhase::Ended).collect();
        let tasks: Vec<_> = end.tasks.iter().filter(|(_, t)| !t.state.is_terminal()).collect();
        let waits = decide::standstill(&end);
        prop_assert!(matches!(phase, Some(RunPhase::Finished(_))), "{phase:?} {waits:?} {open:#?} {tasks:#?} {:?} {:?}", end.preparing, end.budget);
    }

    #[test]
    fn the_same_inputs_give_the_same_events(moves in prop::collection::vec(any::<Move>(), 0..60)) {
        prop_assert_eq!(play(&moves).log, play(&moves).log);
    }
}

#[test]
fn a_planted_task_is_found_by_the_step_check() {
    let before = Story::of(PLAN).state;
    let mut after = before.clone();
    after.tasks.get_mut(&task("T1")).expect("T1").attempts = 99;
    let caught = std::panic::catch_unwind(|| check_step(&before, &after, &[]));
    assert!(caught.is_err());
}
