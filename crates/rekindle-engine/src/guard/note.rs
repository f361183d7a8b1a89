//! A decision that is noted on purpose, by a session's own shell or by a person beside it.

use std::io;
use std::path::Path;

use rekindle_core::guard::fact::{Fact, Record, text};
use rekindle_core::guard::state_file;
use rekindle_shim::{atomic, clock};

use super::journal::Journal;
use super::recover::STATE_FILE;
use super::{place, sessions};
use crate::agents::KINDS;

/// The session that calls, by the variable that its program sets for the processes that it starts.
pub fn calling(var: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    KINDS.guard_adapters().find_map(|program| {
        let session = var(program.session_variable()?).filter(|session| !session.is_empty())?;
        Some(place::key(program.kind(), &session))
    })
}

/// The session of this directory with the newest event.
pub fn newest(guard_dir: &Path) -> Option<String> {
    sessions::all(guard_dir).into_iter().next().map(|known| known.key)
}

pub fn note(guard_dir: &Path, key: &str, words: &str, work_dir: &Path) -> io::Result<()> {
    let dir = guard_dir.join(key);
    let mut journal = Journal::open(&dir)?;
    let facts = vec![Fact::Noted { text: text(words) }];
    journal.append(&Record { at: clock::wall_ms(), event: "note".to_owned(), facts, read: Vec::new() })?;
    // The note is recorded; the file is written again with the next batch at the latest.
    if let Ok(session) = journal.keep_sum() {
        let text = state_file::render(&session, key, &work_dir.display().to_string());
        drop(atomic::save(&dir, STATE_FILE, text.as_bytes()));
    }
    Ok(())
}
