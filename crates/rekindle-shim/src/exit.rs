//! The exit record: its space on the disk is reserved before the agent starts, so that it fits when the disk is full.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, OFlags};

use crate::atomic;
use crate::bundle::{Bundle, EXIT, ExitRecord, LogEnd};

/// The largest record: 32 survivors with names, two truncated texts, ids.
const SPACE_BYTES: usize = 16 << 10;

/// Texts of foreign origin inside the record.
const TEXT_MAX_CHARS: usize = 500;

/// File that reserves the space. Only the holder of the lock touches it.
const WAITING: &str = ".exit.json.tmp";

/// Longer logs are not hashed: at a gigabyte a second it would hold up the end by seconds.
const DIGEST_MAX_BYTES: u64 = 1 << 30;

/// The reserved space of the future record.
pub(crate) struct Reserved(OwnedFd);

impl Reserved {
    /// Reserves the space, durably.
    pub(crate) fn new(bundle: &Bundle) -> io::Result<Self> {
        match rustix::fs::unlinkat(bundle, WAITING, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = atomic::create_new(bundle, WAITING)?;
        // Written, not fallocated: that works on every filesystem, and the blocks then certainly exist.
        atomic::write_all(&file, &[0; SPACE_BYTES])?;
        rustix::fs::fsync(&file)?;
        Ok(Self(file))
    }

    /// Writes the record into its space and gives it its name.
    pub(crate) fn fill(self, bundle: &Bundle, record: &ExitRecord) -> io::Result<()> {
        let bytes = serde_json::to_vec(record)?;
        if bytes.len() > SPACE_BYTES {
            return atomic::save_in(bundle, EXIT, &bytes);
        }
        let filled = self.write(&bytes).and_then(|()| atomic::commit(bundle, WAITING, EXIT));
        // The reserved space turned out unusable: a new file is another chance, the same one is not.
        filled.or_else(|_| atomic::save_in(bundle, EXIT, &bytes))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Start(0))?;
        atomic::write_all(&self.0, bytes)?;
        rustix::fs::ftruncate(&self.0, bytes.len() as u64)?;
        rustix::fs::fsync(&self.0)?;
        Ok(())
    }
}

/// The identity of a log file when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogId {
    device: u64,
    inode: u64,
}

impl LogId {
    pub(crate) fn of(file: &OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
        Ok(Self { device: u64::try_from(stat.st_dev).unwrap_or(0), inode: u64::from(stat.st_ino) })
    }
}

/// Opens a log for the agent to append to.
pub(crate) fn open_log(bundle: &Bundle, name: &str) -> Result<OwnedFd, crate::bundle::Error> {
    bundle.open_file(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
}

/// Syncs and measures a log; the second is why it could not be synced.
pub(crate) fn end_log(bundle: &Bundle, name: &str, opened: LogId, discarded: u64) -> (LogEnd, Option<String>) {
    let mut end = LogEnd { discarded, truncated: discarded > 0, ..LogEnd::default() };
    let file = match bundle.open_file(name, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) => {
            end.replaced = true;
            return (end, Some(cut(&error.to_string())));
        }
    };
    end.replaced = LogId::of(&file).ok() != Some(opened);
    let synced = rustix::fs::fsync(&file).err().map(|error| format!("{name}: {error}"));
    let mut file = File::from(file);
    end.bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    if end.bytes <= DIGEST_MAX_BYTES {
        end.digest = digest(&mut file, end.bytes).ok();
    }
    (end, synced)
}

/// Hashes only as much as was measured: a survivor may still be writing.
fn digest(file: &mut File, bytes: u64) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut rest = file.take(bytes);
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(n) => drop(hasher.update(&buffer[..n])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Truncates a text so that it fits the record.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX_CHARS).collect()
}
