//! The deciding half of rekindle: pure functions from state and inputs to events and effects.
//! No clock, files, sockets, randomness, threads or unordered maps; those live in the engine.

pub mod duration;
pub mod ids;
pub mod plan;
