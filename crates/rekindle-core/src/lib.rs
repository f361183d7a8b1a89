//! The part of rekindle that decides. Same state and inputs give the same events and effects, byte for byte.
//!
//! It has no clock, no randomness, no files, sockets or threads: facts and time come in as arguments, what to do goes out as
//! data. The engine carries it out; the log keeps it.

// A new event that is never applied must not compile.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod activity;
pub mod apply;
pub mod brief;
pub mod budget;
pub mod cause;
pub mod decide;
pub mod duration;
pub mod effect;
pub mod event;
mod fence;
pub mod forge;
pub mod guard;
pub mod ids;
pub mod import;
pub mod input;
pub mod last_words;
pub mod limits;
pub mod memory;
pub mod phone;
pub mod plan;
pub mod policy;
pub mod preflight;
pub mod progress;
pub mod pull_request;
pub mod refusal;
pub mod reload;
pub mod render;
pub mod report;
pub mod retention;
pub mod review;
pub mod role;
pub mod signal;
pub mod size;
pub mod state;
pub mod steering;
pub mod strategy;
pub mod team;
pub mod text;
pub mod time;
pub mod view;
