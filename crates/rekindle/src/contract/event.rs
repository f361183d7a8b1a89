//! An event, for programs.

use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;
use serde::Serialize;
use serde_json::Value;

use crate::ui::stamp;

#[derive(Serialize)]
pub(crate) struct EventJson<'a> {
    seq: u64,
    time: String,
    run: &'a str,
    kind: &'a str,
    agent: Option<&'a str>,
    task: Option<&'a str>,
    epoch: Option<u64>,
    details: Value,
    hash: String,
}

impl<'a> EventJson<'a> {
    /// The JSON of an event in the log.
    pub(crate) fn of(event: &'a StoredEvent) -> Self {
        Self {
            seq: event.seq,
            time: stamp(Time(event.time_ms)),
            run: &event.run,
            kind: &event.kind,
            agent: event.agent.as_deref(),
            task: event.task.as_deref(),
            epoch: event.epoch,
            details: serde_json::from_str(&event.details).unwrap_or_default(),
            hash: event.hash.to_string(),
        }
    }
}
