//! Attempts as tables show them, and how they are numbered for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::activity::{Measure, TOKEN_BYTES};
use crate::budget::MICROS;
use crate::cause::Cause;
use crate::ids::{AgentName, AttemptId, Epoch, TaskId};
use crate::last_words;
use crate::role::Role;
use crate::state::{Attempt, AttemptPhase, State, TaskState};
use crate::strategy::Strategy;
use crate::team::{Class, class_of};
use crate::time::Time;

/// An agent's attempt, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRow {
    pub attempt: AttemptId,
    pub name: AgentName,
    /// Which `[agents.NAME]` runs it.
    pub cli: String,
    pub role: Role,
    /// `starting`, `running`, `stopping`, `exited` or `ended`.
    pub state: String,
    pub pid: Option<u32>,
    pub shim_pid: Option<u32>,
    /// The task it is working on.
    pub task: Option<TaskId>,
    pub tasks: Vec<TaskId>,
    pub epoch: Epoch,
    /// When it was decided on.
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub cause: Option<String>,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub strategy: Strategy,
    #[serde(default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// What it has used, and how full its context is; `None` if its program does not report it.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// Millionths of a dollar, as its program reports or by the user's prices; `None` if neither is known.
    #[serde(default)]
    pub cost_micros: Option<u64>,
    /// Tokens that rekindle itself sent to it: its prompt without the plan's text, and messages.
    #[serde(default)]
    pub own_tokens: u64,
    /// How often its context was compacted.
    #[serde(default)]
    pub compactions: u32,
    /// What it said last, in one short line, if it left work open.
    #[serde(default)]
    pub last_words: Option<String>,
    /// The state of a live agent in the team.
    #[serde(default)]
    pub class: Option<Class>,
    /// Its attempt number at each task that it has started, counted from 1.
    #[serde(default)]
    pub numbers: BTreeMap<TaskId, u32>,
}

impl AttemptRow {
    /// Its cost in dollars, if known.
    #[expect(clippy::cast_precision_loss, reason = "no attempt costs what a double cannot hold to the cent")]
    pub fn cost_usd(&self) -> Option<f64> {
        let billed = self.cost_micros.map(|micros| micros as f64 / MICROS as f64);
        // A row of an earlier version has only the cost that the program reported.
        billed.or_else(|| self.measure.and_then(|measure| measure.usage.cost_usd))
    }

    /// Its attempt number at its current task; `None` in rows of earlier versions.
    pub fn number(&self) -> Option<u32> {
        self.numbers.get(self.task.as_ref()?).copied()
    }
}

/// The number of an attempt at a task, counted from 1 for people, in the order in which the attempts started it. Rows of
/// earlier versions do not record that; for them it is the order in which the attempts were decided on.
pub fn number_of(attempts: &[AttemptRow], task: &TaskId, attempt: AttemptId) -> Option<u32> {
    let of_task = || attempts.iter().filter(|row| row.tasks.contains(task));
    let place = of_task().position(|row| row.attempt == attempt)?;
    let told = of_task().nth(place).and_then(|row| row.numbers.get(task).copied());
    told.or_else(|| u32::try_from(place).ok().map(|place| place + 1))
}

pub fn attempt_row(state: &State, id: AttemptId) -> Option<AttemptRow> {
    let attempt = state.attempts.get(&id)?;
    let name = match attempt.phase {
        AttemptPhase::Starting | AttemptPhase::Running if attempt.stop.is_some() => "stopping",
        AttemptPhase::Starting => "starting",
        AttemptPhase::Running => "running",
        AttemptPhase::Exited => "exited",
        AttemptPhase::Ended => "ended",
    };
    let open = state.open_tasks(id);
    let current = open.iter().find(|task| state.tasks[*task].state == TaskState::InProgress);
    Some(AttemptRow {
        attempt: id,
        name: attempt.agent.clone(),
        cli: attempt.cli.clone(),
        role: attempt.role,
        state: name.to_owned(),
        // After a process has ended, its id may belong to an unrelated process.
        pid: attempt.pid.filter(|_| attempt.is_live()),
        shim_pid: attempt.shim_pid.filter(|_| attempt.is_live()),
        task: current.or_else(|| attempt.tasks.last()).cloned(),
        tasks: attempt.tasks.clone(),
        epoch: attempt.epoch,
        started_at: attempt.dispatched_at,
        ended_at: attempt.ended_at,
        cause: attempt.cause.as_ref().map(ToString::to_string),
        kind: state.limits.traits_of(&attempt.cli).kind.clone(),
        strategy: attempt.cli_session.strategy,
        session_id: attempt.cli_session.session.clone(),
        model: attempt.cli_session.model.clone(),
        measure: attempt.cli_session.measured_at.map(|_| attempt.cli_session.measure),
        cost_micros: attempt.cli_session.bill.cost_micros(),
        own_tokens: attempt.cli_session.own_bytes / TOKEN_BYTES,
        compactions: attempt.cli_session.compactions,
        last_words: last_words_of(attempt),
        class: class_of(state, id),
        numbers: attempt.numbers.clone(),
    })
}

/// What an attempt said last, if it left work open.
fn last_words_of(attempt: &Attempt) -> Option<String> {
    let left_work = attempt.cause.as_ref().is_some_and(|cause| *cause != Cause::Completed);
    left_work.then(|| last_words::short(&attempt.cli_session.last_words)).flatten()
}
