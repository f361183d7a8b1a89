//! The output of checks, kept in files beside the state and named by its hash. The state holds only the end of failed
//! output: a state that held all of it would outgrow every commit.
//!
//! It is evidence for people. Losing a file loses text but no decision, so nothing is synced, and the oldest files are
//! removed first when there are too many.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rekindle_core::report::Evidence;

/// The directory inside the state directory.
const DIR: &str = "evidence";

/// Bytes kept in total: thousands of long outputs, and little compared to the spools of agents.
const KEPT_BYTES: u64 = 256 * 1024 * 1024;

/// Files kept in total: a directory of this size can still be listed at once.
const KEPT_FILES: usize = 20_000;

/// Largest file that is read back: no output of a check is longer.
const FILE_BYTES: u64 = 256 * 1024;

/// Bytes that are put back into one evidence: a view shows the end of each output, and few of them are long.
const SHOWN_BYTES: usize = 8 * 1024 * 1024;

/// How much is let go at once, in quarters of a bound: a sweep for every new file would list the directory each time.
const KEPT_QUARTERS: u64 = 3;

/// The outputs of a state directory, for the one coordinator that adds to them.
#[derive(Debug)]
pub struct Outputs {
    dir: PathBuf,
    /// Number of files and bytes present; unknown until the first output is kept.
    there: Option<(usize, u64)>,
    most: (usize, u64),
}

/// A file that is kept, by age.
type Aged = (SystemTime, u64, PathBuf);

impl Outputs {
    /// The outputs of a state directory.
    pub fn of(state_dir: &Path) -> Self {
        Self { dir: state_dir.join(DIR), there: None, most: (KEPT_FILES, KEPT_BYTES) }
    }

    /// Keeps an output and returns its name. The same output is kept once.
    pub fn keep(&mut self, output: &str) -> io::Result<String> {
        let name = blake3::hash(output.as_bytes()).to_hex().to_string();
        let path = self.dir.join(&name);
        if path.symlink_metadata().is_ok_and(|found| found.len() == output.len() as u64) {
            return Ok(name);
        }
        let (files, bytes) = match self.there {
            Some(there) => there,
            None => {
                make_dir(&self.dir)?;
                let found = self.list()?;
                (found.len(), found.iter().map(|(_, bytes, _)| bytes).sum())
            }
        };
        // A partial file after a crash is not mistaken for the output: its hash differs.
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(output.as_bytes())?;
        self.there = Some((files + 1, bytes + output.len() as u64));
        if files + 1 > self.most.0 || bytes + output.len() as u64 > self.most.1 {
            self.sweep()?;
        }
        Ok(name)
    }

    /// Removes the oldest until a good part of the room is free.
    fn sweep(&mut self) -> io::Result<()> {
        let mut found = self.list()?;
        found.sort();
        let (mut files, mut bytes) = (found.len(), found.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
        let (most_files, most_bytes) = self.most;
        for (_, size, path) in found {
            if files as u64 * 4 <= most_files as u64 * KEPT_QUARTERS && bytes * 4 <= most_bytes * KEPT_QUARTERS {
                break;
            }
            std::fs::remove_file(path)?;
            files -= 1;
            bytes -= size;
        }
        self.there = Some((files, bytes));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<Aged>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_file() {
                found.push((about.modified()?, about.len(), entry.path()));
            }
        }
        Ok(found)
    }
}

/// An output by its name, if it still exists and is intact.
pub fn read(state_dir: &Path, name: &str) -> Option<String> {
    // A name comes from the store: it must not point anywhere else.
    let wanted = blake3::Hash::from_hex(name).ok()?;
    let file = std::fs::File::open(state_dir.join(DIR).join(wanted.to_hex().as_str())).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    (blake3::hash(&bytes) == wanted).then(|| String::from_utf8(bytes).ok())?
}

/// The outputs among these that exist, with their size.
pub fn there(state_dir: &Path, names: &[String]) -> Vec<(PathBuf, u64)> {
    let path = |name: &String| Some(state_dir.join(DIR).join(blake3::Hash::from_hex(name).ok()?.to_hex().as_str()));
    let found = names.iter().filter_map(path).filter_map(|path| {
        let about = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((path, about.len()))
    });
    found.collect()
}

/// The total size of these outputs.
pub fn bytes(state_dir: &Path, names: &[String]) -> u64 {
    there(state_dir, names).iter().map(|(_, bytes)| bytes).sum()
}

/// Removes outputs; returns those that could not be removed.
pub fn remove(state_dir: &Path, names: &[String]) -> Vec<(PathBuf, io::Error)> {
    let remove = |(path, _): (PathBuf, u64)| {
        let error = std::fs::remove_file(&path).err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
        Some((path, error))
    };
    there(state_dir, names).into_iter().filter_map(remove).collect()
}

/// Restores outputs in place of what the state kept of them, as far as they exist.
pub fn fill(state_dir: &Path, evidence: &mut Evidence) {
    let mut room = SHOWN_BYTES;
    for check in evidence.all_mut() {
        let Some(output) = check.kept.as_deref().and_then(|name| read(state_dir, name)) else { continue };
        if let Some(left) = room.checked_sub(output.len()) {
            room = left;
            check.output = output;
        }
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_comes_back_by_its_hash_and_a_damaged_one_does_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut outputs = Outputs::of(dir.path());
        let name = outputs.keep("1 failed\n").expect("kept");
        assert_eq!(outputs.keep("1 failed\n").expect("kept again"), name);
        assert_eq!(read(dir.path(), &name).as_deref(), Some("1 failed\n"));
        assert_eq!(read(dir.path(), "../version"), None);
        std::fs::write(dir.path().join(DIR).join(&name), "2 failed\n").expect("damaged");
        assert_eq!(read(dir.path(), &name), None);
    }

    #[test]
    fn the_oldest_outputs_go_when_there_are_too_many() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut outputs = Outputs { most: (8, 1_000), ..Outputs::of(dir.path()) };
        let names: Vec<String> = (0..100).map(|n| outputs.keep(&format!("{n:050}")).expect("kept")).collect();
        let there = names.iter().filter(|name| read(dir.path(), name).is_some()).count();
        assert!((1..=8).contains(&there), "{there} are there");
        assert!(read(dir.path(), &names[99]).is_some(), "the newest stays");
        let mut again = Outputs { most: (8, 1_000), ..Outputs::of(dir.path()) };
        again.keep(&"x".repeat(900)).expect("kept");
        let bytes: u64 = again.list().expect("listed").iter().map(|(_, bytes, _)| bytes).sum();
        assert!(bytes <= 1_000, "another coordinator counts what is there: {bytes}");
    }
}
