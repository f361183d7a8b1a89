//! How review, parts and merges change the state.

use super::{new_task, release};
use crate::event::{Added, Event, ReviewEvent};
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::report::Channel;
use crate::review::{
    DISAGREEMENTS_KEPT, FREE_CONFLICTS, KeptDisagreement, ReworkSource, Stage, VERDICTS_KEPT, Verdict,
};
use crate::state::{State, Task, TaskState};

/// Changes the task whose work moves on, and what is learned from it.
pub(super) fn apply(state: &mut State, event: &Event, fact: &ReviewEvent) {
    super::on_held(state, event, |task| change_task(task, fact));
    if let (ReviewEvent::ReviewAuditDisagreement(what), Some(task)) = (fact, event.task.clone()) {
        state.disagreements.push(KeptDisagreement { task, time: event.time, what: what.clone() });
        let excess = state.disagreements.len().saturating_sub(DISAGREEMENTS_KEPT);
        state.disagreements.drain(..excess);
    }
    if matches!(fact, ReviewEvent::FocusReset {}) {
        state.disagreements.clear();
    }
    if let (ReviewEvent::WorkMerged { commit }, Some(_)) = (fact, &event.task) {
        super::machine::worked(state);
        if let (Some(commit), Some(run)) = (commit, state.run.as_mut()) {
            run.work_commit = Some(commit.clone());
        }
    }
}

/// A task that is not in the plan's file goes behind all others, and before its parent if it is a part.
pub(super) fn add(state: &mut State, event: &Event, added: &Added) {
    let Some(run) = state.run.as_mut() else { return };
    let id = added.task.id.clone();
    let index = run.plan.tasks.len();
    run.plan.tasks.push(added.task.clone());
    let mut task = new_task(index, false, 0);
    task.workflow.parent.clone_from(&added.parent);
    task.workflow.health = added.health;
    let by_hand = added.is_by_hand();
    task.workflow.by_hand = by_hand;
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
    if by_hand {
        super::reload::renew(state);
    }
}

/// Numbers an attempt at a task, once, however often the attempt starts it.
pub(super) fn number(state: &mut State, id: &TaskId, attempt: AttemptId) {
    let known = |attempt: &crate::state::Attempt| attempt.numbers.contains_key(id);
    if state.attempts.get(&attempt).is_none_or(known) {
        return;
    }
    state.change_task(id, |task| task.begun += 1);
    let number = state.tasks.get(id).map_or(1, |task| task.begun);
    if let Some(attempt) = state.attempts.get_mut(&attempt) {
        attempt.numbers.insert(id.clone(), number);
    }
}

/// Gives an idle agent one more task, as if it had been on its list from the beginning.
pub(super) fn assign(state: &mut State, event: &Event, attempt: AttemptId) {
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

/// No agent holds a task with parts until the parts have ended.
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

fn change_task(task: &mut Task, fact: &ReviewEvent) {
    match fact {
        ReviewEvent::TaskHandedOn(on) => {
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
        ReviewEvent::VerdictGiven(given) => {
            task.workflow.verdicts.push(given.clone());
            let excess = task.workflow.verdicts.len().saturating_sub(VERDICTS_KEPT);
            task.workflow.verdicts.drain(..excess);
        }
        ReviewEvent::TaskRework(rework) => {
            release(task);
            task.state = TaskState::Pending;
            task.last_cause = None;
            task.not_before = None;
            task.ended_at = None;
            // What its checks said before the first work says nothing about the rework.
            task.workflow.baseline = None;
            // A conflict says nothing against the work, and a validation of old work restarts the count.
            match rework.source {
                ReworkSource::Merge => {
                    task.workflow.conflicts += 1;
                    let given_back = u32::from(task.workflow.conflicts <= FREE_CONFLICTS);
                    task.attempts = task.attempts.saturating_sub(given_back);
                }
                ReworkSource::Validation => task.attempts = 0,
                ReworkSource::Critic
                | ReworkSource::Auditor
                | ReworkSource::Checks
                | ReworkSource::Environment
                | ReworkSource::PullRequest => {}
            }
            task.workflow.stage = Stage::Implement;
            task.workflow.merging = None;
            task.workflow.validating = false;
            task.workflow.bypassed = false;
            // A task that was split is one task again: its parts have ended, but the whole is not right.
            task.workflow.parts.clear();
            task.workflow.reworks += 1;
            task.workflow.rework = Some(rework.clone());
        }
        ReviewEvent::CriticBypassed {} => task.workflow.bypassed = true,
        ReviewEvent::MergeOrdered(merging) => {
            task.state = TaskState::InProgress;
            // An operator's word decides a claim that is still being proven.
            task.claim = None;
            task.workflow.merging = Some(merging.clone());
        }
        ReviewEvent::WorkMerged { commit } => task.workflow.merged = commit.clone().or(task.workflow.merged.take()),
        ReviewEvent::ReviewAuditDisagreement(_)
        | ReviewEvent::CriticMissedQualityIssue { .. }
        | ReviewEvent::EnvironmentDisagreement(_)
        | ReviewEvent::FocusReset {}
        | ReviewEvent::MergeConflicted { .. } => {}
    }
}

/// Notes whether an agent reported the claimed work: a reviewer's verdict and a validation of old work say nothing about
/// that.
pub(super) fn claimed(task: &mut Task, channel: Channel, verdict: Option<Verdict>) {
    match channel {
        Channel::Unreported | Channel::Operator => task.workflow.unreported = true,
        Channel::Command | Channel::Signal | Channel::Kept | Channel::Mcp if verdict.is_none() => {
            task.workflow.unreported = false
        }
        // Its parts are reported in its place.
        Channel::Own if !task.workflow.parts.is_empty() => task.workflow.unreported = false,
        Channel::Command | Channel::Signal | Channel::Kept | Channel::Mcp | Channel::Own => {}
    }
}

/// A reopened task starts from its work, whatever became of it before.
pub(super) fn reopen(task: &mut Task) {
    // It is one task again: its parts belonged to an attempt that is over.
    task.workflow.parts.clear();
    task.workflow.stage = Stage::Implement;
    task.workflow.review_tries = 0;
    task.workflow.audit_tries = 0;
    task.workflow.bypassed = false;
    task.workflow.rework = None;
    task.workflow.merging = None;
    task.workflow.validating = false;
    task.workflow.word = None;
}
