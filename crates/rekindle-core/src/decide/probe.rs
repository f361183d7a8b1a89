//! When an account that met its usage limit is probed again: soon after the named reset, then at growing intervals, and
//! finally after the whole `usage.grace`. A provider is often ready seconds after its reset; waiting for the whole grace
//! would waste minutes.

use crate::event::ClockSeen;
use crate::limits::UsageLimits;
use crate::time::Time;

/// How long after the reset the first probes are sent. `usage.grace` is the last of them and bounds the others.
const STEPS_MS: [u64; 3] = [10_000, 30_000, 120_000];

/// Strikes in a row after which the whole grace is waited for after a newly named reset: a provider that names another reset
/// every time would otherwise be asked every few seconds for ever.
const TRUSTED_STRIKES: u32 = 10;

/// The next moment at which one agent probes an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) at: Time,
    pub(super) reset: Option<Time>,
    /// Its number since that reset was named.
    pub(super) number: u32,
}

/// As [`next`], for resets that are named by the wall clock: they are compared with the wall clock, and the probe is sent by
/// the coordinator's own clock, which a changed wall clock does not move.
pub(super) fn by_wall(
    limits: &UsageLimits,
    (now, clocks): (Time, &ClockSeen),
    before: Option<(Time, u32)>,
    named: Option<Time>,
    strikes: u32,
) -> Probe {
    let probe = next(limits, clocks.wall(now), before, named, strikes);
    Probe { at: clocks.at_wall(probe.at), ..probe }
}

/// The probe after the one `before`, which met the limit again, or the first. `named` is the reset that the limit named this time.
fn next(limits: &UsageLimits, now: Time, before: Option<(Time, u32)>, named: Option<Time>, strikes: u32) -> Probe {
    if let Some(reset) = named.filter(|reset| *reset > now) {
        // This reset is already being waited for: its probe has not been sent.
        let number = before.filter(|(known, _)| *known == reset).map_or(1, |(_, number)| number.max(1));
        let step = steps(limits.grace_ms).nth(number as usize - 1).filter(|_| strikes <= TRUSTED_STRIKES);
        return Probe { at: reset.plus_ms(step.unwrap_or(limits.grace_ms)), reset: Some(reset), number };
    }
    // A reset that has just passed is as good as one to come.
    let passed = named.filter(|reset| reset.plus_ms(limits.grace_ms) > now).map(|reset| (reset, 0));
    let Some((reset, number)) = before.or(passed) else {
        return Probe { at: now.plus_ms(limits.default_wait_ms), reset: None, number: 1 };
    };
    let left = steps(limits.grace_ms).skip(number as usize).map(|step| reset.plus_ms(step)).find(|at| *at > now);
    // The last step is over: from here on the interval is the grace, never shorter.
    let at = left.unwrap_or_else(|| now.plus_ms(limits.grace_ms.max(STEPS_MS[0])));
    Probe { at, reset: Some(reset), number: number.saturating_add(1) }
}

/// The waits after a reset, shortest first; the grace is the last.
fn steps(grace_ms: u64) -> impl Iterator<Item = u64> {
    STEPS_MS.into_iter().filter(move |step| *step < grace_ms).chain([grace_ms])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: Time = Time(1_000_000);

    /// The waits after the reset, in seconds, of probes that each take `took_ms` and meet the limit again.
    fn waits(limits: &UsageLimits, took_ms: u64, probes: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let (mut now, mut before) = (Time(980_000), None);
        for _ in 0..probes {
            let probe = next(limits, now, before, (before.is_none()).then_some(RESET), 1);
            found.push(probe.at.since_ms(RESET) / 1_000);
            now = probe.at.plus_ms(took_ms);
            before = probe.reset.map(|reset| (reset, probe.number));
        }
        found
    }

    #[test]
    fn probes_come_soon_after_the_reset_and_then_ever_later() {
        assert_eq!(waits(&UsageLimits::default(), 0, 6), [10, 30, 120, 300, 600, 900]);
    }

    #[test]
    fn a_probe_that_took_long_skips_the_steps_it_lasted() {
        assert_eq!(waits(&UsageLimits::default(), 45_000, 4), [10, 120, 300, 645]);
    }

    #[test]
    fn the_configured_grace_is_the_last_step_and_bounds_the_others() {
        let limits = |grace_ms| UsageLimits { grace_ms, ..UsageLimits::default() };
        assert_eq!(waits(&limits(20_000), 0, 3), [10, 20, 40]);
        assert_eq!(waits(&limits(0), 0, 3), [0, 10, 20]);
    }

    #[test]
    fn a_new_reset_starts_over_unless_there_was_one_too_many() {
        let limits = UsageLimits::default();
        let now = Time(1_200_000);
        let later = now.plus_ms(60_000);
        let over = next(&limits, now, Some((RESET, 3)), Some(later), 4);
        assert_eq!(over, Probe { at: later.plus_ms(10_000), reset: Some(later), number: 1 });
        let weary = next(&limits, now, Some((RESET, 1)), Some(later), TRUSTED_STRIKES + 1);
        assert_eq!(weary.at, later.plus_ms(limits.grace_ms));
    }

    #[test]
    fn a_reset_that_has_just_passed_is_one_and_an_old_one_is_none() {
        let limits = UsageLimits::default();
        let just = next(&limits, RESET.plus_ms(500), None, Some(RESET), 1);
        assert_eq!(just, Probe { at: RESET.plus_ms(10_000), reset: Some(RESET), number: 1 });
        let now = RESET.plus_ms(600_000);
        let old = next(&limits, now, None, Some(RESET), 1);
        assert_eq!(old, Probe { at: now.plus_ms(limits.default_wait_ms), reset: None, number: 1 });
    }
}
