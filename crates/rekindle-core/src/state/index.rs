//! Which tasks have started and which have not, so that a decision in a plan of a hundred thousand tasks inspects only the
//! few that it concerns. The index is derived from the tasks alone: it is neither stored nor compared, and a state without
//! one scans its tasks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{State, Task, TaskState};
use crate::ids::TaskId;
use crate::plan::Plan;
use crate::review::Stage;

/// The order in which untouched tasks start: the one that unblocks most first, then the plan's priority, then the plan's
/// order.
pub type Rank = (Reverse<u32>, Reverse<i64>, usize);

/// Tasks by progress.
#[derive(Clone, Debug, Default)]
pub struct Index {
    built: bool,
    /// Tasks that something has happened to and that have not ended.
    begun: BTreeSet<TaskId>,
    /// Tasks that nothing has happened to, in the order in which they begin.
    untouched: BTreeSet<Rank>,
    failed: usize,
}

/// Always equal: an index says nothing that the tasks do not say.
impl PartialEq for Index {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Index {
    fn of(tasks: &BTreeMap<TaskId, Task>, plan: Option<&Plan>) -> Self {
        let mut index = Self { built: true, ..Self::default() };
        tasks.iter().for_each(|(id, task)| index.add(id, task, plan));
        index
    }

    fn add(&mut self, id: &TaskId, task: &Task, plan: Option<&Plan>) {
        if task.state.is_terminal() {
            self.failed += usize::from(task.state == TaskState::Failed);
        } else if is_untouched(task) {
            self.untouched.insert(rank(task, plan));
        } else {
            self.begun.insert(id.clone());
        }
    }

    fn remove(&mut self, id: &TaskId, task: &Task, plan: Option<&Plan>) {
        if task.state.is_terminal() {
            self.failed -= usize::from(task.state == TaskState::Failed);
        } else if is_untouched(task) {
            self.untouched.remove(&rank(task, plan));
        } else {
            self.begun.remove(id);
        }
    }

    /// Whether this equals the result of [`Self::of`], without building it.
    fn is_of(&self, tasks: &BTreeMap<TaskId, Task>, plan: Option<&Plan>) -> bool {
        let open = || tasks.iter().filter(|(_, task)| !task.state.is_terminal());
        let begun = open().filter(|(_, task)| !is_untouched(task)).map(|(id, _)| id);
        let mut untouched = open().filter(|(_, task)| is_untouched(task)).map(|(_, task)| rank(task, plan));
        let failed = tasks.values().filter(|task| task.state == TaskState::Failed).count();
        let (mut found, all) = (0, self.untouched.len());
        // A rank ends with the task's position in the plan, so no two ranks are equal.
        let known = untouched.all(|rank| {
            found += 1;
            self.untouched.contains(&rank)
        });
        begun.eq(&self.begun) && known && found == all && failed == self.failed
    }
}

/// The rank of a task among untouched ones.
fn rank(task: &Task, plan: Option<&Plan>) -> Rank {
    let priority = plan.and_then(|plan| plan.tasks.get(task.index)).map_or(0, |planned| planned.priority);
    (Reverse(task.unblocks), Reverse(priority), task.index)
}

/// Whether nothing has happened to a task: it waits only for a slot or for other tasks.
fn is_untouched(task: &Task) -> bool {
    let way = &task.workflow;
    task.state == TaskState::Pending
        && task.holder.is_none()
        && task.claim.is_none()
        && task.not_before.is_none()
        && task.last_cause.is_none()
        && task.last_attempts.is_empty()
        && way.stage == Stage::Implement
        && way.rework.is_none()
        && way.merging.is_none()
        && way.parts.is_empty()
        && !way.validating
}

impl State {
    /// Tasks that something has happened to and that have not ended, in the order of their names.
    pub fn begun(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        let known = self.index.built.then(|| self.index.begun.iter().filter_map(|id| self.tasks.get_key_value(id)));
        let scanned = || self.tasks.iter().filter(|(_, task)| !task.state.is_terminal() && !is_untouched(task));
        let scanned = (!self.index.built).then(scanned);
        known.into_iter().flatten().chain(scanned.into_iter().flatten())
    }

    /// Tasks that nothing has happened to, in the order in which they begin.
    pub fn untouched(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        let tasks = self.run.as_ref().map(|run| run.plan.tasks.as_slice()).unwrap_or_default();
        let known = self.index.built.then(|| self.index.untouched.iter().copied());
        let scanned = (!self.index.built).then(|| Index::of(&self.tasks, self.plan()).untouched);
        let ranks = known.into_iter().flatten().chain(scanned.into_iter().flatten());
        ranks.filter_map(|(.., index)| self.tasks.get_key_value(&tasks.get(index)?.id))
    }

    /// Whether a task has failed for good.
    pub fn has_failed(&self) -> bool {
        if self.index.built {
            return self.index.failed > 0;
        }
        self.tasks.values().any(|task| task.state == TaskState::Failed)
    }

    fn plan(&self) -> Option<&Plan> {
        self.run.as_ref().map(|run| &run.plan)
    }

    /// Builds the index if there is none.
    pub(crate) fn ensure_index(&mut self) {
        if !self.index.built {
            self.index = Index::of(&self.tasks, self.plan());
        }
        // The full comparison only in small states, such as those of tests.
        debug_assert!(self.tasks.len() > 64 || self.index_holds(), "the index follows every change of a task");
    }

    /// Whether the index, if there is one, agrees with the tasks.
    pub fn index_holds(&self) -> bool {
        !self.index.built || self.index.is_of(&self.tasks, self.plan())
    }

    /// Drops the index so that it is rebuilt, because all tasks were replaced.
    pub fn forget_index(&mut self) {
        self.index = Index::default();
    }

    /// Changes a task and updates the index.
    pub(crate) fn change_task(&mut self, id: &TaskId, change: impl FnOnce(&mut Task)) {
        let plan = self.run.as_ref().map(|run| &run.plan);
        let Some(task) = self.tasks.get_mut(id) else { return };
        let built = self.index.built;
        if built {
            self.index.remove(id, task, plan);
        }
        change(task);
        if built {
            self.index.add(id, task, plan);
        }
    }

    /// Adds a task that the plan holds already.
    pub(crate) fn add_task(&mut self, id: TaskId, task: Task) {
        let plan = self.run.as_ref().map(|run| &run.plan);
        if self.index.built {
            self.index.add(&id, &task, plan);
        }
        self.tasks.insert(id, task);
    }
}
