//! Where a channel's secret comes from: a file of the person's own, or a variable. Never from a project's configuration, and never
//! shown.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Largest secret: a token has a hundred bytes.
const MAX_BYTES: u64 = 4 * 1024;

/// Permissions that let others read a file.
const OTHERS: u32 = 0o077;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text itself, for the one place that it is sent to.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    /// A variable, by its name.
    Variable(String),
}

impl Source {
    /// Reads the secret. The error says what to do, without any part of it.
    pub fn read(&self) -> Result<Secret, String> {
        let text = match self {
            Self::File(path) => read_file(path)?,
            Self::Variable(name) => std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?,
        };
        let text = text.trim();
        let wrong = |what: &str| Err(format!("{self} {what}"));
        match text {
            "" => wrong("holds nothing"),
            _ if text.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) => {
                wrong("holds more than one word, or characters that no token has")
            }
            _ => Ok(Secret::new(text)),
        }
    }

    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::File(_) => None,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
        }
    }
}

/// Reads a file that only its owner can read.
fn read_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    let mut options = std::fs::OpenOptions::new();
    // Without this, a pipe in its place would block.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let flags = i32::try_from(flags).unwrap_or(0);
    let file = options.read(true).custom_flags(flags).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(format!("{shown} is not a file"));
    }
    if found.mode() & OTHERS != 0 {
        return Err(format!("{shown} can be read by others: chmod 600 {shown}"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
