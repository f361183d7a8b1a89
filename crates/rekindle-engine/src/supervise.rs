//! Supervision: starts shims, proves what became of them, ends what a dead shim left, and watches them all.
//!
//! Everything here reports facts and carries out orders; the core decides what an end means, what is retried and when. The
//! bundle directory is the truth; processes and sockets are inspected only through it.

mod activity;
mod adopt;
mod control;
mod groups;
mod launch;
mod lost;
pub mod watch;

pub use activity::{activity, activity_in, connections_quiet_ms};
pub use adopt::{PROBE_BUDGET, Probe, probe, probe_all};
pub use control::{ControlError, close_stdin, kill, send_line, stop};
pub use groups::prepare_groups;
pub use launch::{LaunchError, Launched, Launcher};
pub use lost::{Ended, LostError, end_lost_tree};
pub use watch::{BundleKey, Observation, Stream, Twice, Watch};
