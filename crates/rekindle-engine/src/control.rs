//! The the control socket: a Unix socket in the state directory through which agents report and operators order.
//!
//! One JSON object a line, one answer a request. Who may say what is decided here (tokens, peers); what follows from it is
//! decided in the core.

pub mod server;
pub mod wire;
