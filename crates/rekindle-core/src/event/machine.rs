//! What the machine, the plan's health commands and the allowance say.

use serde::{Deserialize, Serialize};

use super::{BudgetAnswered, BudgetAsked, BudgetSeen, Cleaned, ClockSeen, HealthSeen, Held, PreflightSeen, UsageLeft};
use crate::ids::QuestionId;
use crate::time::Time;

/// What was seen of the surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineEvent {
    /// The machine is short of something: nothing new is started until it no longer is.
    StartsHeld(Held),
    StartsReleased {},
    /// The machine slept, or its wall clock was set.
    ClockMoved(ClockSeen),
    /// An agent's program failed to start too often.
    BreakerOpened {
        /// Which `[agents.NAME]`.
        cli: String,
        /// Until when it is not started.
        until: Time,
    },
    /// A task's worktree is being set up.
    SetupStarted {
        command: String,
    },
    SetupFinished {
        took_ms: u64,
    },
    /// A task's worktree could not be set up; no attempt pays for it.
    SetupFailed {
        reason: String,
        /// The question to a person about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
        /// When it is retried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Time>,
    },
    /// Something that runs had left was removed.
    Cleaned(Cleaned),
    /// A failed set-up is retried although nobody has answered.
    SetupRetried {
        /// When the next retry is, if this one fails.
        retry_at: Time,
    },
    /// The checks of the plan are to be run before the first agent starts.
    PreflightOrdered {},
    Preflight(PreflightSeen),
    /// The plan's health commands are to be run.
    HealthOrdered {},
    HealthChecked(HealthSeen),
    /// The user's own command is to be asked what is left of the allowance.
    UsageAsked {},
    UsageSeen(UsageLeft),
    /// Most of a budget is used.
    BudgetNotice(BudgetSeen),
    /// A budget is used up: nothing new is started for it.
    BudgetReached(BudgetSeen),
    BudgetAsked(BudgetAsked),
    BudgetAnswered(BudgetAnswered),
    /// A new calendar day in the person's time zone.
    DayBegan {
        date: String,
    },
    /// Nothing new is started in these hours.
    QuietBegan {
        /// By the wall clock.
        until: Time,
    },
    QuietEnded {},
}
