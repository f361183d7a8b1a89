//! The sessions of one place: which there are, which of them are alive, and whether the last one died with work open.

use std::path::{Path, PathBuf};

use rekindle_core::guard::session::Session;
use rekindle_core::guard::when::offered;
use rekindle_shim::identity::{Opened, ProcId};

use super::journal;

/// Sessions that are inspected, newest first; older ones are history.
const LOOKED_AT_MAX: usize = 40;

/// A session of this place.
#[derive(Debug)]
pub struct Known {
    /// The name of its directory.
    pub key: String,
    pub dir: PathBuf,
    /// The sum of its journal.
    pub session: Session,
}

impl Known {
    /// The program's name in the key.
    pub fn program(&self) -> &str {
        self.key.split_once('-').map_or(self.key.as_str(), |(program, _)| program)
    }

    /// Whether its process is alive; if nothing is known about it, it is not.
    pub fn lives(&self) -> bool {
        self.session.ended.is_none() && process_lives(&self.session)
    }
}

/// Whether the process that a session last ran in is alive.
pub fn process_lives(session: &Session) -> bool {
    let id: Option<ProcId> = session.process.as_ref().and_then(|id| serde_json::from_value(id.clone()).ok());
    id.is_some_and(|id| matches!(id.open(), Ok(Opened::Ours(_) | Opened::Likely(_))))
}

/// The sessions of a place, the one with the newest event first.
pub fn all(guard_dir: &Path) -> Vec<Known> {
    let mut known: Vec<Known> = newest_first(guard_dir).into_iter().take(LOOKED_AT_MAX).filter_map(load).collect();
    known.sort_by_key(|known| std::cmp::Reverse(known.session.last_at));
    known
}

/// Session directories, by when their journals were last written.
fn newest_first(guard_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(guard_dir).into_iter().flatten().flatten();
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let journal = entry.path().join(journal::FILE).metadata().ok()?;
            Some((journal.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn load(dir: PathBuf) -> Option<Known> {
    let key = dir.file_name()?.to_str()?.to_owned();
    Some(Known { session: journal::session(&dir).ok()?, key, dir })
}

/// The session that a new one continues: the last one that is not alive, died with work open and was not taken over. A
/// session that took it over has newer events, so nothing older has to be inspected.
pub fn died(guard_dir: &Path, own_key: &str, now_ms: u64) -> Option<Known> {
    let mut taken_up: Vec<String> = Vec::new();
    let others = newest_first(guard_dir).into_iter().filter(|dir| dir.file_name().is_none_or(|name| name != own_key));
    others.take(LOOKED_AT_MAX).filter_map(load).find(|known| {
        let session = &known.session;
        // A session that ended before anybody said anything has taken over nothing, whatever it was offered.
        let lives = known.lives();
        if session.own_work || lives {
            taken_up.extend(session.inherits.iter().cloned());
        }
        !lives && offered(session, now_ms) && !taken_up.contains(&known.key)
    })
}

/// The session that a new one was launched for, unless a live session has taken it over: sessions that the launched one
/// starts in turn were not launched for it.
pub fn launched(guard_dir: &Path, key: &str) -> Option<Known> {
    let mut known = all(guard_dir);
    if known.iter().any(|known| known.session.inherits.iter().any(|earlier| earlier == key) && known.lives()) {
        return None;
    }
    let at = known.iter().position(|known| known.key == key)?;
    Some(known.swap_remove(at))
}
