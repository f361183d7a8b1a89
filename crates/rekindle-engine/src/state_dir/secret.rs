//! The key from which agents' tokens are derived: 32 random bytes, generated once, readable by the owner only. Deriving
//! tokens from it is left to the code that hands them out.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::{Error, StateDir, check_owner, sync_dir};
use crate::save::write_new;

const SECRET_FILE: &str = "secret";

/// The key's length: as long as any key derived from it.
const SECRET_BYTES: usize = 32;

/// The key of a state directory. Its `Debug` output reveals nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// The raw bytes, for key derivation.
    pub fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl StateDir {
    /// Returns the key, and creates it if there is none. Processes that ask at the same time get the same key.
    pub fn secret(&self) -> Result<Secret, Error> {
        let path = self.path().join(SECRET_FILE);
        match read(&path) {
            Err(Error::Missing(_)) => {
                make(self.path(), &path).map_err(|e| Error::from_io(&path, e))?;
                read(&path)
            }
            other => other,
        }
    }
}

fn read(path: &Path) -> Result<Secret, Error> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| Error::from_io(path, e))?;
    let meta = file.metadata().map_err(|e| Error::from_io(path, e))?;
    check_owner(path, &meta)?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Error::TooOpen { path: path.to_owned(), mode });
    }
    if !meta.is_file() || meta.len() != SECRET_BYTES as u64 {
        return Err(Error::Damaged(path.to_owned()));
    }
    let mut bytes = Vec::with_capacity(SECRET_BYTES);
    file.take(SECRET_BYTES as u64).read_to_end(&mut bytes).map_err(|e| Error::from_io(path, e))?;
    bytes.try_into().map(Secret).map_err(|_| Error::Damaged(path.to_owned()))
}

/// Writes the key under another name and links it: a link never replaces a file, so the first process wins and no reader
/// sees half a key.
fn make(dir: &Path, path: &Path) -> io::Result<()> {
    let mut bytes = [0; SECRET_BYTES];
    random(&mut bytes)?;
    let mut suffix = [0; 8];
    random(&mut suffix)?;
    let temporary = dir.join(format!("{SECRET_FILE}.{:016x}.tmp", u64::from_le_bytes(suffix)));
    let made = write_new(&temporary, &bytes).and_then(|()| match std::fs::hard_link(&temporary, path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    });
    std::fs::remove_file(&temporary)?;
    made?;
    sync_dir(dir)
}

fn random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|e| io::Error::other(e.to_string()))
}
