//! The rows that readers see, in the store's format. What the state has dropped is in its row: such a row is kept as it is,
//! and if one is missing, all are derived from the log again.

use std::collections::BTreeMap;

use rekindle_core::apply::{apply, may_let_go};
use rekindle_core::brief::{Facts, TaskResult};
use rekindle_core::ids::{AttemptId, QuestionId, TaskId};
use rekindle_core::state::State;
use rekindle_core::view::{self, TaskRow, Touched};
use serde::{Deserialize, Serialize};

use super::load::{PAGE, decode};
use super::{Driver, Error};
use crate::store::{self, Read, Row, Table};
use crate::world::World;

/// Initial capacity for the text of one row: more than most need.
const ROW_BYTES: usize = 1_024;

/// Every row that the state can produce.
pub fn all_rows(state: &State) -> Vec<Row> {
    touched_rows(state, &Touched::everything(state))
}

/// The rows that events have touched.
pub fn touched_rows(state: &State, touched: &Touched) -> Vec<Row> {
    let Some(run) = state.run.as_ref().map(|run| run.id.to_string()) else { return Vec::new() };
    let mut rows = Vec::new();
    let mut add = |table, key: String, order, json| rows.push(Row { table, run: run.clone(), key, order, json });
    if let Some(row) = view::run_row(state).filter(|_| touched.run) {
        add(Table::Run, row.id.clone(), 0, json(&row));
    }
    for id in &touched.tasks {
        let ended = touched.ended.contains(id);
        let Some(task) = state.tasks.get(id).filter(|task| !task.settled || ended) else { continue };
        if let Some(row) = view::task_row(state, id) {
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
    // Most rows are longer than the default capacity.
    let mut json = Vec::with_capacity(ROW_BYTES);
    serde_json::to_writer(&mut json, row).expect("a row holds nothing that JSON cannot");
    String::from_utf8(json).expect("JSON is UTF-8")
}

/// How many touched tasks or attempts may wait for their rows: well before the state drops the first of them.
fn may_wait(state: &State) -> usize {
    state.limits.ended_kept as usize / 4
}

fn is_full(state: &State, touched: &Touched) -> bool {
    touched.tasks.len().max(touched.attempts.len()).max(touched.questions.len()) > may_wait(state)
}

impl<W: World> Driver<W> {
    /// Writes the rows of what events have touched before the state drops it: a batch may end more tasks than the state
    /// keeps.
    pub(super) fn put_rows_before_they_go(&mut self) {
        if is_full(&self.state, &self.pending.touched) {
            let touched = std::mem::take(&mut self.pending.touched);
            self.pending.batch.rows.extend(touched_rows(&self.state, &touched));
        }
    }

    /// Derives the rows of this run again; those of earlier runs, and those of what this one has dropped, stay as they are.
    pub(super) fn rebuild_rows(&mut self) -> Result<(), Error> {
        let current = self.state.run.as_ref().map(|run| run.id.to_string());
        let (mut rows, mut let_go) = (all_rows(&self.state), Vec::new());
        for table in Table::ALL {
            for row in self.store.rows(table, None)? {
                if Some(&row.run) != current.as_ref() {
                    rows.push(row);
                } else if is_let_go(&self.state, &row) {
                    let_go.push(row);
                }
            }
        }
        if is_whole(&self.state, &let_go) {
            rows.extend(let_go);
        } else {
            rows.retain(|row| Some(&row.run) != current.as_ref());
            rows.extend(rows_from_log(&*self.store)?.into_iter().filter(|row| Some(&row.run) == current.as_ref()));
        }
        Ok(self.store.replace_rows(rows)?)
    }

    /// The results of the current task's blockers that ended long ago, from their rows.
    pub(super) fn settled_results(&self, facts: &Facts) -> Vec<TaskResult> {
        let (Some(run), Some(current)) = (&self.state.run, facts.current()) else { return Vec::new() };
        let settled = |id: &&TaskId| self.state.tasks.get(*id).is_some_and(|task| task.settled);
        let result = |id: &TaskId| {
            // If a row cannot be read, the brief lacks one line, but the task does not lose its attempt.
            let row = self.store.row(Table::Task, run.id.as_str(), id.as_str()).ok()??;
            let result = serde_json::from_str::<TaskRow>(&row.json).ok()?.result?;
            (!result.trim().is_empty()).then(|| TaskResult { id: id.clone(), result, needed: true })
        };
        current.blocked_by.iter().filter(settled).filter_map(result).collect()
    }
}

/// Whether a stored row is one that the state can no longer produce.
fn is_let_go(state: &State, row: &Row) -> bool {
    let number = || row.key.parse::<u64>().ok();
    match row.table {
        Table::Run => false,
        Table::Task => TaskId::new(&row.key).is_ok_and(|id| state.tasks.get(&id).is_some_and(|task| task.settled)),
        Table::Attempt => number().is_some_and(|id| !state.attempts.contains_key(&AttemptId(id))),
        Table::Question => number().is_some_and(|id| !state.questions.contains_key(&QuestionId(id))),
    }
}

/// Whether there is a row for everything that the state has dropped, as it was when it ended.
fn is_whole(state: &State, rows: &[Row]) -> bool {
    #[derive(Deserialize)]
    struct Ended {
        #[serde(default)]
        state: String,
        #[serde(default)]
        epoch: u64,
    }
    let is_right = |row: &Row| {
        let Ok(found) = serde_json::from_str::<Ended>(&row.json) else { return false };
        match row.table {
            Table::Task => TaskId::new(&row.key).ok().is_some_and(|id| {
                let epoch = state.tasks.get(&id).map(|task| task.epoch.0);
                epoch == Some(found.epoch) && view::shown_state(state, &id).0 == found.state
            }),
            Table::Attempt => found.state == "ended",
            Table::Run | Table::Question => true,
        }
    };
    let count = |table: Table| rows.iter().filter(|row| row.table == table && is_right(row)).count() as u64;
    let settled = state.tasks.values().filter(|task| task.settled).count() as u64;
    let (attempts, questions) = (count(Table::Attempt), count(Table::Question));
    count(Table::Task) == settled && attempts == state.past.attempts && questions == state.past.questions
}

/// The rows of all runs according to the log, event by event.
pub fn rows_from_log(store: &(impl Read + ?Sized)) -> Result<Vec<Row>, Error> {
    let (mut state, mut seq, mut touched) = (State::default(), 0, Touched::default());
    let mut rows = BTreeMap::new();
    let mut put = |state: &State, touched: &mut Touched| {
        for row in touched_rows(state, &std::mem::take(touched)) {
            rows.insert((row.table, row.run.clone(), row.key.clone()), row);
        }
    };
    loop {
        let page = store.events(seq, PAGE)?;
        let Some(last) = page.last().map(|event| event.seq) else { break };
        for stored in &page {
            let event = decode(stored).map_err(|error| store::Error::Corrupt(error.to_string()))?;
            // The rows of a run are derived from its own state. What the state drops is in rows by then: a few tasks that
            // end again and again push the others out.
            if may_let_go(&event) || state.run.as_ref().is_some_and(|run| run.id != event.run) {
                put(&state, &mut touched);
            }
            apply(&mut state, &event);
            touched.add(&state, &event);
        }
        seq = last;
    }
    put(&state, &mut touched);
    Ok(rows.into_values().collect())
}
