//! The one place that reads the clock.
//!
//! The coordinator's clock is anchored once to the wall clock and then follows the time since boot, which includes
//! suspension and never jumps: changing the wall clock moves no timer. Across a restart within one boot the anchor is kept.
//! How long the machine slept and how far the wall clock is ahead is reported beside it: limits on agents count the time
//! awake, and wall-clock times named by a provider are compared with the wall clock.

use rekindle_core::event::ClockSeen;
use rekindle_core::state::Coordinator;
use rekindle_core::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// A clock that never goes back.
#[derive(Clone, Debug)]
pub struct Clock {
    anchor: Time,
    anchor_boottime_ms: u64,
}

impl Clock {
    /// A clock for a state whose newest event is from `last` and whose last coordinator is known.
    pub fn starting_after(last: Time, coordinator: Option<&Coordinator>) -> Self {
        let boottime_ms = boottime_ms();
        let carried = coordinator.filter(|found| {
            !found.boot_id.is_empty() && found.boot_id == boot_id() && found.boottime_ms <= boottime_ms
        });
        let anchor = match carried {
            Some(found) => found.since.plus_ms(boottime_ms - found.boottime_ms),
            None => wall(),
        };
        Self { anchor: anchor.max(last), anchor_boottime_ms: boottime_ms }
    }

    pub fn now(&self) -> Time {
        self.anchor.plus_ms(boottime_ms().saturating_sub(self.anchor_boottime_ms))
    }

    /// The machine's other clocks.
    pub fn seen(&self) -> ClockSeen {
        let wall_ahead_ms = wall().0.saturating_sub(self.now().0);
        ClockSeen { boot_id: boot_id(), slept_ms: slept_ms(), wall_ahead_ms }
    }
}

/// The wall clock, for display and for ids only.
pub fn wall() -> Time {
    let now = clock_gettime(ClockId::Realtime);
    Time(now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000))
}

/// Milliseconds since boot, including suspension.
pub fn boottime_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let id = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = ClockId::Monotonic;
    millis(id)
}

/// How long the machine has been suspended since boot.
pub fn slept_ms() -> u64 {
    let awake_ms = millis(ClockId::Monotonic);
    boottime_ms().saturating_sub(awake_ms)
}

fn millis(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

pub fn boot_id() -> String {
    // Without a boot id, boots cannot be compared across a restart: every start then counts as another boot.
    rekindle_shim::boot_id().unwrap_or_default()
}
