//! Limits on agents count the time that the machine was awake: an agent that slept with it has not used its time. Nor does a
//! working agent count as silent.

use rekindle_core::activity::Activity;
use rekindle_core::event::{AttemptEvent, Body, Event, SessionEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;

use super::super::stream;
use super::super::world::Sim;
use super::{Invariant, require};

/// Sleep shorter than this is not reported.
const SLACK_MS: u64 = 1_000;

/// A period in which the machine slept.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    /// Its end, by the story's own clock: a coordinator's clock restarts with every boot.
    pub until_ms: u64,
    /// How long.
    pub ms: u64,
}

impl Sim {
    /// Judges an end that time alone brought.
    pub(super) fn check_awake(&mut self, event: &Event) {
        let (attempt, since, limit_ms) = match &event.body {
            Body::Attempt(AttemptEvent::Dispatched { attempt, .. }) => {
                let at_ms = self.decided_ms(event.time);
                self.checkers.truth.dispatched.insert(*attempt, at_ms);
                return;
            }
            Body::Attempt(AttemptEvent::RoleTimeout { attempt, timeout_ms, .. }) => {
                (*attempt, self.checkers.truth.dispatched.get(attempt).copied(), *timeout_ms)
            }
            Body::Attempt(AttemptEvent::AgentHung { attempt, quiet_ms, .. }) => {
                // An event that was recorded at once is judged by what the agent is doing now.
                let at_once = self.decided_ms(event.time) == self.queue.now_ms();
                if at_once && self.is_busy(*attempt) {
                    let what = format!("attempt {attempt} works and is taken for silent");
                    return self.checkers.broken(Invariant::Awake, what);
                }
                let active_ms = self.bundles.get(attempt).map(|bundle| bundle.active_ms);
                // Processes are inspected only after half of the limit: what they did before that is no evidence.
                (*attempt, active_ms, *quiet_ms / 2)
            }
            Body::Session(SessionEvent::AgentFailed { attempt, .. }) => {
                (*attempt, self.storm_broken(*attempt), self.checkers.replayed.limits.silence_ms)
            }
            _ => return,
        };
        // Nothing from another boot is alive, and how long the machine was down is unknown: how such an attempt ends is
        // judged elsewhere. Nor has an attempt used time that never started.
        if self.bundles.get(&attempt).is_none_or(|bundle| bundle.boot != self.machine.boot) {
            return;
        }
        // What the agent did after the decision says nothing about it.
        let at_ms = self.decided_ms(event.time);
        let Some(since_ms) = since.filter(|since_ms| *since_ms <= at_ms) else { return };
        let between = |sleep: &&Sleep| sleep.until_ms > since_ms && sleep.until_ms <= at_ms;
        let slept_ms: u64 = self.checkers.truth.sleeps.iter().filter(between).map(|sleep| sleep.ms).sum();
        let awake_ms = (at_ms - since_ms).saturating_sub(slept_ms);
        let verdict = require(awake_ms + SLACK_MS >= limit_ms, Invariant::Awake, || {
            format!("attempt {attempt}: {} after {awake_ms} of {limit_ms} ms awake", event.body.name())
        });
        self.checkers.judge(verdict);
    }

    /// When the running coordinator decided something, by the story's own clock.
    fn decided_ms(&self, time: Time) -> u64 {
        let now_ms = self.queue.now_ms();
        now_ms.saturating_sub(self.machine.now(now_ms).since_ms(time))
    }

    /// Since when an agent was retrying, if it is recorded as failed without having reported so.
    fn storm_broken(&self, attempt: AttemptId) -> Option<u64> {
        let bundle = self.bundles.get(&attempt)?;
        let since = bundle.retrying_ms?;
        let printed = stream::read_all(&bundle.out).iter().filter(|told| matches!(told, Activity::Failed(_))).count();
        (self.checkers.failures_taken(attempt) > printed as u64).then_some(since)
    }
}
