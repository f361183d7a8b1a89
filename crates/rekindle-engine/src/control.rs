//! The control socket: a Unix socket in the state directory through which agents report and operators give orders.
//!
//! One JSON object per line, one response per request. Who may say what is decided here (tokens, peers); the consequences
//! are decided in the core.

pub mod server;
pub mod wire;

use wire::{Request, Response};

/// Takes the answer to a call. It must not block.
pub type Answerer = Box<dyn FnOnce(Response) + Send>;

/// A call through the control socket.
pub struct Called {
    /// The agent's token; `None` means the operator.
    pub token: Option<String>,
    /// The caller's process and its ancestors, if the operating system reported them.
    pub ancestors: Vec<u32>,
    pub call: Request,
    pub reply: Answerer,
}
