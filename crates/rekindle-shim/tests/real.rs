//! Real shims with real processes: what an agent may do, what may happen to the shim, and what must be left.

#[path = "real/crashes.rs"]
mod crashes;
#[path = "real/ends.rs"]
mod ends;
#[path = "real/output.rs"]
mod output;
#[path = "real/rig.rs"]
mod rig;
#[path = "real/socket.rs"]
mod socket;
#[path = "real/stdin.rs"]
mod stdin;
#[path = "real/trees.rs"]
mod trees;
