//! The guarded session: a person's own interactive session, alone or with helpers, that rekindle does not run but guards. Its program's
//! hooks tell what happens; here that is added up, and it is decided when the session has to be told again and what.
//!
//! Pure like everything here: the journal, the transcript, the disk and the clock are read by the engine.

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
