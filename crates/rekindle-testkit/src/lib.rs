//! What breaks rekindle on purpose and what checks its own house. Never shipped: the binary depends on nothing in here.

pub mod sim;
pub mod tidy;
