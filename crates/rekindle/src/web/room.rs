//! Places for connections. A connection that has shown the token keeps its place; one that has not gives it up to the next
//! when all are taken, the oldest first: a client that only connects keeps nobody out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::AbortHandle;

use super::cache::lock;

/// Connections at once: a browser opens six, a listener one.
const PLACES: usize = 512;

/// Whether a connection has shown the token.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked(Arc<AtomicBool>);

impl Checked {
    pub(super) fn admit(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_admitted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// All places.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<Mutex<Guests>>);

#[derive(Default)]
struct Guests {
    last: u64,
    /// By age; the handle is there as soon as the connection is served.
    by_age: BTreeMap<u64, (Checked, Option<AbortHandle>)>,
}

/// A connection's place, which is freed when this is dropped.
pub(super) struct Seat {
    room: Room,
    number: u64,
    /// Whether the connection has shown the token.
    pub known: Checked,
}

impl Room {
    /// A place, if necessary that of a stranger; `None` when all connections have shown the token.
    pub(super) fn enter(&self) -> Option<Seat> {
        let mut guests = lock(&self.0);
        if guests.by_age.len() >= PLACES {
            let stranger = guests.by_age.iter().find(|(_, (known, served))| served.is_some() && !known.is_admitted());
            let number = stranger.map(|(number, _)| *number)?;
            let (_, served) = guests.by_age.remove(&number)?;
            if let Some(served) = served {
                served.abort();
            }
        }
        guests.last += 1;
        let (number, known) = (guests.last, Checked::default());
        guests.by_age.insert(number, (known.clone(), None));
        Some(Seat { room: self.clone(), number, known })
    }

    /// Sets what serves a place, so that the place can be taken away.
    pub(super) fn served(&self, number: u64, by: AbortHandle) {
        if let Some((_, served)) = lock(&self.0).by_age.get_mut(&number) {
            *served = Some(by);
        }
    }
}

impl Seat {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.room.0).by_age.remove(&self.number);
    }
}
