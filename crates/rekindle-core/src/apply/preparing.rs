//! Set-ups that failed, the pre-flight of checks, and what a person says about either.

use crate::event::{Event, MachineEvent};
use crate::ids::QuestionId;
use crate::state::{Asked, Preflight, STOP, SetupWait, State, TaskState, WITHOUT};

pub(super) fn apply(state: &mut State, event: &Event, fact: &MachineEvent) {
    match fact {
        MachineEvent::SetupFailed { question: Some(question), retry_at: Some(retry_at), .. } => {
            let asked = Asked { question: *question, tasks: event.task.iter().cloned().collect() };
            let wait = SetupWait { asked, failures: 0, retry_at: *retry_at, retrying: None };
            let wait = state.preparing.setup.get_or_insert(wait);
            wait.asked.tasks.extend(event.task.clone());
            wait.failures = wait.failures.saturating_add(1);
            wait.retry_at = *retry_at;
            wait.retrying.take_if(|task| Some(&*task) == event.task.as_ref());
        }
        MachineEvent::SetupRetried { retry_at } => {
            let Some(wait) = &mut state.preparing.setup else { return };
            wait.retry_at = *retry_at;
            let Some(task) = &event.task else { return };
            wait.asked.tasks.remove(task);
            wait.retrying = Some(task.clone());
            super::on_task(state, task, |task| {
                if task.state == TaskState::Blocked {
                    task.state = TaskState::Pending;
                }
            });
        }
        MachineEvent::PreflightOrdered {} => state.preparing.preflight = Preflight::Ordered,
        MachineEvent::Preflight(seen) => {
            state.preparing.preflight = Preflight::Done;
            let tasks = seen.waiting.iter().cloned().collect();
            state.preparing.checks = seen.question.map(|question| Asked { question, tasks });
        }
        MachineEvent::SetupStarted { .. }
        | MachineEvent::SetupFinished { .. }
        | MachineEvent::SetupFailed { .. }
        | MachineEvent::StartsHeld(_)
        | MachineEvent::StartsReleased {}
        | MachineEvent::ClockMoved(_)
        | MachineEvent::BreakerOpened { .. }
        | MachineEvent::HealthOrdered {}
        | MachineEvent::HealthChecked(_)
        | MachineEvent::UsageAsked {}
        | MachineEvent::UsageSeen(_)
        | MachineEvent::Cleaned(_)
        | MachineEvent::BudgetNotice(_)
        | MachineEvent::BudgetReached(_)
        | MachineEvent::BudgetAsked(_)
        | MachineEvent::BudgetAnswered(_)
        | MachineEvent::DayBegan { .. }
        | MachineEvent::QuietBegan { .. }
        | MachineEvent::QuietEnded {} => {}
    }
}

/// A question was answered or withdrawn: whatever waited for it continues.
pub(super) fn answered(state: &mut State, id: QuestionId, answer: &str) {
    let said = |word: &str| answer.trim().eq_ignore_ascii_case(word);
    let preparing = &mut state.preparing;
    if preparing.setup.take_if(|wait| wait.asked.question == id).is_some() && said(WITHOUT) {
        preparing.without = true;
    }
    if preparing.checks.take_if(|asked| asked.question == id).is_some() && said(STOP) {
        preparing.preflight = Preflight::Again;
    }
}
