//! The rows that readers see, in the store's words.

use rekindle_core::state::State;
use rekindle_core::view::{self, Touched};
use serde::Serialize;

use crate::store::{Row, Table};

/// Every row of the state.
#[must_use]
pub fn all_rows(state: &State) -> Vec<Row> {
    touched_rows(state, &Touched::everything(state))
}

/// The rows that events have touched.
#[must_use]
pub fn touched_rows(state: &State, touched: &Touched) -> Vec<Row> {
    let Some(run) = state.run.as_ref().map(|run| run.id.to_string()) else { return Vec::new() };
    let mut rows = Vec::new();
    let mut add = |table, key: String, order, json| rows.push(Row { table, run: run.clone(), key, order, json });
    if let Some(row) = view::run_row(state).filter(|_| touched.run) {
        add(Table::Run, row.id.clone(), 0, json(&row));
    }
    for id in &touched.tasks {
        if let (Some(row), Some(task)) = (view::task_row(state, id), state.tasks.get(id)) {
            add(Table::Task, id.to_string(), task.index as u64, json(&row));
        }
    }
    for id in &touched.attempts {
        if let Some(row) = view::attempt_row(state, *id) {
            add(Table::Attempt, id.0.to_string(), id.0, json(&row));
        }
    }
    for id in &touched.questions {
        if let Some(row) = view::question_row(state, *id) {
            add(Table::Question, id.0.to_string(), id.0, json(&row));
        }
    }
    rows
}

fn json<T: Serialize>(row: &T) -> String {
    serde_json::to_string(row).expect("a row holds nothing that JSON cannot")
}
