//! What is known about the watched bundles and what is still to be told. Bounded by their number: every kind of
//! observation waits at most once per bundle.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError};

use rekindle_shim::bundle::{Bundle, ERR, EXIT, OUT, SHIM, ShimRecord};
use rekindle_shim::identity::{Opened, Process};

use super::source::{Sign, Source, Token};
use super::{BundleKey, Observation, Stream, WatchError};

/// A bundle being watched.
#[derive(Debug)]
pub(super) struct Entry {
    dir: PathBuf,
    shim: Option<Process>,
    /// Ours to reap.
    child: bool,
    /// The shim was already gone when it was looked for.
    gone: bool,
    token: Token,
    recorded: bool,
    ended: bool,
    out: Growth,
    err: Growth,
}

/// What is known about one stream.
#[derive(Debug, Default)]
struct Growth {
    /// Its length at the last look.
    bytes: u64,
    /// It has grown and nobody was told.
    dirty: bool,
    /// Someone was told and has not asked again.
    told: bool,
    /// The telling waits in the queue.
    queued: bool,
}

impl Entry {
    pub(super) fn launched(dir: &Path, shim: Process) -> Self {
        Self { child: true, shim: Some(shim), ..Self::bare(dir) }
    }

    pub(super) fn adopted(dir: &Path, record: Option<&ShimRecord>) -> io::Result<Self> {
        let mut entry = Self::bare(dir);
        if let Some(record) = record {
            entry.find(record)?;
        }
        Ok(entry)
    }

    fn bare(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            shim: None,
            child: false,
            gone: false,
            token: Token::default(),
            recorded: false,
            ended: false,
            out: Growth::default(),
            err: Growth::default(),
        }
    }

    /// Pins the recorded shim. For watching, likeness is enough: nothing is signalled here.
    fn find(&mut self, record: &ShimRecord) -> io::Result<()> {
        match record.shim.open()? {
            Opened::Ours(shim) | Opened::Likely(shim) => self.shim = Some(shim),
            Opened::Gone | Opened::OtherBoot | Opened::OtherNamespace => self.gone = true,
        }
        Ok(())
    }

    fn growth(&mut self, stream: Stream) -> &mut Growth {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

/// How the telling went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is told.
    All,
    /// The channel is full.
    Full,
    /// Nobody listens any more.
    Disconnected,
}

/// All watched bundles.
#[derive(Debug, Default)]
pub(super) struct State {
    entries: BTreeMap<BundleKey, Entry>,
    tokens: BTreeMap<Token, BundleKey>,
    next_token: u64,
    waiting: VecDeque<Observation>,
    /// Our children that are no longer watched and not yet reaped.
    leaving: BTreeMap<Token, Process>,
}

impl State {
    pub(super) fn add(&mut self, key: BundleKey, mut entry: Entry, source: &Source) -> Result<(), WatchError> {
        if self.entries.contains_key(&key) {
            return Err(WatchError::Twice(key));
        }
        self.next_token += 1;
        entry.token = Token(self.next_token);
        source.add_dir(entry.token, &entry.dir)?;
        if let Some(shim) = &entry.shim
            && let Err(error) = source.add_process(entry.token, shim)
        {
            source.remove_dir(entry.token);
            return Err(error.into());
        }
        self.tokens.insert(entry.token, key);
        self.entries.insert(key, entry);
        // What happened before the watch was set is seen by looking.
        self.look(key, source);
        Ok(())
    }

    pub(super) fn remove(&mut self, key: BundleKey, source: &Source) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        source.remove_dir(entry.token);
        self.tokens.remove(&entry.token);
        self.waiting.retain(|observation| observation_key(*observation) != key);
        let Some(shim) = entry.shim else { return };
        let unreaped = entry.child && !matches!(shim.reap_child(), Ok(true) | Err(_));
        if unreaped {
            self.leaving.insert(entry.token, shim);
        } else {
            source.remove_process(&shim);
        }
    }

    /// Whether something came to be told.
    pub(super) fn rearm(&mut self, key: BundleKey, stream: Stream) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        let growth = entry.growth(stream);
        growth.told = false;
        self.tell_growth(key, stream)
    }

    pub(super) fn note(&mut self, sign: Sign, source: &Source) {
        match sign {
            Sign::Touched(token, name) => {
                let Some(key) = self.tokens.get(&token).copied() else {
                    return;
                };
                match name {
                    OUT => self.grew(key, Stream::Out),
                    ERR => self.grew(key, Stream::Err),
                    _ => self.look(key, source),
                }
            }
            Sign::Exited(token) => self.exited(token, source),
            Sign::Anything => {
                for key in self.entries.keys().copied().collect::<Vec<_>>() {
                    self.look(key, source);
                }
                for token in self.leaving.keys().copied().collect::<Vec<_>>() {
                    self.exited(token, source);
                }
            }
        }
    }

    /// Tells what waits, until it does not fit.
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

    /// Compares the bundle with what is known of it.
    fn look(&mut self, key: BundleKey, source: &Source) {
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
            meet(entry, source);
        }
        let exited = entry.gone || entry.shim.as_ref().is_some_and(Process::exited);
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

    fn exited(&mut self, token: Token, source: &Source) {
        if let Some(shim) = self.leaving.get(&token) {
            if !matches!(shim.reap_child(), Ok(false)) {
                source.remove_process(shim);
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
            if entry.child {
                // Ended and ours: there is nothing to wait for.
                let _ = shim.reap_child();
            }
        }
        entry.gone = true;
        if !entry.ended {
            entry.ended = true;
            self.waiting.push_back(Observation::Ended(key));
        }
    }
}

/// Pins the shim of a bundle that was adopted before it had a record.
fn meet(entry: &mut Entry, source: &Source) {
    if entry.shim.is_some() || entry.gone {
        return;
    }
    let record = Bundle::open(&entry.dir).ok().flatten().and_then(|bundle| bundle.shim().ok().flatten());
    // An unreadable record leaves the exit record as the only bell; the probe will say what is wrong.
    let Some(record) = record else { return };
    if entry.find(&record).is_ok()
        && let Some(shim) = &entry.shim
        && source.add_process(entry.token, shim).is_err()
    {
        entry.shim = None;
    }
}

fn observation_key(observation: Observation) -> BundleKey {
    match observation {
        Observation::Recorded(key) | Observation::Grew(key, _) | Observation::Ended(key) => key,
    }
}
