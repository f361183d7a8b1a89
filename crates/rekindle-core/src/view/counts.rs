//! How many tasks are in which state: the one count that every view and every file for people shows.

use super::TaskRow;
use crate::state::{State, TaskState};

/// Counts of tasks by state. Progress is shown as `complete` of `all`: a failed task is never counted as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub complete: usize,
    pub failed: usize,
    pub skipped: usize,
    pub all: usize,
}

impl Counts {
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a TaskRow>) -> Self {
        let ended = |task: &TaskRow| match task.state.as_str() {
            "complete" => Some(TaskState::Complete),
            "failed" => Some(TaskState::Failed),
            "skipped" => Some(TaskState::Skipped),
            _ => None,
        };
        Self::counted(tasks.into_iter().map(ended))
    }

    pub fn of_state(state: &State) -> Self {
        Self::counted(state.tasks.values().map(|task| Some(task.state)))
    }

    fn counted(tasks: impl Iterator<Item = Option<TaskState>>) -> Self {
        let mut counts = Self::default();
        for task in tasks {
            counts.all += 1;
            match task {
                Some(TaskState::Complete) => counts.complete += 1,
                Some(TaskState::Failed) => counts.failed += 1,
                Some(TaskState::Skipped) => counts.skipped += 1,
                Some(TaskState::Pending | TaskState::InProgress | TaskState::Blocked) | None => {}
            }
        }
        counts
    }

    pub fn open(&self) -> usize {
        self.all.saturating_sub(self.complete + self.failed + self.skipped)
    }

    /// How many of `cells` a bar fills.
    pub fn filled(&self, cells: usize) -> usize {
        (self.complete * cells).checked_div(self.all).unwrap_or(0).min(cells)
    }

    /// The progress in figures: `3/9`.
    pub fn progress(&self) -> String {
        format!("{}/{}", self.complete, self.all)
    }

    /// The progress in words, followed by tasks that ended otherwise, if any: `3/9 complete, 1 failed`.
    pub fn words(&self) -> String {
        let mut words = format!("{} complete", self.progress());
        for (many, what) in [(self.failed, "failed"), (self.skipped, "skipped")] {
            if many > 0 {
                words += &format!(", {many} {what}");
            }
        }
        words
    }
}
