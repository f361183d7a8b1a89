//! Lines of an attempt's log by number, for views that jump around in a log of a million lines. The index remembers a
//! position every so many lines and finds the lines between from there.

use rekindle_core::ids::AttemptId;
use rekindle_engine::store::StoredLine;

use crate::error::Result;
use crate::view::RunView;

/// Lines between two remembered positions: a window is read from the one before it.
const STEP: usize = 256;

/// Places fetched at once while the index grows.
const PAGE: usize = 65_536;

/// Most lines of one window.
pub(crate) const WINDOW_MAX: usize = 2_000;

/// The lines of one attempt, by number.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    attempt: AttemptId,
    /// The place before line 0, before line `STEP`, and so on.
    steps: Vec<u64>,
    count: usize,
    last: u64,
}

impl LineIndex {
    /// An empty index of an attempt.
    pub(crate) fn new(attempt: AttemptId) -> Self {
        Self { attempt, steps: vec![0], count: 0, last: 0 }
    }

    /// How many lines there were at the last update.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds new lines.
    pub(crate) fn grow(&mut self, run: &RunView<'_>) -> Result<()> {
        loop {
            let places = run.places(self.attempt, self.last, PAGE)?;
            for place in &places {
                self.count += 1;
                self.last = *place;
                if self.count.is_multiple_of(STEP) {
                    self.steps.push(*place);
                }
            }
            if places.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Lines from a number on, at most [`WINDOW_MAX`]; numbers begin with 0.
    pub(crate) fn window(&self, run: &RunView<'_>, from: usize, many: usize) -> Result<Vec<StoredLine>> {
        if from >= self.count {
            return Ok(Vec::new());
        }
        let skip = from % STEP;
        let many = many.min(WINDOW_MAX);
        let mut lines = run.lines_of(self.attempt, self.steps[from / STEP], skip + many)?;
        lines.drain(..skip.min(lines.len()));
        Ok(lines)
    }

    /// The number of the line at a position, if it belongs to this attempt.
    pub(crate) fn number_of(&self, run: &RunView<'_>, place: u64) -> Result<Option<usize>> {
        let step = self.steps.partition_point(|before| *before < place).saturating_sub(1);
        let near = run.places(self.attempt, self.steps[step], STEP)?;
        Ok(near.iter().position(|found| *found == place).map(|at| step * STEP + at))
    }
}
