//! Files that somebody asked for by name (`--out`, `--markdown`): written where they were named, `-` is standard output. Files
//! of a run are not written here.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::error::{CliError, Result};
use crate::ui::Ui;

/// The name that means standard output.
pub(crate) const STANDARD_OUTPUT: &str = "-";

/// What happens to an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and that is an error.
    Kept,
    /// It is overwritten.
    Replaced,
}

/// Writes a file, or to standard output. Fails when it cannot be written, or exists and must be kept.
pub(crate) fn write(path: &Path, bytes: &[u8], existing: Existing, ui: &Ui) -> Result<()> {
    if path == Path::new(STANDARD_OUTPUT) {
        return ui.raw(bytes);
    }
    put(path, bytes, existing)?;
    ui.say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Writes a file without printing a message, for one of many.
pub(crate) fn put(path: &Path, bytes: &[u8], existing: Existing) -> Result<()> {
    let mut options = OpenOptions::new();
    match existing {
        Existing::Kept => options.write(true).create_new(true),
        Existing::Replaced => options.write(true).create(true).truncate(true),
    };
    let shown = path.display();
    let written = options.open(path).and_then(|mut file| file.write_all(bytes).and_then(|()| file.flush()));
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(CliError::usage(format!("{shown} already exists")).hint("overwrite it: --force"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(CliError::usage(format!("cannot write {shown}")).because(&error).hint("make its directory first"))
        }
        Err(error) => Err(CliError::internal(format!("cannot write {shown}")).because(&error)),
    }
}
