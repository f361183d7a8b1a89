//! Time as the core sees it: a number passed in as an argument. Where it comes from is left to the engine.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch on the coordinator's own clock, which never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// This moment plus a span in milliseconds; saturates instead of wrapping.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// This moment less a span in milliseconds; saturates instead of wrapping.
    pub fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `earlier` to this moment; zero if `earlier` is in the future.
    pub fn since_ms(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}
