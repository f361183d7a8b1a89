//! Supervision with real shims and real agents: every row of the adoption table, and every death.

#[path = "supervise/adoption.rs"]
mod adoption;
#[path = "supervise/crashes.rs"]
mod crashes;
#[path = "supervise/lost.rs"]
mod lost;
#[path = "supervise/rig.rs"]
mod rig;
#[path = "supervise/watching.rs"]
mod watching;
