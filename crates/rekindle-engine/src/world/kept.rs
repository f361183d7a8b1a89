//! Reports that agents left in their bundles while no coordinator was running: where they are, how one is saved and read.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rekindle_core::report::Report;
use rekindle_shim::atomic;
use rekindle_shim::refusal::is_refused;
use serde::{Deserialize, Serialize};

use super::real::open_plain;

/// Their directory inside the bundle.
const REPORTS_DIR: &str = "reports";

/// Reports that one bundle may hold; an agent that leaves more has gone astray.
const KEPT_REPORTS: usize = 1_000;

/// Largest report in a bundle.
const KEPT_REPORT_BYTES: u64 = 1024 * 1024;

/// A report that an agent left in its bundle while no coordinator was running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptReport {
    pub token: String,
    pub report: Report,
}

/// Saves a report after the existing ones. Two reports at the same instant may share a number, never a name.
pub fn save(bundle: &Path, report: &KeptReport) -> io::Result<PathBuf> {
    let dir = bundle.join(REPORTS_DIR);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let mut last = 0_u64;
    for entry in std::fs::read_dir(&dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    let random = RandomState::new().build_hasher().finish();
    let name = format!("{:06}-{random:016x}.json", last + 1);
    atomic::save(&dir, &name, &serde_json::to_vec(report)?)?;
    Ok(dir.join(name))
}

/// All reports in order, with their files. Fails when the machine lacks the resources to read them.
pub(super) fn read(bundle: &Path) -> io::Result<(Vec<KeptReport>, Vec<PathBuf>)> {
    let (mut reports, mut files) = (Vec::new(), Vec::new());
    for path in kept_files(&bundle.join(REPORTS_DIR))? {
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

/// Reads one report. `None` if the file is not a report; an error if it cannot be read for lack of resources.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_reports_are_read_in_the_order_they_were_saved() {
        let dir = tempfile::tempdir().expect("tempdir");
        let bundle = dir.path().join("bundle");
        let note = |n| KeptReport { token: "rk1".to_owned(), report: Report::Note { text: format!("note {n}") } };
        let saved: Vec<PathBuf> = (0..12).map(|n| save(&bundle, &note(n)).expect("saved")).collect();
        let (reports, files) = read(&bundle).expect("read");
        assert_eq!(files, saved);
        assert_eq!(reports, (0..12).map(note).collect::<Vec<_>>());
    }
}
