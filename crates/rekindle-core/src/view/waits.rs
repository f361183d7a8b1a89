//! What a run waits for, as a table shows it.

use serde::{Deserialize, Serialize};

use crate::state::{Gate, State};
use crate::time::Time;

/// An account that has to wait, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    pub account: String,
    /// The name of the cause.
    pub cause: String,
    /// When the wait ends; `None` means when a person answers.
    pub until: Option<Time>,
    /// The reset time that the provider named, if any.
    #[serde(default)]
    pub reset: Option<Time>,
    /// The number, counted from that reset, of the probe at that time.
    #[serde(default)]
    pub probe: u32,
}

impl WaitRow {
    pub(super) fn of(account: &str, gate: &Gate) -> Self {
        Self {
            account: account.to_owned(),
            cause: gate.cause.clone(),
            until: gate.until,
            reset: gate.reset,
            probe: gate.probe,
        }
    }
}

/// Why nothing new is started, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldRow {
    /// What the machine lacks.
    pub reason: String,
    pub since: Time,
    /// What to type, or where to look.
    #[serde(default)]
    pub hint: String,
    /// When it is tried again, if only trying can tell.
    #[serde(default)]
    pub until: Option<Time>,
}

impl HeldRow {
    pub(super) fn of(state: &State) -> Option<Self> {
        let reason = state.held.clone()?;
        let hold = &state.hold;
        // A state of an earlier version does not record the start of the hold.
        let since = hold.since.unwrap_or(state.last_time);
        Some(Self { reason, since, hint: hold.hint.clone(), until: hold.until })
    }
}
