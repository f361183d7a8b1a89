//! The forge where a result is published: pull requests through `gh`, merge requests through `glab`, or anything else
//! through a program of the user's own. It asks and orders; when, and what follows, is decided by the caller.
//!
//! An order whose answer was lost may have been carried out: [`Error::may_be_done`] says so, and the caller checks before it
//! orders again.

mod command;
mod gh;
mod glab;
mod lock;
mod program;
mod url;

use std::path::Path;

use rekindle_core::forge::{Check, Comment, Found, Status};
use serde::Serialize;

pub use command::OwnCommand;
pub use gh::Gh;
pub use glab::Glab;
pub use lock::{Lock, LockError};
pub use url::Place;

/// What is to be opened.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct New<'a> {
    pub branch: &'a str,
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
}

/// Why a forge did not answer, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{program} cannot be started: {why}")]
    NoProgram { program: String, why: String },
    /// It is busy, or there is no network: the same may work later.
    #[error("{program} cannot do it now: {said}")]
    Later { program: String, said: String },
    #[error("{program} refused: {said}")]
    Refused { program: String, said: String },
    /// It did not end in time, was killed, or its answer was cut off.
    #[error("{program} gave no answer: {said}")]
    NoAnswer { program: String, said: String },
    #[error("{program} answered what cannot be understood: {said}")]
    Garbled { program: String, said: String },
}

impl Error {
    /// Whether the order may have been carried out all the same: true for everything except a program that never ran.
    pub fn may_be_done(&self) -> bool {
        !matches!(self, Self::NoProgram { .. })
    }

    /// Whether waiting may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Later { .. } | Self::NoAnswer { .. })
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// A forge.
pub trait Forge {
    /// `gh`, `glab` or `command`.
    fn name(&self) -> &'static str;

    /// Every pull request of a branch of this repository, in any state.
    fn find(&self, branch: &str) -> Result<Vec<Found>>;

    /// Opens a pull request. The answer is not read: [`Forge::find`] says what there is.
    fn create(&self, new: &New<'_>) -> Result<()>;

    fn update(&self, id: &str, title: &str, body: &str) -> Result<()>;

    fn status(&self, id: &str) -> Result<Status>;

    fn comments(&self, id: &str) -> Result<Vec<Comment>>;

    fn reply(&self, id: &str, to: &Comment, text: &str) -> Result<()>;

    /// Merges exactly this commit, or nothing.
    fn merge(&self, id: &str, head: &str, form: &str) -> Result<()>;

    /// The end of a job's log, if the forge provides it.
    fn log(&self, _check: &Check) -> Option<String> {
        None
    }
}

/// The forge of a remote: the one that was named, or the one that fits its host and is installed. `command` is the user's
/// own program. Fails if none can be determined.
pub fn of(
    named: &str,
    command: &[String],
    remote_url: &str,
    dir: &Path,
) -> std::result::Result<Box<dyn Forge>, String> {
    let place = Place::of(remote_url);
    let host = place.as_ref().map(|place| place.host.as_str()).unwrap_or_default();
    let chosen = match named {
        "auto" if !command.is_empty() => "command",
        "auto" if host.contains("github") => "gh",
        "auto" if host.contains("gitlab") => "glab",
        "auto" => {
            return Err(format!(
                "it cannot be told which forge {} is",
                if host.is_empty() { remote_url } else { host }
            ));
        }
        named => named,
    };
    match chosen {
        "gh" => Ok(Box::new(Gh::new(dir, place))),
        "glab" => Ok(Box::new(Glab::new(dir, place))),
        _ if command.is_empty() => Err("land.forge is \"command\", and land.command names none".to_owned()),
        _ => Ok(Box::new(OwnCommand::new(dir, command))),
    }
}
