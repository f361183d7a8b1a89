//! `[retention]`: what is kept of finished runs.

use rekindle_core::retention::Rules;

use super::{Config, Value};

const DAY_MS: u64 = 24 * 3_600_000;

impl Config {
    /// What is kept of finished runs.
    pub(crate) fn retention(&self) -> Rules {
        let max_bytes = match self.sourced("retention.max_bytes").value {
            Value::Space(most) => most,
            _ => None,
        };
        Rules {
            older_than_ms: self.count("retention.days").saturating_mul(DAY_MS),
            keep_runs: usize::try_from(self.count("retention.keep_runs")).unwrap_or(usize::MAX),
            max_bytes,
        }
    }

    /// Whether a run cleans up after earlier ones.
    pub(crate) fn cleans_by_itself(&self) -> bool {
        self.is_on("retention.auto")
    }
}
