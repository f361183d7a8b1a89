//! Days and quiet hours of a story: midnight comes within minutes, and so do hours in which nothing new may start. The calendar is the
//! product's own, over the story's wall clock. Chance of its own, so that stories without days stay as they are.

use jiff::tz::{Offset, TimeZone};
use rekindle_core::budget::Calendar;
use rekindle_core::event::{AttemptEvent, Body, Event, MachineEvent, TaskEvent};
use rekindle_core::time::Time;
use rekindle_engine::calendar::{self, QuietHours};

use super::checkers::Invariant;
use super::clock::WALL_START_MS;
use super::plant::Plant;
use super::rng::Rng;
use super::world::Sim;

/// What the days' chance is drawn from, beside the story's seed.
const OWN: u64 = 0x0da7_5a11_9d00_0001;

/// Minutes of a day.
const DAY_MINUTES: u64 = 24 * 60;

/// What a wall clock may be off before the coordinator is told, and a moment more: the end of quiet hours is met no closer.
const SLACK_MS: u64 = 2_000;

/// The days of a story.
#[derive(Debug)]
pub struct Days {
    /// The person's zone, where the story has days.
    zone: Option<TimeZone>,
    quiet: Option<QuietHours>,
    /// What the calendar said first.
    first: Option<Calendar>,
}

impl Days {
    /// The days of a seed, if it has any.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ OWN);
        if !rng.chance(35) {
            return Self { zone: None, quiet: None, first: None };
        }
        // So many minutes before midnight, where the person is, the story begins.
        let before = rng.between(1, 15);
        let start_s = WALL_START_MS / 1_000;
        let of_day = start_s.rem_euclid(86_400);
        let ahead = 86_400 - i64::try_from(before * 60).unwrap_or(0) - of_day;
        let zone = i32::try_from(ahead).ok().and_then(|ahead| Offset::from_seconds(ahead).ok()).map(TimeZone::fixed);
        let from = DAY_MINUTES - before + rng.between(0, 12);
        let lasts = rng.between(2, 20);
        let quiet =
            rng.chance(60).then(|| QuietHours { from: minute(from), to: minute(from + lasts), days: [true; 7] });
        Self { zone, quiet, first: None }
    }

    fn look(&self, wall: Time) -> Option<Calendar> {
        calendar::look(wall, self.zone.as_ref()?, self.quiet.as_ref())
    }
}

/// Hour and minute of a minute since some midnight.
fn minute(number: u64) -> (i8, i8) {
    let part = |number: u64| i8::try_from(number).unwrap_or(0);
    (part(number % DAY_MINUTES / 60), part(number % 60))
}

impl Sim {
    /// What the coordinator sees of the calendar, unless a bug is planted.
    pub fn calendar(&mut self) -> Option<Calendar> {
        let mut seen = self.days.look(self.machine.wall(self.queue.now_ms()))?;
        let first = self.days.first.get_or_insert_with(|| seen.clone());
        match self.plant {
            Some(Plant::ForgetQuietHours) => seen.quiet_until = None,
            Some(Plant::EndlessDay) => seen.date.clone_from(&first.date),
            _ => {}
        }
        Some(seen)
    }

    /// Nothing begins in quiet hours, and what the day's budget allows is counted for the day that it is. Judged where something was
    /// decided just now: of another moment the wall clock may have been another.
    pub fn check_days(&mut self, event: &Event) {
        let starts = match &event.body {
            Body::Attempt(AttemptEvent::Dispatched { .. }) | Body::Task(TaskEvent::TaskAssigned { .. }) => true,
            Body::Machine(MachineEvent::BudgetAsked(_) | MachineEvent::BudgetReached(_)) => false,
            _ => return,
        };
        let now_ms = self.queue.now_ms();
        let wall = self.machine.wall(now_ms);
        let (Some(is), Some(soon)) = (self.days.look(wall), self.days.look(wall.plus_ms(SLACK_MS))) else { return };
        if event.time != self.machine.now(now_ms) {
            return;
        }
        if starts && is.quiet_until.is_some() && soon.quiet_until.is_some() {
            let what = format!("{} at {}, quiet until {:?}", event.body.name(), wall.0, is.quiet_until);
            self.checkers.broken(Invariant::QuietHours, what);
        }
        let counted = &self.checkers.replayed.budget.date;
        if !self.setting.limits.budget.day.is_none() && *counted != is.date {
            let what = format!("{} counts for the day {counted:?}, and it is {}", event.body.name(), is.date);
            self.checkers.broken(Invariant::Budget, what);
        }
    }
}
