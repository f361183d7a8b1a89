//! Reports that agents left in their bundles while no coordinator was there.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_shim::refusal::is_refused;

use super::open_plain;
use crate::world::KeptReport;

/// Reports that one bundle may hold; an agent that leaves more has lost its way.
const KEPT_REPORTS: usize = 1_000;

/// Largest report in a bundle.
const KEPT_REPORT_BYTES: u64 = 1024 * 1024;

/// All of them in order, with their files.
///
/// # Errors
/// When the machine has no room to read them.
pub(super) fn read(dir: &Path) -> io::Result<(Vec<KeptReport>, Vec<PathBuf>)> {
    let (mut reports, mut files) = (Vec::new(), Vec::new());
    for path in kept_files(dir)? {
        if let Some(report) = read_kept(&path)? {
            reports.push(report);
            files.push(path);
        }
    }
    Ok((reports, files))
}

fn kept_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_refused(&error) => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    let json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(json).take(KEPT_REPORTS).collect();
    files.sort();
    Ok(files)
}

/// What is not a report is left out; what cannot be read for want of room is not.
fn read_kept(path: &Path) -> io::Result<Option<KeptReport>> {
    let read = || -> io::Result<Option<Vec<u8>>> {
        let mut file = open_plain(path)?;
        if file.metadata()?.len() > KEPT_REPORT_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes)?;
        Ok(Some(bytes))
    };
    match read() {
        Ok(bytes) => Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
        Err(error) if is_refused(&error) => Err(error),
        Err(_) => Ok(None),
    }
}
