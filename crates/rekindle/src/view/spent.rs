//! What agents have used, summed up for views.

use std::collections::BTreeMap;

use rekindle_core::ids::TaskId;
use rekindle_core::view::AttemptRow;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub tokens: u64,
    /// Dollars, as far as agents reported them or the user's prices determine them.
    pub cost_usd: Option<f64>,
    /// Tokens that rekindle itself sent to them: prompts beyond the plan's words, and messages.
    pub own_tokens: u64,
}

impl Spent {
    /// What all attempts have used.
    pub(crate) fn by_all(attempts: &[AttemptRow]) -> Self {
        let mut spent = Self::default();
        attempts.iter().for_each(|attempt| spent.add(attempt));
        spent
    }

    /// The same by task. An attempt that held several tasks counts in full for each: its usage cannot be divided.
    pub(crate) fn by_task(attempts: &[AttemptRow]) -> BTreeMap<TaskId, Self> {
        let mut tasks: BTreeMap<TaskId, Self> = BTreeMap::new();
        for attempt in attempts {
            for task in &attempt.tasks {
                tasks.entry(task.clone()).or_default().add(attempt);
            }
        }
        tasks
    }

    fn add(&mut self, attempt: &AttemptRow) {
        self.own_tokens = self.own_tokens.saturating_add(attempt.own_tokens);
        let Some(measure) = attempt.measure else { return };
        self.tokens = self.tokens.saturating_add(measure.usage.tokens());
        if let Some(cost) = attempt.cost_usd() {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}
