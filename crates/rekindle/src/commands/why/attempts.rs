//! One line for each attempt in `why`: which agent, how it was started and how it ended, instead of a line for every step of
//! its process.

use std::collections::BTreeMap;

use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;

use crate::story::chapters::Chapter;
use crate::ui::elapsed;

/// How attempts ended.
#[derive(Default)]
pub(super) struct Ends {
    ends: BTreeMap<AttemptId, End>,
}

#[derive(Default)]
struct End {
    at: Option<Time>,
    cause: &'static str,
    words: String,
    /// What follows: another attempt, and when.
    then: Option<String>,
}

impl Ends {
    /// Finds the ends of all attempts.
    pub(super) fn of(chapters: &[Chapter]) -> Self {
        let mut found = Self::default();
        for chapter in chapters {
            let Some(attempt) = chapter.attempt else { continue };
            let end = found.ends.entry(attempt).or_default();
            match &chapter.body {
                Body::Attempt(AttemptEvent::AttemptEnded { cause, .. }) => {
                    end.at = Some(Time(chapter.event.time_ms));
                    end.cause = cause.name();
                    end.words = cause.words();
                }
                Body::Task(TaskEvent::TaskRequeued { reason, counted, .. }) => {
                    let counts = if *counted { "" } else { "; this attempt does not count" };
                    end.then = Some(format!("{reason}{counts}"));
                }
                _ => {}
            }
        }
        found
    }

    /// How an attempt that started at `began` ended, in words.
    pub(super) fn told(&self, attempt: AttemptId, began: Time) -> String {
        let Some(end) = self.ends.get(&attempt) else { return "running".to_owned() };
        let Some(at) = end.at else { return "running".to_owned() };
        let took = elapsed(at.since_ms(began));
        let cause = end.cause.replace('_', " ");
        match (&end.then, end.cause) {
            (_, "completed") => format!("completed after {took}"),
            (Some(then), _) if then.contains(&end.words) => format!("{cause} after {took}: {then}"),
            (Some(then), _) => format!("{cause} after {took}: {}; {then}", end.words),
            (None, _) => format!("{cause} after {took}: {}", end.words),
        }
    }
}

/// Whether a step of an attempt's process is covered by the attempt's one line.
pub(super) fn is_folded(body: &Body) -> bool {
    matches!(
        body,
        Body::Attempt(
            AttemptEvent::Redispatched { .. }
                | AttemptEvent::AgentStarted { .. }
                | AttemptEvent::AttemptExited { .. }
                | AttemptEvent::AgentCrashed { .. }
                | AttemptEvent::AttemptEnded { .. }
        ) | Body::Task(TaskEvent::TaskStarted { .. } | TaskEvent::TaskRequeued { .. })
    )
}
