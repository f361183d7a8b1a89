//! Attempts that every copy of the log has lost: they are found by their bundles, a person is asked, and the answer is kept beside
//! the log, because there may be none to keep it in.

use std::io;
use std::path::Path;

use rekindle_shim::atomic;

use crate::state_dir::StateDir;
use crate::store::{Error, Read, Table};
use crate::world::real::{self, Lost};

/// Holds the highest attempt that a person said to continue without.
const FORGOTTEN: &str = "forgotten";

/// The answer that continues without what was lost.
pub const FORGET: &str = "forget";

/// The answer of a person who restores a copy of the log.
pub const RESTORE: &str = "restore";

/// What a person has to decide about lost attempts, if anything. While a coordinator is alive there is nothing: it was
/// decided before it started.
pub fn question(dir: &StateDir, log: Option<&dyn Read>) -> Result<Option<Lost>, Error> {
    let Some(highest) = real::highest_bundle(dir.path()).filter(|highest| *highest > forgotten(dir.path())) else {
        return Ok(None);
    };
    let lives = dir.owner().map_err(|error| Error::Io(error.to_string()))?.is_some();
    if lives || knows(log, highest)? {
        return Ok(None);
    }
    Ok(real::lost(dir.path(), last_known(log)?))
}

/// Whether the log knows an attempt.
fn knows(log: Option<&dyn Read>, attempt: u64) -> Result<bool, Error> {
    let Some(log) = log else { return Ok(false) };
    for run in log.rows(Table::Run, None)? {
        if log.row(Table::Attempt, &run.key, &attempt.to_string())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The highest attempt that the log knows.
fn last_known(log: Option<&dyn Read>) -> Result<u64, Error> {
    let Some(log) = log else { return Ok(0) };
    Ok(log.rows(Table::Attempt, None)?.iter().filter_map(|row| row.key.parse().ok()).max().unwrap_or(0))
}

/// Records that a person continues without attempts up to one.
pub fn forget(state_dir: &Path, highest: u64) -> io::Result<()> {
    atomic::save(state_dir, FORGOTTEN, format!("{highest}\n").as_bytes())
}

/// The highest attempt that a person said to continue without.
pub fn forgotten(state_dir: &Path) -> u64 {
    let text = std::fs::read_to_string(state_dir.join(FORGOTTEN)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
