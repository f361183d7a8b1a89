//! Work that was not reported: rekindle checks it only after an end by choice, and accepts it only where a check failed
//! before, or on a person's word.

use rekindle_core::event::Event;
use rekindle_core::ids::AttemptId;
use rekindle_core::report::Baseline;
use rekindle_core::state::AttemptPhase;

use super::log::line;
use super::{Checkers, Invariant, Verdict, require};

impl Checkers {
    /// Whether an attempt exited by its own choice, according to the log.
    fn left_by_choice(&self, attempt: AttemptId) -> bool {
        self.replayed.attempts.get(&attempt).is_some_and(|found| {
            let well = found.exit.as_ref().is_some_and(|exit| exit.code == Some(0));
            found.phase == AttemptPhase::Exited && well && found.stop.is_none()
        })
    }

    /// rekindle checks work that its agent left without a report.
    pub(super) fn looked_at(&self, event: &Event, attempt: AttemptId) -> Verdict {
        let held = event.task.as_ref().and_then(|task| self.replayed.tasks.get(task));
        let held = held.is_some_and(|task| task.holder == Some(attempt) && task.claim.is_none());
        require(held && self.left_by_choice(attempt), Invariant::Unreported, || {
            format!("work is looked at that nobody left: {}", line(event))
        })
    }

    /// rekindle asks about such work, or with the words that its agent ended in.
    ///
    /// It asks about work once its checks have passed. What an operator ordered while they ran, even a stop of the agent
    /// that had exited, changes nothing about how it exited: the claim that was made then counts.
    pub(super) fn asked_about(&self, event: &Event, attempt: AttemptId, text: &str, takes_work: bool) -> bool {
        let words = self.replayed.attempts.get(&attempt).map(|found| found.cli_session.last_words.as_str());
        let of_claim = || event.task.as_ref().is_some_and(|task| self.left.contains(&(attempt, task.clone())));
        match takes_work {
            true => of_claim(),
            false => event.task.is_some() && self.left_by_choice(attempt) && words == Some(text),
        }
    }

    /// A person accepted the work.
    pub(super) fn confirmed(&self, event: &Event) -> Verdict {
        let said = event.task.as_ref().is_some_and(|task| self.truth.confirmed.contains(task));
        require(said, Invariant::Unreported, || format!("nobody said so: {}", line(event)))
    }

    /// The recorded results of the checks before the work are the real ones.
    pub(super) fn seen_before(&self, event: &Event, baseline: &Baseline) -> Verdict {
        let held = event.task.as_ref().and_then(|task| Some((self.replayed.tasks.get(task)?.holder?, task.clone())));
        let undone = held.is_some_and(|held| self.truth.undone.contains(&held));
        require(baseline.failed.is_none() || undone, Invariant::Unreported, || {
            format!("no check failed before: {}", line(event))
        })
    }

    /// A completion that was not reported rests on a check that failed before, or on a person's word.
    pub(super) fn taken(&self, event: &Event) -> Verdict {
        let task = event.task.as_ref().and_then(|id| Some((id, self.replayed.tasks.get(id)?)));
        let rests = task.is_some_and(|(id, task)| {
            let failed = task.workflow.baseline.as_ref().is_some_and(|baseline| baseline.failed.is_some());
            failed || self.truth.confirmed.contains(id) || self.truth.completed.contains(id)
        });
        require(rests, Invariant::Unreported, || format!("nothing shows that it was done: {}", line(event)))
    }
}
