//! How moments and spans are shown: exact and sortable for programs, short for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rekindle_core::time::Time;

/// A moment for programs: RFC 3339 in UTC, to the millisecond.
pub(crate) fn stamp(time: Time) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(moment) => format!("{moment:.3}"),
        Err(_) => time.0.to_string(),
    }
}

/// A moment for people: the local time of day.
pub(crate) fn clock_time(time: Time) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(moment) => moment.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string(),
        Err(_) => time.0.to_string(),
    }
}

/// A moment for people who look at `now`: the local time of day, with the date and the zone when it is another day.
pub(crate) fn near_time(time: Time, now: Time) -> String {
    near_time_in(time, now, &TimeZone::system())
}

fn near_time_in(time: Time, now: Time, zone: &TimeZone) -> String {
    let local = |time: Time| Timestamp::from_millisecond(time.0).ok().map(|moment| moment.to_zoned(zone.clone()));
    match (local(time), local(now)) {
        (Some(then), Some(now)) if then.date() == now.date() => then.strftime("%H:%M:%S").to_string(),
        (Some(then), _) => then.strftime("%a %d %b %H:%M %Z").to_string(),
        (None, _) => time.0.to_string(),
    }
}

/// A span for people: two units at most.
pub(crate) fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_for_programs() {
        assert_eq!(stamp(Time(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(stamp(Time(1_763_200_000_123)), "2025-11-15T09:46:40.123Z");
        assert_eq!(stamp(Time(i64::MAX)), i64::MAX.to_string());
    }

    #[test]
    fn another_day_is_told_with_its_date_and_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let (now, hour) = (Time(1_763_200_000_000), 3_600_000);
        assert_eq!(near_time_in(now.plus_ms(hour), now, &zone), "12:46:40");
        assert_eq!(near_time_in(now.plus_ms(13 * hour), now, &zone), "Sun 16 Nov 00:46 +02");
        assert_eq!(near_time_in(Time(i64::MAX), now, &zone), i64::MAX.to_string());
    }

    #[test]
    fn spans_have_two_units_at_most() {
        let cases = [(12, "12ms"), (1_000, "1s"), (61_000, "1m01s"), (3_661_000, "1h01m"), (90_000_000, "1d01h")];
        for (ms, shown) in cases {
            assert_eq!(elapsed(ms), shown);
        }
    }
}
