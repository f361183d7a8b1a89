//! Carries out what the core decides: the durable store, supervision, adapters and the driver loop. It owns every
//! side effect and leaves decisions to `rekindle-core` and showing to the binary.

pub mod state_dir;
pub mod store;
