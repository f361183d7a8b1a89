//! What is remembered of the store between requests: the state opened once, pictures of runs, and the positions of lines in
//! long logs. Everything here blocks and belongs on a thread that may block.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rekindle_core::ids::AttemptId;
use rekindle_engine::clock;

use super::answer::Problem;
use crate::error::Result;
use crate::picture::lines::LineIndex;
use crate::picture::{Picture, RunReader};
use crate::project::Project;
use crate::view::{RunView, View};

/// A picture younger than this is used again: many pages that ask at once cost one read.
const FRESH_MS: i64 = 100;

/// Past runs whose pictures are kept: a person compares a few.
const EYES: usize = 8;

/// Logs whose line numbers are kept: one that was dropped is counted again.
const INDEXES: usize = 64;

/// The cache.
pub(super) struct RunCache {
    pub project: Project,
    /// The run that the server was started for; the newest where none was named.
    pub wanted: Option<String>,
    view: Mutex<Option<Arc<View>>>,
    eyes: Mutex<Vec<Kept>>,
    indexes: Mutex<BTreeMap<u64, Arc<Mutex<LineIndex>>>>,
}

/// A reader, by the run that it was requested for.
type Kept = (Option<String>, Arc<Mutex<Sight>>);

struct Sight {
    reader: RunReader,
    last: Option<Arc<Picture>>,
}

impl RunCache {
    pub(super) fn new(project: &Project, wanted: Option<String>) -> Self {
        let project = project.clone();
        Self { project, wanted, view: Mutex::default(), eyes: Mutex::default(), indexes: Mutex::default() }
    }

    /// The state; `None` before the first run.
    pub(super) fn view(&self) -> Result<Option<Arc<View>>> {
        let mut kept = lock(&self.view);
        if kept.is_none() && self.project.state_dir.try_exists().unwrap_or(true) {
            *kept = Some(View::open(&self.project)?).filter(View::has_store).map(Arc::new);
        }
        Ok(kept.clone())
    }

    /// The sequence number of the newest event.
    pub(super) fn head(&self) -> Result<u64> {
        self.view()?.map_or(Ok(0), |view| view.last_event())
    }

    /// The run that a request is about: the one it names, else the server's, else the newest.
    pub(super) fn asked<'a>(&'a self, named: Option<&'a str>) -> Option<&'a str> {
        named.filter(|name| !name.is_empty()).or(self.wanted.as_deref())
    }

    /// The picture of a run; `None` before the first one. With `now` it is read again however young the last one is. Fails
    /// when the store cannot be read, or there is no such run.
    pub(super) fn picture(&self, named: Option<&str>, now: bool) -> Result<Option<Arc<Picture>>> {
        let Some(view) = self.view()? else { return Ok(None) };
        let sight = self.sight(self.asked(named));
        let mut sight = lock(&sight);
        // However young, it is not used again once something has happened: a client that was told so asks because of it.
        let newest = view.last_event()?;
        let fresh = |last: &&Arc<Picture>| {
            let age = clock::wall().0.wrapping_sub(last.now.0).unsigned_abs();
            !now && last.seq == newest && age < FRESH_MS.unsigned_abs()
        };
        if let Some(last) = sight.last.as_ref().filter(fresh) {
            return Ok(Some(Arc::clone(last)));
        }
        sight.last = sight.reader.look()?;
        Ok(sight.last.clone())
    }

    fn sight(&self, wanted: Option<&str>) -> Arc<Mutex<Sight>> {
        let mut eyes = lock(&self.eyes);
        if let Some((_, sight)) = eyes.iter().find(|(run, _)| run.as_deref() == wanted) {
            return Arc::clone(sight);
        }
        if eyes.len() >= EYES {
            // The first one is the server's own, nearly always.
            eyes.remove(1);
        }
        let sight = Arc::new(Mutex::new(Sight { reader: RunReader::new(&self.project, wanted), last: None }));
        eyes.push((wanted.map(str::to_owned), Arc::clone(&sight)));
        sight
    }

    /// Reads something from the run that a request is about.
    pub(super) fn with_run<T>(
        &self,
        named: Option<&str>,
        ask: impl FnOnce(&RunView<'_>) -> Result<T>,
    ) -> Result<T, Problem> {
        let Some(view) = self.view()? else { return Err(no_run()) };
        let run = match self.asked(named) {
            Some(name) => Some(view.run_named(name)?),
            None => view.run()?,
        };
        let run = run.ok_or_else(no_run)?;
        Ok(ask(&run)?)
    }

    /// Reads something from an attempt's log with the index of its lines, after updating the index. Fails when there is no
    /// such attempt, or reading fails.
    pub(super) fn with_log<T>(
        &self,
        named: Option<&str>,
        attempt: u64,
        ask: impl FnOnce(&RunView<'_>, &LineIndex) -> Result<T>,
    ) -> Result<T, Problem> {
        // Asked every time: an attempt whose lines are known may belong to another run.
        let picture = self.picture(named, false)?.ok_or_else(no_run)?;
        if picture.attempt(AttemptId(attempt)).is_none() {
            return Err(Problem::absent(format!("there is no attempt {attempt} in this run")));
        }
        let index = self.remember(attempt);
        self.with_run(named, |run| {
            let index = {
                let mut index = lock(&index);
                index.grow(run)?;
                index.clone()
            };
            ask(run, &index)
        })
    }

    fn remember(&self, attempt: u64) -> Arc<Mutex<LineIndex>> {
        let mut indexes = lock(&self.indexes);
        if indexes.len() >= INDEXES {
            indexes.clear();
        }
        let index = || Arc::new(Mutex::new(LineIndex::new(AttemptId(attempt))));
        Arc::clone(indexes.entry(attempt).or_insert_with(index))
    }
}

/// The problem before the first run.
pub(super) fn no_run() -> Problem {
    Problem::absent("there is no run yet").hint("start one: rekindle run plan.md")
}

/// Locks; after a panic the contents are still only data that was read.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
