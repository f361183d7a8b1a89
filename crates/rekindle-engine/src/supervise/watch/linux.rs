//! Linux: one epoll over shims' pidfds, one inotify for all bundle directories, and an eventfd for waking the thread.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rekindle_shim::bundle::{ERR, EXIT, OUT, SHIM};
use rekindle_shim::clock;
use rekindle_shim::identity::Process;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::POLL_MS;

/// Names a watched thing; never used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(pub(super) u64);

/// What the system reported.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// A file of this name in a bundle changed.
    Touched(Token, &'static str),
    Exited(Token),
    /// Something was missed: look at everything.
    Anything,
}

/// The eventfd's id in epoll.
const WAKE: u64 = u64::MAX;
/// The inotify's id in epoll.
const FILES: u64 = u64::MAX - 1;

/// Events taken from epoll at once.
const EVENTS_MAX: usize = 256;

/// File events read at once, in bytes: some thousand events.
const FILES_BYTES: usize = 256 << 10;

/// First and longest wait before asking again for a queue or an inotify that was refused: a person who closes an editor or
/// raises the limit is helped within a minute, and a machine that stays short is hardly asked.
const RENEW_MS: (u64, u64) = (1_000, 60_000);

#[derive(Debug)]
pub(super) struct EventSource {
    /// Unset if there are no descriptors for it; then bundles are only polled.
    queue: OnceLock<Queue>,
    /// Ends a wait when there is no queue.
    bell: (Mutex<bool>, Condvar),
    dirs: Mutex<Dirs>,
    renewal: Mutex<Renewal>,
}

#[derive(Debug)]
struct Queue {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// Each user has few of these, and every editor takes one.
    inotify: OnceLock<OwnedFd>,
}

/// When to ask again for what was refused.
#[derive(Debug)]
struct Renewal {
    at_ms: u64,
    wait_ms: u64,
}

#[derive(Debug, Default)]
struct Dirs {
    tokens: BTreeMap<i32, Token>,
    watches: BTreeMap<Token, i32>,
}

impl Queue {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let queue = Self { epoll, wake, inotify: OnceLock::new() };
        // Without it files are polled, and it is requested again.
        let _looked_at = queue.watch_files();
        Ok(queue)
    }

    /// Creates the inotify, unless there is one.
    fn watch_files(&self) -> io::Result<()> {
        if self.inotify.get().is_none() {
            let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            epoll::add(&self.epoll, &inotify, EventData::new_u64(FILES), EventFlags::IN)?;
            // Only one thread does this at a time: the caller holds the renewal lock.
            let _first = self.inotify.set(inotify);
        }
        Ok(())
    }
}

impl EventSource {
    pub(super) fn new() -> Self {
        let renewal = Renewal { at_ms: clock::monotonic_ms() + RENEW_MS.0, wait_ms: RENEW_MS.0 };
        Self {
            queue: Queue::new().ok().map_or_else(OnceLock::new, OnceLock::from),
            bell: (Mutex::new(false), Condvar::new()),
            dirs: Mutex::default(),
            renewal: Mutex::new(renewal),
        }
    }

    /// Asks again for what was refused, with ever longer pauses.
    fn renew(&self) {
        if self.queue.get().is_some_and(|queue| queue.inotify.get().is_some()) {
            return;
        }
        let now_ms = clock::monotonic_ms();
        let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ms < renewal.at_ms {
            return;
        }
        renewal.wait_ms = (2 * renewal.wait_ms).min(RENEW_MS.1);
        renewal.at_ms = now_ms + renewal.wait_ms;
        match self.queue.get() {
            Some(queue) => drop(queue.watch_files()),
            // A thread that waits on the bell now wakes within a poll interval, and then waits on the queue.
            None => drop(Queue::new().map(|queue| self.queue.set(queue))),
        }
    }

    pub(super) fn wake(&self) {
        match self.queue.get() {
            // A full counter means that it is already awake.
            Some(queue) => drop(rustix::io::write(&queue.wake, &1_u64.to_ne_bytes())),
            None => {
                *self.bell.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                self.bell.1.notify_all();
            }
        }
    }

    pub(super) fn add_dir(&self, token: Token, dir: &Path) -> io::Result<()> {
        let flags = WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        self.renew();
        let inotify = self.queue.get().and_then(|queue| queue.inotify.get()).ok_or_else(no_queue)?;
        // Held over the call, so that no event of the new watch is read before its token is known.
        let mut dirs = self.dirs();
        let watch = inotify::add_watch(inotify, dir, flags)?;
        dirs.tokens.insert(watch, token);
        dirs.watches.insert(token, watch);
        Ok(())
    }

    pub(super) fn remove_dir(&self, token: Token) {
        let mut dirs = self.dirs();
        let inotify = self.queue.get().and_then(|queue| queue.inotify.get());
        if let (Some(watch), Some(inotify)) = (dirs.watches.remove(&token), inotify) {
            dirs.tokens.remove(&watch);
            // Fails when the directory is gone, and the watch with it.
            let _ = inotify::remove_watch(inotify, watch);
        }
    }

    pub(super) fn add_process(&self, token: Token, process: &Process) -> io::Result<()> {
        let queue = self.queue.get().ok_or_else(no_queue)?;
        match epoll::add(&queue.epoll, process, EventData::new_u64(token.0), EventFlags::IN) {
            // It is already watched.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn remove_process(&self, process: &Process) {
        if let Some(queue) = self.queue.get() {
            // Closing the descriptor removes it as well.
            let _ = epoll::delete(&queue.epoll, process);
        }
    }

    /// Waits for events, at most this long.
    pub(super) fn wait(&self, timeout_ms: Option<u64>, signs: &mut Vec<WatchEvent>) {
        let Some(queue) = self.queue.get() else { return self.wait_for_bell(timeout_ms) };
        let timeout = timeout_ms.map(|ms| Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from((ms % 1000) * 1_000_000).unwrap_or(0),
        });
        let mut events = Vec::with_capacity(EVENTS_MAX);
        if epoll::wait(&queue.epoll, spare_capacity(&mut events), timeout.as_ref()).is_err() {
            return;
        }
        for event in events {
            match event.data.u64() {
                WAKE => drop(rustix::io::read(&queue.wake, &mut [0; 8])),
                FILES => queue.inotify.get().into_iter().for_each(|inotify| self.read_files(inotify, signs)),
                token => signs.push(WatchEvent::Exited(Token(token))),
            }
        }
    }

    fn wait_for_bell(&self, timeout_ms: Option<u64>) {
        let rung = self.bell.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = Duration::from_millis(timeout_ms.unwrap_or(POLL_MS));
        let waited = self.bell.1.wait_timeout_while(rung, wait, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    fn read_files(&self, inotify: &OwnedFd, signs: &mut Vec<WatchEvent>) {
        let mut buffer = vec![MaybeUninit::uninit(); FILES_BYTES];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        let dirs = self.dirs();
        loop {
            let Ok(event) = reader.next() else { return };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                signs.push(WatchEvent::Anything);
            }
            let name = event.file_name().and_then(|name| name.to_str().ok());
            let known = [OUT, ERR, SHIM, EXIT].into_iter().find(|known| Some(*known) == name);
            if let (Some(name), Some(token)) = (known, dirs.tokens.get(&event.wd())) {
                signs.push(WatchEvent::Touched(*token, name));
            }
            // The rest stays readable, so the next wait comes back for it.
            if reader.is_buffer_empty() {
                return;
            }
        }
    }

    fn dirs(&self) -> MutexGuard<'_, Dirs> {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_queue() -> io::Error {
    io::Error::from_raw_os_error(Errno::MFILE.raw_os_error())
}
