//! The workspace in which a task is worked on.

use super::State;
use crate::ids::TaskId;

impl State {
    /// The task's own workspace; `None` if all agents work in one directory.
    pub fn workspace_of(&self, id: &TaskId) -> Option<String> {
        if !self.limits.worktrees {
            return None;
        }
        let root = self.root_of(id);
        if let Some(kept) = self.tasks.get(&root).and_then(|task| task.workflow.workspace.clone()) {
            return Some(kept);
        }
        let Some(agent) = self.plan_task(&root)?.agent.as_ref() else { return Some(root.to_string()) };
        // A named agent has one workspace for all its tasks, called after the first of them.
        let first = self.run.as_ref()?.plan.tasks.iter().find(|task| task.agent.as_ref() == Some(agent));
        Some(first.map_or(root, |task| task.id.clone()).to_string())
    }
}
