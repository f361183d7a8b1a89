//! What the commands read: the newest run's rows, events and log lines, typed. It only reads, and works with and without
//! a living coordinator.

mod beside;
mod costs;
mod kinds;
mod spent;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use rekindle_core::event::Cleaned;
use rekindle_core::ids::{AgentName, AttemptId, TaskId};
use rekindle_core::plan::nearest::nearest;
use rekindle_core::retention::Part;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, QuestionRow, RunRow, TaskRow};
use rekindle_engine::caps::{self, Held};
use rekindle_engine::clean;
use rekindle_engine::evidence;
use rekindle_engine::last_output::{self, LastOutput};
use rekindle_engine::state_dir::{Owner, StateDir};
use rekindle_engine::store::{self, Lag, Read, StoredEvent, StoredLine, Table};
use rekindle_shim::bundle::Bundle;
use serde::de::DeserializeOwned;

use crate::error::{CliError, Result};
use crate::patience;
use crate::project::Project;
use crate::ui::date_time;

pub(crate) use costs::{CostGroup, Costs};
pub(crate) use spent::Spent;

/// Events or lines fetched at once: large enough to be quick, small enough to hold in memory.
const PAGE: usize = 4_096;

/// Most hits that are read to find those of one run: older ones are found with more words.
const SEARCH_MAX: usize = 200_000;

/// Factor by which the search grows when too few hits belong to the run.
const SEARCH_GROWS: usize = 8;

/// How many runs an error names: the newest are meant most often.
const RUNS_NAMED: usize = 5;

/// What to type about a database that does not match its log.
pub(crate) const REPAIR: &str = "repair it by continuing the run: rekindle run PLAN, or rekindle resume";

/// The error for a file that is not our store: it is damage if our log is next to it.
fn unreadable(error: store::Error, dir: &StateDir) -> CliError {
    let logged = matches!(store::lag(dir, None), Ok(Some(_)));
    if logged && matches!(error, store::Error::Foreign { .. }) {
        return CliError::internal(error.to_string()).hint(REPAIR);
    }
    error.into()
}

/// A state directory, opened for reading.
pub(crate) struct View {
    dir: StateDir,
    reader: Option<Box<dyn Read>>,
}

/// The run that is shown, with access to everything that belongs to it.
pub(crate) struct RunView<'a> {
    pub row: RunRow,
    reader: &'a dyn Read,
    dir: &'a StateDir,
}

impl View {
    /// Opens the project's state for reading.
    pub(crate) fn open(project: &Project) -> Result<Self> {
        let path = project.state_dir.clone();
        patience::within(&project.state_dir, move || Self::open_at(&path))?
    }

    fn open_at(path: &Path) -> Result<Self> {
        let dir = StateDir::open(path)?;
        let reader = store::reader(&dir).map_err(|error| unreadable(error, &dir))?;
        // Read once: even if it can be opened, it may not be readable.
        reader.as_ref().map(|reader| reader.head()).transpose()?;
        let view = Self { dir, reader };
        match view.lag()? {
            // Nothing of it can be shown, and "no run" would be a lie.
            Some(lag @ Lag::Missing { .. }) => Err(CliError::internal(lag.to_string()).hint(REPAIR)),
            _ => Ok(view),
        }
    }

    /// How the database differs from its log, if it does: then what is shown is old, or not what happened.
    pub(crate) fn lag(&self) -> Result<Option<Lag>> {
        Ok(store::lag(&self.dir, self.reader.as_deref())?)
    }

    /// The coordinator that holds the state, if one is alive; its own record may be missing for an instant.
    pub(crate) fn coordinator(&self) -> Result<Option<Option<Owner>>> {
        match self.dir.owner()? {
            // Another machine may drive a run whose log is in a database.
            None if self.is_led()? => Ok(Some(None)),
            owner => Ok(owner),
        }
    }

    fn is_led(&self) -> Result<bool> {
        Ok(self.reader.as_ref().map_or(Ok(None), |reader| reader.leader())?.is_some())
    }

    /// What enforces the caps of this state's agents: as recorded for the newest live one, otherwise as it would be for an
    /// agent started from here.
    pub(crate) fn caps(&self, agents: &[AttemptRow]) -> Held {
        let living = agents.iter().filter(|agent| agent.ended_at.is_none()).map(|agent| agent.attempt).max();
        let record = living.and_then(|attempt| {
            let bundle = Bundle::open(&self.dir.path().join(format!("attempts/{:08}", attempt.0))).ok()??;
            bundle.shim().ok()??.caps
        });
        record.unwrap_or_else(caps::standing)
    }

    /// Whether there is a store to read; before a first coordinator there is none.
    pub(crate) fn has_store(&self) -> bool {
        self.reader.is_some()
    }

    /// The sequence number of the newest event: while it stays the same, nothing that events report has changed.
    pub(crate) fn last_event(&self) -> Result<u64> {
        Ok(self.reader.as_ref().map_or(Ok(0), |reader| reader.head().map(|head| head.last_seq))?)
    }

    /// Events of every run after a sequence number, oldest first.
    pub(crate) fn events_page(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>> {
        Ok(self.reader.as_ref().map_or(Ok(Vec::new()), |reader| reader.events(after, limit))?)
    }

    /// Whether snapshots of any run were removed.
    pub(crate) fn work_removed(&self) -> Result<bool> {
        let Some(reader) = self.reader.as_deref() else { return Ok(false) };
        Ok(clean::recorded(reader)?.iter().any(|cleaned| cleaned.parts.contains(&Part::Work)))
    }

    /// The newest run, if there ever was one.
    pub(crate) fn run(&self) -> Result<Option<RunView<'_>>> {
        let Some(reader) = self.reader.as_deref() else {
            return Ok(None);
        };
        let rows: Vec<RunRow> = rows(reader, Table::Run, None)?;
        let newest = rows.into_iter().max_by_key(|row| row.started_at);
        Ok(newest.map(|row| RunView { row, reader, dir: &self.dir }))
    }

    /// The newest run of a plan, if it ever had one.
    pub(crate) fn run_of(&self, plan: &str) -> Result<Option<RunView<'_>>> {
        let Some(reader) = self.reader.as_deref() else {
            return Ok(None);
        };
        let rows: Vec<RunRow> = rows(reader, Table::Run, None)?;
        let newest = rows.into_iter().filter(|row| row.plan == plan).max_by_key(|row| row.started_at);
        Ok(newest.map(|row| RunView { row, reader, dir: &self.dir }))
    }

    /// Every run, oldest first.
    pub(crate) fn runs(&self) -> Result<Vec<RunRow>> {
        let Some(reader) = self.reader.as_deref() else { return Ok(Vec::new()) };
        let mut rows: Vec<RunRow> = rows(reader, Table::Run, None)?;
        rows.sort_by_key(|row| row.started_at);
        Ok(rows)
    }

    /// The run with this id, or the only one whose id starts with it.
    pub(crate) fn run_named(&self, name: &str) -> Result<RunView<'_>> {
        let runs = self.runs()?;
        let fits: Vec<&RunRow> = runs.iter().filter(|row| row.id.starts_with(name)).collect();
        let found = runs.iter().find(|row| row.id == name).or(match fits[..] {
            [one] => Some(one),
            _ => None,
        });
        match (found, self.reader.as_deref()) {
            (Some(row), Some(reader)) => Ok(RunView { row: row.clone(), reader, dir: &self.dir }),
            _ => {
                let newest: Vec<&str> = runs.iter().rev().take(RUNS_NAMED).map(|row| row.id.as_str()).collect();
                let what = if fits.len() > 1 { "several runs begin with" } else { "there is no run" };
                Err(CliError::usage(format!("{what} `{name}`")).hint(format!("newest first: {}", newest.join(", "))))
            }
        }
    }

    /// The newest run.
    pub(crate) fn the_run(&self) -> Result<RunView<'_>> {
        self.run()?.ok_or_else(|| self.no_run())
    }

    /// The requested run, by its id or the beginning of it; otherwise the newest.
    pub(crate) fn chosen(&self, wanted: Option<&str>) -> Result<RunView<'_>> {
        wanted.map_or_else(|| self.the_run(), |name| self.run_named(name))
    }

    /// The error that there is no run, with how to start one.
    pub(crate) fn no_run(&self) -> CliError {
        let message = format!("there is no run in {}", self.dir.path().display());
        CliError::usage(message).hint("start one: rekindle run plan.md")
    }

    /// Whether nothing more will be written to the run for now: it has ended or is paused, and no coordinator is running.
    pub(crate) fn is_quiet(&self) -> Result<bool> {
        Ok(self.coordinator()?.is_none())
    }
}

impl RunView<'_> {
    /// Its tasks in the plan's order.
    pub(crate) fn tasks(&self) -> Result<Vec<TaskRow>> {
        rows(self.reader, Table::Task, Some(&self.row.id))
    }

    pub(crate) fn task(&self, name: &str) -> Result<TaskRow> {
        let tasks = self.tasks()?;
        let found = tasks.iter().position(|task| task.id.as_str() == name);
        match found {
            Some(at) => Ok(self.with_outputs(tasks.into_iter().nth(at).expect("a position just found"))),
            None => {
                let near = nearest(name, tasks.iter().map(|task| task.id.as_str()));
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "list them: rekindle task list".to_owned(),
                };
                Err(CliError::usage(format!("there is no task `{name}` in this run")).hint(hint))
            }
        }
    }

    /// The same task with all that its checks printed, as far as it is still kept.
    pub(crate) fn with_outputs(&self, mut task: TaskRow) -> TaskRow {
        if let Some(evidence) = &mut task.evidence {
            evidence::fill(self.dir.path(), evidence);
        }
        task
    }

    /// All attempts, oldest first.
    pub(crate) fn attempts(&self) -> Result<Vec<AttemptRow>> {
        rows(self.reader, Table::Attempt, Some(&self.row.id))
    }

    /// The newest attempt of every agent, in the order in which the agents first appeared.
    pub(crate) fn agents(&self) -> Result<Vec<AttemptRow>> {
        Ok(newest_of_each(self.attempts()?))
    }

    /// Questions, oldest first.
    pub(crate) fn questions(&self) -> Result<Vec<QuestionRow>> {
        rows(self.reader, Table::Question, Some(&self.row.id))
    }

    /// Calls `each` with every event of the run after a sequence number, and returns the last one that was read.
    pub(crate) fn events(&self, after: u64, mut each: impl FnMut(&StoredEvent) -> Result<()>) -> Result<u64> {
        let mut seq = after;
        loop {
            let page = self.reader.events(seq, PAGE)?;
            let Some(last) = page.last() else {
                return Ok(seq);
            };
            seq = last.seq;
            for event in page.iter().filter(|event| event.run == self.row.id) {
                each(event)?;
            }
        }
    }

    /// The run's events among the next `many` events after a sequence number.
    pub(crate) fn events_after(&self, after: u64, many: usize) -> Result<Vec<StoredEvent>> {
        let mut events = self.reader.events(after, many)?;
        events.retain(|event| event.run == self.row.id);
        Ok(events)
    }

    /// An agent that has had an attempt, by its name.
    pub(crate) fn agent(&self, name: &str) -> Result<AgentName> {
        let agents = self.agents()?;
        if let Some(agent) = agents.iter().find(|agent| agent.name.as_str() == name) {
            return Ok(agent.name.clone());
        }
        let near = nearest(name, agents.iter().map(|agent| agent.name.as_str()));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list them: rekindle status".to_owned(),
        };
        Err(CliError::usage(format!("no agent `{name}` has been started in this run")).hint(hint))
    }

    /// An agent by its name, or the agent of a named task: the one working on it, otherwise the last one.
    pub(crate) fn agent_or_task(&self, name: &str) -> Result<AgentName> {
        let attempts = self.attempts()?;
        let of_task = || attempts.iter().filter(|row| row.tasks.iter().any(|task| task.as_str() == name));
        let live = of_task().rev().find(|row| row.ended_at.is_none()).or_else(|| of_task().next_back());
        if let Some(row) = live {
            return Ok(row.name.clone());
        }
        if self.tasks()?.iter().any(|task| task.id.as_str() == name) {
            return Err(CliError::usage(format!("no agent has been started for task {name}")).hint("rekindle status"));
        }
        self.agent(name)
    }

    /// When the person gave the result of the run up; nothing where they did not.
    pub(crate) fn discarded_at(&self) -> Result<Option<Time>> {
        let events = self.reader.events_of(&[clean::CLEANED], 0, PAGE)?;
        let ours = |cleaned: &Cleaned| cleaned.run.as_ref().is_some_and(|run| run.as_str() == self.row.id);
        let gave_up = |event: &&StoredEvent| {
            clean::cleaned(std::slice::from_ref(*event)).any(|cleaned| cleaned.discarded && ours(&cleaned))
        };
        Ok(events.iter().rev().find(gave_up).map(|event| Time(event.time_ms)))
    }

    /// Says that the run's agent output was removed, and when; `None` if it was not.
    pub(crate) fn output_removed(&self) -> Result<Option<String>> {
        let events = self.reader.events_of(&[clean::CLEANED], 0, PAGE)?;
        let mut found = None;
        for event in &events {
            let of_run = clean::cleaned(std::slice::from_ref(event)).any(|cleaned| {
                let ours = cleaned.run.as_ref().is_some_and(|run| run.as_str() == self.row.id);
                ours && cleaned.parts.contains(&Part::Output)
            });
            found = if of_run { Some(Time(event.time_ms)) } else { found };
        }
        let Some(at) = found else { return Ok(None) };
        // A run that continued has output again.
        if self.attempts()?.iter().any(|attempt| attempt.started_at > at) {
            return Ok(None);
        }
        Ok(Some(format!("the output of run {} was removed by retention at {}", self.row.id, date_time(at))))
    }

    /// The last lines of one attempt, oldest first.
    pub(crate) fn last_lines(&self, attempt: AttemptId, count: usize) -> Result<Vec<StoredLine>> {
        Ok(self.reader.attempt_tail(attempt.0, count)?)
    }

    /// The last output of an attempt's agent, as evidence.
    pub(crate) fn last_output(&self, attempt: &AttemptRow) -> Result<Option<LastOutput>> {
        Ok(last_output::of(self.reader, attempt.attempt, &attempt.kind)?)
    }

    /// Lines of agents' output after a sequence number; returns that of the last one.
    pub(crate) fn lines(
        &self,
        agent: Option<&str>,
        after: u64,
        mut each: impl FnMut(&StoredLine) -> Result<()>,
    ) -> Result<u64> {
        let mut seq = after;
        loop {
            let page = self.reader.log_since(agent, seq, PAGE)?;
            let Some(last) = page.last() else {
                return Ok(seq);
            };
            seq = last.seq;
            page.iter().try_for_each(&mut each)?;
        }
    }

    /// Lines of one attempt after a sequence number, oldest first.
    pub(crate) fn lines_of(&self, attempt: AttemptId, after: u64, limit: usize) -> Result<Vec<StoredLine>> {
        Ok(self.reader.attempt_lines(attempt.0, after, limit)?)
    }

    /// Only the sequence numbers of those lines.
    pub(crate) fn places(&self, attempt: AttemptId, after: u64, limit: usize) -> Result<Vec<u64>> {
        Ok(self.reader.attempt_places(attempt.0, after, limit)?)
    }

    /// The last lines of agents' output, oldest first.
    pub(crate) fn tail(&self, agent: Option<&str>, count: usize) -> Result<Vec<StoredLine>> {
        Ok(self.reader.log_tail(agent, count)?)
    }

    /// The last lines of the run that hold every word of a query, oldest first.
    pub(crate) fn search(&self, query: &str, agent: Option<&str>, limit: usize) -> Result<Vec<StoredLine>> {
        let ours = self.attempt_numbers()?;
        let mut asked = limit;
        loop {
            // The index does not know runs: newer runs may fill the whole first answer.
            let mut found = self.reader.log_search(query, agent, asked)?;
            let all = found.len() < asked || asked >= SEARCH_MAX;
            found.retain(|line| ours.contains(&line.line.attempt));
            if all || found.len() >= limit {
                return Ok(found.split_off(found.len().saturating_sub(limit)));
            }
            asked = asked.saturating_mul(SEARCH_GROWS).min(SEARCH_MAX);
        }
    }

    /// The run's attempts, to tell its log lines from those of earlier runs.
    pub(crate) fn attempt_numbers(&self) -> Result<std::collections::BTreeSet<u64>> {
        Ok(self.attempts()?.iter().map(|attempt| attempt.attempt.0).collect())
    }

    /// The end for measuring the run's duration: when it ended, otherwise `now`.
    pub(crate) fn until(&self, now: Time) -> Time {
        self.row.ended_at.unwrap_or(now)
    }
}

/// The newest attempt of every agent, in the order in which the agents first appeared.
pub(crate) fn newest_of_each(attempts: Vec<AttemptRow>) -> Vec<AttemptRow> {
    let mut agents: Vec<AttemptRow> = Vec::new();
    let mut places: BTreeMap<AgentName, usize> = BTreeMap::new();
    for attempt in attempts {
        match places.get(&attempt.name) {
            Some(place) => agents[*place] = attempt,
            None => {
                places.insert(attempt.name.clone(), agents.len());
                agents.push(attempt);
            }
        }
    }
    agents
}

/// A task's name, checked before it is sent anywhere.
pub(crate) fn task_id(name: &str) -> Result<TaskId> {
    TaskId::new(name).map_err(|error| CliError::usage(format!("`{name}` is not a task id: {error}")))
}

fn rows<T: DeserializeOwned>(reader: &dyn Read, table: Table, run: Option<&str>) -> Result<Vec<T>> {
    let rows = reader.rows(table, run)?;
    rows.iter()
        .map(|row| {
            serde_json::from_str(&row.json).map_err(|error| {
                let message = format!("row {} of {table:?} cannot be read", row.key);
                CliError::internal(message).because(&error).hint("rebuild it by continuing the run: rekindle resume")
            })
        })
        .collect()
}
