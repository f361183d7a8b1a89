//! How far a run is, in the numbers that its messages to people show. Taken at one moment and recorded with the event that
//! the message is about, so that it says the same whenever it is read.

use serde::{Deserialize, Serialize};

use crate::review::Stage;
use crate::state::{State, Task, TaskState};
use crate::view::Counts;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub complete: u32,
    pub total: u32,
    /// Tasks that have started and do not wait for an auditor.
    pub in_progress: u32,
    /// Tasks whose work an auditor has to prove.
    pub pending_audit: u32,
    /// Tasks that could begin.
    pub available: u32,
    /// Tasks that wait for others, or for a person's answer.
    pub blocked: u32,
    /// Pairs of an open task and one that it still waits for.
    pub relationships: u32,
    /// Compactions of all agents so far.
    pub compactions: u32,
}

impl Progress {
    /// How far the run of a state is.
    pub fn of(state: &State) -> Self {
        let counts = Counts::of_state(state);
        let mut found = Self { total: small(counts.all), complete: small(counts.complete), ..Self::default() };
        for (id, task) in &state.tasks {
            if task.state.is_terminal() {
                continue;
            }
            let unmet = state.unmet_blockers(id).len();
            found.relationships += small(unmet);
            let audit = task.workflow.stage == Stage::Audit;
            let blocked = task.state == TaskState::Blocked || (task.state == TaskState::Pending && unmet > 0);
            match () {
                () if audit => found.pending_audit += 1,
                () if blocked => found.blocked += 1,
                () if is_begun(task) => found.in_progress += 1,
                () => found.available += 1,
            }
        }
        let kept: u32 = state.attempts.values().map(|attempt| attempt.cli_session.compactions).sum();
        found.compactions = kept + state.past.compactions;
        found
    }

    pub fn remaining(&self) -> u32 {
        self.total - self.complete.min(self.total)
    }
}

fn is_begun(task: &Task) -> bool {
    task.state == TaskState::InProgress || task.workflow.stage == Stage::Review
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
