//! A changed plan compared with the plan of a run: what was added, changed and removed, and what follows for the work of
//! each. Decides nothing itself: `plan diff` shows it, and taking it over records it as one event.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{ChangedPart, ChangedTask, Follow, PlanHead, PlanReloaded};
use crate::ids::TaskId;
use crate::plan::{FrontMatter, Graph, Plan, PlanTask};
use crate::role::Role;
use crate::state::{State, Task, TaskState};

/// How a changed plan differs from the plan of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub reload: PlanReloaded,
    /// Tasks that a person added and that the file does not have: they stay.
    pub kept: Vec<TaskId>,
    /// What differs apart from the tasks.
    pub about_plan: Vec<&'static str>,
    /// Whether the file differs, byte for byte.
    pub other_file: bool,
}

impl Difference {
    /// Whether nothing would change at all.
    pub fn is_empty(&self) -> bool {
        let PlanReloaded { added, changed, removed, .. } = &self.reload;
        added.is_empty() && changed.is_empty() && removed.is_empty() && self.about_plan.is_empty()
    }
}

/// Compares a plan with the plan of a run.
pub fn compare(state: &State, plan: &Plan) -> Result<Difference, String> {
    let Some(run) = &state.run else { return Err("there is no run here".to_owned()) };
    if run.plan.name != plan.name {
        return Err(format!(
            "this is plan `{}`, the run here is of plan `{}`: name it in its front matter (`plan: {}`)",
            plan.name, run.plan.name, run.plan.name
        ));
    }
    let mut reload = PlanReloaded { added: Vec::new(), changed: Vec::new(), removed: Vec::new(), plan: head(plan) };
    let explicit = run.plan.explicit_waves || plan.explicit_waves;
    for task in &plan.tasks {
        let (Some(known), Some(old)) = (state.tasks.get(&task.id), state.plan_task(&task.id)) else {
            reload.added.push(task.clone());
            continue;
        };
        if let Some(whole) = &known.workflow.parent {
            return Err(format!("the file has a task {}, which is the name of a part of {whole}: rename it", task.id));
        }
        if known.workflow.health {
            return Err(format!(
                "the file has a task {}, which is the name of rekindle's own repair: rename it",
                task.id
            ));
        }
        let mut parts = differences(old, task, explicit);
        parts.extend(known.workflow.removed.then_some(ChangedPart::Restored));
        parts.extend(known.workflow.by_hand.then_some(ChangedPart::Written));
        if !parts.is_empty() {
            reload.changed.push(changed(state, task.clone(), parts));
        }
    }
    let in_file: BTreeSet<&TaskId> = plan.tasks.iter().map(|task| &task.id).collect();
    let mut kept = Vec::new();
    for (id, task) in state.tasks.iter().filter(|(id, task)| is_planned(task) && !in_file.contains(id)) {
        if task.workflow.by_hand { kept.push(id.clone()) } else { reload.removed.push(id.clone()) }
    }
    refuse_circles(state, &reload)?;
    let about_plan = about_plan(run.settings(), &run.plan, plan);
    Ok(Difference { reload, kept, about_plan, other_file: run.plan.hash != plan.hash })
}

fn head(plan: &Plan) -> PlanHead {
    PlanHead {
        title: plan.title.clone(),
        goal: plan.goal.clone(),
        dispatch_rules: plan.dispatch_rules.clone(),
        settings: plan.settings.clone(),
        explicit_waves: plan.explicit_waves,
        hash: plan.hash.clone(),
    }
}

fn about_plan(settings: &FrontMatter, old: &Plan, new: &Plan) -> Vec<&'static str> {
    let different = [
        ("title", old.title != new.title),
        ("goal", old.goal != new.goal),
        ("dispatch rules", old.dispatch_rules != new.dispatch_rules),
        (
            "settings",
            FrontMatter { plan: None, ..settings.clone() } != FrontMatter { plan: None, ..new.settings.clone() },
        ),
    ];
    different.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

/// Whether a task belongs to the plan, and not to the run alone.
fn is_planned(task: &Task) -> bool {
    task.workflow.parent.is_none() && !task.workflow.health && !task.workflow.removed
}

/// What differs in a task. Levels of a plan without waves follow from its blockers and do not count as changes.
pub fn differences(old: &PlanTask, new: &PlanTask, explicit_waves: bool) -> Vec<ChangedPart> {
    let different = [
        (ChangedPart::Title, old.title != new.title),
        (ChangedPart::Text, old.body != new.body),
        (ChangedPart::Reading, old.reading != new.reading),
        (ChangedPart::Role, old.role != new.role),
        (ChangedPart::Checks, old.accept != new.accept),
        (ChangedPart::Artifacts, old.artifacts != new.artifacts),
        (ChangedPart::Environments, old.environments != new.environments),
        (ChangedPart::BlockedBy, old.blocked_by != new.blocked_by),
        (ChangedPart::Wave, explicit_waves && old.wave != new.wave),
        (ChangedPart::Agent, old.agent != new.agent),
        (ChangedPart::Cli, old.cli != new.cli),
        (ChangedPart::Timeout, old.timeout_ms != new.timeout_ms),
        (ChangedPart::Attempts, old.attempts != new.attempts),
        (ChangedPart::Priority, old.priority != new.priority),
        (ChangedPart::Done, old.done != new.done),
    ];
    different.into_iter().filter(|(_, differs)| *differs).map(|(part, _)| part).collect()
}

/// A changed task of the run, with what follows.
pub(crate) fn changed(state: &State, task: PlanTask, parts: Vec<ChangedPart>) -> ChangedTask {
    let follow = follow(state, &task, &parts);
    let validate = if follow == Some(Follow::Redo) { dependants(state, &task.id) } else { Vec::new() };
    ChangedTask { task, parts, follow, validate }
}

/// What follows for the work of a task. A person's word about it stays valid, unless its text changed.
fn follow(state: &State, task: &PlanTask, parts: &[ChangedPart]) -> Option<Follow> {
    let known = state.tasks.get(&task.id)?;
    let merging = known.workflow.merging.is_some();
    let complete = known.state == TaskState::Complete;
    if parts.contains(&ChangedPart::Done) && task.done {
        return (!complete && !merging).then_some(Follow::Complete);
    }
    let asks_for_work = |part: &ChangedPart| part.is_work() && !(*part == ChangedPart::Restored && complete);
    if parts.iter().any(asks_for_work) {
        return (!is_untouched(known)).then_some(Follow::Redo);
    }
    let provable = known.workflow.word.is_none() && can_be_proven(state, task);
    let stands = match known.state {
        TaskState::Complete => true,
        TaskState::Failed => !known.last_attempts.is_empty(),
        TaskState::InProgress => merging,
        TaskState::Pending | TaskState::Blocked | TaskState::Skipped => false,
    };
    (provable && stands && parts.iter().any(|part| part.is_proof())).then_some(Follow::Prove)
}

/// Whether anything other than a word can show that a task is complete.
pub(crate) fn can_be_proven(state: &State, task: &PlanTask) -> bool {
    !task.is_unproven() || state.reviews(Role::Auditor)
}

/// Whether no agent has started a task or was given it.
fn is_untouched(task: &Task) -> bool {
    task.state == TaskState::Pending
        && task.holder.is_none()
        && task.last_attempts.is_empty()
        && task.workflow.parts.is_empty()
}

/// Complete tasks that directly depend on a task: different work beneath them may have broken theirs.
fn dependants(state: &State, id: &TaskId) -> Vec<TaskId> {
    let Some(run) = &state.run else { return Vec::new() };
    let behind = run.plan.tasks.iter().filter(|task| task.blocked_by.contains(id));
    let complete = behind.filter(|task| {
        let known = state.tasks.get(&task.id);
        known.is_some_and(|known| {
            known.state == TaskState::Complete && known.workflow.word.is_none() && is_planned(known)
        }) && can_be_proven(state, task)
    });
    complete.map(|task| task.id.clone()).collect()
}

/// Refuses a plan in which a task would wait for itself: the file has no cycles, but the run has tasks of its own.
fn refuse_circles(state: &State, reload: &PlanReloaded) -> Result<(), String> {
    let Some(run) = &state.run else { return Ok(()) };
    let mut blockers: BTreeMap<TaskId, Vec<TaskId>> =
        run.plan.tasks.iter().map(|task| (task.id.clone(), task.blocked_by.clone())).collect();
    for changed in &reload.changed {
        put_blockers(state, &mut blockers, &changed.task);
    }
    blockers.extend(reload.added.iter().map(|task| (task.id.clone(), task.blocked_by.clone())));
    for (id, task) in state.tasks.iter().filter(|(_, task)| !task.state.is_terminal()) {
        blockers.entry(id.clone()).or_default().extend(task.workflow.parts.iter().cloned());
    }
    for gone in &reload.removed {
        blockers.insert(gone.clone(), Vec::new());
    }
    circle(&blockers).map_or(Ok(()), Err)
}

/// Sets the blockers of a changed task; parts that had the same blockers as the task get its new ones.
fn put_blockers(state: &State, blockers: &mut BTreeMap<TaskId, Vec<TaskId>>, task: &PlanTask) {
    let old = blockers.insert(task.id.clone(), task.blocked_by.clone()).unwrap_or_default();
    for part in parts_of(state, &task.id) {
        if blockers.get(&part) == Some(&old) {
            blockers.insert(part, task.blocked_by.clone());
        }
    }
}

/// The parts of a task, and theirs.
pub(crate) fn parts_of(state: &State, id: &TaskId) -> Vec<TaskId> {
    let mut found: Vec<TaskId> = state.tasks.get(id).map(|task| task.workflow.parts.clone()).unwrap_or_default();
    let mut next = 0;
    while let Some(part) = found.get(next) {
        let below = state.tasks.get(part).map(|task| task.workflow.parts.clone()).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found
}

/// The first cycle among tasks that wait for each other, in words.
fn circle(blockers: &BTreeMap<TaskId, Vec<TaskId>>) -> Option<String> {
    if let Some((id, _)) = blockers.iter().find(|(id, of)| of.contains(id)) {
        return Some(format!("task {id} would wait for itself"));
    }
    let places: BTreeMap<&TaskId, usize> = blockers.keys().enumerate().map(|(place, id)| (id, place)).collect();
    let edges = blockers.values().map(|of| of.iter().filter_map(|id| places.get(id).copied()).collect()).collect();
    let names: Vec<&TaskId> = blockers.keys().collect();
    let cycle = Graph::from_blockers(edges).cycles().into_iter().next()?;
    let path: Vec<&str> = cycle.iter().chain(cycle.first()).map(|place| names[*place].as_str()).collect();
    Some(format!("tasks would wait for each other in a cycle: {}", path.join(" → ")))
}

/// Refuses blockers of a task that do not exist or that would make it wait for itself.
pub(crate) fn refuse_blockers(state: &State, task: &PlanTask) -> Result<(), String> {
    let Some(run) = &state.run else { return Ok(()) };
    for id in &task.blocked_by {
        let Some(known) = state.tasks.get(id).filter(|known| !known.workflow.removed) else {
            return Err(format!("there is no task {id} in this run"));
        };
        if *id == task.id {
            return Err(format!("task {id} cannot wait for itself"));
        }
        let later = state.plan_task(id).is_some_and(|planned| planned.wave > task.wave);
        if run.plan.explicit_waves && later && !known.state.is_terminal() {
            return Err(format!("task {} of wave {} cannot wait for {id} of a later wave", task.id, task.wave));
        }
    }
    let mut blockers: BTreeMap<TaskId, Vec<TaskId>> =
        run.plan.tasks.iter().map(|task| (task.id.clone(), task.blocked_by.clone())).collect();
    put_blockers(state, &mut blockers, task);
    for (id, known) in state.tasks.iter().filter(|(_, known)| !known.state.is_terminal()) {
        blockers.entry(id.clone()).or_default().extend(known.workflow.parts.iter().cloned());
    }
    circle(&blockers).map_or(Ok(()), Err)
}

impl State {
    /// The plan as it is now: without what was removed, and without what belongs to the run alone.
    pub fn present_plan(&self) -> Option<Plan> {
        let run = self.run.as_ref()?;
        let planned = |task: &&PlanTask| self.tasks.get(&task.id).is_some_and(is_planned);
        let tasks: Vec<PlanTask> = run.plan.tasks.iter().filter(planned).cloned().collect();
        Some(Plan { tasks, settings: run.settings().clone(), ..run.plan.clone() })
    }

    /// An id that no task of the run has: `T` and a number after the highest.
    pub fn free_task_id(&self) -> Option<TaskId> {
        let number = |id: &TaskId| id.as_str().strip_prefix('T')?.parse::<u32>().ok();
        let highest = self.tasks.keys().filter_map(number).max().unwrap_or(0);
        TaskId::new(format!("T{}", highest.saturating_add(1))).ok()
    }
}
