//! What breaks rekindle: the simulator, contract suites, the tidy test. Never shipped.

pub mod contract;
pub mod sim;
pub mod tidy;
