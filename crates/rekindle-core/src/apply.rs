//! How each event changes the state. The only place that does; it never refuses, because an event is already a fact.

mod cli_session;
mod clock;
mod hold;
mod protocol;
mod question;
mod settle;

pub use settle::may_let_go;

use std::collections::BTreeMap;

use crate::cause::Cause;
use crate::event::{Body, Event, PauseReason};
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::plan::Plan;
use crate::report::Exit;
use crate::state::{
    Attempt, AttemptPhase, Breaker, Claim, CliSession, Coordinator, Health, Inspection, LastAttempts, NOTES_KEPT, Note,
    Past, Run, RunPhase, State, Stop, Task, TaskState, Usage, Workflow,
};
use crate::strategy::Strategy;

/// Applies one event.
pub fn apply(state: &mut State, event: &Event) {
    state.ensure_index();
    clock::rebooted(state, event);
    state.last_time = state.last_time.max(event.time);
    match &event.body {
        Body::RunStarted { plan, plan_path, branch } => run_started(state, event, plan, plan_path, branch.as_ref()),
        Body::CoordinatorStarted { .. }
        | Body::CoordinatorRecovered(_)
        | Body::SessionPause(_)
        | Body::RunPaused {}
        | Body::SessionResume(_)
        | Body::RunReopened {}
        | Body::PlanChanged { .. }
        | Body::WaveEnded { .. }
        | Body::DiskInspected { .. }
        | Body::WaveStarted { .. }
        | Body::RunFinished(_) => run_changed(state, event),
        Body::Dispatched { .. } => dispatched(state, event),
        Body::AgentStarted { attempt, pid, shim_pid, .. } | Body::AgentAdopted { attempt, pid, shim_pid } => {
            started(state, *attempt, *pid, *shim_pid);
            cli_session::begun(state, event, *attempt);
            hold::worked(state);
        }
        Body::OrphanAgentDetected { attempt, .. } => cli_session::orphaned(state, *attempt),
        Body::StopOrdered { attempt, cause, at_once } => stop_ordered(state, event, *attempt, cause, *at_once),
        Body::AttemptExited { attempt, exit } => exited(state, event, *attempt, exit),
        Body::AttemptEnded { attempt, cause, .. } => ended(state, event, *attempt, cause),
        Body::ReportRefused { attempt, .. } => {
            if let Some(attempt) = state.attempts.get_mut(attempt) {
                attempt.refused += 1;
            }
        }
        Body::AgentSession { .. }
        | Body::AgentMeasured { .. }
        | Body::AgentCompacted(_)
        | Body::AgentStalled(_)
        | Body::AgentOnTask { .. }
        | Body::CompactionStart { .. }
        | Body::CompactionComplete(_)
        | Body::AgentTold { .. }
        | Body::InputClosed { .. }
        | Body::AgentFailed { .. }
        | Body::TurnEnded { .. }
        | Body::StatusAsked { .. }
        | Body::StatusAnswered { .. }
        | Body::AgentSaid(_)
        | Body::SessionClosed(_) => cli_session::apply(state, event),
        Body::GateClosed(_) | Body::GateWidened { .. } | Body::GateOpened { .. } => cli_session::gate(state, event),
        Body::StartsHeld(_) | Body::StartsReleased {} => hold::apply(state, event),
        Body::ClockMoved(seen) => clock::moved(state, seen),
        Body::BreakerOpened { cli, until } => {
            state.breakers.insert(cli.clone(), Breaker { failed_starts: 0, until: Some(*until) });
        }
        Body::NoteRecorded { text } => noted(state, event, text),
        Body::QuestionAsked { .. } | Body::QuestionAnswered { .. } => question::apply(state, event),
        Body::ReviewAuditDisagreement(_)
        | Body::FocusReset {}
        | Body::TaskAdded(_)
        | Body::TaskAssigned { .. }
        | Body::HealthOrdered {}
        | Body::HealthChecked(_)
        | Body::BranchMade(_)
        | Body::AttemptsLost(_)
        | Body::UsageAsked {}
        | Body::UsageSeen(_) => protocol::apply(state, event),
        _ => task_changed(state, event),
    }
    settle::after(state, event);
}

fn stop_ordered(state: &mut State, event: &Event, id: AttemptId, cause: &Cause, at_once: bool) {
    if let Some(attempt) = state.attempts.get_mut(&id) {
        let ordered_at = attempt.stop.as_ref().map_or(event.time, |stop| stop.ordered_at);
        attempt.stop = Some(Stop { cause: cause.clone(), at_once, ordered_at, repeated_at: event.time });
    }
}

fn noted(state: &mut State, event: &Event, text: &str) {
    state.notes.push(Note { time: event.time, agent: event.agent.clone(), text: text.to_owned() });
    let excess = state.notes.len().saturating_sub(NOTES_KEPT);
    state.notes.drain(..excess);
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
        paused_at: None,
        resumes_at: None,
    });
}

pub(super) fn new_task(index: usize, done: bool, unblocks: u32) -> Task {
    Task {
        index,
        state: if done { TaskState::Complete } else { TaskState::Pending },
        epoch: Epoch(0),
        attempts: 0,
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
        workflow: Workflow::default(),
    }
}

fn run_changed(state: &mut State, event: &Event) {
    if let Body::CoordinatorStarted { pid, limits, boot_id, boottime_ms } = &event.body {
        state.limits = limits.clone();
        state.coordinator =
            Some(Coordinator { pid: *pid, since: event.time, boot_id: boot_id.clone(), boottime_ms: *boottime_ms });
    }
    // What was left before says nothing of what is left now: it is asked again.
    if matches!(event.body, Body::CoordinatorStarted { .. } | Body::SessionResume(_)) {
        state.usage.seen_at = None;
    }
    if let Body::SessionPause(pause) = &event.body
        && pause.reason == PauseReason::UsageLimit
    {
        state.usage.tried = pause.resets_at.map(|reset| (reset, pause.probe));
    }
    let no_wait = state.limits.no_wait;
    let Some(run) = state.run.as_mut() else {
        return;
    };
    match &event.body {
        Body::CoordinatorStarted { .. } if run.phase == RunPhase::Created => run.phase = RunPhase::Running,
        // One that waited for a reset still waits for it.
        Body::CoordinatorRecovered(_) if matches!(run.phase, RunPhase::Waiting(_)) => {}
        Body::CoordinatorRecovered(_) => run.phase = RunPhase::Running,
        Body::SessionPause(pause) => {
            // One that waits rests already: what was done before that is what is looked at again.
            if !matches!(run.phase, RunPhase::Waiting(_)) {
                run.paused_at = Some(event.time);
            }
            run.phase = RunPhase::Pausing(pause.reason);
            run.resumes_at = pause.resumes_at;
        }
        Body::RunPaused {} => {
            run.phase = match run.phase {
                RunPhase::Pausing(reason) if reason.ends_by_itself() && !no_wait => RunPhase::Waiting(reason),
                RunPhase::Pausing(reason) => RunPhase::Paused(reason),
                _ => RunPhase::Paused(PauseReason::Operator),
            };
        }
        Body::SessionResume(resume) => {
            run.phase = RunPhase::Running;
            run.resumes = resume.resume_count;
            run.resumes_at = None;
            run.ended_at = None;
        }
        Body::RunReopened {} => {
            run.phase = RunPhase::Paused(PauseReason::Operator);
            run.paused_at = run.ended_at.take();
        }
        Body::PlanChanged { hash } => run.changed_plan = Some(hash.clone()),
        Body::WaveEnded { .. } => run.inspection = Inspection::Asked,
        Body::DiskInspected { .. } => run.inspection = Inspection::Done,
        Body::WaveStarted { wave } => {
            run.wave = *wave;
            run.inspection = Inspection::None;
        }
        Body::RunFinished(finish) => {
            run.phase = RunPhase::Finished(finish.outcome);
            run.ended_at = Some(event.time);
        }
        _ => {}
    }
}

fn dispatched(state: &mut State, event: &Event) {
    let Body::Dispatched { attempt, role, cli, tasks, resumed, strategy, session, asks_for_report, .. } = &event.body
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
}

fn exited(state: &mut State, event: &Event, id: AttemptId, exit: &Exit) {
    if let Some(attempt) = state.attempts.get_mut(&id) {
        attempt.phase = AttemptPhase::Exited;
        attempt.exit = Some(exit.clone());
        attempt.ended_at = Some(event.time);
    }
}

fn ended(state: &mut State, event: &Event, id: AttemptId, cause: &Cause) {
    let Some(attempt) = state.attempts.get_mut(&id) else {
        return;
    };
    attempt.phase = AttemptPhase::Ended;
    attempt.cause = Some(cause.clone());
    attempt.ended_at = attempt.ended_at.or(Some(event.time));
    let breaker = state.breakers.entry(attempt.cli.clone()).or_default();
    match cause {
        // A session that did not come back says nothing of the program.
        Cause::StartFailed { .. } if attempt.cli_session.strategy == Strategy::Resume => {}
        Cause::StartFailed { .. } => breaker.failed_starts += 1,
        _ => *breaker = Breaker::default(),
    }
    // Tasks that stood further down its list were never begun: they are free again.
    for task in attempt.tasks.clone() {
        on_task(state, &task, |task| {
            if task.holder == Some(id) && task.state == TaskState::Pending {
                task.holder = None;
            }
        });
    }
}

fn task_changed(state: &mut State, event: &Event) {
    cli_session::heard(state, event);
    let Some(id) = event.task.clone() else { return };
    let holder = state.tasks.get(&id).and_then(|task| task.holder);
    let checked = state.tasks.get(&id).and_then(|task| task.claim.as_ref()).map(|claim| claim.attempt);
    if let (Body::ChecksFinished { .. }, Some(attempt)) = (&event.body, checked) {
        cli_session::checked(state, attempt);
        hold::worked(state);
    }
    if matches!(event.body, Body::WorkMerged { .. }) {
        hold::worked(state);
    }
    let ended_by = holder.and_then(|holder| state.attempts.get(&holder)).and_then(|attempt| attempt.cause.clone());
    on_task(state, &id, |task| {
        change_task(task, event);
        if let (Body::WorkflowFailed { .. }, Some(cause)) = (&event.body, ended_by) {
            task.last_cause = Some(cause);
        }
    });
    match (&event.body, state.run.as_mut()) {
        (Body::TaskReopened { .. }, Some(run)) => run.inspection = Inspection::None,
        (Body::WorkMerged { commit: Some(commit) }, Some(run)) => run.work_commit = Some(commit.clone()),
        _ => {}
    }
    let holder_idle = holder.is_some_and(|holder| state.open_tasks(holder).is_empty());
    if let (true, Some(attempt)) = (holder_idle, holder.and_then(|holder| state.attempts.get_mut(&holder))) {
        attempt.idle_since = attempt.idle_since.or(Some(event.time));
    }
}

fn change_task(task: &mut Task, event: &Event) {
    match &event.body {
        Body::TaskStarted { number, .. } => {
            task.state = TaskState::InProgress;
            *task.tries_mut() = *number;
            task.compactions_before = task.compactions;
            task.started_at = Some(event.time);
            task.waited_ms = 0;
        }
        Body::TaskClaimed { attempt, door, result, verdict } => {
            let epoch = event.epoch.unwrap_or(task.epoch);
            // A claim of rekindle's own is about a task that nobody holds.
            task.state = TaskState::InProgress;
            let (result, verdict) = (result.clone(), *verdict);
            protocol::claimed(task, *door, verdict);
            task.claim = Some(Claim { attempt: *attempt, epoch, door: *door, result, verdict });
        }
        Body::ChecksFinished { evidence, .. } => {
            task.evidence = Some(evidence.clone().cut());
            task.claim = None;
        }
        Body::TaskCompleted { result, unproven, unreported } => {
            end_task(task, event, TaskState::Complete);
            // What an earlier attempt failed of no longer says anything about it.
            task.reason = None;
            task.workflow.rework = None;
            task.result.clone_from(result);
            task.unproven = *unproven;
            task.workflow.unreported = *unreported;
        }
        Body::CheckpointSaved { checkpoint } => task.checkpoint = Some(checkpoint.clone()),
        Body::SplitProposed { subtasks } => task.split.clone_from(subtasks),
        Body::TaskRequeued { cause, counted, not_before, reason } => {
            release(task);
            task.state = TaskState::Pending;
            task.not_before = *not_before;
            task.last_cause = Some(cause.clone());
            task.reason = Some(reason.clone());
            if matches!(cause, Cause::Compacted | Cause::CompactionLoop | Cause::ContextExhausted | Cause::TimedOut) {
                task.workflow.too_large += 1;
            }
            if !counted {
                let tries = task.tries_mut();
                *tries = tries.saturating_sub(1);
            }
        }
        Body::TaskParked { .. } => {
            release(task);
            task.state = TaskState::Blocked;
            task.last_cause = Some(Cause::WaitingForInput);
            let tries = task.tries_mut();
            *tries = tries.saturating_sub(1);
        }
        Body::WorkflowFailed { detail, .. } => {
            end_task(task, event, TaskState::Failed);
            task.reason = Some(detail.clone());
        }
        Body::TaskSkipped { reason } => {
            end_task(task, event, TaskState::Skipped);
            task.reason = Some(reason.clone());
        }
        Body::TaskReopened { reason, reset_attempts } => {
            task.epoch = event.epoch.unwrap_or(Epoch(task.epoch.0 + 1));
            reopen(task, reason, *reset_attempts);
        }
        _ => protocol::change_task(task, event),
    }
}

fn reopen(task: &mut Task, reason: &str, reset_attempts: bool) {
    release(task);
    task.state = TaskState::Pending;
    task.reason = Some(reason.to_owned());
    task.not_before = None;
    task.ended_at = None;
    task.unproven = false;
    if reset_attempts {
        task.attempts = 0;
        task.crashes = 0;
        task.workflow.baseline = None;
        task.workflow.unreported = false;
    }
    protocol::reopen(task);
}

fn end_task(task: &mut Task, event: &Event, state: TaskState) {
    // Kept beside its end: how long it took is asked afterwards.
    let started_at = task.started_at;
    release(task);
    task.started_at = started_at;
    task.workflow.validating = false;
    task.workflow.merging = None;
    task.state = state;
    task.ended_at = Some(event.time);
}

pub(super) fn release(task: &mut Task) {
    task.settled = false;
    task.holder = None;
    task.claim = None;
    task.started_at = None;
    task.waited_ms = 0;
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
