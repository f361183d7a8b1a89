//! Cleaning while no coordinator runs: the coordinator's lock is held, so no other process writes the store.

use std::sync::Arc;

use rekindle_core::decide::Reply;
use rekindle_core::event::Cleaned;
use rekindle_core::input::Order;

use super::Hand;
use crate::clock::{self, Clock};
use crate::control::server;
use crate::driver;
use crate::offline::{self, Error};
use crate::state_dir::{self, CoordinatorLock, StateDir};
use crate::store::{self, Read, RemovedLines, Store};

/// The owner named in the lock while the state is cleaned and no plan is run.
pub const OWNER: &str = "rekindle clean";

/// A store that is held alone.
pub struct Alone {
    store: Arc<dyn Store>,
    // Declared after the store, so that the store is closed before another process may open it.
    _lock: CoordinatorLock,
}

impl Alone {
    /// Takes the lock and opens the store. Fails if a coordinator is running after all, or there is no room.
    pub fn open(dir: &StateDir) -> Result<Self, Error> {
        let now_ms = clock::wall().0;
        let lock = dir.lock_coordinator(&state_dir::Owner::this_process(now_ms, OWNER))?;
        let (store, _report) = store::open(dir, store::Options { now_ms, ..Default::default() })?;
        Ok(Self { store, _lock: lock })
    }

    pub fn log(&self) -> &dyn Read {
        self.store.as_ref()
    }

    /// Whether the caller is an agent of the run, judging by its process tree.
    pub fn is_called_by_agent(&self) -> Result<bool, Error> {
        let (state, _) = driver::load(self.store.as_ref())?;
        Ok(state.holds_any_of(&server::ancestors(std::process::id())))
    }

    /// Returns the space of removed lines to the disk; space that cannot be returned now is reused for new lines.
    pub fn compact(&self) -> u64 {
        self.store.compact().unwrap_or(0)
    }
}

impl Hand for Alone {
    fn record(&mut self, cleaned: Cleaned) -> Result<(), String> {
        let now = |state: &rekindle_core::state::State| {
            Clock::starting_after(state.last_time, state.coordinator.as_ref()).now()
        };
        match offline::put_down(self.store.as_ref(), Order::Clean(cleaned), now) {
            Ok(Reply::Refused { reason }) => Err(reason),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn remove_lines(&mut self, attempt: u64) -> Result<RemovedLines, String> {
        self.store.remove_lines(attempt).map_err(|error| error.to_string())
    }

    fn goes_on(&mut self) -> bool {
        true
    }
}
