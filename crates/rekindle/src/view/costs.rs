//! Where the money of a run went: per proven task, by model, and on attempts that had to be repeated. Report and dashboard
//! use this.

use std::collections::BTreeMap;

use rekindle_core::cause::Cause;
use rekindle_core::view::{AttemptRow, TaskRow};
use serde::Serialize;

use super::Spent;

/// Shown for a model whose name its program does not report.
const UNKNOWN_MODEL: &str = "not told";

/// What a group of attempts used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CostGroup {
    pub attempts: usize,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}

impl CostGroup {
    fn add(&mut self, attempt: &AttemptRow) {
        self.attempts += 1;
        self.tokens = self.tokens.saturating_add(attempt.measure.map_or(0, |measure| measure.usage.tokens()));
        if let Some(cost) = attempt.cost_usd() {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Costs {
    /// Tasks that are complete and proven.
    pub proven_tasks: usize,
    /// Everything that was spent, divided by these tasks.
    pub usd_per_proven_task: Option<f64>,
    pub tokens_per_proven_task: Option<u64>,
    pub by_model: BTreeMap<String, CostGroup>,
    /// Attempts that did not complete their task, by cause.
    pub by_retry_cause: BTreeMap<String, CostGroup>,
}

impl Costs {
    pub(crate) fn of(tasks: &[TaskRow], attempts: &[AttemptRow]) -> Self {
        let proven = |task: &&TaskRow| task.state == "complete" && !task.unproven && !task.by_operator;
        let proven_tasks = tasks.iter().filter(proven).count();
        let mut costs = Self { proven_tasks, ..Self::default() };
        for attempt in attempts {
            let model = attempt.model.clone().unwrap_or_else(|| UNKNOWN_MODEL.to_owned());
            costs.by_model.entry(model).or_default().add(attempt);
            let again = attempt.cause.as_ref().filter(|cause| **cause != Cause::Completed.name());
            if let Some(cause) = again {
                costs.by_retry_cause.entry(cause.clone()).or_default().add(attempt);
            }
        }
        let all = Spent::by_all(attempts);
        if let Some(each) = u32::try_from(proven_tasks).ok().filter(|each| *each > 0) {
            costs.usd_per_proven_task = all.cost_usd.map(|cost| cost / f64::from(each));
            costs.tokens_per_proven_task = Some(all.tokens / u64::from(each)).filter(|tokens| *tokens > 0);
        }
        costs
    }

    /// Whether there is anything to show.
    pub(crate) fn is_known(&self) -> bool {
        self.by_model.values().any(|group| group.tokens > 0 || group.cost_usd.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rekindle_core::activity::{Measure, Usage};

    use super::*;
    use crate::picture::sample::{attempt, task};

    fn used(id: u64, model: Option<&str>, cause: Option<&str>, tokens: u64, micros: Option<u64>) -> AttemptRow {
        let usage = Usage { input_tokens: tokens, ..Usage::default() };
        AttemptRow {
            model: model.map(str::to_owned),
            cause: cause.map(str::to_owned),
            measure: Some(Measure { usage, ..Measure::default() }),
            cost_micros: micros,
            ..attempt(id, "dev-a", &["a"], "ended")
        }
    }

    #[test]
    fn money_is_told_for_each_proven_task_by_model_and_by_cause() {
        let unproven = TaskRow { unproven: true, ..task("c", "", "complete", &[]) };
        let tasks = [task("a", "", "complete", &[]), task("b", "", "complete", &[]), unproven];
        let attempts = [
            used(1, Some("m1"), Some("crashed"), 100, Some(1_000_000)),
            used(2, Some("m1"), Some("completed"), 200, Some(2_000_000)),
            used(3, None, Some("completed"), 50, None),
            used(4, Some("m2"), None, 50, Some(3_000_000)),
        ];
        let costs = Costs::of(&tasks, &attempts);
        assert_eq!((costs.proven_tasks, costs.usd_per_proven_task), (2, Some(3.0)));
        assert_eq!(costs.tokens_per_proven_task, Some(200));
        assert_eq!(costs.by_model["m1"], CostGroup { attempts: 2, tokens: 300, cost_usd: Some(3.0) });
        assert_eq!(costs.by_model[UNKNOWN_MODEL], CostGroup { attempts: 1, tokens: 50, cost_usd: None });
        let again: Vec<_> = costs.by_retry_cause.keys().map(String::as_str).collect();
        assert_eq!(again, ["crashed"], "what completed, and what still runs, is no retry");
        assert!(costs.is_known() && !Costs::of(&tasks, &[]).is_known());
    }
}
