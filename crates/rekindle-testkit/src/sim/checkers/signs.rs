//! Compares the stream events of agents with their spools: every event taken once, every session the one that was printed,
//! no agent started on an account that has to wait, no message without its event.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::activity::{Activity, Failure, Problem};
use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, Event, GateClosed, MachineEvent, PersonEvent, SessionEvent};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::state::Attempt;
use rekindle_core::time::Time;

use super::super::stream;
use super::super::world::Sim;
use super::{Checkers, Invariant, Verdict, require};

/// Beginning of the one question that rekindle asks on its own.
pub(super) const CREDENTIALS: &str = "the credentials of ";

/// The shortest wait between two probes of an account, however small the grace.
const SHORTEST_PROBE_MS: u64 = 10_000;

/// What was taken from the streams, according to the log.
#[derive(Debug, Default)]
pub(super) struct Taken {
    of: BTreeMap<AttemptId, Counts>,
    told: BTreeSet<(AttemptId, u32)>,
    closed: BTreeSet<AttemptId>,
    credentials: BTreeSet<QuestionId>,
    waits: BTreeMap<String, Wait>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    compactions: u64,
    failures: u64,
    turns: u64,
}

/// Why an account has to wait, by what its agents really said.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    until: Time,
    /// The end of the wait for a limit that named no reset. A reset that is named later replaces it.
    guess: Time,
    /// The named reset, by the wall clock.
    reset: Option<Time>,
    person: bool,
    /// A reset was named, by an agent or by the usage command: a limit that is hit again after it is probed sooner than one
    /// without any.
    named: bool,
}

impl Taken {
    pub(super) fn remember(&mut self, event: &Event) {
        match &event.body {
            Body::Session(SessionEvent::AgentCompacted(rekindle_core::event::AgentCompacted { attempt, .. })) => {
                self.of.entry(*attempt).or_default().compactions += 1
            }
            Body::Session(SessionEvent::AgentFailed { attempt, .. }) => {
                self.of.entry(*attempt).or_default().failures += 1
            }
            Body::Session(SessionEvent::TurnEnded { attempt, .. }) => self.of.entry(*attempt).or_default().turns += 1,
            Body::Session(SessionEvent::AgentTold { attempt, number, .. }) => {
                self.told.insert((*attempt, *number));
            }
            Body::Session(SessionEvent::InputClosed { attempt }) => {
                self.closed.insert(*attempt);
            }
            Body::Person(PersonEvent::QuestionAsked { id, text, .. }) if text.starts_with(CREDENTIALS) => {
                self.credentials.insert(*id);
            }
            Body::Person(PersonEvent::QuestionAnswered { id, .. }) if self.credentials.contains(id) => {
                self.waits.values_mut().for_each(|wait| wait.person = false);
            }
            _ => {}
        }
    }
}

impl Checkers {
    /// Whether a message follows from a durable event.
    pub fn allows_message(&self, attempt: AttemptId, number: u32) -> Verdict {
        let put_down = self.signs.told.contains(&(attempt, number));
        require(put_down, Invariant::DurableFirst, || format!("attempt {attempt} is told {number}, which nobody said"))
    }

    /// Whether the end of all messages follows from a durable event.
    pub fn allows_close(&self, attempt: AttemptId) -> Verdict {
        let put_down = self.signs.closed.contains(&attempt);
        require(put_down, Invariant::DurableFirst, || format!("the input of attempt {attempt} is closed"))
    }

    /// Failures of an attempt that are in the log.
    pub(super) fn failures_taken(&self, attempt: AttemptId) -> u64 {
        self.signs.of.get(&attempt).map_or(0, |counts| counts.failures)
    }

    /// Stream events that are in the log, and messages that were delivered.
    pub fn signs_taken(&self) -> u64 {
        let signs = self.signs.of.values().map(|counts| counts.compactions + counts.failures + counts.turns);
        signs.sum::<u64>() + self.truth.delivered.len() as u64
    }

    /// The question that rekindle asks on its own needs an agent that was refused.
    pub(super) fn refused(&self, attempt: AttemptId) -> Verdict {
        let refused = self.truth.refused.contains(&attempt);
        require(refused, Invariant::SignsExact, || format!("attempt {attempt} was never refused"))
    }

    /// Whether another agent may be started on an account: by what its agents said, and by the gate itself.
    pub(super) fn may_start(&self, now: Time, cli: &str) -> Verdict {
        let state = &self.replayed;
        let account = &state.limits.traits_of(cli).account;
        if let Some(wait) = self.signs.waits.get(account) {
            let reset = wait.reset.is_none_or(|reset| reset <= state.clocks.wall(now));
            let open = !wait.person && wait.until <= now && wait.guess <= now && reset;
            require(open, Invariant::GateHeld, || format!("`{cli}` is started at {now:?}, its account has {wait:?}"))?;
        }
        let Some(gate) = state.gates.get(account) else { return Ok(()) };
        let waits = gate.question.is_some() || gate.until.is_some_and(|until| until > now);
        require(!waits, Invariant::GateHeld, || format!("`{cli}` is started at {now:?} behind {gate:?}"))?;
        let of_account =
            |id: &AttemptId, other: &str| id.0 > gate.after && state.limits.traits_of(other).account == *account;
        // An attempt that waits for a person uses nothing of the account.
        let uses = |(id, found): &(AttemptId, &Attempt)| of_account(id, &found.cli) && !state.waits_for_person(*id);
        let running = state.live_attempts().filter(uses).count();
        require(running < gate.allowed as usize, Invariant::GateHeld, || format!("{running} at once behind {gate:?}"))
    }

    /// Whether the next probe of an account comes when it should: never before the reset, not later than the grace allows, and one
    /// step after the probe before it.
    pub(super) fn probes_in_time(&self, now: Time, closed: &GateClosed) -> Verdict {
        // If a provider is also overloaded, that is waited for too, however long it takes.
        let overloaded = closed.overloaded_until.is_some();
        let until = if overloaded { closed.limit_until } else { closed.until };
        require(closed.until == until.max(closed.overloaded_until), Invariant::GateHeld, || {
            format!("not the longer wait: {closed:?}")
        })?;
        let (Some(named), Some(until)) = (closed.reset, until) else { return Ok(()) };
        let reset = self.replayed.clocks.at_wall(named);
        let grace_ms = self.replayed.limits.usage.grace_ms;
        let latest = reset.plus_ms(grace_ms).max(now.plus_ms(grace_ms.max(SHORTEST_PROBE_MS)));
        let before = self.replayed.gates.get(&closed.account);
        // A gate that was closed under other limits, before a restart, keeps its time.
        let kept = before.is_some_and(|gate| gate.limit_until() == Some(until));
        require(kept || (reset <= until && until <= latest), Invariant::GateHeld, || {
            format!("out of time: {closed:?}")
        })?;
        let of_it = before.filter(|gate| gate.reset == Some(named)).map(|gate| gate.probe);
        let in_turn = of_it.is_none_or(|probe| closed.probe <= probe + 1) && closed.probe > 0;
        require(in_turn, Invariant::GateHeld, || format!("out of turn: {closed:?} after {before:?}"))
    }

    /// An attempt that was to resume a session and started another is being stopped.
    pub(super) fn sessions_kept(&self) -> Verdict {
        let strayed = self.replayed.live_attempts().find(|(_, found)| {
            let cli_session = &found.cli_session;
            let other = cli_session.resumes.is_some()
                && cli_session.session.is_some()
                && cli_session.resumes != cli_session.session;
            other && found.stop.is_none()
        });
        let Some((id, found)) = strayed else { return Ok(()) };
        Err((Invariant::SignsExact, format!("attempt {id} goes on in another session: {:?}", found.cli_session)))
    }
}

impl Sim {
    /// An attempt has ended and all of its output was read: its stream events are in the log, as often as it printed them.
    pub(super) fn check_signs(&mut self, attempt: AttemptId) {
        if !self.tells(attempt) {
            return;
        }
        let Some(bundle) = self.bundles.get(&attempt) else { return };
        let (mut printed, mut session) = (Counts::default(), None);
        let mut stormy = false;
        for activity in stream::read_all(&bundle.out) {
            match activity {
                Activity::Session { id, .. } => session = Some(id),
                Activity::Compacted { .. } => printed.compactions += 1,
                Activity::Failed(_) => printed.failures += 1,
                Activity::Result { .. } => printed.turns += 1,
                Activity::Retrying { .. } => stormy = true,
                _ => {}
            }
        }
        let mut taken = self.checkers.signs.of.get(&attempt).copied().unwrap_or_default();
        if stormy {
            // A program that retried for too long is recorded as failed, once.
            let more = taken.failures.saturating_sub(printed.failures);
            taken.failures -= more.min(1);
        }
        let recorded =
            self.checkers.replayed.attempts.get(&attempt).and_then(|found| found.cli_session.session.clone());
        let verdict = require(printed == taken, Invariant::SignsExact, || {
            format!("attempt {attempt} printed {printed:?}, {taken:?} was taken")
        });
        let verdict = verdict.and_then(|()| {
            require(session == recorded, Invariant::SignsExact, || {
                format!("attempt {attempt} printed session {session:?}, {recorded:?} is known")
            })
        });
        self.checkers.judge(verdict);
    }

    /// The wall clock is about to be set: what it has shown counts as waited for, whatever it shows next.
    pub(super) fn note_wall(&mut self, event: &Event) {
        let Body::Machine(MachineEvent::ClockMoved(_)) = &event.body else { return };
        let shown = self.checkers.replayed.clocks.wall(event.time);
        for wait in self.checkers.signs.waits.values_mut() {
            wait.reset = wait.reset.filter(|reset| *reset > shown);
        }
    }

    /// The usage command named a reset for accounts that are used up.
    pub(super) fn note_usage(&mut self, event: &Event) {
        let Body::Machine(MachineEvent::UsageSeen(left)) = &event.body else { return };
        let state = &self.checkers.replayed;
        let usage = &state.limits.usage;
        let wall = state.clocks.wall(event.time);
        let used_up = left.remaining_percent.is_some_and(|percent| percent <= usage.threshold_percent);
        let near = left.resets_at.is_some_and(|reset| reset.plus_ms(usage.grace_ms) > wall);
        if used_up && near {
            for cli in &usage.agents {
                let wait = self.checkers.signs.waits.entry(state.limits.traits_of(cli).account.clone()).or_default();
                (wait.named, wait.guess) = (true, event.time);
            }
        }
    }

    /// An attempt that ended on its own after a failure of its account: from here on the account has to wait.
    pub(super) fn note_wait(&mut self, event: &Event) {
        let Body::Attempt(AttemptEvent::AttemptEnded { attempt, cause, .. }) = &event.body else { return };
        let Some(found) = self.checkers.replayed.attempts.get(attempt) else { return };
        // Otherwise its end is attributed to an order of ours, or to a shim that died.
        let by_itself = found.stop.is_none() && found.exit.is_some() && *cause != Cause::Completed;
        let (true, true, Some(bundle)) = (by_itself, self.tells(*attempt), self.bundles.get(attempt)) else { return };
        let Some(failure) = last_failure(&stream::read_all(&bundle.out)) else { return };
        let state = &self.checkers.replayed;
        let (limits, wall) = (&state.limits, state.clocks.wall(event.time));
        let account = limits.traits_of(&found.cli).account.clone();
        let wait = self.checkers.signs.waits.entry(account).or_default();
        let until = match failure.problem {
            Problem::UsageLimit => {
                let near = |reset: &Time| reset.plus_ms(limits.usage.grace_ms) > wall;
                let reset = failure.resets_at.filter(near);
                let named = wait.named;
                wait.named |= reset.is_some();
                wait.reset = wait.reset.max(reset);
                match (reset, named) {
                    (Some(_), _) => wait.guess = event.time,
                    (None, true) => {}
                    (None, false) => wait.guess = event.time.plus_ms(limits.usage.default_wait_ms),
                }
                event.time
            }
            Problem::Overloaded => event.time.plus_ms(limits.backoff_ms),
            _ => event.time,
        };
        wait.until = wait.until.max(until);
        wait.person |= failure.problem == Problem::Auth;
    }
}

/// Whether a stop can follow only from an agent's stream events.
pub(super) fn follows_from_signs(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Compacted
            | Cause::CompactionLoop
            | Cause::ContextExhausted
            | Cause::StalledNoProgress
            | Cause::StartFailed { .. }
    )
}

/// The failure that an attempt's end is attributed to: the last one, unless the agent worked well after it.
fn last_failure(activities: &[Activity]) -> Option<Failure> {
    activities.iter().fold(None, |last, activity| match activity {
        Activity::Failed(failure) => Some(failure.clone()),
        Activity::Result { .. } => None,
        _ => last,
    })
}
