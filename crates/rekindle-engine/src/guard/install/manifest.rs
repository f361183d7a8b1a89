//! The previous state: for each file that an installation touches, its text, what was made of it, which directories were
//! created for it. It is on disk before the file is touched, so that whatever happens in between can be repaired.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rekindle_shim::{atomic, clock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Error;

/// The manifest's file.
const FILE: &str = "installed.json";

/// The version that is written; a higher number is refused.
const VERSION: u32 = 1;

/// States of one file that are remembered as made by us: one for each time that rekindle moved or changed what it writes.
const STATES_MAX: usize = 16;

/// How long to wait for another installation: it takes milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// Between two attempts to take the lock.
const LOOK_MS: u64 = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Its path; relative to the project's directory if it is below it.
    pub path: PathBuf,
    /// Whose settings it contains; empty for a list of patterns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Its previous text; `None` if it did not exist.
    pub before: Option<String>,
    /// Hashes of what was made of that.
    pub after: Vec<String>,
    /// Directories that were made for it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<PathBuf>,
    /// In a list of patterns: those that were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

impl ManifestEntry {
    /// Whether a text is what was made, or what was there before: nobody else has changed it.
    pub fn knows(&self, text: &str) -> bool {
        self.made(text) || self.before.as_deref() == Some(text)
    }

    pub fn made(&self, text: &str) -> bool {
        self.after.contains(&hash(text))
    }

    /// Remembers that a text was made from the previous one.
    pub fn remember(&mut self, text: &str) {
        let hash = hash(text);
        self.after.retain(|known| *known != hash);
        self.after.push(hash);
        let excess = self.after.len().saturating_sub(STATES_MAX);
        self.after.drain(..excess);
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files of one project, or of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    files: Vec<ManifestEntry>,
}

/// A locked manifest: nobody else installs or uninstalls meanwhile.
#[derive(Debug)]
pub struct Ledger {
    manifest: Manifest,
    /// Its directory; `None` if there is none yet and nothing will be written.
    dir: Option<PathBuf>,
    base: PathBuf,
    _lock: Option<File>,
}

impl Ledger {
    /// Takes the manifest in a directory, which is created if it is missing; its parent must exist.
    pub fn take(dir: &Path, base: &Path) -> Result<Self, Error> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::io(dir, error)),
            _ => {}
        }
        let lock = File::open(dir).map_err(|error| Error::io(dir, error))?;
        let give_up = clock::monotonic_ms() + PATIENCE_MS;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if clock::monotonic_ms() < give_up => clock::pause(LOOK_MS),
                Err(TryLockError::WouldBlock) => return Err(Error::Busy(dir.to_owned())),
                Err(TryLockError::Error(error)) => return Err(Error::io(dir, error)),
            }
        }
        let manifest = read(dir)?;
        Ok(Self { manifest, dir: Some(dir.to_owned()), base: base.to_owned(), _lock: Some(lock) })
    }

    /// Takes it if it exists; otherwise nothing is known, and nothing is written.
    pub fn take_if_there(dir: &Path, base: &Path) -> Result<Self, Error> {
        if dir.is_dir() { Self::take(dir, base) } else { Self::look(dir, base) }
    }

    /// Its contents, without locking it.
    pub fn look(dir: &Path, base: &Path) -> Result<Self, Error> {
        Ok(Self { manifest: read(dir)?, dir: None, base: base.to_owned(), _lock: None })
    }

    pub fn get(&self, path: &Path) -> Option<&ManifestEntry> {
        self.manifest.files.iter().find(|record| self.base.join(&record.path) == path)
    }

    /// All records, with the paths of their files.
    pub fn all(&self) -> impl Iterator<Item = (PathBuf, &ManifestEntry)> {
        self.manifest.files.iter().map(|record| (self.base.join(&record.path), record))
    }

    /// Directories of a record as they are on disk.
    pub fn dirs(&self, record: &ManifestEntry) -> Vec<PathBuf> {
        record.dirs.iter().map(|dir| self.base.join(dir)).collect()
    }

    /// Stores the record of a file, replacing an older one.
    pub fn keep(&mut self, path: &Path, mut record: ManifestEntry) {
        let short = |path: &Path| path.strip_prefix(&self.base).unwrap_or(path).to_owned();
        record.path = short(path);
        record.dirs = record.dirs.iter().map(|dir| short(dir)).collect();
        match self.manifest.files.iter_mut().find(|known| known.path == record.path) {
            Some(known) => *known = record,
            None => self.manifest.files.push(record),
        }
    }

    pub fn forget(&mut self, path: &Path) {
        let base = self.base.clone();
        self.manifest.files.retain(|record| base.join(&record.path) != path);
    }

    /// Writes it to disk; an empty one is removed.
    pub fn save(&mut self) -> Result<(), Error> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let path = dir.join(FILE);
        if self.manifest.files.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(&path, error)),
                _ => Ok(()),
            };
        }
        self.manifest.version = VERSION;
        let text = serde_json::to_string_pretty(&self.manifest).map_err(|_| Error::NotText(path.clone()))?;
        atomic::save(dir, FILE, text.as_bytes()).map_err(|error| Error::io(&path, error))
    }
}

fn read(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Manifest::default());
        }
        Err(error) => return Err(Error::io(&path, error)),
    };
    // One that cannot be parsed counts as missing: our entries can be recognised without it.
    let manifest: Manifest = serde_json::from_slice(&text).unwrap_or_default();
    if manifest.version > VERSION { Err(Error::Newer(path)) } else { Ok(manifest) }
}
