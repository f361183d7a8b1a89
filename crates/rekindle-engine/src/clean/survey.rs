//! What is left of every run, and what is known about it: measured, never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rekindle_core::event::{Body, Cleaned, MachineEvent};
use rekindle_core::retention::{Found, Part, Work as Where};
use rekindle_core::time::Time;
use rekindle_core::view::RunRow;

use super::bundles::Bundles;
use super::kept_outputs::Outputs;
use super::{Place, disk, tree};
use crate::driver;
use crate::git::{Repo, Work};
use crate::store::{self, Read, Table};

/// The event that records what was removed.
pub const CLEANED: &str = "cleaned";

/// Records that are read at once.
const RECORDS_MAX: usize = 100_000;

/// What is left of one run.
#[derive(Debug)]
pub struct Left {
    pub row: RunRow,
    pub found: Found,
    pub attempts: Vec<u64>,
    /// What is on record as removed.
    pub recorded: BTreeSet<Part>,
    pub recorded_discarded: bool,
    pub refs: usize,
    pub worktrees: usize,
    pub worktree_bytes: u64,
    pub(super) git: Option<Work>,
    has_bundles: bool,
    has_lines: bool,
    has_outputs: bool,
    has_work_branch: bool,
}

impl Left {
    /// Whether any of its output still exists.
    pub fn has_output(&self) -> bool {
        self.has_bundles || self.has_lines || self.has_outputs
    }

    /// Whether any of its work still exists.
    pub fn has_work(&self) -> bool {
        self.refs > 0 || self.worktrees > 0
    }

    /// Whether worktrees or branches of its own still exist.
    pub fn is_untidy(&self) -> bool {
        self.worktrees > 0 || self.has_work_branch
    }
}

/// Everything that is left, by run, oldest first.
#[derive(Debug)]
pub struct Survey {
    pub state_dir: PathBuf,
    pub runs: Vec<Left>,
    /// The size of the whole state directory.
    pub bytes: u64,
    pub(super) bundles: Bundles,
    pub(super) outputs: Outputs,
}

impl Survey {
    /// Inspects everything. `driven`: a coordinator holds the newest run. `discard` names runs whose work the person gives
    /// up.
    pub fn of(place: &Place, log: &dyn Read, driven: bool, discard: &BTreeSet<String>) -> Result<Self, store::Error> {
        let runs = runs(log)?;
        let recorded = recorded(log)?;
        let repo = Repo::of(&place.root).ok();
        let mut attempts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for row in log.rows(Table::Attempt, None)? {
            attempts.entry(row.run).or_default().extend(row.key.parse::<u64>().ok());
        }
        let run_of = attempts.iter().flat_map(|(run, all)| all.iter().map(|attempt| (*attempt, run.clone()))).collect();
        let bundles = Bundles::find(&place.state_dir, &run_of);
        let outputs = Outputs::find(log)?;
        let mut left = Vec::with_capacity(runs.len());
        for (nth, row) in runs.iter().enumerate() {
            let of_run =
                recorded.iter().filter(|cleaned| cleaned.run.as_ref().is_some_and(|run| run.as_str() == row.id));
            let mut one = Left {
                found: found(&runs, nth, driven),
                recorded: of_run.clone().flat_map(|cleaned| cleaned.parts.iter().copied()).collect(),
                recorded_discarded: of_run.clone().any(|cleaned| cleaned.discarded),
                attempts: attempts.remove(&row.id).unwrap_or_default(),
                row: row.clone(),
                refs: 0,
                worktrees: 0,
                worktree_bytes: 0,
                git: None,
                has_bundles: !bundles.of(&row.id).is_empty(),
                has_lines: false,
                has_outputs: !crate::evidence::there(&place.state_dir, &outputs.only_of(&row.id)).is_empty(),
                has_work_branch: false,
            };
            one.found.bytes = bundles.bytes(&row.id);
            one.found.discarded = one.recorded_discarded || discard.contains(&row.id);
            one.has_lines = one.has_any_line(log)?;
            one.look_at_git(repo.as_ref(), place);
            left.push(one);
        }
        let bytes = disk::used_in_all(&place.state_dir).bytes;
        Ok(Self { state_dir: place.state_dir.clone(), runs: left, bytes, bundles, outputs })
    }

    /// Attempts of runs that are over.
    pub fn ended_attempts(&self) -> BTreeSet<u64> {
        let over = self.runs.iter().filter(|left| left.found.over_at.is_some());
        over.flat_map(|left| left.attempts.iter().copied()).collect()
    }
}

impl Left {
    fn has_any_line(&self, log: &dyn Read) -> Result<bool, store::Error> {
        for attempt in &self.attempts {
            if !log.attempt_places(*attempt, 0, 1)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What git holds of it. If git cannot say, nothing of it is removed.
    fn look_at_git(&mut self, repo: Option<&Repo>, place: &Place) {
        let branch = self.row.work_branch.clone();
        let Some(repo) = repo else {
            self.found.work = if branch.is_some() { Where::Unknown } else { Where::None };
            return;
        };
        let work = Work::new(repo.clone(), &place.state_dir, &self.row.id, branch.as_deref().unwrap_or_default());
        let looked = work.and_then(|work| {
            let refs = work.own_refs()?;
            let at = work.whereabouts(self.row.work_base.as_deref(), self.row.landed.as_ref())?;
            Ok((work, refs, at))
        });
        match looked {
            Ok((work, refs, at)) => {
                self.found.work = at;
                self.refs = refs.len();
                self.has_work_branch = refs.iter().any(|(name, _)| name.starts_with("refs/heads/"));
                let keys = work.own_worktrees();
                self.worktrees = keys.len();
                let bytes = |key: &String| tree::measure(&work.path(key), &mut |_| true).bytes;
                self.worktree_bytes = keys.iter().map(bytes).sum();
                self.git = Some(work);
            }
            Err(_) => self.found.work = Where::Unknown,
        }
    }
}

/// Every run that the store knows, oldest first.
pub fn runs(log: &dyn Read) -> Result<Vec<RunRow>, store::Error> {
    let read = |row: store::Row| {
        serde_json::from_str(&row.json).map_err(|error| store::Error::Corrupt(format!("run {}: {error}", row.key)))
    };
    let mut rows: Vec<RunRow> = log.rows(Table::Run, None)?.into_iter().map(read).collect::<Result<_, _>>()?;
    rows.sort_by_key(|row| row.started_at);
    Ok(rows)
}

/// What is on record as removed.
pub fn recorded(log: &dyn Read) -> Result<Vec<Cleaned>, store::Error> {
    Ok(cleaned(&log.events_of(&[CLEANED], 0, RECORDS_MAX)?).collect())
}

/// The records of what was removed, from events.
pub fn cleaned(events: &[store::StoredEvent]) -> impl Iterator<Item = Cleaned> {
    events.iter().filter_map(|event| match driver::decode(event).ok()?.body {
        Body::Machine(MachineEvent::Cleaned(cleaned)) => Some(cleaned),
        _ => None,
    })
}

/// What the rows alone say about a run: whether it is over, and since when.
pub fn found(runs: &[RunRow], nth: usize, driven: bool) -> Found {
    let row = &runs[nth];
    let next: Option<Time> = runs.get(nth + 1).map(|next| next.started_at);
    let is_over = matches!(row.state.as_str(), "complete" | "failed");
    let over_at = match next {
        // A run that was never finished was given up when the next one started: only the newest can be continued.
        Some(next) => Some(row.ended_at.filter(|_| is_over).unwrap_or(next)),
        None if is_over && !driven => row.ended_at,
        None => None,
    };
    Found {
        run: row.id.clone(),
        over_at,
        complete: row.state == "complete",
        apart: row.work_branch.is_some(),
        work: Where::None,
        discarded: false,
        bytes: 0,
    }
}
