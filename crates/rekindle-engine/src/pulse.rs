//! Liveness: an agent is silent only if its output, the activity of its process tree and its reports all stand still.
//!
//! Time during which no coordinator was watching does not count: what is known starts with this one's first check.

use std::collections::BTreeMap;

use rekindle_core::decide;
use rekindle_core::ids::AttemptId;
use rekindle_core::state::{AttemptPhase, State};
use rekindle_core::time::Time;
use rekindle_shim::tree::Activity;

use crate::driver::{Driver, Message};
use crate::world::World;

/// Checks during one silence limit: a hang is noticed at most two of them late.
const LOOKS_PER_LIMIT: u64 = 20;

/// Shortest time between two checks, so that a small limit does not turn into a busy loop.
const LOOK_MIN_MS: u64 = 250;

/// Longest time between two checks.
const LOOK_MAX_MS: u64 = 15_000;

/// Processor time that a program which waits for an answer spends on its own timers: the busiest of those measured took 3.6
/// % of a core while its provider hung. Only used for programs whose stream can be parsed.
const IDLE_CPU_PERCENT: u64 = 6;

/// Bytes per second that such a program reads and writes meanwhile; measured: up to 12 KiB.
const IDLE_IO_BYTES_PER_S: u64 = 32 * 1024;

/// The system's unit of processor time.
const TICK_MS: u64 = 10;

/// The text for an agent whose provider accepted a request and does not answer.
fn unanswered(quiet_ms: u64) -> String {
    format!("the model's provider had not answered for {} s; no tool was running", quiet_ms / 1000)
}

/// The last observation of an agent.
#[derive(Debug)]
struct Seen {
    alive_at: Time,
    output: u64,
    /// What its processes had used when it had been quiet for half of its limit.
    baseline: Option<(Time, Activity)>,
}

#[derive(Debug)]
pub struct Pulse {
    looked_at: Option<Time>,
    seen: BTreeMap<AttemptId, Seen>,
    /// How long the machine had been suspended at the last check.
    slept_ms: Option<u64>,
}

impl Pulse {
    pub fn new() -> Self {
        Self { looked_at: None, seen: BTreeMap::new(), slept_ms: None }
    }

    /// When to check next; never while nothing runs.
    pub fn due(&self, state: &State) -> Option<Time> {
        let running = state.attempts.values().filter(|attempt| attempt.phase == AttemptPhase::Running);
        let limit = running
            .map(|attempt| {
                let silence_ms = decide::silence_limit_ms(state, attempt);
                decide::answer_limit_ms(state, attempt).map_or(silence_ms, |answer_ms| answer_ms.min(silence_ms))
            })
            .min()?;
        let every = (limit / LOOKS_PER_LIMIT).clamp(LOOK_MIN_MS, LOOK_MAX_MS);
        Some(self.looked_at.map_or(Time(0), |at| at.plus_ms(every)))
    }

    /// Checks every running agent and returns which are silent.
    pub fn take<W: World>(&mut self, now: Time, driver: &mut Driver<W>) -> Vec<Message> {
        self.looked_at = Some(now);
        let state = driver.state();
        self.sleep_through(now, state.clocks.slept_ms);
        let running: Vec<Watched> = state
            .live_attempts()
            .filter(|(_, attempt)| attempt.phase == AttemptPhase::Running && attempt.stop.is_none())
            .filter(|(id, _)| !driver.is_gone(*id))
            .map(|(id, attempt)| Watched {
                id,
                limit_ms: decide::silence_limit_ms(state, attempt),
                answer_ms: decide::answer_limit_ms(state, attempt).filter(|_| driver.waits_for_model(id)),
                structured_output: state.limits.traits_of(&attempt.cli).structured_output,
                heard: driver.heard_from().get(&id).copied(),
            })
            .collect();
        self.seen.retain(|id, _| running.iter().any(|watched| watched.id == *id));
        let mut silent = Vec::new();
        for watched in running {
            if let Some(hung) = self.look(now, &watched, driver.world()) {
                let (quiet_ms, evidence) = match hung {
                    Hung::Silent(quiet_ms) => (quiet_ms, evidence(driver.open_call(watched.id))),
                    Hung::Unanswered(quiet_ms) => (quiet_ms, unanswered(quiet_ms)),
                };
                silent.push(Message::Silent { attempt: watched.id, quiet_ms, evidence });
            }
        }
        silent
    }

    /// Time during which the machine was suspended does not count as silence. A check may come before the suspension is
    /// known, so no observation may end up in the future.
    fn sleep_through(&mut self, now: Time, slept_ms: u64) {
        let more_ms = slept_ms.saturating_sub(self.slept_ms.unwrap_or(slept_ms));
        self.slept_ms = Some(slept_ms);
        if more_ms == 0 {
            return;
        }
        for seen in self.seen.values_mut() {
            seen.alive_at = seen.alive_at.plus_ms(more_ms).min(now);
            seen.baseline = None;
        }
    }

    /// Whether an agent has been silent for too long.
    fn look(&mut self, now: Time, watched: &Watched, world: &mut impl World) -> Option<Hung> {
        let id = watched.id;
        let output = world.written(id);
        let seen = self.seen.entry(id).or_insert(Seen { alive_at: now, output, baseline: None });
        if output != seen.output {
            // An agent that prints is alive: its processes need no check.
            *seen = Seen { alive_at: now, output, baseline: None };
            return None;
        }
        if let Some(heard) = watched.heard.filter(|heard| *heard > seen.alive_at) {
            *seen = Seen { alive_at: heard, output, baseline: None };
        }
        let quiet_ms = now.since_ms(seen.alive_at);
        // The process table is read only for agents that have been quiet for a while.
        if quiet_ms < watched.shortest_ms() / 2 {
            return None;
        }
        let Ok(activity) = world.activity(id) else {
            // Processes that cannot be inspected may be working: nothing is concluded, and that time proves nothing later.
            *seen =
                Seen { alive_at: seen.alive_at.max(now.minus_ms(watched.shortest_ms() / 2)), output, baseline: None };
            return None;
        };
        let activity = activity.unwrap_or_default();
        let Some((since, before)) = seen.baseline else {
            // Half of the limit is spent watching its processes, however late the first check of them was.
            seen.alive_at = seen.alive_at.max(now.minus_ms(watched.shortest_ms() / 2));
            seen.baseline = Some((now, activity));
            return None;
        };
        let window_ms = now.since_ms(since);
        if works(watched.structured_output, before, activity, window_ms) {
            *seen = Seen { alive_at: now, output, baseline: None };
            return None;
        }
        // Two checks in quick succession cannot distinguish work from idling.
        if window_ms < IDLE_WINDOW_MS.min(watched.shortest_ms() / 2) {
            return None;
        }
        let connection_ms = watched.answer_ms.and_then(|_| world.connections_quiet_ms(id));
        if let Some(heard) = connection_ms.map(|ms| now.minus_ms(ms)).filter(|heard| *heard > seen.alive_at) {
            // A model that thinks shows only as bytes on its connection.
            *seen = Seen { alive_at: heard, output, baseline: None };
        }
        verdict(now.since_ms(seen.alive_at), watched, connection_ms.is_some())
    }
}

/// How an agent hangs, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hung {
    /// It shows no activity at all.
    Silent(u64),
    /// It waits for its model, and nothing arrives over its connection.
    Unanswered(u64),
}

/// Whether an agent that has been quiet for this long hangs; `connected`: it has an open connection, which was quiet as
/// well.
fn verdict(quiet_ms: u64, watched: &Watched, connected: bool) -> Option<Hung> {
    let unanswered = watched.answer_ms.is_some_and(|answer_ms| connected && quiet_ms >= answer_ms);
    if unanswered {
        return Some(Hung::Unanswered(quiet_ms));
    }
    (quiet_ms >= watched.limit_ms).then_some(Hung::Silent(quiet_ms))
}

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}

/// What was checked, in words.
fn evidence(open_call: Option<String>) -> String {
    let looked = "no output, no processor time or I/O of its process tree beyond idling, no report";
    match open_call {
        Some(call) => format!("{looked}; in the middle of `{call}`"),
        None => looked.to_owned(),
    }
}

/// An agent that is watched.
struct Watched {
    id: AttemptId,
    limit_ms: u64,
    /// How long its model may take to send a byte, while the agent is known to wait only for that.
    answer_ms: Option<u64>,
    structured_output: bool,
    heard: Option<Time>,
}

impl Watched {
    fn shortest_ms(&self) -> u64 {
        self.answer_ms.map_or(self.limit_ms, |answer_ms| answer_ms.min(self.limit_ms))
    }
}

/// Whether processes did something between two checks. For a program about which nothing is known, any activity counts.
fn works(structured_output: bool, before: Activity, after: Activity, elapsed_ms: u64) -> bool {
    if !structured_output || before.processes != after.processes {
        return before != after;
    }
    let cpu_ms = after.cpu_ticks.saturating_sub(before.cpu_ticks).saturating_mul(TICK_MS);
    let io_bytes = after.io_bytes.saturating_sub(before.io_bytes);
    // Over a short time a single timer wake-up would look like work.
    let elapsed_ms = elapsed_ms.max(IDLE_WINDOW_MS);
    cpu_ms * 100 >= elapsed_ms * IDLE_CPU_PERCENT || io_bytes * 1000 >= elapsed_ms * IDLE_IO_BYTES_PER_S
}

/// Idle programs wake up in bursts seconds apart: a shorter window says nothing about how busy one is.
const IDLE_WINDOW_MS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemoryWorld;

    fn watched(answer_ms: Option<u64>) -> Watched {
        Watched { id: AttemptId(1), limit_ms: 300_000, answer_ms, structured_output: true, heard: None }
    }

    #[test]
    fn a_request_without_a_byte_is_hung_long_before_silence_is() {
        let waits = watched(Some(90_000));
        assert_eq!(verdict(89_999, &waits, true), None);
        assert_eq!(verdict(90_000, &waits, true), Some(Hung::Unanswered(90_000)));
        assert_eq!(
            unanswered(90_400),
            "the model's provider had not answered for 90 s; no tool was running",
            "the reason that `why` gives"
        );
    }

    #[test]
    fn without_a_connection_or_with_a_tool_at_work_silence_has_its_whole_time() {
        for (watched, connected) in [(watched(Some(90_000)), false), (watched(None), true)] {
            assert_eq!(verdict(299_999, &watched, connected), None);
            assert_eq!(verdict(300_000, &watched, connected), Some(Hung::Silent(300_000)));
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_silent() {
        let (mut pulse, silent) = (Pulse::new(), watched(None));
        let mut world = MemoryWorld { activity: None, ..MemoryWorld::default() };
        let mut look = |world: &mut MemoryWorld, s: i64| pulse.look(Time(s * 1_000), &silent, world);
        for s in (0..1_000).step_by(15) {
            assert_eq!(look(&mut world, s), None, "after {s} s");
        }
        world.activity = Some(Activity { cpu_ticks: 7, io_bytes: 7, processes: 1 });
        assert_eq!(look(&mut world, 1_000), None, "a first look");
        assert_eq!(look(&mut world, 1_015), None, "what it did before that look, nobody saw");
        assert_eq!(look(&mut world, 1_149), None, "half of the limit is not over since that look");
        assert_eq!(look(&mut world, 1_150), Some(Hung::Silent(300_000)), "it does nothing");
    }

    #[test]
    fn two_looks_in_quick_succession_conclude_nothing() {
        let (mut pulse, busy) = (Pulse::new(), watched(None));
        let mut world = MemoryWorld::default();
        let mut look = |at_ms: i64, ticks: u64| {
            world.activity = Some(Activity { cpu_ticks: ticks, io_bytes: 0, processes: 1 });
            pulse.look(Time(at_ms), &busy, &mut world)
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(400_000, 5_000), None, "the first look at its processes");
        assert_eq!(look(400_275, 5_027), None, "it worked all the time between");
        assert_eq!(look(405_000, 5_500), None, "and goes on");
        assert_eq!(look(560_000, 5_500), None);
        assert_eq!(look(711_000, 5_500), Some(Hung::Silent(301_000)), "until it does not");
    }

    #[test]
    fn a_sleep_that_is_known_late_hides_no_later_silence() {
        let (mut pulse, silent) = (Pulse::new(), watched(None));
        let mut world = MemoryWorld {
            activity: Some(Activity { cpu_ticks: 7, io_bytes: 7, processes: 1 }),
            ..MemoryWorld::default()
        };
        let night_ms = 8 * 3_600_000;
        let mut look = |at_ms: i64, slept_ms: u64| {
            pulse.sleep_through(Time(at_ms), slept_ms);
            pulse.look(Time(at_ms), &silent, &mut world)
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(night_ms, 0), None, "the machine woke up, and nobody has said so yet");
        assert_eq!(look(night_ms + 6_000, night_ms as u64), None, "its silence begins with the sleep's end");
        assert_eq!(look(night_ms + 200_000, night_ms as u64), None);
        assert_eq!(look(night_ms + 310_000, night_ms as u64), None, "half of the limit since its processes were seen");
        assert_eq!(look(night_ms + 350_000, night_ms as u64), Some(Hung::Silent(300_000)));
    }

    #[test]
    fn idling_is_no_work_and_work_is_no_idling() {
        let at = |cpu_ticks, io_bytes| Activity { cpu_ticks, io_bytes, processes: 3 };
        // What four programs were seen to use in five seconds while their provider hung.
        for (ticks, bytes) in [(3, 536), (3, 8_592), (18, 59_344), (12, 2_089)] {
            assert!(!works(true, at(100, 1_000), at(100 + ticks, 1_000 + bytes), 5_000), "{ticks} {bytes}");
        }
        assert!(works(true, at(100, 0), at(140, 0), 5_000), "a compiler");
        assert!(works(true, at(100, 0), at(100, 200_000), 5_000), "a download");
        assert!(works(true, at(100, 0), Activity { processes: 2, ..at(90, 0) }, 5_000), "a tool that ended");
        assert!(works(false, at(100, 0), at(101, 0), 5_000), "any program");
        assert!(!works(false, at(100, 0), at(100, 0), 5_000));
    }
}
