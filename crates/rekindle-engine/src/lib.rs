//! The part of rekindle that carries out: store, supervision, adapters, the driver loop. It has no terminal.

pub mod agents;
pub mod alert;
pub mod clock;
pub mod coordinator;
pub mod descriptors;
pub mod door;
pub mod driver;
pub mod durable;
pub mod evidence;
pub mod files;
pub mod git;
pub mod guard;
pub mod ingest;
pub mod isolation;
pub mod living;
pub mod offline;
pub mod pressure;
pub mod pulse;
pub mod redact;
pub mod refusal;
pub mod state_dir;
pub mod store;
pub mod supervise;
pub mod token;
pub mod urgent;
pub mod world;
