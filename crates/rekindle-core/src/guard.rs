//! The guarded session: a person's own interactive session, alone or with helpers, that rekindle does not run but guards.
//! Its program's hooks report what happens; this module adds that up, and decides when the session has to be told again and
//! what.
//!
//! Pure like everything here: the engine reads the journal, the transcript, the disk and the clock.

pub mod command;
pub mod fact;
mod lists;
pub mod recovery;
pub mod sentence;
pub mod session;
pub mod state_file;
mod term;
#[cfg(test)]
mod tests;
pub mod when;
pub mod worth;
