//! The shim: a small blocking process that holds one agent and outlives everything else.
//!
//! It owns the agent's process tree, its standard streams and the record of how it ended; the bundle directory is its whole
//! interface, files first and a socket as a hint. What runs, when, and what an end means is decided elsewhere. The reader's
//! side (typed records, client, identities, lock probing) lives here too, so that each file has one definition for both
//! sides.
//!
//! The one binary routes `rekindle __shim DIR` to [`shim_main`] and `rekindle __stub DIR` to [`stub_main`]; both must be
//! reached before the process has opened files or started threads of its own.

pub mod atomic;
pub mod bundle;
mod capped;
pub mod caps;
pub mod cgroup;
mod child;
pub mod client;
mod exit;
mod feeder;
pub mod identity;
pub mod ladder;
pub mod lock;
mod os;
pub mod refusal;
mod server;
mod shim;
pub mod socket;
pub mod tree;
pub mod wire;

pub use child::stub_main;
pub use os::{boot_id, clock};
pub use shim::{EXIT_IO, EXIT_LOCKED, EXIT_REFUSED, EXIT_SPEC, EXIT_USED, shim_main};

/// The hidden subcommand under which the one binary becomes a shim.
pub const SHIM_COMMAND: &str = "__shim";

/// Tells a shim how many descriptors its agent may have open, where the coordinator has raised its own limit.
pub const DESCRIPTORS_ENV: &str = "REKINDLE_DESCRIPTORS";

/// The hidden subcommand under which the one binary becomes the agent's starting point.
pub const STUB_COMMAND: &str = "__stub";

/// The environment variable that marks every process of an attempt's tree with the attempt's nonce: the only
/// trace left of a process that changed its session after its shim died.
pub const MARKER_ENV: &str = "REKINDLE_NONCE";
