//! Accounts that have to wait.

use serde::{Deserialize, Serialize};

use super::GateClosed;

/// What happened to an account's gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateEvent {
    /// An account has to wait: nothing more is started on it until then.
    GateClosed(GateClosed),
    /// An agent on the account worked: more may run at once.
    GateWidened { account: String, allowed: u32 },
    /// An account no longer has to wait.
    GateOpened { account: String },
}
