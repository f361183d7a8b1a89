//! What is known about the watched bundles and what is still to be reported. Bounded by their number: every kind of
//! observation waits at most once per bundle.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError};

use rekindle_shim::bundle::{Bundle, ERR, EXIT, OUT, SHIM, ShimRecord};
use rekindle_shim::identity::{self, Opened, Process, Reaped};
use rekindle_shim::lock;
use rekindle_shim::refusal::is_refused;

use super::source::{EventSource, Token, WatchEvent};
use super::{BundleKey, Observation, POLL_MS, Stream, Twice};

#[derive(Debug)]
pub(super) struct Entry {
    dir: PathBuf,
    shim: Option<Process>,
    /// The process id of our child, which we must reap, pinned or not.
    child: Option<u32>,
    /// The shim was already gone when we tried to open it.
    gone: bool,
    /// The bundle was seen held by a shim: once it is free, that shim is gone.
    held: bool,
    /// The system watches the directory.
    dir_watched: bool,
    /// The system had no watch left for the directory.
    dir_refused: bool,
    /// The system reports the end of the shim.
    process_watched: bool,
    /// The exit code of a shim of ours.
    code: Option<i32>,
    token: Token,
    recorded: bool,
    ended: bool,
    out: Growth,
    err: Growth,
}

/// What is known about one stream.
#[derive(Debug, Default)]
struct Growth {
    /// Its length at the last check.
    bytes: u64,
    /// It has grown since the last report.
    dirty: bool,
    /// Growth was reported, and the receiver has not asked again.
    told: bool,
    /// The report is waiting to be sent.
    queued: bool,
}

impl Entry {
    pub(super) fn launched(dir: &Path, shim: Process) -> Self {
        Self { child: Some(shim.id().pid), shim: Some(shim), held: true, ..Self::bare(dir) }
    }

    /// A child that could not be pinned: the lock was handed to it, so its bundle shows when it is gone.
    pub(super) fn unpinned(dir: &Path, pid: u32) -> Self {
        Self { child: Some(pid), held: true, ..Self::bare(dir) }
    }

    pub(super) fn adopted(dir: &Path, record: Option<&ShimRecord>) -> Self {
        let mut entry = Self::bare(dir);
        if let Some(record) = record {
            // Whatever the system does not answer now is polled for later.
            let _asked_again = entry.find(record);
        }
        entry
    }

    fn bare(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            shim: None,
            child: None,
            gone: false,
            held: false,
            dir_watched: false,
            dir_refused: false,
            process_watched: false,
            code: None,
            token: Token::default(),
            recorded: false,
            ended: false,
            out: Growth::default(),
            err: Growth::default(),
        }
    }

    /// Pins the recorded shim. For watching, a likely match is enough: nothing is signalled here.
    fn find(&mut self, record: &ShimRecord) -> io::Result<()> {
        match record.shim.open()? {
            Opened::Ours(shim) | Opened::Likely(shim) => self.shim = Some(shim),
            Opened::Gone | Opened::OtherBoot | Opened::OtherNamespace => self.gone = true,
        }
        Ok(())
    }

    /// Whether it has to be polled, because the system does not report everything about it.
    fn is_polled(&self) -> bool {
        let told = self.dir_watched && (self.process_watched || self.gone);
        !self.ended && !told
    }

    /// Asks the system to watch what it does not watch so far.
    fn attend(&mut self, source: &EventSource) {
        if !self.dir_watched {
            let watched = source.add_dir(self.token, &self.dir);
            self.dir_refused = watched.as_ref().is_err_and(is_refused);
            self.dir_watched = watched.is_ok();
        }
        if self.shim.is_none() && !self.gone {
            self.meet();
        }
        if let Some(shim) = self.shim.as_ref().filter(|_| !self.process_watched) {
            self.process_watched = source.add_process(self.token, shim).is_ok();
        }
    }

    /// Pins a shim that could not be pinned before, or had no record yet.
    fn meet(&mut self) {
        if let Some(pid) = self.child {
            self.shim = Process::of_child(pid).ok();
            return;
        }
        let record = Bundle::open(&self.dir).ok().flatten().and_then(|bundle| bundle.shim().ok().flatten());
        if let Some(record) = record {
            let _asked_again = self.find(&record);
        }
    }

    /// Whether the shim is gone, as far as that can be known.
    fn has_exited(&mut self) -> bool {
        if self.gone || self.shim.as_ref().is_some_and(Process::exited) {
            return true;
        }
        if self.shim.is_some() {
            return false;
        }
        if let Some(pid) = self.child
            && let Some(reaped) = reap(pid)
        {
            (self.child, self.code) = (None, reaped);
            return true;
        }
        // Without a pin the lock shows it: the kernel releases it with its last holder.
        match Bundle::open(&self.dir) {
            Ok(Some(bundle)) => match lock::is_held(&bundle) {
                Ok(true) => {
                    self.held = true;
                    false
                }
                Ok(false) => self.held,
                Err(_) => false,
            },
            Ok(None) => true,
            Err(_) => false,
        }
    }

    fn growth(&mut self, stream: Stream) -> &mut Growth {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    All,
    Full,
    /// The receiver is gone.
    Disconnected,
}

#[derive(Debug, Default)]
pub(super) struct State {
    entries: BTreeMap<BundleKey, Entry>,
    tokens: BTreeMap<Token, BundleKey>,
    next_token: u64,
    waiting: VecDeque<Observation>,
    /// Our children that are no longer watched and not yet reaped, with their process ids and pins.
    leaving: BTreeMap<Token, (u32, Option<Process>)>,
    /// When bundles that the system does not watch were last polled.
    polled_at_ms: u64,
    /// The system had no watch left when one was last requested.
    lacking: bool,
}

impl State {
    pub(super) fn add(&mut self, key: BundleKey, mut entry: Entry, source: &EventSource) -> Result<(), Twice> {
        if self.entries.contains_key(&key) {
            return Err(Twice(key));
        }
        self.next_token += 1;
        entry.token = Token(self.next_token);
        entry.attend(source);
        self.tokens.insert(entry.token, key);
        self.entries.insert(key, entry);
        // This finds what happened before the watch was set.
        self.look(key, source);
        Ok(())
    }

    pub(super) fn remove(&mut self, key: BundleKey, source: &EventSource) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        source.remove_dir(entry.token);
        self.tokens.remove(&entry.token);
        self.waiting.retain(|observation| observation_key(*observation) != key);
        let unreaped = entry.child.filter(|pid| reap(*pid).is_none());
        if let Some(pid) = unreaped {
            self.leaving.insert(entry.token, (pid, entry.shim));
        } else if let Some(shim) = &entry.shim {
            source.remove_process(shim);
        }
    }

    /// Reports the end of a bundle again at the next poll.
    pub(super) fn look_again(&mut self, key: BundleKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.ended = false;
            // Poll it, even if the system watches it: the system has already reported its part.
            (entry.dir_watched, entry.process_watched) = (false, false);
        }
    }

    pub(super) fn code(&self, key: BundleKey) -> Option<i32> {
        self.entries.get(&key)?.code
    }

    /// Whether bundles are polled for lack of a watch. With no bundle at all, the last answer stands.
    pub(super) fn lacks_watches(&mut self) -> bool {
        if !self.entries.is_empty() {
            self.lacking = self.entries.values().any(|entry| entry.dir_refused);
        }
        self.lacking
    }

    /// Whether anything has to be polled because the system does not watch it.
    pub(super) fn polls(&self) -> bool {
        let unpinned = self.leaving.values().any(|(_, shim)| shim.is_none());
        unpinned || self.entries.values().any(Entry::is_polled)
    }

    /// Polls what the system does not watch, unless that was done a moment ago, and asks the system again to watch it.
    pub(super) fn poll(&mut self, now_ms: u64, source: &EventSource) {
        if now_ms < self.polled_at_ms + POLL_MS || !self.polls() {
            return;
        }
        self.polled_at_ms = now_ms;
        let polled = self.entries.iter().filter(|(_, entry)| entry.is_polled());
        for key in polled.map(|(key, _)| *key).collect::<Vec<_>>() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.attend(source);
            }
            self.look(key, source);
        }
        self.leaving.retain(|_, (pid, shim)| shim.is_some() || reap(*pid).is_none());
    }

    /// Asks for a new report of growth; returns whether there is one to send.
    pub(super) fn rearm(&mut self, key: BundleKey, stream: Stream) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        let growth = entry.growth(stream);
        growth.told = false;
        self.tell_growth(key, stream)
    }

    pub(super) fn note(&mut self, sign: WatchEvent, source: &EventSource) {
        match sign {
            WatchEvent::Touched(token, name) => {
                let Some(key) = self.tokens.get(&token).copied() else {
                    return;
                };
                match name {
                    OUT => self.grew(key, Stream::Out),
                    ERR => self.grew(key, Stream::Err),
                    _ => self.look(key, source),
                }
            }
            WatchEvent::Exited(token) => self.exited(token, source),
            WatchEvent::Anything => {
                for key in self.entries.keys().copied().collect::<Vec<_>>() {
                    self.look(key, source);
                }
                for token in self.leaving.keys().copied().collect::<Vec<_>>() {
                    self.exited(token, source);
                }
            }
        }
    }

    /// Sends the waiting observations until the channel is full.
    pub(super) fn flush(&mut self, observations: &SyncSender<Observation>) -> Flushed {
        while let Some(next) = self.waiting.front().copied() {
            match observations.try_send(next) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => return Flushed::Full,
                Err(TrySendError::Disconnected(_)) => return Flushed::Disconnected,
            }
            self.waiting.pop_front();
            if let Observation::Grew(key, stream) = next
                && let Some(entry) = self.entries.get_mut(&key)
            {
                let growth = entry.growth(stream);
                growth.queued = false;
                growth.dirty = false;
                growth.told = true;
            }
        }
        Flushed::All
    }

    fn grew(&mut self, key: BundleKey, stream: Stream) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.growth(stream).dirty = true;
            self.tell_growth(key, stream);
        }
    }

    fn tell_growth(&mut self, key: BundleKey, stream: Stream) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        let growth = entry.growth(stream);
        if !growth.dirty || growth.told || growth.queued {
            return false;
        }
        growth.queued = true;
        self.waiting.push_back(Observation::Grew(key, stream));
        true
    }

    /// Compares the bundle with what is known about it.
    fn look(&mut self, key: BundleKey, source: &EventSource) {
        for (stream, name) in [(Stream::Out, OUT), (Stream::Err, ERR)] {
            let Some(entry) = self.entries.get_mut(&key) else {
                return;
            };
            let bytes = std::fs::symlink_metadata(entry.dir.join(name)).map_or(0, |metadata| metadata.len());
            let growth = entry.growth(stream);
            let changed = bytes != growth.bytes;
            growth.bytes = bytes;
            if changed {
                self.grew(key, stream);
            }
        }
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if !entry.recorded && entry.dir.join(SHIM).exists() {
            entry.recorded = true;
            self.waiting.push_back(Observation::Recorded(key));
            entry.attend(source);
        }
        let exited = entry.has_exited();
        let ended = exited || entry.dir.join(EXIT).exists();
        let token = entry.token;
        if ended && !entry.ended {
            entry.ended = true;
            self.waiting.push_back(Observation::Ended(key));
        }
        if exited {
            self.exited(token, source);
        }
    }

    fn exited(&mut self, token: Token, source: &EventSource) {
        if let Some((pid, shim)) = self.leaving.get(&token) {
            if reap(*pid).is_some() {
                shim.iter().for_each(|shim| source.remove_process(shim));
                self.leaving.remove(&token);
            }
            return;
        }
        let Some(key) = self.tokens.get(&token).copied() else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if let Some(shim) = entry.shim.take() {
            source.remove_process(&shim);
        }
        // It has ended and is our child: reaping it does not block.
        if let Some(code) = entry.child.take().and_then(reap) {
            entry.code = code;
        }
        entry.gone = true;
        if !entry.ended {
            entry.ended = true;
            self.waiting.push_back(Observation::Ended(key));
        }
    }
}

/// Reaps our child: returns its exit code, if it had one; `None` while it lives. A child that cannot be reaped has ended
/// too.
fn reap(pid: u32) -> Option<Option<i32>> {
    match identity::reap(pid) {
        Ok(reaped) => reaped.map(|Reaped(code)| code),
        Err(_) => Some(None),
    }
}

fn observation_key(observation: Observation) -> BundleKey {
    match observation {
        Observation::Recorded(key) | Observation::Grew(key, _) | Observation::Ended(key) => key,
    }
}
