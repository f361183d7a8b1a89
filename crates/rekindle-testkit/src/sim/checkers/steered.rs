//! Compares what a person said with what agents were really given: a message counts as delivered once, to an agent that
//! really got it, and no agent misses one that was said before its start.

use rekindle_core::event::Event;
use rekindle_core::ids::AttemptId;
use rekindle_core::steering::{How, TellStage};

use super::super::world::Sim;
use super::{Checkers, Invariant, Verdict, require};

impl Sim {
    /// Judges an event about a person's message by what really happened.
    pub fn check_told(&mut self, event: &Event) {
        use rekindle_core::event::{AttemptEvent, Body, PersonEvent, RunEvent};
        if let (Body::Person(PersonEvent::Attached { by, .. }), Some(task)) = (&event.body, &event.task) {
            self.person.has(by.pid, task);
        }
        if let Body::Person(fact) = &event.body {
            self.check_phone(fact);
        }
        if matches!(event.body, Body::Run(RunEvent::RunStarted { .. })) {
            self.person.forget_held();
            self.phone.another_run();
        }
        let verdict = match &event.body {
            Body::Person(PersonEvent::Told { key, given_back: false, .. }) => self.was_said(key),
            Body::Person(PersonEvent::TellDelivered { number, attempt, how }) => self.has_it(*number, *attempt, *how),
            Body::Attempt(AttemptEvent::AttemptEnded { attempt, .. }) => self.checkers.was_told_all(*attempt),
            _ => Ok(()),
        };
        self.checkers.judge(verdict);
    }

    fn was_said(&self, key: &str) -> Verdict {
        require(self.person.said(key), Invariant::ToldOnce, || format!("nobody said {key}"))?;
        let before = self.checkers.replayed.steering.tells.values().filter(|tell| tell.key == key).count();
        require(before == 0, Invariant::ToldOnce, || format!("{key} was said once and is put down twice"))
    }

    fn has_it(&self, number: u64, attempt: AttemptId, how: How) -> Verdict {
        let Some(tell) = self.checkers.replayed.steering.tells.get(&number) else {
            return Err((Invariant::ToldOnce, format!("message {number} is delivered, which nobody said")));
        };
        match (how, tell.stage) {
            (How::Message, TellStage::Sent { attempt: to, number: sent }) if to == attempt => {
                let given = self.checkers.truth.delivered.contains(&(attempt, sent));
                require(given, Invariant::ToldOnce, || format!("attempt {attempt} was never given message {number}"))
            }
            (How::Prompt, TellStage::InPrompt { attempt: to }) if to == attempt => {
                let there = self.person.was_prompted(attempt, number);
                require(there, Invariant::ToldOnce, || format!("message {number} is not in attempt {attempt}'s prompt"))
            }
            (_, stage) => Err((Invariant::ToldOnce, format!("message {number} is delivered, and was {stage:?}"))),
        }
    }
}

impl Checkers {
    /// Whether an attempt that ran was given everything that was said about its first task before the attempt was decided.
    fn was_told_all(&self, attempt: AttemptId) -> Verdict {
        let state = &self.replayed;
        let Some(found) = state.attempts.get(&attempt).filter(|found| found.pid.is_some()) else { return Ok(()) };
        let Some(first) = found.tasks.first() else { return Ok(()) };
        let missed = state.steering.tells.iter().find(|(_, tell)| {
            let waits = matches!(tell.stage, TellStage::Waiting | TellStage::InPrompt { .. });
            waits && tell.at < found.dispatched_at && state.concerns(&tell.task, first)
        });
        require(missed.is_none(), Invariant::ToldOnce, || format!("attempt {attempt} ran without {missed:?}"))
    }
}
