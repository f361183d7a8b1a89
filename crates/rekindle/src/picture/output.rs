//! What agents printed before they failed, by task: the evidence that every view shows beside a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::view::{AttemptRow, TaskRow, number_of};
use rekindle_engine::last_output::{self, LastOutput};
use serde::{Serialize, Serializer};

use crate::error::Result;
use crate::view::RunView;

/// Most tasks whose agents' output is read: if a run fails everywhere, the newest failures say enough.
const TASKS_MAX: usize = 256;

/// What the agent of a task printed before it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskOutput {
    #[serde(serialize_with = "as_number")]
    pub attempt: AttemptId,
    /// Which attempt at the task it is, counted from 1.
    pub number: u32,
    pub agent: String,
    pub cause: String,
    /// The line that says best what went wrong.
    pub error: Option<String>,
    /// The last lines, oldest first.
    pub lines: Vec<String>,
}

fn as_number<S: Serializer>(attempt: &AttemptId, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_u64(attempt.0)
}

impl TaskOutput {
    /// The heading above the lines.
    pub(crate) fn heading(&self) -> String {
        format!("last output of attempt {} ({})", self.number, self.cause.replace('_', " "))
    }

    /// The lines in the order in which they are shown: the error first.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        let repeated = self.lines.len() == 1;
        self.error.iter().filter(move |_| !repeated).chain(&self.lines).map(String::as_str)
    }
}

pub(crate) type Outputs = Arc<BTreeMap<TaskId, TaskOutput>>;

/// Reads what is not known yet: the output of an attempt that has ended does not change.
pub(crate) fn read(
    run: &RunView<'_>,
    tasks: &[TaskRow],
    attempts: &[AttemptRow],
    known: Option<&Outputs>,
) -> Result<Outputs> {
    let mut failing: Vec<(&TaskRow, &AttemptRow)> =
        tasks.iter().filter_map(|task| Some((task, last_output::failing(task, attempts)?))).collect();
    failing.sort_by_key(|(_, attempt)| std::cmp::Reverse(attempt.attempt));
    let mut outputs = BTreeMap::new();
    for (task, attempt) in failing.into_iter().take(TASKS_MAX) {
        let before = known.and_then(|known| known.get(&task.id)).filter(|output| output.attempt == attempt.attempt);
        let output = match before {
            Some(output) => Some(output.clone()),
            None => run.last_output(attempt)?.map(|output| of(output, &task.id, attempt, attempts)),
        };
        outputs.extend(output.map(|output| (task.id.clone(), output)));
    }
    Ok(Arc::new(outputs))
}

fn of(LastOutput { error, lines }: LastOutput, task: &TaskId, row: &AttemptRow, attempts: &[AttemptRow]) -> TaskOutput {
    TaskOutput {
        attempt: row.attempt,
        number: number_of(attempts, task, row.attempt).unwrap_or(1),
        agent: row.name.to_string(),
        cause: row.cause.clone().unwrap_or_default(),
        error,
        lines,
    }
}
