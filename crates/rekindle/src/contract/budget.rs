//! Budgets and quiet hours, for programs.

use rekindle_core::budget::{Allowance, MICROS, Scope, Spending, Spent};
use rekindle_core::time::Time;
use rekindle_core::view::{BudgetRow, BudgetState};
use serde::Serialize;

use crate::ui::stamp;

#[derive(Serialize)]
pub(crate) struct BudgetJson {
    task: TaskBudgetJson,
    run: ScopeJson,
    day: ScopeJson,
    /// The day in the person's time zone that `day` is about; `None` if no daily budget is set.
    date: Option<String>,
    /// When the quiet hours end, while they last.
    quiet_until: Option<String>,
}

/// The budget that each task has.
#[derive(Serialize)]
struct TaskBudgetJson {
    limit: LimitJson,
}

#[derive(Serialize)]
struct ScopeJson {
    /// The current limit, including what a person raised it by.
    limit: LimitJson,
    spent: SpentJson,
    state: BudgetState,
    raised: u32,
    question: Option<u64>,
}

#[derive(Serialize)]
struct LimitJson {
    usd: Option<f64>,
    tokens: Option<u64>,
    wall_ms: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct SpentJson {
    usd: f64,
    tokens: u64,
    unpriced_tokens: u64,
    wall_ms: u64,
}

#[expect(clippy::cast_precision_loss, reason = "no budget is what a double cannot hold to the cent")]
fn usd(micros: u64) -> f64 {
    micros as f64 / MICROS as f64
}

impl LimitJson {
    fn of(limit: &Allowance) -> Self {
        Self { usd: limit.usd_micros.map(usd), tokens: limit.tokens, wall_ms: limit.wall_ms }
    }
}

impl SpentJson {
    fn of(spent: &Spent) -> Self {
        let Spent { usd_micros, tokens, unpriced_tokens, wall_ms } = *spent;
        Self { usd: usd(usd_micros), tokens, unpriced_tokens, wall_ms }
    }
}

impl BudgetJson {
    pub(super) fn of(row: &BudgetRow, now: Time) -> Self {
        let scope = |scope: Scope| {
            let (spending, limit) = (row.spending(scope), row.limits.of(scope));
            ScopeJson {
                limit: LimitJson::of(&limit.raised(spending.raised)),
                spent: SpentJson::of(&spending.by(now)),
                state: BudgetState::of(spending, limit, now),
                raised: spending.raised,
                question: spending.question.map(|id| id.0),
            }
        };
        Self {
            task: TaskBudgetJson { limit: LimitJson::of(&row.limits.task) },
            run: scope(Scope::Run),
            day: scope(Scope::Day),
            date: Some(row.date.clone()).filter(|date| !date.is_empty()),
            quiet_until: row.quiet_until.filter(|until| *until > now).map(stamp),
        }
    }
}

/// What one task has spent of its budget.
#[derive(Serialize)]
pub(super) struct TaskSpentJson {
    #[serde(flatten)]
    spent: SpentJson,
    state: BudgetState,
}

impl TaskSpentJson {
    pub(super) fn of(spending: &Spending, limit: &Allowance, now: Time) -> Self {
        Self { spent: SpentJson::of(&spending.by(now)), state: BudgetState::of(spending, limit, now) }
    }
}
