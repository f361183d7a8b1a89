//! Every caller is answered: at once, or when what it waits for is decided. What is kept for callers is bounded.

use rekindle_core::ids::QuestionId;
use rekindle_core::report::Report;

use super::super::calls::Caller;
use super::super::world::Sim;
use super::{Invariant, Verdict, require};

/// Limit on callers that wait for one answer.
const WAITERS_EACH: usize = 16;

/// What a driver keeps besides the state for one live attempt: a few maps with an entry each.
const ENTRIES_EACH: usize = 8;

impl Sim {
    /// Everything that arrived was handled: callers only wait for what is not decided.
    pub fn check_answers(&mut self) {
        if !self.inbox.is_empty() {
            return;
        }
        let state = &self.checkers.replayed;
        let proving = || state.tasks.values().any(|task| task.claim.is_some() || task.workflow.merging.is_some());
        let open = |id: &QuestionId| state.questions.get(id).is_some_and(|question| question.answer.is_none());
        let may_wait = |caller: &Caller| match caller {
            Caller::Waits(_, question) => open(question),
            Caller::Report(_, Report::Done { .. } | Report::Verdict { .. }) => proving(),
            Caller::Stale(..) | Caller::Intruder(_) | Caller::Entitled => proving(),
            Caller::Report(..) | Caller::Asked(..) | Caller::Plain(_) | Caller::Pauses | Caller::Lander => false,
        };
        let forgotten = self.calls.waiting.iter().find(|(_, caller)| !may_wait(caller));
        let verdict = require(forgotten.is_none(), Invariant::Answered, || format!("not answered: {forgotten:?}"));
        let verdict = verdict.and_then(|()| self.few_are_held());
        self.checkers.judge(verdict);
    }

    fn few_are_held(&self) -> Verdict {
        let waiting = self.calls.waiting.values().filter_map(|caller| match caller {
            Caller::Waits(_, question) => Some(*question),
            _ => None,
        });
        let mut held: Vec<QuestionId> = waiting.chain(self.calls.hung_up.values().flatten().copied()).collect();
        held.sort_unstable();
        let most = held.chunk_by(|a, b| a == b).map(<[QuestionId]>::len).max().unwrap_or(0);
        require(most <= WAITERS_EACH, Invariant::Bounds, || format!("{most} callers are held for one answer"))
    }

    /// What is kept in memory belongs to what is alive, however much has ended.
    pub fn check_growth(&mut self, entries: usize) {
        let live = self.checkers.replayed.live_attempts().count();
        let most = ENTRIES_EACH * (live + 1) + self.calls.waiting.len() + self.calls.hung_up.len();
        let verdict = require(entries <= most, Invariant::Bounds, || {
            format!("the coordinator keeps {entries} entries for {live} living attempts")
        });
        let verdict = verdict.and_then(|()| {
            let watched = self.coordinator.watched.len();
            require(watched <= live, Invariant::Bounds, || format!("{watched} are watched, {live} live"))
        });
        self.checkers.judge(verdict);
    }
}
