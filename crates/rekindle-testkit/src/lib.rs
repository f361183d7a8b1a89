//! Tools that break rekindle: the simulator, contract suites, fake model servers, the tidy test. Never shipped.

pub mod browser;
pub mod chat;
pub mod contract;
pub mod database;
pub mod installed;
pub mod model;
pub mod short_lives;
pub mod sim;
pub mod tidy;
