//! How spending compares with its limits: the only place that puts it in numbers and words, for every view.

use serde::{Deserialize, Serialize};

use super::{Allowance, MICROS, NOTICE_PERCENT, Spent};
use crate::duration;
use crate::text::grouped;

/// How near a limit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    #[default]
    Fine,
    /// 80 % are used.
    Near,
    /// All of it is used.
    Reached,
}

impl Level {
    pub fn is_fine(&self) -> bool {
        *self == Self::Fine
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Usd,
    Tokens,
    Wall,
}

/// One unit of a budget that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub unit: Unit,
    pub spent: u64,
    pub limit: u64,
}

impl Measured {
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.spent) * 100 / u128::from(self.limit.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    pub fn level(&self) -> Level {
        match self.percent() {
            _ if self.spent >= self.limit => Level::Reached,
            percent if percent >= NOTICE_PERCENT => Level::Near,
            _ => Level::Fine,
        }
    }

    /// `$16.20 of $20.00`.
    pub fn words(&self) -> String {
        match self.unit {
            Unit::Usd => format!("{} of {}", dollars(self.spent), dollars(self.limit)),
            Unit::Tokens => format!("{} of {} tokens", number(self.spent), number(self.limit)),
            Unit::Wall => format!("{} of {}", span(self.spent), span(self.limit)),
        }
    }
}

/// A budget compared with what was spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The highest level of its units.
    pub level: Level,
    /// The units that have a limit.
    pub units: Vec<Measured>,
}

impl Standing {
    pub fn of(spent: &Spent, limit: &Allowance) -> Self {
        let all = [
            (Unit::Usd, spent.usd_micros, limit.usd_micros),
            (Unit::Tokens, spent.tokens, limit.tokens),
            (Unit::Wall, spent.wall_ms, limit.wall_ms),
        ];
        let units = all.into_iter().filter_map(|(unit, spent, limit)| Some(Measured { unit, spent, limit: limit? }));
        let units: Vec<Measured> = units.collect();
        let level = units.iter().map(Measured::level).max().unwrap_or_default();
        Self { level, units }
    }

    /// Every unit with its percentage: `$16.20 of $20.00 (81 %), 1,000 of 5,000 tokens (20 %)`.
    pub fn words(&self) -> String {
        let words = self.units.iter().map(|unit| format!("{} ({} %)", unit.words(), unit.percent()));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The units that are at its level, without percentages: what a notice is about.
    pub fn at_level(&self) -> String {
        let at = self.units.iter().filter(|unit| unit.level() == self.level);
        at.map(Measured::words).collect::<Vec<_>>().join(", ")
    }

    /// The limits of those units: `$20.00`.
    pub fn limits(&self) -> String {
        let limit = |unit: &Measured| match unit.unit {
            Unit::Usd => dollars(unit.limit),
            Unit::Tokens => format!("{} tokens", number(unit.limit)),
            Unit::Wall => span(unit.limit),
        };
        self.units.iter().map(limit).collect::<Vec<_>>().join(", ")
    }
}

/// An amount in dollars and cents, from millionths. An amount below a cent is not shown as zero.
pub fn dollars(micros: u64) -> String {
    let cents = micros.saturating_add(MICROS / 200) / (MICROS / 100);
    match (micros, cents) {
        (1.., 0) => "<$0.01".to_owned(),
        _ => format!("${}.{:02}", grouped_u64(cents / 100), cents % 100),
    }
}

fn number(count: u64) -> String {
    grouped_u64(count)
}

fn grouped_u64(count: u64) -> String {
    grouped(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A span of time to the second: a budget is not counted in milliseconds.
fn span(ms: u64) -> String {
    if ms < 1_000 { duration::format(ms) } else { duration::format(ms / 1_000 * 1_000) }
}
