//! An operator's orders while no coordinator runs: decided and made durable here, carried out by the next coordinator.

use rekindle_core::decide::{self, Reply};
use rekindle_core::input::{Input, Order};
use rekindle_core::state::State;
use rekindle_core::text;
use rekindle_core::time::Time;
use rekindle_core::view::Touched;

use crate::clock::Clock;
use crate::control::server;
use crate::driver::{self, LoadError};
use crate::redact::Redactor;
use crate::state_dir::{self, StateDir};
use crate::store::{self, Batch, Store};

/// Why an order could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state directory cannot be used.
    #[error(transparent)]
    StateDir(#[from] state_dir::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Decides on an order and makes it durable. The coordinator's lock is held meanwhile, so no other process writes. Fails if
/// a coordinator is running after all, or the store refuses.
pub fn order(dir: &StateDir, mut order: Order) -> Result<Reply, Error> {
    if let Order::Tell { text, .. } = &mut order {
        *text = redacted(text);
    }
    let now_ms = crate::clock::wall().0;
    let _lock = dir.lock_coordinator(&state_dir::Owner::this_process(now_ms, "an operator's order"))?;
    let (store, _report) = store::open(dir, store::Options { now_ms, ..Default::default() })?;
    // As at the control socket: an agent that hides its token is given away by its process tree.
    let (state, _) = driver::load(store.as_ref())?;
    if state.holds_any_of(&server::ancestors(std::process::id())) {
        return Ok(Reply::Refused { reason: "that is for the operator, not for an agent".to_owned() });
    }
    put_down(store.as_ref(), order, |state| Clock::starting_after(state.last_time, state.coordinator.as_ref()).now())
}

/// A person's words without the secrets in this process's environment; a coordinator knows more secrets, but none is
/// running.
fn redacted(words: &str) -> String {
    let environment = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    Redactor::new(environment).redact(&text::sanitize(words)).into_owned()
}

/// Decides on an order over the contents of a store and makes it durable there. The caller holds the store exclusively.
pub fn put_down(store: &dyn Store, order: Order, now: impl FnOnce(&State) -> Time) -> Result<Reply, Error> {
    let (mut state, last_seq) = driver::load(store)?;
    let now = now(&state);
    let step = decide::record(&mut state, now, Input::Ordered(order));
    if step.events.is_empty() {
        return Ok(step.reply);
    }
    let mut touched = Touched::default();
    for event in &step.events {
        touched.add(&state, event);
    }
    let batch = Batch {
        expect_last_seq: Some(last_seq),
        events: step.events.iter().map(driver::encode).collect(),
        rows: driver::touched_rows(&state, &touched),
        ..Batch::default()
    };
    store.append(batch)?;
    Ok(step.reply)
}
