//! The accounts that have to wait, kept from the events as they are read: what the countdown below the lines tells.

use std::collections::BTreeMap;

use rekindle_core::event::Body;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use crate::story::{self, session};

/// The gates that are closed now.
#[derive(Debug, Default)]
pub struct Gates {
    closed: BTreeMap<String, Gate>,
}

#[derive(Debug)]
struct Gate {
    cause: &'static str,
    until: Option<Time>,
}

impl Gates {
    /// Takes in an event.
    pub fn add(&mut self, event: &StoredEvent) {
        if !event.kind.starts_with("gate_") {
            return;
        }
        match story::body(event) {
            Some(Body::GateClosed { account, cause, until, .. }) => {
                self.closed.insert(account, Gate { cause: cause.name(), until });
            }
            Some(Body::GateWidened { account, .. } | Body::GateOpened { account }) => {
                self.closed.remove(&account);
            }
            _ => {}
        }
    }

    /// A line for every account that waits: for what, until when, and how long that is from now.
    pub fn lines(&self, now: Time) -> Vec<String> {
        let waits = self.closed.iter().filter(|(_, gate)| gate.until.is_none_or(|until| until > now));
        waits.map(|(account, gate)| session::waiting(account, gate.cause, gate.until, now)).collect()
    }
}
