//! Syncs the shadow log off the commit path: a thread sleeps until something was written, waits a second for more, and
//! syncs. It keeps track of what is written and what is synced; a failure is kept for the writer to act on.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::store::Error;

/// How long a record may stay unsynced: the database beside it is synced at every commit.
const DELAY: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    /// The segment being written, and the last event in it; `None` when all is synced.
    dirty: Option<(Arc<File>, u64)>,
    synced: u64,
    /// A sync failed; everything after `synced` may be lost.
    failed: bool,
    /// The thread is currently syncing, without the lock.
    syncing: bool,
    stop: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A handle on the syncing thread; it ends with [`Syncer::stop`].
#[derive(Clone)]
pub struct Syncer {
    shared: Arc<Shared>,
}

impl Syncer {
    pub fn start() -> Result<Syncer, Error> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), thread: Mutex::new(None) });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("shadow-sync".into()).spawn(move || run(&theirs));
        let thread = thread.map_err(|e| Error::Io(format!("cannot start a thread: {e}")))?;
        *lock(&shared.thread) = Some(thread);
        Ok(Syncer { shared })
    }

    /// Says that a segment was written up to an event.
    pub fn written(&self, file: &Arc<File>, seq: u64) {
        let mut state = lock(&self.shared.state);
        let fresh = state.dirty.is_none();
        state.dirty = Some((Arc::clone(file), seq));
        if fresh {
            self.shared.changed.notify_all();
        }
    }

    /// Records that everything up to an event is already on disk.
    pub fn already(&self, seq: u64) {
        lock(&self.shared.state).synced = seq;
    }

    /// Waits for a sync in progress, then syncs what was written since, in this thread.
    pub fn sync_now(&self) -> io::Result<()> {
        let state = lock(&self.shared.state);
        let waited = self.shared.changed.wait_while(state, |s| s.syncing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let Some((file, seq)) = state.dirty.take() else {
            return Ok(());
        };
        // The lock is held during the sync: no thread may believe that it is finished before it is.
        let result = file.sync_data();
        match result {
            Ok(()) => state.synced = seq,
            Err(_) => state.failed = true,
        }
        result
    }

    /// Returns and clears a failed sync: the last event known to be on disk.
    pub fn take_failure(&self) -> Option<u64> {
        let mut state = lock(&self.shared.state);
        std::mem::take(&mut state.failed).then_some(state.synced)
    }

    /// Ends the thread after a last sync.
    pub fn stop(&self) {
        lock(&self.shared.state).stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = lock(&self.shared.thread).take() {
            // The thread can only have panicked, and the process would have noticed that.
            drop(thread.join());
        }
    }
}

fn run(shared: &Shared) {
    let mut state = lock(&shared.state);
    while !state.stop {
        if state.dirty.is_none() {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let waited = shared.changed.wait_timeout_while(state, DELAY, |s| !s.stop);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state = sync_unlocked(shared, state);
    }
    drop(sync_unlocked(shared, state));
}

/// Syncs without holding the lock, so that the writer continues meanwhile.
fn sync_unlocked<'a>(shared: &'a Shared, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    let Some((file, seq)) = state.dirty.take() else {
        return state;
    };
    state.syncing = true;
    drop(state);
    let result = file.sync_data();
    state = lock(&shared.state);
    state.syncing = false;
    shared.changed.notify_all();
    match result {
        Ok(()) => state.synced = state.synced.max(seq),
        Err(_) => state.failed = true,
    }
    state
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
