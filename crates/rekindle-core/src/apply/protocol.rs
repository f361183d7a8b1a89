//! How the events of review, parts, merges, health and allowances change the state.

use super::{new_task, release};
use crate::event::{Added, Body, Event};
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::report::{Channel, cut_outputs};
use crate::review::{
    DISAGREEMENTS_KEPT, FREE_CONFLICTS, KeptDisagreement, ReworkSource, Stage, VERDICTS_KEPT, Verdict,
};
use crate::state::{State, Task, TaskState};

/// What changes more than one task.
pub(super) fn apply(state: &mut State, event: &Event) {
    match &event.body {
        Body::ReviewAuditDisagreement(what) => {
            let Some(task) = event.task.clone() else { return };
            state.disagreements.push(KeptDisagreement { task, time: event.time, what: what.clone() });
            let excess = state.disagreements.len().saturating_sub(DISAGREEMENTS_KEPT);
            state.disagreements.drain(..excess);
        }
        Body::FocusReset {} => state.disagreements.clear(),
        Body::TaskAdded(added) => add(state, event, added),
        Body::AttemptsLost(lost) => state.last_attempt = state.last_attempt.max(lost.highest.0),
        Body::BranchMade(made) => {
            if let Some(run) = state.run.as_mut() {
                run.work_branch = Some(made.branch.clone());
                run.work_commit = Some(made.base.clone());
            }
        }
        Body::TaskAssigned { attempt } => assign(state, event, *attempt),
        Body::HealthOrdered {} => state.health.checking = true,
        Body::HealthChecked(seen) => {
            state.health.checking = false;
            let mut results = seen.results.clone();
            cut_outputs(&mut results);
            state.health.baseline = Some(results);
        }
        Body::UsageAsked {} => state.usage.asking = true,
        Body::UsageSeen(left) => {
            state.usage.asking = false;
            state.usage.seen_at = Some(event.time);
            state.usage.left = Some(*left);
            let threshold = state.limits.usage.threshold_percent;
            // Enough is left: the next pause counts its probes from its own reset.
            if left.remaining_percent.is_some_and(|percent| percent > threshold) {
                state.usage.tried = None;
            }
        }
        _ => {}
    }
}

/// A task that is not in the plan's file stands behind all others, and before its parent where it is a part.
fn add(state: &mut State, event: &Event, added: &Added) {
    let Some(run) = state.run.as_mut() else { return };
    let id = added.task.id.clone();
    let index = run.plan.tasks.len();
    run.plan.tasks.push(added.task.clone());
    let mut task = new_task(index, false, 0);
    task.workflow.parent.clone_from(&added.parent);
    task.workflow.health = added.health;
    if let Some(attempt) = added.holder {
        task.holder = Some(attempt);
        task.epoch = event.epoch.unwrap_or(Epoch(0));
        task.last_attempts.set(Stage::Implement, attempt);
        if let Some(found) = state.attempts.get_mut(&attempt) {
            found.tasks.push(id.clone());
        }
    }
    state.add_task(id.clone(), task);
    if let Some(parent) = &added.parent {
        split(state, parent, id);
    }
}

/// An idle agent holds one more task, as if it had stood on its list from the beginning.
fn assign(state: &mut State, event: &Event, attempt: AttemptId) {
    let (Some(id), Some(found)) = (&event.task, state.attempts.get_mut(&attempt)) else { return };
    found.tasks.push(id.clone());
    found.idle_since = None;
    let epoch = found.epoch;
    state.change_task(id, |task| {
        task.holder = Some(attempt);
        task.epoch = epoch;
        task.not_before = None;
        task.last_attempts.set(task.workflow.stage, attempt);
    });
}

/// A task with parts is nobody's until they are through.
fn split(state: &mut State, parent: &TaskId, part: TaskId) {
    let unblocks = state.tasks.get(parent).map_or(0, |task| task.unblocks + 1);
    state.change_task(&part, |task| task.unblocks = unblocks);
    state.change_task(parent, |task| {
        release(task);
        task.state = TaskState::Pending;
        // Its parts are reported in its place.
        task.workflow.unreported = false;
        task.workflow.parts.push(part);
    });
}

/// What changes one task.
pub(super) fn change_task(task: &mut Task, event: &Event) {
    match &event.body {
        Body::TaskHandedOn(on) => {
            release(task);
            task.state = TaskState::Pending;
            task.last_cause = None;
            task.not_before = None;
            task.workflow.stage = on.stage;
            task.workflow.rework = None;
            task.result.clone_from(&on.result);
            if on.stage == Stage::Review {
                task.workflow.review_tries = 0;
            }
            task.workflow.audit_tries = 0;
        }
        Body::VerdictGiven(given) => {
            task.workflow.verdicts.push(given.clone());
            let excess = task.workflow.verdicts.len().saturating_sub(VERDICTS_KEPT);
            task.workflow.verdicts.drain(..excess);
        }
        Body::TaskRework(rework) => {
            release(task);
            task.state = TaskState::Pending;
            task.last_cause = None;
            task.not_before = None;
            task.ended_at = None;
            // What its checks said before the first work says nothing about the rework.
            task.workflow.baseline = None;
            // A conflict says nothing against the work, and a look at old work begins its count anew.
            match rework.source {
                ReworkSource::Merge => {
                    task.workflow.conflicts += 1;
                    let given_back = u32::from(task.workflow.conflicts <= FREE_CONFLICTS);
                    task.attempts = task.attempts.saturating_sub(given_back);
                }
                ReworkSource::Validation => task.attempts = 0,
                _ => {}
            }
            task.workflow.stage = Stage::Implement;
            task.workflow.merging = None;
            task.workflow.validating = false;
            task.workflow.bypassed = false;
            // What was split is one task again: its parts are through, the whole is not right.
            task.workflow.parts.clear();
            task.workflow.reworks += 1;
            task.workflow.rework = Some(rework.clone());
        }
        Body::CriticBypassed {} => task.workflow.bypassed = true,
        Body::MergeOrdered(merging) => {
            task.state = TaskState::InProgress;
            // An operator's word decides a claim that is still being proven.
            task.claim = None;
            task.workflow.merging = Some(merging.clone());
        }
        Body::WorkMerged { commit } => task.workflow.merged = commit.clone().or(task.workflow.merged.take()),
        Body::BaselineSeen(baseline) => task.workflow.baseline = Some(baseline.clone()),
        Body::ValidationStarted {} => task.workflow.validating = true,
        _ => {}
    }
}

/// Whether an agent reported the work that is claimed: a reviewer's verdict and a look at old work say nothing of that.
pub(super) fn claimed(task: &mut Task, door: Channel, verdict: Option<Verdict>) {
    match door {
        Channel::Unreported | Channel::Operator => task.workflow.unreported = true,
        Channel::Command | Channel::Signal | Channel::Kept | Channel::Mcp if verdict.is_none() => {
            task.workflow.unreported = false
        }
        // Its parts are reported in its place.
        Channel::Own if !task.workflow.parts.is_empty() => task.workflow.unreported = false,
        _ => {}
    }
}

/// A task that is opened again begins with its work, whatever became of it before.
pub(super) fn reopen(task: &mut Task) {
    // It is one task again: its parts were of a try that is over.
    task.workflow.parts.clear();
    task.workflow.stage = Stage::Implement;
    task.workflow.review_tries = 0;
    task.workflow.audit_tries = 0;
    task.workflow.bypassed = false;
    task.workflow.rework = None;
    task.workflow.merging = None;
    task.workflow.validating = false;
}
