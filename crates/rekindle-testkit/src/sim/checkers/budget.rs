//! Nothing starts on a budget that is used up: not on the run's, the day's or the task's, by what agents really reported and
//! by the limits that the user set, whatever the coordinator was given.

use rekindle_core::budget::Scope;
use rekindle_core::event::{AttemptEvent, Body, Event, TaskEvent};
use rekindle_core::ids::{QuestionId, TaskId};

use super::log::line;
use super::{Checkers, Invariant, Verdict, require};
use crate::sim::story::Setting;

impl Checkers {
    /// Whether a question is about a budget: of a task, or of all of them.
    pub fn budget_of(&self, id: QuestionId) -> Option<Option<TaskId>> {
        let question = self.replayed.questions.get(&id).filter(|question| question.is_budget)?;
        let own = self.replayed.tasks.get(&question.task).is_some_and(|task| task.spending.question == Some(id));
        Some(own.then(|| question.task.clone()))
    }

    /// Judges a question about a budget: a person may be asked only if a budget that the task needs is used up.
    pub(super) fn asks_for_budget(&self, setting: &Setting, event: &Event) -> Verdict {
        let limits = &setting.limits.budget;
        let task = event.task.as_ref().and_then(|id| self.replayed.tasks.get(id));
        let ledger = &self.replayed.budget;
        let all = task.map(|task| (Scope::Task, &task.spending)).into_iter();
        let mut all = all.chain([(Scope::Run, &ledger.run), (Scope::Day, &ledger.day)]);
        let used_up = all.any(|(scope, spending)| !spending.admits(limits.of(scope), event.time));
        require(used_up, Invariant::Budget, || format!("asked for a budget that is left: {}", line(event)))
    }

    /// Open tasks that a person took back for lack of budget.
    pub fn handed_back(&self) -> Vec<TaskId> {
        let open = self.replayed.tasks.iter().filter(|(_, task)| !task.state.is_terminal());
        open.filter(|(_, task)| task.spending.handed_back).map(|(id, _)| id.clone()).collect()
    }

    /// Whether an event starts something that a budget does not allow.
    pub(super) fn budget(&self, setting: &Setting, event: &Event) -> Verdict {
        let limits = &setting.limits.budget;
        let starts: Vec<&TaskId> = match &event.body {
            Body::Attempt(AttemptEvent::Dispatched { tasks, .. }) => tasks.iter().collect(),
            Body::Task(TaskEvent::TaskAssigned { .. }) => event.task.iter().collect(),
            _ => return Ok(()),
        };
        let ledger = &self.replayed.budget;
        let tasks = starts.into_iter().filter_map(|id| self.replayed.tasks.get(id));
        let spendings = tasks.map(|task| (Scope::Task, &task.spending));
        for (scope, spending) in spendings.chain([(Scope::Run, &ledger.run), (Scope::Day, &ledger.day)]) {
            let allowed = spending.admits(limits.of(scope), event.time);
            require(allowed, Invariant::Budget, || {
                format!("the budget of the {} is used up ({:?}): {}", scope.name(), spending.spent, line(event))
            })?;
        }
        Ok(())
    }
}
