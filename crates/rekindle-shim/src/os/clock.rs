//! The shim's three clocks in milliseconds. Decisions use the monotonic one; the others are only recorded.

use rustix::event::poll;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Milliseconds that count only while the machine is awake: deadlines and graces, so that a suspended laptop
/// does not wake up to a dead agent.
pub fn monotonic_ms() -> u64 {
    millis(clock_gettime(ClockId::Monotonic))
}

/// Milliseconds since the machine started, suspension included.
pub fn boottime_ms() -> u64 {
    millis(clock_gettime(super::BOOTTIME))
}

/// Wall time in milliseconds since 1970, for people.
pub fn wall_ms() -> u64 {
    millis(clock_gettime(ClockId::Realtime))
}

fn millis(time: Timespec) -> u64 {
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    secs.saturating_mul(1000).saturating_add(nanos / 1_000_000)
}

/// Converts milliseconds to a poll timeout.
pub(crate) fn timeout(ms: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from((ms % 1000) * 1_000_000).unwrap_or(0),
    }
}

/// Sleeps for a moment, between two polls of something that sends no event.
pub fn pause(ms: u64) {
    // An interruption only means that the next poll comes earlier.
    let _ = poll(&mut [], Some(&timeout(ms)));
}
