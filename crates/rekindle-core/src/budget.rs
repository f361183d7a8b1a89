//! Budgets in numbers: what may be spent, what was spent, and how the two compare. The consequences are decided in
//! `decide/budget`; the spending is summed up in `apply/budget`.
//!
//! Money is counted in millionths of a dollar, as whole numbers: sums stay exact, however often they are added up again.

mod bill;
mod standing;

use serde::{Deserialize, Serialize};

use crate::ids::QuestionId;
use crate::time::Time;

pub use bill::{Bill, Price, micros, price_of};
pub use standing::{Level, Measured, Standing, Unit, dollars};

/// Millionths in a dollar.
pub const MICROS: u64 = 1_000_000;

/// Percentage of a limit at which a person is first notified.
pub const NOTICE_PERCENT: u64 = 80;

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each task for itself.
    Task,
    Run,
    /// All runs of the project on one calendar day.
    Day,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Run => "run",
            Self::Day => "day",
        }
    }
}

/// What may be spent; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Time in which an agent was running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

impl Allowance {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The same after it was raised this many times by its original amount.
    #[must_use]
    pub fn raised(&self, times: u32) -> Self {
        let more = |limit: Option<u64>| limit.map(|limit| limit.saturating_mul(u64::from(times) + 1));
        Self { usd_micros: more(self.usd_micros), tokens: more(self.tokens), wall_ms: more(self.wall_ms) }
    }
}

/// The configured budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub task: Allowance,
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub run: Allowance,
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub day: Allowance,
}

impl Budgets {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn of(&self, scope: Scope) -> &Allowance {
        match scope {
            Scope::Task => &self.task,
            Scope::Run => &self.run,
            Scope::Day => &self.day,
        }
    }

    /// Whether decisions depend on the usage that agents report: then none of it may be recorded late.
    pub fn counts_usage(&self) -> bool {
        [&self.task, &self.run, &self.day].iter().any(|limit| limit.usd_micros.is_some() || limit.tokens.is_some())
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    #[serde(skip_serializing_if = "is_zero")]
    pub usd_micros: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Those of the tokens that have no known price.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_tokens: u64,
    /// Time in which an agent was running, without the period that is running now.
    #[serde(skip_serializing_if = "is_zero")]
    pub wall_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How one task, one run or one day compares with its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    #[serde(flatten)]
    pub spent: Spent,
    /// Since when an agent is running, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Time>,
    /// How often a person raised the limit by its original amount.
    #[serde(skip_serializing_if = "none_of")]
    pub raised: u32,
    /// The highest level that was reported for the current limit.
    #[serde(skip_serializing_if = "Level::is_fine")]
    pub told: Level,
    /// A person lets it continue over its limit: a task for one more attempt, a run or a day to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// A person took it back: nothing starts, and nobody is asked again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub handed_back: bool,
    /// The question that waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn none_of(times: &u32) -> bool {
    *times == 0
}

impl Spending {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What was spent up to a moment, including the period that is running now.
    pub fn by(&self, now: Time) -> Spent {
        let running = self.running_since.map_or(0, |since| now.since_ms(since));
        Spent { wall_ms: self.spent.wall_ms.saturating_add(running), ..self.spent }
    }

    /// Starts or stops the clock.
    pub fn run_clock(&mut self, runs: bool, now: Time) {
        match (runs, self.running_since) {
            (true, None) => self.running_since = Some(now),
            (false, Some(_)) => {
                self.spent = self.by(now);
                self.running_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Takes out what an attempt was billed before, and puts in what it is billed now.
    pub fn rebill(&mut self, before: &Bill, now: &Bill) {
        let change = |sum: &mut u64, before: u64, now: u64| *sum = sum.saturating_add(now).saturating_sub(before);
        change(&mut self.spent.usd_micros, before.usd_micros, now.usd_micros);
        change(&mut self.spent.tokens, before.tokens(), now.tokens());
        change(&mut self.spent.unpriced_tokens, before.unpriced_tokens, now.unpriced_tokens);
    }

    /// Whether this budget allows a start.
    pub fn admits(&self, limit: &Allowance, now: Time) -> bool {
        self.goes_on || self.level(limit, now) != Level::Reached
    }

    pub fn level(&self, limit: &Allowance, now: Time) -> Level {
        Standing::of(&self.by(now), &limit.raised(self.raised)).level
    }
}

/// What is known about money across all tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    pub run: Spending,
    pub day: Spending,
    /// The calendar day, in the person's time zone, that `day` is about.
    pub date: String,
    /// When the quiet hours end, by the wall clock, while they last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_until: Option<Time>,
}

impl Ledger {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What the calendar says in the person's time zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// The date, as `2026-11-18`.
    pub date: String,
    /// When the quiet hours end, by the wall clock, while they last.
    pub quiet_until: Option<Time>,
}

/// What a person may answer when a budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The limit grows by its original amount.
    Raise,
    /// A task has one more attempt; a run or a day is not asked about again.
    GoOn,
    /// Nothing new starts; what is running finishes.
    HandBack,
    Stop,
    /// Nobody answered: the limit was raised in the configuration, or the day is over.
    Withdrawn,
}

impl Choice {
    /// The choices that a person has, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Raise, Self::GoOn, Self::HandBack, Self::Stop];

    /// The word for this choice in an answer.
    pub fn word(self) -> &'static str {
        match self {
            Self::Raise => "raise",
            Self::GoOn => "go on",
            Self::HandBack => "hand back",
            Self::Stop => "stop",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The choice that an answer means: its word, alone or at the beginning of the option.
    pub fn of(answer: &str) -> Option<Self> {
        let typed = answer.trim().to_lowercase().replace(['-', '_'], " ");
        let word = typed.split(':').next().unwrap_or_default().trim();
        Self::ALL.into_iter().find(|choice| choice.word() == word)
    }
}

#[cfg(test)]
mod tests;
