//! One thread that watches every bundle: ends, records and growth become observations in a bounded channel.
//!
//! It never blocks on the receiver and never floods it: an observation that does not fit waits here, and growth of a stream
//! is reported once until the receiver asks again. The receiver decides what an observation means; it probes the bundle,
//! because the files are the truth and this is only the bell. The part for each operating system, which may be as coarse as
//! "look at everything", is in `source`.
//!
//! Where the system has no watch or descriptor left, a bundle is polled every [`POLL_MS`] instead, until it can be watched:
//! a live agent is never left without a watch because the machine is short of something.

#[cfg(target_os = "linux")]
#[path = "watch/linux.rs"]
mod source;
#[cfg(target_os = "macos")]
#[path = "watch/macos.rs"]
mod source;
mod state;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rekindle_shim::bundle::ShimRecord;
use rekindle_shim::clock;

use self::source::{EventSource, WatchEvent};
use self::state::{Entry, Flushed, State};
use super::Launched;

/// How long an observation that did not fit waits before it is sent again.
const RETRY_MS: u64 = 10;

/// Poll interval for a bundle that cannot be watched: a person does not notice it, and it costs next to nothing.
pub const POLL_MS: u64 = 250;

/// Names a bundle for its watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleKey(pub u64);

/// One of an agent's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    Out,
    Err,
}

/// A reason to inspect a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The shim has written its record of itself and its agent. Reported once.
    Recorded(BundleKey),
    /// A stream has grown since the receiver last asked about it. Not repeated until [`Watch::rearm`].
    Grew(BundleKey, Stream),
    /// The exit record is there, or the shim is gone without one: probe. Reported once.
    Ended(BundleKey),
}

/// The key is in use: the bundle is watched already.
#[derive(Debug, thiserror::Error)]
#[error("bundle {} is already watched", .0.0)]
pub struct Twice(pub BundleKey);

/// The watching thread. Dropping it ends the thread; the shims are not touched.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    source: EventSource,
    state: Mutex<State>,
    stopping: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in the thread aborts nothing here: the state is flags, each change is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Starts watching, for a receiver whose channel is bounded. If the system gives no event queue, it polls. Fails when
    /// the system refuses a thread.
    pub fn start(observations: SyncSender<Observation>) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { source: EventSource::new(), state: Mutex::default(), stopping: AtomicBool::new(false) });
        let for_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("watch".to_owned()).spawn(move || run(&for_thread, &observations))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches a bundle whose shim this process started, and reaps the shim in the end. Fails when the key is in use.
    pub fn add_launched(&self, key: BundleKey, dir: &Path, launched: Launched) -> Result<(), Twice> {
        self.add(key, Entry::launched(dir, launched.shim))
    }

    /// The same for a shim that could not be pinned, by its process id.
    pub fn add_unpinned(&self, key: BundleKey, dir: &Path, pid: u32) -> Result<(), Twice> {
        self.add(key, Entry::unpinned(dir, pid))
    }

    /// Watches a bundle whose shim another process started. Without a record, the shim is found once it has written one.
    pub fn add_adopted(&self, key: BundleKey, dir: &Path, record: Option<&ShimRecord>) -> Result<(), Twice> {
        self.add(key, Entry::adopted(dir, record))
    }

    /// Asks for another report, after a moment, of an end whose probe was inconclusive.
    pub fn look_again(&self, key: BundleKey) {
        self.shared.state().look_again(key);
        self.shared.source.wake();
    }

    /// Whether the system refused to watch one of the bundles, so that it is polled instead.
    pub fn lacks_watches(&self) -> bool {
        self.shared.state().lacks_watches()
    }

    /// The exit code of a shim of ours that was reaped, while its bundle is watched.
    pub fn shim_code(&self, key: BundleKey) -> Option<i32> {
        self.shared.state().code(key)
    }

    /// Stops watching a bundle. A shim of ours is still reaped when it ends.
    pub fn remove(&self, key: BundleKey) {
        self.shared.state().remove(key, &self.shared.source);
    }

    /// Asks for a new report when the stream has grown. Call it before reading to the end, then nothing written after that
    /// read goes unreported.
    pub fn rearm(&self, key: BundleKey, stream: Stream) {
        if self.shared.state().rearm(key, stream) {
            self.shared.source.wake();
        }
    }

    fn add(&self, key: BundleKey, entry: Entry) -> Result<(), Twice> {
        self.shared.state().add(key, entry, &self.shared.source)?;
        self.shared.source.wake();
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.source.wake();
        if let Some(thread) = self.thread.take() {
            // It never panics by design; if it did, there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, observations: &SyncSender<Observation>) {
    let mut signs: Vec<WatchEvent> = Vec::new();
    while !shared.stopping.load(Ordering::Acquire) {
        let (flushed, polls) = {
            let mut state = shared.state();
            (state.flush(observations), state.polls())
        };
        let timeout_ms = match flushed {
            Flushed::All => polls.then_some(POLL_MS),
            Flushed::Full => Some(RETRY_MS),
            Flushed::Disconnected => return,
        };
        shared.source.wait(timeout_ms, &mut signs);
        let mut state = shared.state();
        for sign in signs.drain(..) {
            state.note(sign, &shared.source);
        }
        state.poll(clock::monotonic_ms(), &shared.source);
    }
}
