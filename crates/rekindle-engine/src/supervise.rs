//! Supervision: starting shims, proving what became of them, ending what a dead one left, watching them all.
//!
//! Everything here reports facts and carries out orders; what an end means, what is retried and when, is decided
//! in the core. The bundle directory is the truth; processes and sockets are looked at only through it.

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
