//! How events about one task change it: its start, its claims, its end, and its reopening.

use super::protocol;
use crate::cause::Cause;
use crate::event::{Event, TaskEvent};
use crate::ids::Epoch;
use crate::state::{Claim, Task, TaskState, Word};

/// The reasons of a failure that a person decided on: `task stop` and `task fail`.
pub const WORDS_OF_FAILURE: [&str; 2] = ["stopped_by_operator", "failed_by_operator"];

pub(super) fn change(task: &mut Task, event: &Event, fact: &TaskEvent) {
    match fact {
        TaskEvent::TaskStarted { number, .. } => {
            task.state = TaskState::InProgress;
            *task.tries_mut() = *number;
            task.compactions_before = task.compactions;
            task.started_at = Some(event.time);
            task.waited_ms = 0;
        }
        TaskEvent::TaskClaimed { attempt, channel, result, verdict } => {
            let epoch = event.epoch.unwrap_or(task.epoch);
            // A claim that rekindle makes itself is about a task that no agent holds.
            task.state = TaskState::InProgress;
            let (result, verdict) = (result.clone(), *verdict);
            protocol::claimed(task, *channel, verdict);
            task.claim = Some(Claim { attempt: *attempt, epoch, channel: *channel, result, verdict, outdated: false });
        }
        TaskEvent::ChecksFinished { evidence, .. } => {
            task.evidence = Some(evidence.clone().cut());
            task.claim = None;
        }
        TaskEvent::TaskCompleted { result, unproven, unreported } => {
            end_task(task, event, TaskState::Complete);
            complete(task, result.as_deref(), *unproven, *unreported);
        }
        TaskEvent::OperatorCompleted { .. } => {
            task.workflow.word = Some(Word::Done);
            // Whatever an agent said before, it is complete because a person says so.
            task.workflow.unreported = true;
        }
        TaskEvent::CheckpointSaved { checkpoint } => task.checkpoint = Some(checkpoint.clone()),
        TaskEvent::SplitProposed { subtasks } => task.split.clone_from(subtasks),
        TaskEvent::TaskRequeued { cause, counted, not_before, reason } => {
            requeue(task, cause, *counted, reason);
            task.not_before = *not_before;
        }
        TaskEvent::TaskParked { .. } => {
            release(task);
            task.state = TaskState::Blocked;
            task.last_cause = Some(Cause::WaitingForInput);
            let tries = task.tries_mut();
            *tries = tries.saturating_sub(1);
        }
        TaskEvent::WorkflowFailed { reason, detail } => {
            end_task(task, event, TaskState::Failed);
            task.reason = Some(detail.clone());
            task.workflow.word = WORDS_OF_FAILURE.contains(&reason.as_str()).then_some(Word::Failed);
        }
        TaskEvent::TaskSkipped { reason } => {
            end_task(task, event, TaskState::Skipped);
            task.reason = Some(reason.clone());
            task.workflow.word = Some(Word::Skipped);
        }
        TaskEvent::TaskReopened { reason, reset_attempts } => {
            task.epoch = event.epoch.unwrap_or(Epoch(task.epoch.0 + 1));
            reopen(task, reason, *reset_attempts);
        }
        TaskEvent::BaselineSeen(baseline) => task.workflow.baseline = Some(baseline.clone()),
        TaskEvent::ValidationStarted {} => task.workflow.validating = true,
        TaskEvent::TaskAdded(_)
        | TaskEvent::TaskEdited(_)
        | TaskEvent::TaskAssigned { .. }
        | TaskEvent::TaskFailReported { .. }
        | TaskEvent::SplitSuggested { .. } => {}
    }
}

fn complete(task: &mut Task, result: Option<&str>, unproven: bool, unreported: bool) {
    // The failure of an earlier attempt no longer says anything about it.
    task.reason = None;
    task.workflow.rework = None;
    task.result = result.map(str::to_owned);
    task.unproven = unproven;
    task.workflow.unreported = unreported;
}

fn requeue(task: &mut Task, cause: &Cause, counted: bool, reason: &str) {
    release(task);
    task.state = TaskState::Pending;
    task.last_cause = Some(cause.clone());
    task.reason = Some(reason.to_owned());
    if matches!(cause, Cause::Compacted | Cause::CompactionLoop | Cause::ContextExhausted | Cause::TimedOut) {
        task.workflow.too_large += 1;
    }
    if !counted {
        let tries = task.tries_mut();
        *tries = tries.saturating_sub(1);
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
    // Kept after the end, because the duration is asked for later.
    let started_at = task.started_at;
    release(task);
    task.started_at = started_at;
    task.workflow.validating = false;
    task.workflow.merging = None;
    task.state = state;
    task.ended_at = Some(event.time);
}

pub(in crate::apply) fn release(task: &mut Task) {
    task.settled = false;
    task.holder = None;
    task.claim = None;
    task.started_at = None;
    task.waited_ms = 0;
}
