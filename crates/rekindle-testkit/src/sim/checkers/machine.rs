//! The machine's problems are no task's failure: what it refused costs no task an attempt.

use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, Event, RunEvent, TaskEvent};

use super::log::line;
use super::{Checkers, Invariant, Verdict, require};

impl Checkers {
    /// Judges that no event charges a task with what the machine refused.
    pub(super) fn machine(&self, event: &Event) -> Verdict {
        self.want(event)?;
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
            Body::Run(RunEvent::StateReconciled { event_type, .. }) if event_type == "artifacts_missing" => {
                let promised = self.replayed.plan_task(id).map(|planned| planned.artifacts.as_slice());
                !promised.unwrap_or_default().iter().any(|path| self.truth.gone.contains(path))
            }
            _ => false,
        };
        require(!charged, Invariant::Machine, || format!("a task pays for the machine: {}", line(event)))
    }

    /// The end of an agent that the kernel killed for lack of memory is attributed to that, unless it was being stopped, had
    /// said why it would end, or had nothing left to do. What the machine lacks costs a task nothing the first time in a
    /// row.
    fn want(&self, event: &Event) -> Verdict {
        match &event.body {
            Body::Attempt(AttemptEvent::AttemptEnded { attempt, cause, .. }) => {
                let (Some(cap), Some(found)) =
                    (self.truth.machine.wants.get(attempt), self.replayed.attempts.get(attempt))
                else {
                    return Ok(());
                };
                // If its shim died too, there is no record.
                let told = found.exit.as_ref().is_some_and(|exit| exit.signal.is_some());
                let own = found.stop.is_some() || found.cli_session.failure.is_some() || *cause == Cause::Completed;
                require(!told || own || *cause == Cause::OutOfMemory { cap: *cap }, Invariant::Machine, || {
                    format!("attempt {attempt} was killed for lack of memory (cap {cap:?}): {}", line(event))
                })
            }
            Body::Task(TaskEvent::TaskRequeued {
                cause: cause @ Cause::OutOfMemory { cap: None },
                counted: true,
                ..
            }) => {
                let last = event.task.as_ref().and_then(|id| self.replayed.tasks.get(id)?.last_cause.as_ref());
                require(last == Some(cause), Invariant::Machine, || format!("the first time costs: {}", line(event)))
            }
            _ => Ok(()),
        }
    }
}
