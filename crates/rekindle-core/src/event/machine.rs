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
        /// Until when it is left alone.
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
        /// What a person is asked about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
        /// When it is tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Time>,
    },
    /// Something that runs had left was removed.
    Cleaned(Cleaned),
    /// A set-up that failed is tried again although nobody has answered.
    SetupRetried {
        /// When the next one is, if this one comes to nothing.
        retry_at: Time,
    },
    /// The checks of the plan are to be tried before the first agent begins.
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
    /// Another calendar day in the person's zone.
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
