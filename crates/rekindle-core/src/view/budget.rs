//! Budgets and quiet hours, as a table shows them: the numbers, and the one line about each that every view shows.

use serde::{Deserialize, Serialize};

use crate::budget::{Allowance, Budgets, Level, Scope, Spending, Standing};
use crate::ids::QuestionId;
use crate::state::State;
use crate::text::grouped;
use crate::time::Time;

/// The state of a run's budgets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRow {
    /// What is configured.
    pub limits: Budgets,
    pub run: Spending,
    pub day: Spending,
    /// The day in the person's time zone.
    pub date: String,
    /// When the current quiet hours end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_until: Option<Time>,
}

/// The state of one budget, as a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetState {
    /// There is no limit.
    Open,
    Fine,
    Near,
    /// It is used up, and a person allowed the run to continue.
    GoesOn,
    Reached,
    /// It is used up, and a person is asked.
    Asks,
    /// It is used up, and a person took the work back.
    HandedBack,
}

impl BudgetState {
    pub fn of(spending: &Spending, limit: &Allowance, now: Time) -> Self {
        match spending.level(limit, now) {
            _ if limit.is_none() => Self::Open,
            Level::Fine => Self::Fine,
            Level::Near => Self::Near,
            Level::Reached if spending.goes_on => Self::GoesOn,
            Level::Reached if spending.question.is_some() => Self::Asks,
            Level::Reached if spending.handed_back => Self::HandedBack,
            Level::Reached => Self::Reached,
        }
    }

    /// Whether it needs a person's attention.
    pub fn warns(self) -> bool {
        !matches!(self, Self::Open | Self::Fine)
    }

    /// Whether it keeps new work from starting.
    pub fn stops(self) -> bool {
        matches!(self, Self::Reached | Self::Asks | Self::HandedBack)
    }
}

impl BudgetRow {
    pub(super) fn of(state: &State) -> Self {
        let ledger = &state.budget;
        let quiet_until = ledger.quiet_until.map(|until| state.clocks.at_wall(until));
        let (limits, date) = (state.limits.budget, ledger.date.clone());
        Self { limits, run: ledger.run, day: ledger.day, date, quiet_until }
    }

    /// The run's or the day's.
    pub fn spending(&self, scope: Scope) -> &Spending {
        if scope == Scope::Day { &self.day } else { &self.run }
    }

    /// The run's or day's budget that keeps everything from starting, and the question about it.
    pub fn stops(&self, now: Time) -> Option<(Scope, Option<QuestionId>)> {
        let stops = |scope: &Scope| BudgetState::of(self.spending(*scope), self.limits.of(*scope), now).stops();
        let scope = [Scope::Run, Scope::Day].into_iter().find(stops)?;
        Some((scope, self.spending(scope).question))
    }

    pub fn is_quiet(&self, now: Time) -> bool {
        self.quiet_until.is_some_and(|until| until > now)
    }

    /// One line for each of the run's and the day's budgets that has a limit.
    pub fn lines(&self, now: Time) -> Vec<(BudgetState, String)> {
        let limited = [Scope::Run, Scope::Day].into_iter().filter(|scope| !self.limits.of(*scope).is_none());
        let stands = limited.map(|scope| (scope, self.spending(scope), self.limits.of(scope)));
        stands
            .map(|(scope, spending, limit)| {
                (BudgetState::of(spending, limit, now), line(scope.name(), spending, limit, now))
            })
            .collect()
    }
}

/// The state of one budget in words: `run $16.20 of $20.00 (81 %), most is used`.
pub fn line(name: &str, spending: &Spending, limit: &Allowance, now: Time) -> String {
    let standing = Standing::of(&spending.by(now), &limit.raised(spending.raised));
    let then = match BudgetState::of(spending, limit, now) {
        BudgetState::Open | BudgetState::Fine => String::new(),
        BudgetState::Near => ", most is used".to_owned(),
        BudgetState::GoesOn => ", used up; you let it go on".to_owned(),
        BudgetState::Reached => ", used up: nothing new starts".to_owned(),
        BudgetState::Asks => match spending.question {
            Some(question) => format!(", used up: answer question {question}"),
            None => ", used up".to_owned(),
        },
        BudgetState::HandedBack => ", used up: handed back to you".to_owned(),
    };
    let unpriced = match (limit.usd_micros, spending.spent.unpriced_tokens) {
        (Some(_), tokens @ 1..) => {
            let tokens = grouped(usize::try_from(tokens).unwrap_or(usize::MAX));
            format!("; {tokens} tokens have no price yet ([prices])")
        }
        _ => String::new(),
    };
    format!("{name} {}{then}{unpriced}", standing.words())
}
