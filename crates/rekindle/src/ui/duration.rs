//! How moments and spans are shown: exact and sortable in UTC for programs, short and local for people. The zone is chosen once
//! for the process; outputs with local times name it once.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use rekindle_core::time::Time;

/// The zone that people read times in.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows times in UTC from now on. Has no effect once a time was shown.
pub(crate) fn use_utc() {
    let _too_late = ZONE.set(TimeZone::UTC);
}

/// The system's zone, unless UTC was asked for. Tests have UTC, whatever the machine has.
fn zone() -> &'static TimeZone {
    ZONE.get_or_init(|| if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}

fn local(time: Time, zone: &TimeZone) -> Option<Zoned> {
    Timestamp::from_millisecond(time.0).ok().map(|moment| moment.to_zoned(zone.clone()))
}

fn shown(time: Time, zone: &TimeZone, format: &str) -> String {
    local(time, zone).map_or_else(|| time.0.to_string(), |moment| moment.strftime(format).to_string())
}

/// A moment for programs: RFC 3339 in UTC, to the millisecond.
pub(crate) fn stamp(time: Time) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(moment) => format!("{moment:.3}"),
        Err(_) => time.0.to_string(),
    }
}

/// A moment for people: the local time of day.
pub(crate) fn clock_time(time: Time) -> String {
    shown(time, zone(), "%H:%M:%S")
}

/// A moment for people: the local date and time of day.
pub(crate) fn date_time(time: Time) -> String {
    shown(time, zone(), "%Y-%m-%d %H:%M:%S")
}

/// A moment for people where nothing else names the zone: local, with its offset.
pub(crate) fn date_time_zone(time: Time) -> String {
    shown(time, zone(), "%Y-%m-%dT%H:%M:%S%:z")
}

/// The zone that times are shown in, as it is at a moment: its name and its offset.
pub(crate) fn zone_name(at: Time) -> String {
    zone_name_in(at, zone())
}

fn zone_name_in(at: Time, zone: &TimeZone) -> String {
    let Some(moment) = local(at, zone) else { return "UTC".to_owned() };
    let offset = moment.strftime("%:z").to_string();
    match zone.iana_name() {
        Some("UTC" | "Etc/UTC") => "UTC".to_owned(),
        Some(name) => format!("{name} (UTC{offset})"),
        None if offset == "+00:00" => "UTC".to_owned(),
        None => format!("UTC{offset}"),
    }
}

/// The line that names the zone, once for an output with local times.
pub(crate) fn zone_line(at: Time) -> String {
    format!("times are in {}", zone_name(at))
}

/// A moment for people who look at `now`: the local time of day, with the date when it is another day.
pub(crate) fn near_time(time: Time, now: Time) -> String {
    near_time_in(time, now, zone())
}

fn near_time_in(time: Time, now: Time, zone: &TimeZone) -> String {
    match (local(time, zone), local(now, zone)) {
        (Some(then), Some(now)) if then.date() == now.date() => then.strftime("%H:%M:%S").to_string(),
        (Some(then), _) => then.strftime("%a %d %b %H:%M").to_string(),
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
    fn another_day_is_told_with_its_date() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let (now, hour) = (Time(1_763_200_000_000), 3_600_000);
        assert_eq!(near_time_in(now.plus_ms(hour), now, &zone), "12:46:40");
        assert_eq!(near_time_in(now.plus_ms(13 * hour), now, &zone), "Sun 16 Nov 00:46");
        assert_eq!(near_time_in(Time(i64::MAX), now, &zone), i64::MAX.to_string());
    }

    #[test]
    fn the_zone_is_named_with_its_offset_of_that_day() {
        let zone = |name: &str| TimeZone::get(name).expect("a zone of the database");
        let (winter, summer) = (Time(1_763_200_000_000), Time(1_750_000_000_000));
        assert_eq!(zone_name_in(winter, &TimeZone::UTC), "UTC");
        assert_eq!(zone_name_in(winter, &zone("Asia/Kolkata")), "Asia/Kolkata (UTC+05:30)");
        assert_eq!(zone_name_in(winter, &zone("America/St_Johns")), "America/St_Johns (UTC-03:30)");
        assert_eq!(zone_name_in(summer, &zone("America/St_Johns")), "America/St_Johns (UTC-02:30)");
        assert_eq!(zone_name_in(winter, &TimeZone::fixed(jiff::tz::offset(2))), "UTC+02:00");
    }

    #[test]
    fn spans_have_two_units_at_most() {
        let cases = [(12, "12ms"), (1_000, "1s"), (61_000, "1m01s"), (3_661_000, "1h01m"), (90_000_000, "1d01h")];
        for (ms, shown) in cases {
            assert_eq!(elapsed(ms), shown);
        }
    }
}
