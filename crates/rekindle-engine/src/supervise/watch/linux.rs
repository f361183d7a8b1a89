//! Linux: one epoll over shims' pidfds, one inotify for all bundle directories, and an eventfd to be woken by.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rekindle_shim::bundle::{ERR, EXIT, OUT, SHIM};
use rekindle_shim::identity::Process;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

/// Names a watched thing; never used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(pub(super) u64);

/// What the system said.
#[derive(Debug)]
pub(super) enum Sign {
    /// A file of this name in a bundle changed.
    Touched(Token, &'static str),
    /// A shim ended.
    Exited(Token),
    /// Something was missed: look at everything.
    Anything,
}

/// The eventfd's place in epoll; tokens begin above.
const WAKE: u64 = u64::MAX;
/// The inotify's place in epoll.
const FILES: u64 = u64::MAX - 1;

/// Events taken from epoll at once.
const EVENTS_MAX: usize = 256;

/// Events of files taken in one turn, in bytes: some thousand.
const FILES_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Source {
    epoll: OwnedFd,
    inotify: OwnedFd,
    wake: OwnedFd,
    dirs: Mutex<Dirs>,
}

#[derive(Debug, Default)]
struct Dirs {
    tokens: BTreeMap<i32, Token>,
    watches: BTreeMap<Token, i32>,
}

impl Source {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &inotify, EventData::new_u64(FILES), EventFlags::IN)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, inotify, wake, dirs: Mutex::default() })
    }

    pub(super) fn wake(&self) {
        // Full means that it is already awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    pub(super) fn add_dir(&self, token: Token, dir: &Path) -> io::Result<()> {
        let flags = WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        // Held over the call, so that no event of the new watch is read before it has a name.
        let mut dirs = self.dirs();
        let watch = inotify::add_watch(&self.inotify, dir, flags)?;
        dirs.tokens.insert(watch, token);
        dirs.watches.insert(token, watch);
        Ok(())
    }

    pub(super) fn remove_dir(&self, token: Token) {
        let mut dirs = self.dirs();
        if let Some(watch) = dirs.watches.remove(&token) {
            dirs.tokens.remove(&watch);
            // Fails when the directory is gone, and the watch with it.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    pub(super) fn add_process(&self, token: Token, process: &Process) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, process, EventData::new_u64(token.0), EventFlags::IN)?)
    }

    pub(super) fn remove_process(&self, process: &Process) {
        // Closing the descriptor removes it as well.
        let _ = epoll::delete(&self.epoll, process);
    }

    /// Waits for signs, at most so long.
    pub(super) fn wait(&self, timeout_ms: Option<u64>, signs: &mut Vec<Sign>) {
        let timeout = timeout_ms.map(|ms| Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from((ms % 1000) * 1_000_000).unwrap_or(0),
        });
        let mut events = Vec::with_capacity(EVENTS_MAX);
        if epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()).is_err() {
            return;
        }
        for event in events {
            match event.data.u64() {
                WAKE => drop(rustix::io::read(&self.wake, &mut [0; 8])),
                FILES => self.read_files(signs),
                token => signs.push(Sign::Exited(Token(token))),
            }
        }
    }

    fn read_files(&self, signs: &mut Vec<Sign>) {
        let mut buffer = vec![MaybeUninit::uninit(); FILES_BYTES];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let dirs = self.dirs();
        loop {
            let Ok(event) = reader.next() else { return };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                signs.push(Sign::Anything);
            }
            let name = event.file_name().and_then(|name| name.to_str().ok());
            let known = [OUT, ERR, SHIM, EXIT].into_iter().find(|known| Some(*known) == name);
            if let (Some(name), Some(token)) = (known, dirs.tokens.get(&event.wd())) {
                signs.push(Sign::Touched(*token, name));
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
