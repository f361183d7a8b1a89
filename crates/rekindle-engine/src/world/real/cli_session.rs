//! What is particular to an agent's program, through its adapter: its reader, its transcript, messages to it.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rekindle_core::activity::Transcript;
use rekindle_core::ids::AttemptId;
use rekindle_shim::atomic;
use rekindle_shim::bundle::Bundle;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::agents::{Adapter, OWN_DIR, Place, Program};
use crate::supervise;
use crate::world::Message;

/// How long a shim may take to accept a message.
const MESSAGE_BUDGET: Duration = Duration::from_secs(5);

/// Messages that did not arrive are repeated this often; one that arrived is not delivered twice.
const MESSAGE_TRIES: u32 = 3;

/// File in a bundle that records how long the transcript of a resumed session already was.
const TRANSCRIPT_FROM: &str = "transcript.json";

/// How much of a transcript's end is compared with what was read from the output: calls that may be missing are among the
/// last.
const COMPARED_BYTES: usize = 8 * 1024 * 1024;

/// The transcript of a session as it was before the attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    path: PathBuf,
    bytes: u64,
}

/// A transcript, and where this attempt's part of it begins.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    path: PathBuf,
    from: u64,
}

impl Shared {
    /// The adapter and the settings of an `[agents.NAME]`.
    pub(super) fn adapter(&self, cli: &str) -> Option<(&'static dyn Adapter, &Program)> {
        self.programs.agents.get(cli).map(|program| (program.kind.0, program))
    }

    /// The transcript of a session, once it exists.
    pub(super) fn find_transcript(&self, attempt: AttemptId, cli: &str, session: &str) -> Option<Tail> {
        let (adapter, program) = self.adapter(cli)?;
        let bundle = self.bundle(attempt);
        // The directory it really ran in: it may have had its own workspace.
        let spec = Bundle::open(&bundle).ok().flatten().and_then(|bundle| bundle.spec().ok().flatten());
        let workspace = spec.map_or_else(|| self.workspace.clone(), |spec| spec.cwd);
        let place = Place { program, workspace: &workspace, bundle: &bundle };
        let path = adapter.transcript(&place, session)?;
        let before = std::fs::read(bundle.join(OWN_DIR).join(TRANSCRIPT_FROM)).ok();
        let before: Option<Before> = before.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let from = before.filter(|before| before.path == path).map_or(0, |before| before.bytes);
        Some(Tail { path, from })
    }
}

/// Records how long the transcript of a session is before it is resumed: what follows belongs to the new attempt.
pub(super) fn note_transcript(adapter: &dyn Adapter, place: &Place<'_>, session: &str) {
    let Some(path) = adapter.transcript(place, session) else { return };
    let bytes = path.metadata().map_or(0, |found| found.len());
    let Ok(record) = serde_json::to_vec(&Before { path, bytes }) else { return };
    // Without it the whole transcript is read: old facts are then counted once more, nothing is lost.
    let _counted_again = atomic::save(&place.bundle.join(OWN_DIR), TRANSCRIPT_FROM, &record);
}

impl Tail {
    /// Reads from an offset within this attempt's part.
    pub(super) fn read(&self, offset: u64, limit: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let file = super::open_plain(&self.path)?;
        let start = self.from.saturating_add(offset);
        let there = file.metadata()?.len().saturating_sub(start);
        let wanted = usize::try_from(there).unwrap_or(limit).min(limit);
        into.resize(wanted, 0);
        let mut read = 0;
        while read < wanted {
            match file.read_at(&mut into[read..], start + read as u64)? {
                0 => break,
                n => read += n,
            }
        }
        into.truncate(read);
        Ok(())
    }

    /// The end of this attempt's part in whole lines, and whether that is all of it.
    pub(super) fn end(&self) -> io::Result<(String, bool)> {
        let skipped = self.bytes().saturating_sub(self.from).saturating_sub(COMPARED_BYTES as u64);
        let mut bytes = Vec::new();
        self.read(skipped, COMPARED_BYTES, &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.split_once('\n').filter(|_| skipped > 0) {
            Some((_, lines)) => Ok((lines.to_owned(), false)),
            None => Ok((text, skipped == 0)),
        }
    }

    /// The size of this attempt's part.
    pub(super) fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |found| found.len())
    }

    /// Whether the session can be resumed from it: it is a file and is not empty.
    pub(super) fn state(&self) -> Transcript {
        let whole = super::open_plain(&self.path).and_then(|file| file.metadata()).is_ok_and(|found| found.len() > 0);
        if whole { Transcript::Whole } else { Transcript::Missing }
    }
}

/// Sends a message to a running agent in the background.
pub(super) fn tell_in_background(shared: &Arc<Shared>, attempt: AttemptId, cli: &str, number: u32, text: &str) {
    let Some(line) = shared.adapter(cli).and_then(|(adapter, _)| adapter.message(text)) else { return };
    let worker = Arc::clone(shared);
    let dir = shared.bundle(attempt);
    let send = move || {
        worker.launches.wait_for(attempt);
        let id = format!("told-{number}");
        for _ in 0..MESSAGE_TRIES {
            if supervise::send_line(&dir, &id, &line, MESSAGE_BUDGET).is_ok() {
                let _leaving = worker.messages.send(Message::MessageTaken { attempt, number });
                return;
            }
        }
    };
    // An undelivered message shows in what the agent does: it is sent again, or handed over.
    let _undelivered = std::thread::Builder::new().name("tell".to_owned()).spawn(send);
}

/// Closes a running agent's input in the background.
pub(super) fn close_in_background(shared: &Arc<Shared>, attempt: AttemptId) {
    let worker = Arc::clone(shared);
    let dir = shared.bundle(attempt);
    let close = move || {
        worker.launches.wait_for(attempt);
        for _ in 0..MESSAGE_TRIES {
            if supervise::close_stdin(&dir, MESSAGE_BUDGET).is_ok() {
                return;
            }
        }
    };
    // An agent that does not exit is stopped when its time after the result is over.
    let _stopped_later = std::thread::Builder::new().name("let-go".to_owned()).spawn(close);
}

/// Writes an adapter's files into a bundle. The error says what could not be written.
pub(super) fn write_files<'a>(
    bundle: &Path,
    files: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<(), String> {
    let own = bundle.join(OWN_DIR);
    let failed = |what: &Path, error: io::Error| format!("cannot write {}: {error}", what.display());
    super::make_dir(&own).map_err(|error| failed(&own, error))?;
    for (name, text) in files {
        let path = own.join(name);
        let (Some(dir), Some(leaf)) = (path.parent(), path.file_name()) else { continue };
        make_dirs(&own, dir).map_err(|error| failed(dir, error))?;
        atomic::save(dir, &leaf.to_string_lossy(), text.as_bytes()).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Makes an adapter's links in a bundle whose own directory is there. The error says what could not be linked.
pub(super) fn make_links<'a>(
    bundle: &Path,
    links: impl IntoIterator<Item = (&'a String, &'a PathBuf)>,
) -> Result<(), String> {
    let own = bundle.join(OWN_DIR);
    for (name, target) in links {
        let path = own.join(name);
        let made = path.parent().map_or(Ok(()), |dir| make_dirs(&own, dir));
        match made.and_then(|()| std::os::unix::fs::symlink(target, &path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => done.map_err(|error| format!("cannot link {}: {error}", path.display()))?,
        }
    }
    Ok(())
}

/// Makes the directories between the adapter's own and one below it.
fn make_dirs(own: &Path, dir: &Path) -> io::Result<()> {
    let below = dir.strip_prefix(own).map_err(io::Error::other)?;
    let mut made = own.to_owned();
    for part in below.components() {
        made.push(part);
        super::make_dir(&made)?;
    }
    Ok(())
}
