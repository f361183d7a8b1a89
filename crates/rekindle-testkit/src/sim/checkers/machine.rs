//! The machine's troubles are nobody's failure: what it refused costs no task an attempt.

use rekindle_core::event::{Body, Event, TaskEvent};

use super::log::line;
use super::{Checkers, Invariant, Verdict, require};

impl Checkers {
    /// Whether an event charges a task with what the machine refused.
    pub(super) fn machine(&self, event: &Event) -> Verdict {
        let Some(id) = &event.task else { return Ok(()) };
        let refused = &self.truth.machine;
        let holder = self.replayed.tasks.get(id).and_then(|task| task.holder);
        let never_begun = holder.is_some_and(|holder| refused.attempts.contains(&holder));
        let unknown = event.epoch.is_some_and(|epoch| refused.checks.contains(&(id.clone(), epoch)));
        let ordered = self.truth.ordered.contains(id);
        let charged = match &event.body {
            Body::Task(TaskEvent::TaskRequeued { counted: true, .. }) => never_begun,
            Body::Task(TaskEvent::WorkflowFailed { .. }) => never_begun && !ordered,
            Body::Task(TaskEvent::ChecksFinished { passed: false, .. }) => unknown,
            _ => false,
        };
        require(!charged, Invariant::Machine, || format!("a task pays for the machine: {}", line(event)))
    }
}
