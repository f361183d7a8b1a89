//! The one way a small file is written: complete or not at all, across power cuts. It owns the protocol (new name, write,
//! sync, rename, sync of the directory); the contents are left to the caller.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Owner only, like the directory.
const FILE_MODE: u32 = 0o600;

/// Replaces `name` in `dir` by these bytes. A failed sync is an error and never retried: the kernel may have dropped the
/// pages and would report success the second time.
pub fn save_atomically(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!("{name}.tmp"));
    remove_if_there(&temporary)?;
    let written = write_new(&temporary, bytes);
    if let Err(error) = written {
        // The first error is the one to report; the next save removes the leftover.
        drop(std::fs::remove_file(&temporary));
        return Err(error);
    }
    rename(&temporary, &dir.join(name))?;
    sync_dir(dir)
}

/// Renames a file that was built under another name to its own, in the same directory, after flushing its contents to disk.
pub fn install(built: &Path, name: &Path) -> io::Result<()> {
    File::open(built)?.sync_all()?;
    rename(built, name)?;
    name.parent().map_or(Ok(()), sync_dir)
}

/// Moves a file or folder, if it exists, without reading it; the caller syncs both directories.
pub fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match rename(from, to) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The one rename of the engine's own files; alone it promises nothing about a power cut.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::rename(from, to)?)
}

/// Writes a file that must not exist yet and syncs it. Links planted under its name are not followed.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes names in a directory durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
