//! Actions on the outside world. Every effect follows from an event that is already durable, and may be performed twice.

use crate::event::{
    AttemptEvent, Body, Event, Finish, MachineEvent, Outcome, PersonEvent, ReviewEvent, RunEvent, SessionEvent,
    TaskEvent,
};
use crate::ids::{AttemptId, Epoch, TaskId};
use crate::steering::PersonProcess;
use crate::text::counted;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start the process of an attempt, or find that it was started.
    LaunchAttempt {
        attempt: AttemptId,
    },
    /// Stop the process tree of an attempt.
    StopAttempt {
        attempt: AttemptId,
        /// Without grace.
        at_once: bool,
    },
    /// Run the checks of a claimed task.
    RunChecks {
        task: TaskId,
        epoch: Epoch,
    },
    /// Commit what is left of a task's accepted work and merge it into the run's branch.
    MergeWork {
        task: TaskId,
        epoch: Epoch,
    },
    /// Keep what an attempt left in its workspace, which it no longer uses.
    LeaveWorkspace {
        attempt: AttemptId,
    },
    /// The machine has room again: what it may have refused is asked for again, as after a crash.
    RepeatRefused,
    CheckHealth,
    /// Run every check of the plan once in a fresh worktree.
    Preflight,
    /// Ask the user's command what is left of the allowance.
    AskUsage,
    /// Check which artifacts of complete tasks are on disk.
    InspectDisk,
    /// Give a running agent a message.
    TellAgent {
        attempt: AttemptId,
        /// The message's number within the attempt: one number is delivered once.
        number: u32,
        text: String,
    },
    /// Let an agent that waits for messages exit.
    CloseInput {
        attempt: AttemptId,
    },
    /// Run the checks of a task's claim again, if it has one: its worktree could not be set up before.
    ProveAgain {
        task: TaskId,
    },
    /// Watch the program in which a person works on a task, and report when it has ended.
    WatchPerson {
        task: TaskId,
        by: PersonProcess,
        /// The attempt from whose end changes are counted.
        since: AttemptId,
    },
    AlertPerson {
        text: String,
        choices: Vec<String>,
        /// The task, if it is about one.
        task: Option<TaskId>,
    },
    /// Tell a person that the run is over.
    TellEnd {
        text: String,
    },
}

/// The effect that follows from an event, if one does.
pub fn following(event: &Event) -> Option<Effect> {
    match &event.body {
        Body::Attempt(AttemptEvent::Dispatched { attempt, .. }) => Some(Effect::LaunchAttempt { attempt: *attempt }),
        Body::Attempt(AttemptEvent::StopOrdered { attempt, at_once, .. }) => {
            Some(Effect::StopAttempt { attempt: *attempt, at_once: *at_once })
        }
        Body::Task(TaskEvent::TaskClaimed { .. }) => match (&event.task, event.epoch) {
            (Some(task), Some(epoch)) => Some(Effect::RunChecks { task: task.clone(), epoch }),
            _ => None,
        },
        Body::Attempt(AttemptEvent::AttemptEnded { attempt, .. }) => Some(Effect::LeaveWorkspace { attempt: *attempt }),
        Body::Review(ReviewEvent::MergeOrdered(_)) => match (&event.task, event.epoch) {
            (Some(task), Some(epoch)) => Some(Effect::MergeWork { task: task.clone(), epoch }),
            _ => None,
        },
        Body::Machine(MachineEvent::HealthOrdered {}) => Some(Effect::CheckHealth),
        Body::Machine(MachineEvent::PreflightOrdered {}) => Some(Effect::Preflight),
        Body::Machine(MachineEvent::UsageAsked {}) => Some(Effect::AskUsage),
        Body::Run(RunEvent::WaveEnded { .. }) => Some(Effect::InspectDisk),
        Body::Session(SessionEvent::AgentTold { attempt, number, text, .. }) => {
            Some(Effect::TellAgent { attempt: *attempt, number: *number, text: text.clone() })
        }
        Body::Session(SessionEvent::InputClosed { attempt }) => Some(Effect::CloseInput { attempt: *attempt }),
        Body::Person(PersonEvent::PersonAlerted { text, choices }) => {
            Some(Effect::AlertPerson { text: text.clone(), choices: choices.clone(), task: event.task.clone() })
        }
        Body::Person(PersonEvent::Attached { by, attempt }) => {
            let task = event.task.clone()?;
            Some(Effect::WatchPerson { task, by: by.clone(), since: *attempt })
        }
        Body::Machine(MachineEvent::StartsHeld(held)) if held.alerts => Some(Effect::AlertPerson {
            text: format!("nothing new is started: {}", held.reason),
            choices: vec![held.hint.clone()],
            task: None,
        }),
        Body::Machine(MachineEvent::BudgetNotice(seen) | MachineEvent::BudgetReached(seen)) if seen.alerts => {
            let task = event.task.clone();
            let choices = vec!["rekindle status".to_owned()];
            Some(Effect::AlertPerson { text: seen.words(task.as_ref()), choices, task })
        }
        Body::Machine(MachineEvent::StartsReleased {}) => Some(Effect::RepeatRefused),
        Body::Machine(MachineEvent::SetupRetried { .. }) => Some(Effect::ProveAgain { task: event.task.clone()? }),
        Body::Run(RunEvent::RunFinished(finish)) => Some(Effect::TellEnd { text: end_in_counts(finish) }),
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => None,
    }
}

/// How a run ended: counts only, for places where anybody may read along.
fn end_in_counts(finish: &Finish) -> String {
    let Finish { outcome, complete, failed, skipped, unreachable } = finish;
    let all: u64 = [complete, failed, skipped, unreachable].into_iter().map(|many| u64::from(*many)).sum();
    let word = match outcome {
        Outcome::Complete => "complete",
        Outcome::Failed => "failed",
    };
    let others = [(failed, "failed"), (skipped, "skipped"), (unreachable, "out of reach")];
    let others: String =
        others.iter().filter(|(many, _)| **many > 0).map(|(many, what)| format!(", {many} {what}")).collect();
    let all = counted(all, "task", "tasks");
    format!("the run is over, {word}: {complete} of {all} complete{others}")
}
