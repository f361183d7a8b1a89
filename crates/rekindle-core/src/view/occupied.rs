//! Who is in the way of a task that could begin: an agent that has not ended, or other work on its files or in its worktree.
//!
//! The same question as `decide::schedule::Occupied` answers from the state, asked of rows alone.

use std::collections::BTreeMap;

use super::{AttemptRow, Because, TaskRow, WaitsFor};
use crate::ids::TaskId;
use crate::review::Stage;

pub(super) struct Occupied<'a> {
    /// Attempts that have not ended: their process runs, or what they claimed is being proven.
    busy: Vec<&'a AttemptRow>,
    /// The tasks of these attempts, those that persons hold, and those between two stages.
    engaged: BTreeMap<&'a TaskId, &'a TaskRow>,
    /// The whole of each part of a split task.
    parents: BTreeMap<&'a TaskId, &'a TaskId>,
    artifacts: BTreeMap<&'a str, &'a TaskId>,
}

impl<'a> Occupied<'a> {
    /// Looks at the rows of a run; `wave` is the one whose tasks may begin.
    pub(super) fn new(tasks: &'a [TaskRow], attempts: &'a [AttemptRow], wave: Option<u32>) -> Self {
        let busy: Vec<&AttemptRow> = attempts.iter().filter(|attempt| attempt.state != "ended").collect();
        let on_list = |task: &TaskRow| busy.iter().any(|attempt| attempt.tasks.contains(&task.id));
        let engaged = |task: &&TaskRow| on_list(task) || task.attached.is_some() || goes_on(task, wave);
        let engaged: BTreeMap<&TaskId, &TaskRow> = tasks.iter().filter(engaged).map(|task| (&task.id, task)).collect();
        let files = |task: &'a TaskRow| task.schedule.artifacts.iter().map(|file| (file.as_str(), &task.id));
        // Whoever runs comes before what waits between two stages.
        let (runs, waits): (Vec<&TaskRow>, Vec<&TaskRow>) = engaged.values().partition(|task| on_list(task));
        let artifacts = waits.into_iter().chain(runs).flat_map(files).collect();
        let parents = tasks.iter().filter_map(|task| Some((&task.id, task.parent.as_ref()?))).collect();
        Self { busy, engaged, parents, artifacts }
    }

    /// Who has to end before a task can begin.
    pub(super) fn before(&self, task: &TaskRow) -> Option<WaitsFor> {
        self.agent(task).or_else(|| self.other_work(task))
    }

    /// The agent in its way: its own that was stopped or is done with it, or one at the same work.
    fn agent(&self, task: &TaskRow) -> Option<WaitsFor> {
        let in_the_way = |attempt: &&&AttemptRow| self.why(attempt, task).is_some();
        let attempt = self.busy.iter().rev().find(in_the_way)?;
        let working = |other: &&TaskId| {
            let other = self.engaged.get(*other).filter(|other| other.id != task.id);
            other.is_some_and(|other| !has_ended(other) && (other.schedule.held || other.verifying))
        };
        Some(match attempt.task.as_ref().filter(working) {
            Some(other) => WaitsFor::Task { tasks: vec![other.clone()], because: self.why(attempt, task)? },
            None => WaitsFor::Agent { agent: attempt.name.clone(), stopping: attempt.state == "stopping" },
        })
    }

    fn why(&self, attempt: &AttemptRow, task: &TaskRow) -> Option<Because> {
        // A part and its whole are one piece of work.
        let same_work = attempt.tasks.iter().any(|other| self.root(other) == self.root(&task.id));
        if same_work || task.agent.as_ref() == Some(&attempt.name) {
            return Some(Because::Agent);
        }
        let inside = |other: &&TaskRow| task.workspace.is_some() && other.workspace == task.workspace;
        let shared =
            attempt.tasks.iter().filter_map(|other| self.engaged.get(other).copied()).any(|other| inside(&other));
        shared.then_some(Because::Worktree)
    }

    /// Work without an agent that would be disturbed: under review, sent back, or in a person's hands.
    fn other_work(&self, task: &TaskRow) -> Option<WaitsFor> {
        let file = task.schedule.artifacts.iter().find_map(|file| self.artifacts.get(file.as_str()));
        if let Some(other) = file.filter(|other| ***other != task.id) {
            return Some(WaitsFor::Task { tasks: vec![(*other).clone()], because: Because::Files });
        }
        let others = self.engaged.values().filter(|other| self.root(&other.id) != self.root(&task.id));
        let mut inside = others.filter(|other| task.workspace.is_some() && other.workspace == task.workspace);
        let other = inside.find(|other| !has_ended(other))?;
        Some(WaitsFor::Task { tasks: vec![other.id.clone()], because: Because::Worktree })
    }

    fn root<'b>(&'b self, id: &'b TaskId) -> &'b TaskId {
        let mut root = id;
        while let Some(parent) = self.parents.get(root) {
            root = parent;
        }
        root
    }
}

fn has_ended(task: &TaskRow) -> bool {
    matches!(task.state.as_str(), "complete" | "failed" | "skipped")
}

/// Whether a task is between two stages and nothing else has to end before it: others leave its work alone.
fn goes_on(task: &TaskRow, wave: Option<u32>) -> bool {
    let between = task.stage != Stage::Implement || task.rework.is_some() || task.verifying;
    let next = task.schedule.unmet.is_empty() && wave.is_none_or(|wave| task.wave <= wave);
    between && !has_ended(task) && (next || task.verifying)
}
