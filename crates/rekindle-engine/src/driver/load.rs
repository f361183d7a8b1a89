//! Restores the state from the store: the newest snapshot and the events after it.

use rekindle_core::apply::apply;
use rekindle_core::event::{Body, Event};
use rekindle_core::ids::{AgentName, Epoch, RunId, TaskId};
use rekindle_core::state::{Layout, State};
use rekindle_core::time::Time;

use crate::store::{self, Read, StoredEvent};

/// Events fetched at once while loading.
pub(super) const PAGE: usize = 4_096;

/// Why a state cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// This version does not know this kind of event.
    #[error("event {seq} ({kind}) cannot be read: {reason}")]
    Event { seq: u64, kind: String, reason: String },
}

/// The state and the sequence number of its newest event. Fails if the store refuses, or contains an event that this version
/// does not know.
pub fn load(store: &(impl Read + ?Sized)) -> Result<(State, u64), LoadError> {
    // A snapshot that this version cannot read is no loss: the events before it contain the same.
    let snapshot = store.latest_snapshot()?.and_then(|found| {
        let mut state = serde_json::from_slice::<State>(&found.state).ok()?;
        // Nor is a snapshot of another layout: then only replaying all events gives the state, once.
        if state.layout != Layout::TODAY {
            return None;
        }
        // A snapshot of an earlier version may contain everything that checks ever printed.
        state.cut_outputs();
        Some((state, found.seq))
    });
    let (mut state, mut seq) = snapshot.unwrap_or_default();
    loop {
        let page = store.events(seq, PAGE)?;
        let Some(last) = page.last().map(|event| event.seq) else { return Ok((state, seq)) };
        for stored in &page {
            apply(&mut state, &decode(stored)?);
        }
        seq = last;
    }
}

/// The position of the newest stored state that this version accepts; 0 if the log is replayed.
pub(super) fn stored_state(store: &(impl Read + ?Sized)) -> Result<u64, store::Error> {
    #[derive(serde::Deserialize)]
    struct Head {
        layout: Option<Layout>,
    }
    let found = store.latest_snapshot()?.filter(|found| {
        let head = serde_json::from_slice::<Head>(&found.state).ok();
        head.and_then(|head| head.layout) == Some(Layout::TODAY)
    });
    Ok(found.map_or(0, |found| found.seq))
}

/// Where the log ends.
pub fn stored_head(store: &(impl Read + ?Sized)) -> Result<u64, store::Error> {
    Ok(store.head()?.last_seq)
}

/// A stored event in the core's format. Fails if it was written by a version that knows other events.
pub fn decode(stored: &StoredEvent) -> Result<Event, LoadError> {
    let bad = |reason: String| LoadError::Event { seq: stored.seq, kind: stored.kind.clone(), reason };
    let agent = stored.agent.as_ref().map(AgentName::new).transpose().map_err(|error| bad(error.to_string()))?;
    let task = stored.task.as_ref().map(TaskId::new).transpose().map_err(|error| bad(error.to_string()))?;
    Ok(Event {
        time: Time(stored.time_ms),
        run: RunId::new(&stored.run).map_err(|error| bad(error.to_string()))?,
        agent,
        task,
        epoch: stored.epoch.map(Epoch),
        body: Body::from_parts(&stored.kind, &stored.details).map_err(|error| bad(error.to_string()))?,
    })
}
