//! Watches the programs in which people work on tasks: one thread each, which reports when its program has ended.

use std::sync::Arc;

use rekindle_core::ids::TaskId;
use rekindle_core::steering::PersonProcess;

use super::Shared;
use crate::person::{self, WorkedOn};
use crate::world::Message;

/// Waits in the background for a person's program to end, then reports that with what changed.
pub(super) fn watch_in_background(shared: &Arc<Shared>, task: TaskId, by: PersonProcess, place: WorkedOn) {
    if !shared.people.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(by.pid) {
        return;
    }
    let worker = Arc::clone(shared);
    let watch = move || {
        person::wait_for_end(&by);
        worker.people.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&by.pid);
        let changed = place.changed(worker.work.as_ref());
        // If the coordinator exits meanwhile, the next one takes over.
        let _leaving = worker.messages.send(Message::PersonLeft { task, by, changed });
    };
    // Without a thread the next coordinator looks again.
    let _watched_later = std::thread::Builder::new().name("person".to_owned()).spawn(watch);
}
