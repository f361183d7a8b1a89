//! What holds of every reader, whatever it is given: no panic, and no more activities and text than its input accounts for.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rekindle_core::activity::{Activity, Fold, Measure, Problem};
use rekindle_core::time::Time;
use rekindle_engine::agents::Reader;

use super::recordings::Step;

/// Activities that one line may give beside those for parts of it.
const PER_LINE: usize = 8;

/// Bytes of a line that one part of an answer takes at the least.
const BYTES_PER_PART: usize = 16;

/// Text that comes out for each byte that went in; what is shown may be escaped and repeated, a few times.
const TEXT_PER_BYTE: usize = 8;

/// Text that comes out of a line that has none: words of the adapter's own.
const TEXT_PER_LINE: usize = 1024;

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// The reader panicked on this line.
    Panicked(usize),
    /// This line gave so many activities.
    TooMany(usize, usize),
    /// By this line so much text had come out.
    TooLong(usize, usize),
}

impl Law {
    /// Reads the lines and tells the first law that breaks.
    pub fn check(reader: &mut dyn Reader, steps: &[Step]) -> Result<(), Self> {
        let (mut text_in, mut text_out) = (0, 0);
        for (at, step) in steps.iter().enumerate() {
            let given = AssertUnwindSafe(|| reader.line(step.source, &step.line, step.whole));
            let activities = catch_unwind(given).map_err(|_| Self::Panicked(at))?;
            if activities.len() > PER_LINE + step.line.len() / BYTES_PER_PART {
                return Err(Self::TooMany(at, activities.len()));
            }
            text_in += step.line.len();
            text_out += activities.iter().map(|activity| format!("{activity:?}").len()).sum::<usize>();
            if text_out > TEXT_PER_BYTE * text_in + TEXT_PER_LINE * (at + 1) {
                return Err(Self::TooLong(at, text_out));
            }
        }
        for code in [None, Some(0), Some(1)] {
            let given = AssertUnwindSafe(|| reader.end(code));
            let activities = catch_unwind(given).map_err(|_| Self::Panicked(steps.len()))?;
            if activities.len() > PER_LINE {
                return Err(Self::TooMany(steps.len(), activities.len()));
            }
        }
        Ok(())
    }
}

/// Everything that lines mean.
pub fn activities(reader: &mut dyn Reader, steps: &[Step]) -> Vec<Activity> {
    steps.iter().flat_map(|step| reader.line(step.source, &step.line, step.whole)).collect()
}

/// The ids of the sessions that lines tell.
pub fn sessions(reader: &mut dyn Reader, steps: &[Step]) -> BTreeSet<String> {
    let id = |activity| match activity {
        Activity::Session { id, .. } => Some(id),
        _ => None,
    };
    activities(reader, steps).into_iter().filter_map(id).collect()
}

/// What is known at the end of an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    session: Option<(String, Option<String>)>,
    measure: Measure,
    turns: usize,
    calls: usize,
    compactions: usize,
    failure: Option<(Problem, Option<Time>)>,
    result: Option<(bool, Option<String>)>,
}

/// What is known when all lines were read.
pub fn outcome(reader: &mut dyn Reader, steps: &[Step]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut fold = Fold::default();
    for activity in activities(reader, steps) {
        fold.take(&activity);
        match activity {
            Activity::Session { id, model } => outcome.session = Some((id, model)),
            Activity::Turn => outcome.turns += 1,
            Activity::CallStarted(_) => outcome.calls += 1,
            Activity::Compacted { .. } => outcome.compactions += 1,
            Activity::Failed(failure) => outcome.failure = Some((failure.problem, failure.resets_at)),
            Activity::Result { ok, text } => outcome.result = Some((ok, text)),
            _ => {}
        }
    }
    outcome.measure = fold.measure();
    outcome
}
