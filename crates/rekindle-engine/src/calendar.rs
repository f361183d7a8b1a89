//! The calendar in the person's time zone: which day it is, and whether these are hours in which nothing new starts. The
//! consequences are decided in the core.

use jiff::civil::{Date, Time as CivilTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use rekindle_core::budget::Calendar;
use rekindle_core::time::Time;

/// Days of the week, as the configuration names them.
pub const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Hours in which nothing new starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// Hour and minute; an end before the start is on the next day.
    pub from: (i8, i8),
    pub to: (i8, i8),
    /// The days on which they begin, from Monday.
    pub days: [bool; 7],
}

impl QuietHours {
    fn begins_on(&self, day: Weekday) -> bool {
        usize::try_from(day.to_monday_zero_offset()).is_ok_and(|at| self.days[at])
    }

    /// When the current quiet hours end.
    fn until(&self, now: &Zoned) -> Option<Zoned> {
        let of = |(hour, minute)| CivilTime::new(hour, minute, 0, 0).ok();
        let (from, to, today, time) = (of(self.from)?, of(self.to)?, now.date(), now.time());
        let at = |date: Date| date.to_datetime(to).to_zoned(now.time_zone().clone()).ok();
        let (before, after) = (today.yesterday().ok()?, today.tomorrow().ok()?);
        if from < to {
            return (from <= time && time < to && self.begins_on(today.weekday())).then(|| at(today)).flatten();
        }
        if time >= from && self.begins_on(today.weekday()) {
            return at(after);
        }
        (time < to && self.begins_on(before.weekday())).then(|| at(today)).flatten()
    }
}

/// What the calendar says at a moment of the wall clock.
pub fn look(wall: Time, zone: &TimeZone, quiet: Option<&QuietHours>) -> Option<Calendar> {
    let now = Timestamp::from_millisecond(wall.0).ok()?.to_zoned(zone.clone());
    let until = quiet.and_then(|hours| hours.until(&now));
    let quiet_until = until.map(|until| Time(until.timestamp().as_millisecond()));
    Some(Calendar { date: now.date().to_string(), quiet_until })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHT: QuietHours = QuietHours { from: (22, 0), to: (7, 0), days: [true; 7] };

    fn at(text: &str) -> (Time, TimeZone) {
        let zoned: Zoned = text.parse().expect("a moment");
        (Time(zoned.timestamp().as_millisecond()), zoned.time_zone().clone())
    }

    fn end(text: &str, hours: &QuietHours) -> Option<String> {
        let (wall, zone) = at(text);
        let until = look(wall, &zone, Some(hours))?.quiet_until?;
        let zoned = Timestamp::from_millisecond(until.0).expect("a moment").to_zoned(zone);
        Some(zoned.strftime("%Y-%m-%dT%H:%M").to_string())
    }

    #[test]
    fn the_date_is_that_of_the_persons_zone() {
        let date = |text: &str| {
            let (wall, zone) = at(text);
            look(wall, &zone, None).map(|seen| seen.date)
        };
        assert_eq!(date("2026-11-18T00:30[Europe/Zurich]").as_deref(), Some("2026-11-18"));
        assert_eq!(date("2026-11-17T23:30[UTC]").as_deref(), Some("2026-11-17"), "the same moment elsewhere");
    }

    #[test]
    fn a_night_lasts_over_midnight_and_its_ends_are_exact() {
        assert_eq!(end("2026-11-18T21:59[Europe/Zurich]", &NIGHT), None);
        assert_eq!(end("2026-11-18T22:00[Europe/Zurich]", &NIGHT).as_deref(), Some("2026-11-19T07:00"));
        assert_eq!(end("2026-11-19T06:59[Europe/Zurich]", &NIGHT).as_deref(), Some("2026-11-19T07:00"));
        assert_eq!(end("2026-11-19T07:00[Europe/Zurich]", &NIGHT), None);
    }

    #[test]
    fn hours_of_one_day_and_days_of_the_week_are_kept_to() {
        let office = QuietHours { from: (9, 0), to: (17, 30), days: [true, true, true, true, true, false, false] };
        assert_eq!(end("2026-11-18T12:00[UTC]", &office).as_deref(), Some("2026-11-18T17:30"), "a Wednesday");
        assert_eq!(end("2026-11-21T12:00[UTC]", &office), None, "a Saturday");
        let friday = QuietHours { days: [false, false, false, false, true, false, false], ..NIGHT };
        assert_eq!(end("2026-11-21T03:00[UTC]", &friday).as_deref(), Some("2026-11-21T07:00"), "Friday's night");
        assert_eq!(end("2026-11-20T03:00[UTC]", &friday), None, "Thursday's night");
    }

    #[test]
    fn a_night_with_a_change_of_the_clocks_ends_at_its_hour() {
        let (wall, zone) = at("2026-03-28T23:00[Europe/Zurich]");
        let until = look(wall, &zone, Some(&NIGHT)).and_then(|seen| seen.quiet_until).expect("quiet");
        assert_eq!(until.since_ms(wall), 7 * 3_600_000, "an hour is left out");
    }
}
