//! The time of a story: what is still to happen, in order, and how a machine's clocks show the time, including sleep and a
//! wall clock that was set.
//!
//! This file owns the one queue. Two things at the same millisecond happen in the order in which they were planned.

use std::collections::BTreeMap;

use rekindle_core::event::ClockSeen;
use rekindle_core::state::State;
use rekindle_core::time::Time;

/// The wall clock at the beginning of every story: some day of 2025.
pub const WALL_START_MS: i64 = 1_750_000_000_000;

/// What is still to happen.
#[derive(Debug)]
pub struct Queue<T> {
    now_ms: u64,
    planned: u64,
    waiting: BTreeMap<(u64, u64), T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { now_ms: 0, planned: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Queue<T> {
    /// Simulated milliseconds since the story began.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Plans something.
    pub fn after_ms(&mut self, delay_ms: u64, what: T) {
        self.planned += 1;
        self.waiting.insert((self.now_ms + delay_ms, self.planned), what);
    }

    /// The next thing, with time moved on to it.
    pub fn next(&mut self) -> Option<T> {
        let ((time, _), what) = self.waiting.pop_first()?;
        self.now_ms = self.now_ms.max(time);
        Some(what)
    }

    /// The machine sleeps: its clock continues, nothing else on it does.
    pub fn suspend(&mut self, ms: u64) {
        self.now_ms += ms;
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().map(|((time, order), what)| ((time + ms, order), what)).collect();
    }
}

/// A machine's clocks: time since boot, and a wall clock that can be set.
#[derive(Debug, Default)]
pub struct Machine {
    pub boot: u32,
    booted_at_ms: u64,
    wall_shift_ms: i64,
    /// How long it slept since the boot.
    slept_ms: u64,
    anchor: Time,
    anchor_ms: u64,
}

impl Machine {
    /// The boot's name.
    pub fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }

    /// Time since the boot.
    pub fn boottime_ms(&self, now_ms: u64) -> u64 {
        now_ms - self.booted_at_ms
    }

    /// The machine goes down and comes up again, with its wall clock off by this much more.
    pub fn reboot(&mut self, now_ms: u64, wall_shift_ms: i64) {
        self.boot += 1;
        self.booted_at_ms = now_ms;
        self.slept_ms = 0;
        self.wall_shift_ms += wall_shift_ms;
    }

    /// Sets the wall clock.
    pub fn set_wall(&mut self, wall_shift_ms: i64) {
        self.wall_shift_ms += wall_shift_ms;
    }

    /// The machine sleeps.
    pub fn sleep(&mut self, ms: u64) {
        self.slept_ms += ms;
    }

    /// What the wall clock shows.
    pub fn wall(&self, now_ms: u64) -> Time {
        Time(WALL_START_MS + self.wall_shift_ms + i64::try_from(now_ms).unwrap_or(0))
    }

    /// What the machine's clocks say, besides the coordinator's own.
    pub fn seen(&self, now_ms: u64) -> ClockSeen {
        let wall_ahead_ms = self.wall(now_ms).0 - self.now(now_ms).0;
        ClockSeen { boot_id: self.boot_id(), slept_ms: self.slept_ms, wall_ahead_ms }
    }

    /// Starts a coordinator's clock, as the engine does: continued within a boot, else from the wall clock, never back.
    pub fn start_clock(&mut self, state: &State, now_ms: u64) {
        let boottime_ms = self.boottime_ms(now_ms);
        let carried = state.coordinator.as_ref().filter(|found| found.boot_id == self.boot_id());
        let anchor = carried
            .map_or(self.wall(now_ms), |found| found.since.plus_ms(boottime_ms.saturating_sub(found.boottime_ms)));
        self.anchor = anchor.max(state.last_time);
        self.anchor_ms = now_ms;
    }

    /// What a coordinator's clock shows.
    pub fn now(&self, now_ms: u64) -> Time {
        self.anchor.plus_ms(now_ms.saturating_sub(self.anchor_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_in_order_and_sleep_delays_them_all() {
        let mut queue = Queue::default();
        queue.after_ms(5, "b");
        queue.after_ms(1, "a");
        queue.after_ms(5, "c");
        queue.suspend(100);
        let order: Vec<_> = std::iter::from_fn(|| queue.next().map(|what| (queue.now_ms(), what))).collect();
        assert_eq!(order, [(101, "a"), (105, "b"), (105, "c")]);
    }

    #[test]
    fn the_coordinators_clock_never_goes_back_over_a_reboot() {
        let mut machine = Machine::default();
        machine.start_clock(&State::default(), 0);
        let before = machine.now(50);
        machine.reboot(60, -1_000_000);
        machine.start_clock(&State { last_time: before, ..State::default() }, 70);
        assert_eq!(machine.now(70), before);
    }
}
