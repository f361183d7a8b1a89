//! Guard: what happens when a person's own session reports something through a hook. One record goes into the session's
//! journal; if the session has lost its context, it gets a recovery text. What that is, and when, the core decides.
//!
//! A hook must never break the program that calls it: whatever fails here is a line in guard's own log.

pub mod gauge;
pub mod hook;
pub mod install;
pub mod journal;
pub mod lookup;
pub mod note;
pub mod place;
pub mod recover;
pub mod sessions;
mod transcript;
