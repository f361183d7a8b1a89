//! Signs of life: an agent is silent only when its output, the work of its process tree and its reports all stand still.
//!
//! Time during which no coordinator looked does not count: what is known begins when this one first looks.

use std::collections::BTreeMap;

use rekindle_core::ids::AttemptId;
use rekindle_core::state::{AttemptPhase, State};
use rekindle_core::time::Time;
use rekindle_shim::tree::Activity;

use crate::driver::{Driver, Message};
use crate::world::real::RealWorld;

/// Looks during one silence limit: a hang is noticed at most this fraction of the limit late.
const LOOKS_PER_LIMIT: u64 = 20;

/// Shortest time between two looks, so that a small limit does not turn into a busy loop.
const LOOK_MIN_MS: u64 = 250;

/// Longest time between two looks.
const LOOK_MAX_MS: u64 = 15_000;

/// What was last seen of an agent.
#[derive(Debug)]
struct Seen {
    alive_at: Time,
    output: u64,
    activity: Option<Activity>,
}

/// Watches for silence.
#[derive(Debug)]
pub struct Pulse {
    silence_ms: u64,
    looked_at: Option<Time>,
    seen: BTreeMap<AttemptId, Seen>,
}

impl Pulse {
    /// Agents silent for longer than this are hung.
    #[must_use]
    pub fn new(silence_ms: u64) -> Self {
        Self { silence_ms, looked_at: None, seen: BTreeMap::new() }
    }

    /// When to look next; never while nothing runs.
    #[must_use]
    pub fn due(&self, state: &State) -> Option<Time> {
        let running = state.attempts.values().any(|attempt| attempt.phase == AttemptPhase::Running);
        let every = (self.silence_ms / LOOKS_PER_LIMIT).clamp(LOOK_MIN_MS, LOOK_MAX_MS);
        running.then(|| self.looked_at.map_or(Time(0), |at| at.plus_ms(every)))
    }

    /// Looks at every running agent and tells which are silent.
    pub fn take(
        &mut self,
        now: Time,
        driver: &mut Driver<RealWorld>,
        heard: &BTreeMap<AttemptId, Time>,
    ) -> Vec<Message> {
        self.looked_at = Some(now);
        let running: Vec<AttemptId> = driver
            .state()
            .live_attempts()
            .filter(|(_, attempt)| attempt.phase == AttemptPhase::Running && attempt.stop.is_none())
            .map(|(id, _)| id)
            .collect();
        self.seen.retain(|id, _| running.contains(id));
        running.into_iter().filter_map(|id| self.look(now, id, driver.world(), heard.get(&id).copied())).collect()
    }

    fn look(&mut self, now: Time, id: AttemptId, world: &mut RealWorld, heard: Option<Time>) -> Option<Message> {
        let output = world.spool_bytes(id);
        let seen = self.seen.entry(id).or_insert(Seen { alive_at: now, output, activity: None });
        if output != seen.output {
            seen.alive_at = now;
            seen.output = output;
            // Whoever prints is alive: its processes need no look.
            seen.activity = None;
            return None;
        }
        if let Some(heard) = heard {
            seen.alive_at = seen.alive_at.max(heard);
        }
        // The process table is read only for agents that have been quiet for a while.
        if now.since_ms(seen.alive_at) < self.silence_ms / 2 {
            return None;
        }
        let activity = world.activity(id);
        if seen.activity.is_none() || activity != seen.activity {
            if seen.activity.is_some() {
                seen.alive_at = now;
            }
            seen.activity = activity;
            return None;
        }
        let quiet_ms = now.since_ms(seen.alive_at);
        let evidence = "no output, no processor time or I/O in its process tree, no report".to_owned();
        (quiet_ms >= self.silence_ms).then_some(Message::Silent { attempt: id, quiet_ms, evidence })
    }
}
