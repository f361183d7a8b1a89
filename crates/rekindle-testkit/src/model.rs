//! A fake model provider on loopback that supports four APIs, distinguished by the path of a request, and does what a script
//! says: talk, call tools, count tokens, refuse, hang, break off.
//!
//! A script is written once for all APIs (`script`); `dialect` knows how each API expresses it and which requests are a
//! program's own (a title, a summary of a compaction); `wire` is HTTP; `server` answers and keeps every request. It knows
//! nothing of rekindle except the name of its MCP server.

mod asked;
mod dialect;
mod peer;
mod script;
mod server;
mod stepper;
mod wire;

#[cfg(test)]
mod tests;

pub use asked::{Api, Asked, Message, Purpose};
pub use peer::Peer;
pub use script::{Act, Answer, End, Fail, Rule, Script, Tokens, When};
pub use server::Server;
pub use stepper::Stepper;
