//! The part of rekindle that carries out: store, supervision, adapters, the driver loop. It has no terminal.

pub mod clock;
pub mod coordinator;
pub mod door;
pub mod redact;
