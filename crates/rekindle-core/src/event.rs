//! The facts in the log. An event is past, durable and sufficient: replaying all of them gives the whole state.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentName, Epoch, RunId, TaskId};
use crate::time::Time;

mod attempt;
mod body;
mod budget;
mod facts;
mod gate;
mod machine;
pub mod name;
mod person;
mod plan;
mod preflight;
mod review;
mod run;
mod session;
mod task;

pub use attempt::AttemptEvent;
pub use body::Body;
pub use budget::{BudgetAnswered, BudgetAsked, BudgetSeen};
pub use facts::{
    Added, AgentCompacted, AgentSaid, AgentStalled, AttemptsLost, Cleaned, ClockSeen, CompactionNear, CompactionOver,
    EnvironmentsDiffer, Finish, GateClosed, HandedOn, HealthSeen, Held, Landed, Pause, Recovery, Resume, SessionClosed,
    TeamStanding, UsageLeft, WorkBranch,
};
pub use gate::GateEvent;
pub use machine::MachineEvent;
pub use person::PersonEvent;
pub use plan::{ChangedPart, ChangedTask, Follow, PlanHead, PlanReloaded};
pub use preflight::{PreflightCheck, PreflightSeen};
pub use review::ReviewEvent;
pub use run::RunEvent;
pub use session::SessionEvent;
pub use task::TaskEvent;

/// One fact, with the envelope that every reader can rely on. Sequence and hash are added by the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: Time,
    pub run: RunId,
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    /// The epoch of the attempt it is about.
    pub epoch: Option<Epoch>,
    pub body: Body,
}

/// The state of a run when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every task is complete or skipped.
    Complete,
    /// Some task failed or can no longer be reached.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// `rekindle pause`.
    Operator,
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// `rekindle stop`, or Ctrl-C twice: at once.
    Stop,
    /// `--no-wait`, and only a person's answer or a reset is missing.
    NoWait,
    UsageLimit,
    /// Something is wrong with the system.
    SystemError,
    /// A budget is used up, and a person handed the run back.
    Budget,
}

impl PauseReason {
    /// Whether the run resumes on its own, without an operator.
    pub fn ends_by_itself(self) -> bool {
        matches!(self, Self::UsageLimit | Self::SystemError)
    }

    /// The reason in the words of the pause message.
    pub fn words(self) -> &'static str {
        match self {
            Self::Operator | Self::Interrupt | Self::Terminate | Self::Stop | Self::NoWait => "User stop",
            Self::UsageLimit => "Usage limit",
            Self::Budget => "Budget used up",
            Self::SystemError => "System error",
        }
    }
}
