//! How each event changes the state. Nothing else changes it; an event is never refused here, because it is already a fact.

mod budget;
mod cli_session;
mod clock;
mod machine;
mod person;
mod preparing;
mod protocol;
mod reload;
mod settle;
mod steering;
mod task;

use task::release;

pub use settle::may_let_go;
pub use task::WORDS_OF_FAILURE;

use std::collections::BTreeMap;

use crate::budget::Spending;
use crate::cause::Cause;
use crate::event::{AttemptEvent, Body, Event, PauseReason, RunEvent, TaskEvent};
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::limits::Limits;
use crate::plan::Plan;
use crate::pull_request::KnownPullRequest;
use crate::report::Exit;
use crate::state::{
    Attempt, AttemptPhase, Breaker, CliSession, Coordinator, Health, Inspection, LastAttempts, Past, Preparing, Run,
    RunPhase, State, Stop, Task, TaskState, Usage, Workflow,
};
use crate::strategy::Strategy;

pub fn apply(state: &mut State, event: &Event) {
    state.ensure_index();
    clock::rebooted(state, event);
    state.last_time = state.last_time.max(event.time);
    match &event.body {
        Body::Run(fact) => run_changed(state, event, fact),
        Body::Attempt(fact) => attempt_changed(state, event, fact),
        Body::Session(fact) => cli_session::apply(state, event, fact),
        Body::Task(fact) => task_changed(state, event, fact),
        Body::Review(fact) => protocol::apply(state, event, fact),
        Body::Gate(fact) => cli_session::gate(state, event, fact),
        Body::Machine(fact) => machine::apply(state, event, fact),
        Body::Person(fact) => person::apply(state, event, fact),
    }
    steering::after(state, event);
    budget::after(state, event);
}

fn attempt_changed(state: &mut State, event: &Event, fact: &AttemptEvent) {
    match fact {
        AttemptEvent::Dispatched { .. } => dispatched(state, event, fact),
        AttemptEvent::AgentStarted { attempt, pid, shim_pid, own_bytes } => {
            started(state, *attempt, *pid, *shim_pid);
            cli_session::on(state, *attempt, |cli_session| cli_session.own_bytes += own_bytes);
        }
        AttemptEvent::AgentAdopted { attempt, pid, shim_pid } => {
            started(state, *attempt, *pid, *shim_pid);
            cli_session::on(state, *attempt, |cli_session| cli_session.adopted = true);
        }
        AttemptEvent::OrphanAgentDetected { attempt, .. } => cli_session::orphaned(state, *attempt),
        AttemptEvent::ReportRefused { attempt, .. } => {
            if let Some(attempt) = state.attempts.get_mut(attempt) {
                attempt.refused += 1;
            }
        }
        AttemptEvent::StopOrdered { attempt, cause, at_once } => stop_ordered(state, event, *attempt, cause, *at_once),
        AttemptEvent::AttemptExited { attempt, exit } => exited(state, event, *attempt, exit),
        AttemptEvent::AttemptEnded { attempt, cause, .. } => {
            ended(state, event, *attempt, cause);
            settle::after_attempt(state, *attempt);
        }
        // Recorded for people: their consequences have events of their own.
        AttemptEvent::Redispatched { .. }
        | AttemptEvent::RoleTimeout { .. }
        | AttemptEvent::AgentHung { .. }
        | AttemptEvent::AgentCrashed { .. } => {}
    }
}

fn stop_ordered(state: &mut State, event: &Event, id: AttemptId, cause: &Cause, at_once: bool) {
    if let Some(attempt) = state.attempts.get_mut(&id) {
        let ordered_at = attempt.stop.as_ref().map_or(event.time, |stop| stop.ordered_at);
        attempt.stop = Some(Stop { cause: cause.clone(), at_once, ordered_at, repeated_at: event.time });
    }
}

fn run_started(state: &mut State, event: &Event, plan: &Plan, plan_path: &str, branch: Option<&String>) {
    let unblocks = plan.graph().unblocks();
    state.tasks = plan
        .tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (task.id.clone(), new_task(index, task.done, unblocks.get(index).copied().unwrap_or(0))))
        .collect();
    state.forget_index();
    state.ended.clear();
    state.past = Past::default();
    state.attempts = BTreeMap::new();
    state.agents = BTreeMap::new();
    state.questions = BTreeMap::new();
    state.notes = Vec::new();
    state.breakers = BTreeMap::new();
    state.gates = BTreeMap::new();
    state.usage = Usage::default();
    state.health = Health::default();
    state.preparing = Preparing::default();
    state.follows = BTreeMap::new();
    budget::run_started(state, event.time);
    state.run = Some(Run {
        id: event.run.clone(),
        plan: plan.clone(),
        plan_path: plan_path.to_owned(),
        branch: branch.cloned(),
        phase: RunPhase::Created,
        started_at: event.time,
        ended_at: None,
        resumes: 0,
        changed_plan: None,
        wave: 0,
        inspection: Inspection::None,
        work_branch: None,
        work_commit: None,
        work_base: None,
        landed: None,
        pull_request: None,
        paused_at: None,
        resumes_at: None,
        next_settings: None,
    });
}

pub(super) fn new_task(index: usize, done: bool, unblocks: u32) -> Task {
    Task {
        index,
        state: if done { TaskState::Complete } else { TaskState::Pending },
        epoch: Epoch(0),
        attempts: 0,
        begun: 0,
        holder: None,
        started_at: None,
        waited_ms: 0,
        not_before: None,
        last_cause: None,
        reason: None,
        result: None,
        unproven: done,
        checkpoint: None,
        split: Vec::new(),
        claim: None,
        evidence: None,
        crashes: 0,
        ended_at: None,
        unblocks,
        last_attempts: LastAttempts::default(),
        compactions: 0,
        compactions_before: 0,
        settled: false,
        spending: Spending::default(),
        workflow: Workflow::default(),
    }
}

fn coordinator_started(state: &mut State, coordinator: Coordinator, limits: &Limits) {
    budget::limits_changed(state, limits);
    state.limits = limits.clone();
    state.coordinator = Some(coordinator);
    state.usage.seen_at = None;
    // The new limits may allow fewer.
    settle::oldest(state);
}

fn run_changed(state: &mut State, event: &Event, fact: &RunEvent) {
    if let RunEvent::RunStarted { plan, plan_path, branch } = fact {
        run_started(state, event, plan, plan_path, branch.as_ref());
    }
    if let RunEvent::AttemptsLost(lost) = fact {
        state.last_attempt = state.last_attempt.max(lost.highest.0);
    }
    if let RunEvent::CoordinatorStarted { pid, limits, boot_id, boottime_ms } = fact {
        let (boot_id, since) = (boot_id.clone(), event.time);
        coordinator_started(state, Coordinator { pid: *pid, since, boot_id, boottime_ms: *boottime_ms }, limits);
    }
    if let RunEvent::PlanReloaded(reloaded) = fact {
        reload::reloaded(state, reloaded);
    }
    // The old remainder says nothing about what is left now: ask again.
    if matches!(fact, RunEvent::SessionResume(_)) {
        state.usage.seen_at = None;
    }
    if let RunEvent::SessionPause(pause) = fact
        && pause.reason == PauseReason::UsageLimit
    {
        state.usage.tried = pause.resets_at.map(|reset| (reset, pause.probe));
    }
    let no_wait = state.limits.no_wait;
    if let Some(run) = state.run.as_mut() {
        change_run(run, event, fact, no_wait);
    }
}

fn change_run(run: &mut Run, event: &Event, fact: &RunEvent, no_wait: bool) {
    // The coordinator's configuration was made with these settings.
    if let RunEvent::CoordinatorStarted { .. } = fact
        && let Some(settings) = run.next_settings.take()
    {
        run.plan.settings = settings;
    }
    match fact {
        RunEvent::CoordinatorStarted { .. } if run.phase == RunPhase::Created => run.phase = RunPhase::Running,
        // A run that waited for a reset still waits for it.
        RunEvent::CoordinatorRecovered(_) if matches!(run.phase, RunPhase::Waiting(_)) => {}
        RunEvent::CoordinatorRecovered(_) => run.phase = RunPhase::Running,
        RunEvent::SessionPause(pause) => {
            // A waiting run already rests: what was done before the wait is what is checked again.
            if !matches!(run.phase, RunPhase::Waiting(_)) {
                run.paused_at = Some(event.time);
            }
            run.phase = RunPhase::Pausing(pause.reason);
            run.resumes_at = pause.resumes_at;
        }
        RunEvent::RunPaused {} => {
            run.phase = match run.phase {
                RunPhase::Pausing(reason) if reason.ends_by_itself() && !no_wait => RunPhase::Waiting(reason),
                RunPhase::Pausing(reason) => RunPhase::Paused(reason),
                RunPhase::Created
                | RunPhase::Running
                | RunPhase::Paused(_)
                | RunPhase::Waiting(_)
                | RunPhase::Finished(_) => RunPhase::Paused(PauseReason::Operator),
            };
        }
        RunEvent::SessionResume(resume) => {
            run.phase = RunPhase::Running;
            run.resumes = resume.resume_count;
            run.resumes_at = None;
            run.ended_at = None;
        }
        RunEvent::RunReopened {} => {
            run.phase = RunPhase::Paused(PauseReason::Operator);
            run.paused_at = run.ended_at.take();
        }
        RunEvent::PlanChanged { hash } => run.changed_plan = Some(hash.clone()),
        RunEvent::WaveEnded { .. } => run.inspection = Inspection::Asked,
        RunEvent::DiskInspected { .. } => run.inspection = Inspection::Done,
        RunEvent::WaveStarted { wave } => {
            run.wave = *wave;
            run.inspection = Inspection::None;
        }
        RunEvent::RunFinished(finish) => {
            run.phase = RunPhase::Finished(finish.outcome);
            run.ended_at = Some(event.time);
        }
        RunEvent::BranchMade(made) => {
            run.work_branch = Some(made.branch.clone());
            run.work_commit = Some(made.base.clone());
            run.work_base = Some(made.base.clone());
        }
        RunEvent::Landed(landed) => run.landed = Some(landed.clone()),
        RunEvent::PullRequest(change) => {
            run.pull_request = Some(KnownPullRequest::after(run.pull_request.take(), change));
        }
        RunEvent::RunStarted { .. }
        | RunEvent::CoordinatorStarted { .. }
        | RunEvent::AttemptsLost(_)
        | RunEvent::PlanReloaded(_)
        | RunEvent::StateReconciled { .. }
        | RunEvent::TeamChecked(_) => {}
    }
}

fn dispatched(state: &mut State, event: &Event, fact: &AttemptEvent) {
    let AttemptEvent::Dispatched { attempt, role, cli, tasks, resumed, strategy, session, asks_for_report, .. } = fact
    else {
        return;
    };
    let (Some(agent), Some(epoch)) = (event.agent.clone(), event.epoch) else {
        return;
    };
    state.last_attempt = state.last_attempt.max(attempt.0);
    state.agents.insert(agent.clone(), epoch);
    for task in tasks {
        on_task(state, task, |task| {
            task.holder = Some(*attempt);
            task.epoch = epoch;
            task.not_before = None;
            task.last_attempts.set(task.workflow.stage, *attempt);
        });
    }
    let new = Attempt {
        agent,
        role: *role,
        cli: cli.clone(),
        epoch,
        tasks: tasks.clone(),
        resumed: *resumed,
        phase: AttemptPhase::Starting,
        pid: None,
        shim_pid: None,
        dispatched_at: event.time,
        ended_at: None,
        stop: None,
        exit: None,
        cause: None,
        orphaned: false,
        idle_since: None,
        refused: 0,
        numbers: BTreeMap::new(),
        cli_session: CliSession {
            strategy: *strategy,
            resumes: session.clone(),
            asks_for_report: *asks_for_report,
            ..CliSession::default()
        },
    };
    state.attempts.insert(*attempt, new);
}

fn started(state: &mut State, id: AttemptId, pid: u32, shim_pid: u32) {
    if let Some(attempt) = state.attempts.get_mut(&id) {
        if attempt.phase == AttemptPhase::Starting {
            attempt.phase = AttemptPhase::Running;
        }
        attempt.pid = Some(pid);
        attempt.shim_pid = Some(shim_pid);
    }
    machine::tried(state, id);
}

fn exited(state: &mut State, event: &Event, id: AttemptId, exit: &Exit) {
    if let Some(attempt) = state.attempts.get_mut(&id) {
        attempt.phase = AttemptPhase::Exited;
        attempt.exit = Some(exit.clone());
        attempt.ended_at = Some(event.time);
        if exit.by_itself {
            // The order came too late: it is not why the agent left.
            attempt.stop = None;
        }
    }
}

fn ended(state: &mut State, event: &Event, id: AttemptId, cause: &Cause) {
    machine::ended(state, id, cause);
    let Some(attempt) = state.attempts.get_mut(&id) else {
        return;
    };
    attempt.phase = AttemptPhase::Ended;
    attempt.cause = Some(cause.clone());
    attempt.ended_at = attempt.ended_at.or(Some(event.time));
    let breaker = state.breakers.entry(attempt.cli.clone()).or_default();
    if !matches!(cause, Cause::StartFailed { .. }) {
        *breaker = Breaker::default();
    } else if attempt.cli_session.strategy != Strategy::Resume {
        // A session that could not be resumed says nothing about the program.
        breaker.failed_starts += 1;
    }
    // Tasks further down its list were never started: they are free again.
    for task in attempt.tasks.clone() {
        on_task(state, &task, |task| {
            if task.holder == Some(id) && task.state == TaskState::Pending {
                task.holder = None;
            }
        });
    }
}

fn task_changed(state: &mut State, event: &Event, fact: &TaskEvent) {
    if let TaskEvent::TaskAdded(added) = fact {
        return protocol::add(state, event, added);
    }
    if let TaskEvent::TaskEdited(changed) = fact {
        return reload::edited(state, changed);
    }
    if let TaskEvent::TaskAssigned { attempt } = fact {
        return protocol::assign(state, event, *attempt);
    }
    cli_session::heard(state, event, fact);
    let Some(id) = &event.task else { return };
    let before = state.tasks.get(id);
    let checked = before.and_then(|task| task.claim.as_ref()).map(|claim| claim.attempt);
    let holder = before.and_then(|task| task.holder).and_then(|holder| state.attempts.get(&holder));
    let ended_by = holder.and_then(|attempt| attempt.cause.clone());
    if let TaskEvent::TaskStarted { attempt, .. } = fact {
        protocol::number(state, id, *attempt);
    }
    if let (TaskEvent::ChecksFinished { .. }, Some(attempt)) = (fact, checked) {
        cli_session::checked(state, attempt);
        machine::worked(state);
    }
    on_held(state, event, |task| {
        task::change(task, event, fact);
        if let (TaskEvent::WorkflowFailed { .. }, Some(cause)) = (fact, ended_by) {
            task.last_cause = Some(cause);
        }
    });
    if let (TaskEvent::TaskReopened { .. }, Some(run)) = (fact, state.run.as_mut()) {
        run.inspection = Inspection::None;
    }
    reload::settled(state, id, fact);
    if matches!(
        fact,
        TaskEvent::TaskCompleted { .. } | TaskEvent::WorkflowFailed { .. } | TaskEvent::TaskSkipped { .. }
    ) {
        settle::after_task(state, id);
    }
}

/// Changes the task of an event. An agent that has nothing left to do is idle from then on.
fn on_held(state: &mut State, event: &Event, change: impl FnOnce(&mut Task)) {
    let Some(id) = &event.task else { return };
    let holder = state.tasks.get(id).and_then(|task| task.holder);
    on_task(state, id, change);
    let Some(holder) = holder.filter(|holder| state.open_tasks(*holder).is_empty()) else { return };
    if let Some(attempt) = state.attempts.get_mut(&holder) {
        attempt.idle_since = attempt.idle_since.or(Some(event.time));
    }
}

fn held_in_progress(state: &State, id: AttemptId) -> Vec<TaskId> {
    state
        .open_tasks(id)
        .into_iter()
        .filter(|task| state.tasks.get(task).is_some_and(|task| task.state == TaskState::InProgress))
        .collect()
}

fn on_task(state: &mut State, id: &TaskId, change: impl FnOnce(&mut Task)) {
    state.change_task(id, change);
}
