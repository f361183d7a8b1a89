//! How changes of the plan change the state. Existing tasks keep their place in the plan and new ones go behind them: a
//! place names a task, and a workspace may be named after the first task of its agent.

use std::collections::BTreeMap;

use super::new_task;
use crate::event::{ChangedPart, ChangedTask, Follow, PlanReloaded, TaskEvent};
use crate::ids::TaskId;
use crate::plan::PlanTask;
use crate::reload::parts_of;
use crate::review::Stage;
use crate::state::{Inspection, State, TaskState};

/// Takes over a changed plan.
pub(super) fn reloaded(state: &mut State, fact: &PlanReloaded) {
    let places = workspaces(state, &fact.changed);
    for changed in &fact.changed {
        put(state, &changed.task);
    }
    for id in &fact.removed {
        let Some(task) = state.tasks.get_mut(id) else { continue };
        task.workflow.removed = true;
        if !matches!(task.state, TaskState::Complete | TaskState::Skipped) {
            state.follows.insert(id.clone(), Follow::Leave);
        }
    }
    for task in &fact.added {
        let Some(run) = state.run.as_mut() else { return };
        let index = run.plan.tasks.len();
        run.plan.tasks.push(task.clone());
        state.tasks.insert(task.id.clone(), new_task(index, task.done, 0));
    }
    if let Some(run) = state.run.as_mut() {
        run.plan.title.clone_from(&fact.plan.title);
        run.plan.goal.clone_from(&fact.plan.goal);
        run.plan.dispatch_rules.clone_from(&fact.plan.dispatch_rules);
        run.plan.explicit_waves = fact.plan.explicit_waves;
        run.plan.hash.clone_from(&fact.plan.hash);
        run.next_settings = (fact.plan.settings != run.plan.settings).then(|| fact.plan.settings.clone());
        run.changed_plan = None;
    }
    renew(state);
    keep_workspaces(state, places);
    for changed in &fact.changed {
        follow(state, changed);
    }
}

pub(super) fn edited(state: &mut State, changed: &ChangedTask) {
    let places = workspaces(state, std::slice::from_ref(changed));
    put(state, &changed.task);
    renew(state);
    keep_workspaces(state, places);
    follow(state, changed);
}

/// Replaces a task's text. Parts that had the same blockers as the task get its new ones.
fn put(state: &mut State, task: &PlanTask) {
    let parts = parts_of(state, &task.id);
    let Some(known) = state.tasks.get_mut(&task.id) else { return };
    known.workflow.removed = false;
    let index = known.index;
    let indices: Vec<usize> = parts.iter().filter_map(|part| state.tasks.get(part)).map(|part| part.index).collect();
    let Some(run) = state.run.as_mut() else { return };
    let Some(old) = run.plan.tasks.get_mut(index) else { return };
    let before = std::mem::replace(old, task.clone());
    for place in indices {
        let Some(part) = run.plan.tasks.get_mut(place) else { continue };
        part.wave = task.wave;
        if part.blocked_by == before.blocked_by {
            part.blocked_by.clone_from(&task.blocked_by);
        }
    }
}

/// Records what follows from a change, and what the change does to a claim that is being proven.
fn follow(state: &mut State, changed: &ChangedTask) {
    let id = &changed.task.id;
    let written = changed.parts.contains(&ChangedPart::Written);
    let other_proof = changed.parts.iter().any(|part| part.is_proof());
    state.change_task(id, |task| {
        task.workflow.by_hand &= !written;
        if let Some(claim) = task.claim.as_mut().filter(|_| other_proof) {
            claim.outdated = true;
        }
        // What other checks said before the work says nothing about these. Work that was accepted with the old checks still
        // relies on it.
        let accepted = task.state == TaskState::Complete
            || task.workflow.stage != Stage::Implement
            || task.workflow.merging.is_some();
        if other_proof && !accepted {
            task.workflow.baseline = None;
        }
    });
    match changed.follow {
        Some(Follow::Prove) => {
            state.follows.entry(id.clone()).or_insert(Follow::Prove);
        }
        Some(other) => {
            state.follows.insert(id.clone(), other);
        }
        // It is in the plan again, so it is no longer left out.
        None if changed.parts.contains(&ChangedPart::Restored) => {
            state.follows.remove(id);
        }
        None => {}
    }
    for dependant in &changed.validate {
        state.follows.entry(dependant.clone()).or_insert(Follow::Prove);
    }
}

/// Clears what was to follow, once it is done or something else has overtaken it.
pub(super) fn settled(state: &mut State, id: &TaskId, fact: &TaskEvent) {
    let Some(follow) = state.follows.get(id).copied() else { return };
    let over = match fact {
        TaskEvent::TaskReopened { .. } => true,
        TaskEvent::OperatorCompleted { .. } | TaskEvent::TaskSkipped { .. } => true,
        TaskEvent::TaskStarted { .. } | TaskEvent::TaskClaimed { .. } | TaskEvent::WorkflowFailed { .. } => {
            follow == Follow::Prove
        }
        TaskEvent::TaskCompleted { .. } => matches!(follow, Follow::Leave | Follow::Complete),
        TaskEvent::TaskAdded(_)
        | TaskEvent::TaskEdited(_)
        | TaskEvent::TaskAssigned { .. }
        | TaskEvent::BaselineSeen(_)
        | TaskEvent::ChecksFinished { .. }
        | TaskEvent::TaskFailReported { .. }
        | TaskEvent::CheckpointSaved { .. }
        | TaskEvent::SplitProposed { .. }
        | TaskEvent::SplitSuggested { .. }
        | TaskEvent::TaskRequeued { .. }
        | TaskEvent::TaskParked { .. }
        | TaskEvent::ValidationStarted {} => false,
    };
    if over {
        state.follows.remove(id);
    }
}

/// Recomputes levels, ranks and the index from the tasks and their blockers.
pub(super) fn renew(state: &mut State) {
    let Some(run) = state.run.as_mut() else { return };
    run.inspection = Inspection::None;
    let graph = run.plan.graph();
    let (levels, unblocks) = (graph.levels(), graph.unblocks());
    // A part is on the level of its whole.
    let whole_of = |id: &TaskId| {
        let mut whole = state.tasks.get(id);
        while let Some(parent) = whole.and_then(|task| task.workflow.parent.as_ref()) {
            whole = state.tasks.get(parent);
        }
        whole.map(|task| task.index)
    };
    for task in run.plan.tasks.iter_mut().filter(|_| !run.plan.explicit_waves) {
        task.wave = whole_of(&task.id).and_then(|index| levels.get(index).copied()).unwrap_or(task.wave);
    }
    for task in state.tasks.values_mut() {
        task.unblocks = unblocks.get(task.index).copied().unwrap_or(0);
    }
    // A part goes before its whole, as it did when the task was split.
    let parts: Vec<(TaskId, TaskId)> =
        state.tasks.iter().filter_map(|(id, task)| Some((id.clone(), task.workflow.parent.clone()?))).collect();
    for (part, whole) in parts {
        let unblocks = state.tasks.get(&whole).map_or(0, |task| task.unblocks + 1);
        if let Some(task) = state.tasks.get_mut(&part) {
            task.unblocks = task.unblocks.max(unblocks);
        }
    }
    state.forget_index();
    state.ensure_index();
}

/// Where the work of started tasks is, in case a change of agents would name another place.
fn workspaces(state: &State, changed: &[ChangedTask]) -> BTreeMap<TaskId, String> {
    if !changed.iter().any(|changed| changed.parts.contains(&ChangedPart::Agent)) {
        return BTreeMap::new();
    }
    let begun = state.tasks.iter().filter(|(id, task)| task.workflow.parent.is_none() && has_begun(state, id));
    begun.filter_map(|(id, _)| Some((id.clone(), state.workspace_of(id)?))).collect()
}

fn has_begun(state: &State, id: &TaskId) -> bool {
    let worked = |id: &TaskId| state.tasks.get(id).is_some_and(|task| !task.last_attempts.is_empty());
    worked(id) || parts_of(state, id).iter().any(worked)
}

fn keep_workspaces(state: &mut State, places: BTreeMap<TaskId, String>) {
    for (id, place) in places {
        if state.workspace_of(&id).as_ref() != Some(&place)
            && let Some(task) = state.tasks.get_mut(&id)
        {
            task.workflow.workspace = Some(place);
        }
    }
}
