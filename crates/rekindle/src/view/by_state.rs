//! The tasks and attempts of a run by their state: what a large run shows is a small part of it, and the rest is counted.

use rekindle_core::view::{AttemptRow, TaskRow};
use rekindle_engine::store::{Read, Table};

#[cfg(test)]
use super::View;
use super::{Counts, RunView, parsed};
use crate::error::Result;

impl RunView<'_> {
    /// How many tasks there are in each state.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn task_counts(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.reader.counts_by_state(Table::Task, &self.row.id)?)
    }

    /// How many attempts there are in each state.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn attempt_counts(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.reader.counts_by_state(Table::Attempt, &self.row.id)?)
    }

    /// The first tasks in any of these states, in the plan's order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tasks_in(&self, states: &[&str], limit: usize) -> Result<Vec<TaskRow>> {
        parsed(Table::Task, &self.reader.rows_in(Table::Task, &self.row.id, states, limit)?)
    }

    /// The first attempts in any of these states, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn attempts_in(&self, states: &[&str], limit: usize) -> Result<Vec<AttemptRow>> {
        parsed(Table::Attempt, &self.reader.rows_in(Table::Attempt, &self.row.id, states, limit)?)
    }
}

impl Counts {
    /// The counts of tasks by state: the one place that knows which of them are told apart.
    pub fn by_state<'a>(counted: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let mut counts = Self::default();
        for (state, count) in counted {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            counts.all += count;
            match state {
                "complete" => counts.complete += count,
                "failed" => counts.failed += count,
                "skipped" => counts.skipped += count,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
impl View {
    /// Rows of derived tables that were read so far.
    pub fn rows_read(&self) -> u64 {
        self.reader.as_ref().map_or(0, rekindle_engine::store::SqliteReader::rows_read)
    }
}
